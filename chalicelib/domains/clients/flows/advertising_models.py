"""Output models of the advertising to which clients have agreed."""

from typing import Self

from pydantic import Field

from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.clients.store.advertising_consents import AdvertisingConsentRow


class AdvertisingConsent(Wire):
    """An agreement of a client to e-mail that advertises, or its withdrawal."""

    at: Timestamp = Field(description="When.")
    state: str = Field(description="granted or withdrawn.")
    source: str = Field(
        description="Where: source of the booking; or console, key or link for a withdrawal."
    )
    label: str | None = Field(description="Text beside the box, as shown, or null.")
    version: str | None = Field(description="Version of the text, a hash of it, or null.")
    language: str | None = Field(description="Language of the text, or null.")
    email: str | None = Field(description="Address that was entered with it, or null.")
    booking_id: Id | None = Field(description="Booking with which the client agreed, or null.")

    @classmethod
    def from_entry(cls, entry: AdvertisingConsentRow) -> Self:
        return cls.from_row(entry.attribute_values)


class AdvertisingConsents(Wire):
    """To which advertising a client has agreed."""

    agrees: bool = Field(description="Whether an agreement is not withdrawn.")
    history: list[AdvertisingConsent] = Field(
        description="Agreements and withdrawals, oldest first, at most the newest 100."
    )

    @classmethod
    def from_entries(cls, entries: list[AdvertisingConsentRow]) -> Self:
        return cls(
            agrees=bool(advertising_consents.standing(entries)),
            history=list(map(AdvertisingConsent.from_entry, entries)),
        )
