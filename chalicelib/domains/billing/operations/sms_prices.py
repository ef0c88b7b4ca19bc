"""Prices of SMS: the operator sets them, and owners see what an SMS costs before they choose it."""

from typing import Annotated

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.plans import SMS_A_DAY
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import NoInput, Wire, optional
from chalicelib.domains.billing.store import sms_prices
from chalicelib.domains.identity.store import workspaces
from chalicelib.gateways import sms
from chalicelib.lib.contact_fields import Country

MAX_PRICE = 100_000  # kopecks; the dearest segments of providers cost a fiftieth


class SmsPrice(Wire):
    """The price of an SMS segment to a country."""

    country: Country = Field(description="ISO 3166 code of the country, such as RU.")
    kopecks: Annotated[int, Field(ge=1, le=MAX_PRICE)] | None = optional(
        "Kopecks of a segment; no SMS is sent to the country without a price."
    )


class SmsPrices(Wire):
    """Prices of an SMS segment."""

    prices: list[SmsPrice] = Field(description="Countries with a price, by code.")


class SmsTerms(Wire):
    """What an SMS to a client of the workspace costs."""

    is_on: bool = Field(description="Whether the operator has set up SMS.")
    country: str = Field(description="Country whose mobile numbers get SMS.")
    kopecks: int | None = Field(description="Kopecks of a segment, or null: no SMS is sent there.")
    most_a_day: int = Field(description="SMS that the workspace's plan admits in a day.")


@operation(
    title="Set the price of an SMS",
    audience=OPERATOR,
    platform=True,
    idempotent=True,
    example={"country": "RU", "kopecks": 800},
)
def set_sms_price(ctx: Context, args: SmsPrice) -> SmsPrice:
    """Set what a segment of an SMS to a country costs owners, or end SMS to it without an amount.

    SMS that are being sent keep the price that they had.
    """
    sms_prices.stage(ctx.unit, args.country, kopecks=args.kopecks)
    return SmsPrice(country=args.country, kopecks=args.kopecks)


@operation(title="List the prices of SMS", audience=OPERATOR, platform=True, example={})
def list_sms_prices(ctx: Context, args: NoInput) -> SmsPrices:
    """Return the price of an SMS segment by country."""
    prices = sms_prices.read_all()
    return SmsPrices(
        prices=[SmsPrice(country=country, kopecks=price) for country, price in prices.items()]
    )


@operation(title="Read the price of an SMS", role=Role.MEMBER, example={})
def get_sms_terms(ctx: Context, args: NoInput) -> SmsTerms:
    """Return what a segment of an SMS to a client costs, and how many are sent on a day at most."""
    workspace = workspaces.get(ctx.workspace_id)
    return SmsTerms(
        is_on=sms.is_on(),
        country=workspace.country,
        kopecks=sms_prices.find(workspace.country),
        most_a_day=SMS_A_DAY[workspace.plan],
    )
