"""Wire models of visitors' bookings."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.core.messengers import Messenger
from chalicelib.core.wire.schema import (
    Id,
    Timestamp,
    Wire,
    has_at_least_one,
    only_if_set,
    optional,
)
from chalicelib.core.wire.times import When
from chalicelib.domains.booking_page.rules.advertising_texts import MAX_VERSION
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.flows.advance import Advance
from chalicelib.domains.bookings.flows.new_booking import Notes
from chalicelib.domains.bookings.flows.visit_search import AndThen
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.mails.flows.mail_gate import Forecast
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.lib import zoned_times
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

AdvertisingVersion = Annotated[str, StringConstraints(max_length=MAX_VERSION)]
MESSENGERS_OFFERED = (
    "telegram, max: messengers in which the client can get messages, if it links one."
)


class BookingContact(Wire):
    """Name and contact details of a client."""

    AT_LEAST_ONE_OF = ("phone", "email")

    name: PersonName = Field(description="Name of the client.")
    phone: PhoneText | None = optional("In any format; or email.")
    email: Email | None = optional("E-mail address.")

    @model_validator(mode="after")
    def _require_phone_or_email(self) -> Self:
        if not has_at_least_one(self):
            raise PydanticCustomError("no_contact", "expected phone, email or both")
        return self


class ShownTerms(Wire):
    """What the visitor was shown of a service.

    Without a resource, one with these terms is chosen.
    """

    price: int | None = optional("Price that was shown. If it differs: 409 changed.")
    duration_min: int | None = optional("Length that was shown, as above.")
    amount_due: int | None = optional("Minor units to pay in advance that were shown, as above.")
    refund_until_min: int | None = optional("Term of refunds that was shown, as above.")

    @classmethod
    def now(cls, offers: Sequence[Offer], advance: Advance) -> "ShownTerms":
        return ShownTerms(
            price=sum(offer.price for offer in offers),
            duration_min=sum(offer.duration_min for offer in offers),
            amount_due=advance.amount_due,
            refund_until_min=advance.refund_until_min,
        )


class PublicBookingCreate(ShownTerms):
    """A visitor's request for a booking."""

    service_id: Id = Field(description="Service id.")
    and_then: AndThen = Field(
        default=[], description="Ids of services that follow at once: one visit."
    )
    start_at: When = Field(description="startAt of a slot.")
    timezone: Timezone | None = optional("IANA zone of a time without an offset.")
    resource_id: Id | None = optional("Default: the free one with the fewest bookings.")
    client: BookingContact = Field(description="Name and contact details of the client.")
    notes: Notes | None = optional("Notes for the business.")
    advertising_version: AdvertisingVersion | None = optional(
        "Version of the advertisingTexts that was shown beside a box that the visitor has ticked."
    )


class PublicBookingOut(Wire):
    """Public data of a booking. Anyone with its token can read them.

    A visit of several services is one booking here. It has the names of all, and the sum of the
    prices.
    """

    id: Id = Field(description="Booking id.")
    status: str = Field(description="pending_payment, confirmed, cancelled, completed or no_show.")
    service_name: str = Field(description="Name of the service.")
    resource_name: str = Field(description="Name of the resource.")
    start_at: Timestamp = Field(description="Start, in UTC.")
    start_local: str = Field(description="Start with the offset of its zone.")
    end_at: Timestamp = Field(description="End, in UTC.")
    timezone: str = Field(description="IANA zone of the resource.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")

    @classmethod
    def from_record(cls, row: BookingRow) -> Self:
        return cls.from_row(
            row.values,
            start_at=row.starts_at,
            end_at=row.ends_at,
            start_local=zoned_times.local_time(row.starts_at, row.timezone).text,
        )

    @classmethod
    def from_visit(cls, visit: Sequence[BookingRow]) -> Self:
        """Return the bookings of a visit as one, or the only booking."""
        if len(visit) == 1:
            return cls.from_record(visit[0])
        shown = [row for row in visit if row.blocks] or list(visit)
        facts = bookings.facts_of(shown)
        return cls.from_record(shown[0]).model_copy(
            update={
                "id": visit[0].id,
                "service_name": facts.services,
                "resource_name": facts.resources,
                "end_at": facts.ends_at,
                "price": facts.price,
            }
        )


def parts_of(visit: Sequence[BookingRow]) -> list[PublicBookingOut] | None:
    """Return the bookings of a visit one by one, or None for a booking of one service."""
    return [PublicBookingOut.from_record(row) for row in visit] if len(visit) > 1 else None


class BookingLinks(Wire):
    """The links of a visitor's booking, and what is to be paid."""

    manage_url: str | None = Field(
        description="URL of the page that moves, cancels and pays it, or null. Keep it secret."
    )
    ics_url: str = Field(description="URL of its calendar file, which has no contact details.")
    payment_url: str | None = Field(description="URL of the page that pays it, or null.")
    amount_due: int = Field(description="Minor units (kopecks) to pay in advance now; 0: nothing.")
    hold_expires_at: Timestamp | None = Field(
        description="When the unpaid booking expires and the time is free again, or null."
    )
    visit: list[PublicBookingOut] | None = only_if_set(
        "The services of a visit in order; else left out."
    )

    @classmethod
    def from_record(
        cls,
        workspace_id: str,
        visit: Sequence[BookingRow],
        *,
        is_shared: bool = False,
        **fields: Any,  # noqa: ANN401  fields of any type
    ) -> Self:
        # Of a visit, the first booking has the links and the money.
        row = visit[0]
        # The holder of the link that a key gets (``is_shared``) must not get the client's own link.
        link = booking_links.shared_url if is_shared else booking_links.page_url
        payment_url = booking_links.pay_url(workspace_id, row) if row.is_payable else None
        return cls(
            manage_url=link(workspace_id, row),
            ics_url=booking_links.calendar_url(workspace_id, row),
            payment_url=payment_url,
            amount_due=int(row.due or 0) if payment_url else 0,
            hold_expires_at=row.hold_expires_at,
            visit=parts_of(visit),
            **{"booking": PublicBookingOut.from_visit(visit), **fields},
        )


class PublicBookingMade(BookingLinks):
    """A new booking with its links and its cancellation token."""

    booking: PublicBookingOut = Field(description="The booking.")
    cancel_token: str = Field(description="Token to cancel the booking. Keep it secret.")
    messengers: list[Messenger] = Field(description=MESSENGERS_OFFERED)
    mail: Forecast = Field(
        description="What becomes of the e-mail about it: sent, waiting (for a limit) or none."
    )


class BookingAwaitsMail(Wire):
    """A booking that waits for the visitor to open the link in an e-mail."""

    confirm_by_mail: bool = Field(default=True, description="true: the mail's link books.")
    expires_at: Timestamp = Field(description="When the link stops working.")
