"""Set up the account at a payment provider that takes a workspace's payments."""

from secrets import token_urlsafe
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, UpstreamFailedError, ValidationError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import NoInput, Pattern, Timestamp, Wire, optional, printable
from chalicelib.domains.identity.flows.second_factor import FactorCode, require_code
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.gateways.payments import ProviderError, UnknownOutcomeError

HOOK_PATH = "/api/public/payments/hooks/{merchant_id}"
SHOWN_CHARACTERS = 4

ShopId = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=100), AfterValidator(printable)
]
Secret = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=300),
    AfterValidator(printable),
]
Code = Annotated[
    str, StringConstraints(strip_whitespace=True), Pattern("[0-9]{1,2}", "one or two digits")
]


class MerchantOut(Wire):
    """An account at a payment provider, without its secret."""

    provider: str = Field(description="yookassa, stripe or test.")
    shop_id: str = Field(description="Shop id at YooKassa; empty for others.")
    last_four: str = Field(description="Last characters of the secret.")
    vat_code: str | None = Field(description="Code of the VAT rate on receipts, or null.")
    tax_system_code: str | None = Field(description="Code of the tax system, or null.")
    hook_url: str = Field(description="Address for the provider's notifications.")
    receipts_closed_by: str = Field(
        description="Who sends the closing receipt of a payment: service or register."
    )
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, merchant: MerchantRow) -> Self:
        """Return the wire form of a stored account."""
        path = HOOK_PATH.format(merchant_id=merchant.merchant_id)
        return cls.from_row(merchant.attribute_values, hook_url=settings().public_url + path)


class MerchantResult(Wire):
    """The account that takes payments."""

    merchant: MerchantOut | None = Field(description="The account, or null if none is set up.")


class MerchantSet(Wire):
    """The account that takes payments from now on."""

    provider: Literal["yookassa", "stripe", "test"] = Field(description="Payment provider.")
    shop_id: ShopId = Field(default="", description="Shop id at YooKassa; empty for others.")
    secret: Secret | None = optional("Secret key; omit it to keep the stored one.")
    vat_code: Code | None = optional("Code of the VAT rate on receipts; null: no receipts.")
    tax_system_code: Code | None = optional("Code of the tax system on receipts.")
    second_factor: FactorCode | None = optional("Code, if the account has a second factor.")


class MerchantCheck(Wire):
    """Whether an account works."""

    reason: str | None = Field(description="Why it does not work, or null if it works.")


@operation(title="Get the payment settings", role=Role.OWNER)
def get_merchant(ctx: Context, args: NoInput) -> MerchantResult:
    """Return the account that takes the workspace's payments, without its secret."""
    merchant = merchants.find_current(ctx.workspace_id)
    return MerchantResult(merchant=MerchantOut.from_record(merchant) if merchant else None)


@operation(
    title="Set up payments", role=Role.OWNER, open_world=True, idempotent=True, destructive=True
)
def set_merchant(ctx: Context, args: MerchantSet) -> MerchantResult:
    """Store the account that takes the workspace's payments, after a check of its secret."""
    if args.secret is not None:
        require_code(ctx, args.second_factor)
    return _set(ctx, args)


@operation(
    title="Set up payments to the platform",
    audience=OPERATOR,
    platform=True,
    open_world=True,
    idempotent=True,
    destructive=True,
)
def set_platform_merchant(ctx: Context, args: MerchantSet) -> MerchantResult:
    """Store the account to which balances are topped up, after a check of its secret."""
    return _set(ctx, args)


@operation(title="Check the payment settings", role=Role.OWNER, reads=True)
def check_merchant(ctx: Context, args: NoInput) -> MerchantCheck:
    """Ask the provider whether the stored secret works, which changes nothing."""
    merchant = merchants.find_current(ctx.workspace_id)
    if merchant is None:
        raise NotFoundError("Payments are not set up. Enter the account in the payment settings.")
    return MerchantCheck(reason=_problem(ctx.workspace_id, merchant))


def _set(ctx: Context, args: MerchantSet) -> MerchantResult:
    workspace_id = ctx.unit.workspace_id
    merchant = merchants.find_current(workspace_id)
    is_same = merchant is not None and _place(merchant) == (args.provider, args.shop_id)
    if args.provider == "yookassa" and not args.shop_id:
        raise ValidationError.of("shopId", "expected the shop id of YooKassa, received none")
    if args.secret is None and not is_same:
        raise ValidationError.of("secret", "expected the secret key of the account, received none")
    if merchant is None:
        merchant = merchants.new_current(workspace_id)
    elif not is_same:
        merchants.stage_former(ctx.unit, merchant)
    if not is_same:
        former = merchants.find_former(workspace_id, args.provider, args.shop_id)
        merchant.merchant_id = ctx.unit.run_side_effect_once("id", lambda: token_urlsafe(24))
        merchant.provider, merchant.shop_id = args.provider, args.shop_id
        if former is None:
            ctx.unit.create(merchants.hook_claim(workspace_id, merchant.merchant_id))
        else:
            merchant.merchant_id = former.merchant_id
            ctx.unit.delete(former)
    if args.secret is not None:
        merchant.sealed_secret = accounts.seal_secret(
            workspace_id, merchant.merchant_id, args.secret
        )
        merchant.last_four = args.secret[-SHOWN_CHARACTERS:]
        reason = ctx.unit.run_side_effect_once("check", lambda: _problem(workspace_id, merchant))
        if reason is not None:
            raise ValidationError.of("secret", reason)
    merchant.vat_code, merchant.tax_system_code = args.vat_code, args.tax_system_code
    merchant.updated_at = clock.now()
    ctx.unit.save(merchant)
    if workspace_id != PLATFORM:
        ctx.unit.mention(f"workspace:{workspace_id}")
    return MerchantResult(merchant=MerchantOut.from_record(merchant))


def _place(merchant: MerchantRow) -> tuple[str, str]:
    return merchant.provider, merchant.shop_id


def _problem(workspace_id: str, merchant: MerchantRow) -> str | None:
    """Return why an account does not work, or None.

    Raises:
        UpstreamFailedError: the provider did not respond.
    """
    try:
        return accounts.provider_of(workspace_id, merchant).check()
    except ProviderError as error:
        return error.reason
    except UnknownOutcomeError as error:
        msg = "The payment provider did not respond. Try again in a minute."
        raise UpstreamFailedError(msg) from error
