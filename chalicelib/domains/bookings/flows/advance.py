"""What a visitor pays in advance for a service, as it is shown before booking."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from chalicelib.core.wire.schema import Wire
from chalicelib.domains.bookings.flows.holds import HOLD
from chalicelib.domains.payments.rules.payment_states import deposit
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine.reading import Rows
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.gateways.payments import stripe_units
from chalicelib.lib.currencies import RUB


class Advance(NamedTuple):
    amount_due: int = 0
    refund_until_min: int | None = None
    hold_minutes: int | None = None
    by_phone: bool = False  # cannot be paid online


class AdvanceOut(Wire):
    """What a visitor pays in advance for a service."""

    amount_due: int = Field(description="Minor units (kopecks) to pay in advance; 0: nothing.")
    refund_until_min: int | None = Field(
        description="Minutes before the start until which a cancellation is refunded, or null."
    )
    hold_minutes: int | None = Field(
        description="Minutes for which an unpaid booking is held at most, or null."
    )
    by_phone: bool = Field(description="Whether it is booked by phone only.")


class OfferOut(AdvanceOut):
    """What a service costs and how long it takes, with the cheapest of its resources."""

    duration_min: int = Field(description="Length in minutes, with the cheapest resource.")
    price: int = Field(
        description="Price in minor units of the workspace's currency (kopecks); the lowest, if it "
        "depends on the resource."
    )
    price_from: int | None = Field(
        description="Lowest price, if it depends on the resource; else null."
    )
    duration_from_min: int | None = Field(
        description="Shortest length, if it depends on the resource; else null."
    )


def advance_of(
    service: ServiceRow, offer: Offer, currency: str, *, takes_payments: bool
) -> Advance:
    """Return what a visitor pays in advance for an offer of a service.

    Without an account, a paid offer is by phone.
    """
    if not offer.is_prepaid:
        return Advance()
    if not takes_payments:
        return Advance(by_phone=True)
    terms = service.terms
    return Advance(
        deposit(offer.price, percent=terms.deposit_percent, step=stripe_units.step(currency)),
        terms.refund_until_min,
        round(HOLD.total_seconds() / 60),
    )


def sum_of(advances: Sequence[Advance]) -> Advance:
    """Return what a visitor pays in advance for a visit, which is paid and refunded as one."""
    if len(advances) == 1:
        return advances[0]
    if any(advance.by_phone for advance in advances):
        return Advance(by_phone=True)
    paid = [advance for advance in advances if advance.hold_minutes is not None]
    if not paid:
        return Advance()
    return Advance(
        sum(advance.amount_due for advance in paid),
        max(advance.refund_until_min or 0 for advance in paid),
        paid[0].hold_minutes,
    )


def read_advances(
    workspace_id: str,
    services: Sequence[ServiceRow],
    offers: Sequence[Offer],
    rows: Rows | None = None,
) -> Advance:
    """Return what a visitor pays in advance for a visit, with an offer of each service."""
    return sum_of(
        [
            read_advance(workspace_id, service, offer, rows)
            for service, offer in zip(services, offers, strict=True)
        ]
    )


def read_advance(
    workspace_id: str, service: ServiceRow, offer: Offer, rows: Rows | None = None
) -> Advance:
    """Return what a visitor pays in advance. Payments are looked up only for a paid offer."""
    takes_payments = offer.is_prepaid and (merchants.find_current(workspace_id, rows) is not None)
    currency = currency_of(workspace_id) if takes_payments else RUB
    return advance_of(service, offer, currency, takes_payments=takes_payments)
