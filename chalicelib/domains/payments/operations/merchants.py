"""Set up the account at a payment provider that takes a workspace's payments."""

from datetime import timedelta
from secrets import token_urlsafe
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import (
    InTestWorkspaceError,
    NotFoundError,
    UpstreamFailedError,
    ValidationError,
)
from chalicelib.core.limits import Limit
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import NoInput, Pattern, Timestamp, Wire, optional, printable
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.flows import accounts, former_accounts
from chalicelib.domains.payments.rules.receipt_codes import TAX_SYSTEMS, VAT_RATES
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.engine import limits, workspace_currency
from chalicelib.gateways.payments import (
    TAKES_RUBLES_ONLY,
    Account,
    ProviderError,
    UnknownOutcomeError,
)
from chalicelib.lib.currencies import RUB

HOOK_PATH = "/api/public/payments/hooks/{merchant_id}"
SHOWN_CHARACTERS = 4
# Without it, a member could try stolen keys of others through this service.
CHECKS = Limit("secret-checks", "checks of a secret key an hour", 10, timedelta(hours=1))

ShopId = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=100), AfterValidator(printable)
]
Secret = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=300),
    AfterValidator(printable),
]
MerchantId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
VatCode = Annotated[
    str, StringConstraints(strip_whitespace=True), Pattern("[1-9]|1[0-2]", "a code from 1 to 12")
]
TaxSystemCode = Annotated[
    str, StringConstraints(strip_whitespace=True), Pattern("[1-6]", "a code from 1 to 6")
]


class MerchantOut(Wire):
    """An account at a payment provider, without its secret."""

    provider: str = Field(description="yookassa, stripe or test.")
    shop_id: str = Field(description="Shop id at YooKassa; empty for others.")
    last_four: str = Field(description="Last characters of the secret.")
    vat_code: str | None = Field(description="Code of the VAT rate on receipts, or null.")
    closing_vat_code: str | None = Field(
        description="Code of the VAT rate on closing receipts; null: as vatCode."
    )
    tax_system_code: str | None = Field(description="Code of the tax system, or null.")
    wrong_codes: list[str] = Field(
        description="Fields whose stored code does not exist, so that receipts are refused."
    )
    refused_at: Timestamp | None = Field(
        description="Since when the provider refuses payments, or null."
    )
    account_id: str | None = Field(description="The provider's id of the account, or null.")
    is_test: bool | None = Field(description="Whether payments move no money; null: not known.")
    hook_url: str = Field(description="Address for the provider's notifications.")
    receipts_closed_by: str = Field(
        description="Who sends the closing receipt of a payment: service or register."
    )
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, merchant: MerchantRow) -> Self:
        path = HOOK_PATH.format(merchant_id=merchant.merchant_id)
        codes = {
            "vatCode": (merchant.vat_code, VAT_RATES),
            "closingVatCode": (merchant.closing_vat_code, VAT_RATES),
            "taxSystemCode": (merchant.tax_system_code, TAX_SYSTEMS),
        }
        return cls.from_row(
            merchant.attribute_values,
            hook_url=settings().public_url + path,
            wrong_codes=[
                name for name, (code, known) in codes.items() if code and code not in known
            ],
        )


class MerchantResult(Wire):
    """The account that takes payments."""

    merchant: MerchantOut | None = Field(description="The account, or null if none is set up.")


class FormerMerchantRef(Wire):
    """A former account."""

    id: MerchantId = Field(description="Last part of its address for notifications.")


class FormerMerchant(FormerMerchantRef):
    """A former account, whose secret is kept for refunds of its payments."""

    provider: str = Field(description="yookassa, stripe or test.")
    shop_id: str = Field(description="Shop id at YooKassa; empty for others.")
    account_id: str | None = Field(description="The provider's id of the account, or null.")
    is_test: bool | None = Field(description="Whether payments moved no money; null: not known.")
    last_four: str = Field(description="Last characters of the secret.")
    replaced_at: Timestamp | None = Field(description="When another account replaced it, or null.")
    secret_ends_at: Timestamp | None = Field(
        description="When its secret is removed at the latest, or null."
    )
    secret_removed_at: Timestamp | None = Field(
        description="When its secret was removed, or null if it is stored."
    )

    @classmethod
    def from_record(cls, merchant: MerchantRow) -> Self:
        return cls.from_row(
            merchant.attribute_values,
            id=merchant.merchant_id,
            secret_ends_at=merchant.secret_ends_at,
        )


class FormerMerchants(Wire):
    """Former accounts."""

    merchants: list[FormerMerchant] = Field(description="The accounts, latest first.")


class FormerMerchantUse(Wire):
    """A former account, and what its secret is still needed for."""

    merchant: FormerMerchant = Field(description="The account.")
    refundable_payments: int = Field(description="Payments that can be refunded, at most 1,000.")
    refundable: int = Field(description="Their sum that can be refunded, in minor units (kopecks).")
    open_payments: int = Field(description="Payments that clients may still make.")


class MerchantSet(Wire):
    """The account that takes payments from now on."""

    provider: Literal["yookassa", "stripe", "test"] = Field(description="Payment provider.")
    shop_id: ShopId = Field(default="", description="Shop id at YooKassa; empty for others.")
    secret: Secret | None = optional("Secret key; omit it to keep the stored one.")
    vat_code: VatCode | None = optional("Code of the VAT rate on receipts; null: no receipts.")
    closing_vat_code: VatCode | None = optional(
        "Code of the VAT rate on the closing receipt, if it differs from vatCode."
    )
    tax_system_code: TaxSystemCode | None = optional("Code of the tax system on receipts.")


class MerchantCheck(Wire):
    """Whether an account works."""

    reason: str | None = Field(description="Why it does not work, or null if it works.")


@operation(title="Get the payment settings", role=Role.OWNER)
def get_merchant(ctx: Context, args: NoInput) -> MerchantResult:
    """Return the account that takes the workspace's payments, without its secret."""
    merchant = merchants.find_current(ctx.workspace_id)
    return MerchantResult(merchant=MerchantOut.from_record(merchant) if merchant else None)


@operation(
    title="Set up payments",
    role=Role.OWNER,
    open_world=True,
    idempotent=True,
    destructive=True,
    confirm=confirmed(),
)
def set_merchant(ctx: Context, args: MerchantSet) -> MerchantResult:
    """Store the account that takes the workspace's payments, after a check of its secret."""
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
        raise NotFoundError(
            "Payments are not set up. Enter the account in the payment settings.",
            key="payment_account",
        )
    return MerchantCheck(reason=_problem(ctx, merchant))


@operation(title="List former payment accounts", role=Role.OWNER, reads=True)
def list_former_merchants(ctx: Context, args: NoInput) -> FormerMerchants:
    """Return the accounts that took the workspace's payments before, without their secrets."""
    rows = [row for row in merchants.read_all(ctx.workspace_id) if merchants.is_replaced(row)]
    rows.sort(key=lambda row: row.replaced_at or row.updated_at, reverse=True)
    return FormerMerchants(merchants=list(map(FormerMerchant.from_record, rows)))


@operation(
    title="Get a former payment account",
    role=Role.OWNER,
    reads=True,
    example={"id": "FORMER_MERCHANT_ID"},
)
def get_former_merchant(ctx: Context, args: FormerMerchantRef) -> FormerMerchantUse:
    """Return a former account, and what its secret is still needed for."""
    former = _require_former(ctx.workspace_id, merchant_id=args.id)
    needs = former_accounts.read_needs(ctx.workspace_id, merchant_id=former.merchant_id)
    return FormerMerchantUse(merchant=FormerMerchant.from_record(former), **needs._asdict())


@operation(
    title="Remove the secret of a former payment account",
    role=Role.OWNER,
    idempotent=True,
    destructive=True,
    confirm=confirmed(),
    example={"id": "FORMER_MERCHANT_ID"},
)
def remove_merchant_secret(ctx: Context, args: FormerMerchantRef) -> FormerMerchants:
    """Remove the secret of a former account, whose payments are then refunded at the provider."""
    former = _require_former(ctx.workspace_id, merchant_id=args.id)
    if former.secret_removed_at is None:
        merchants.stage_end_of_secret(ctx.unit, former)
        ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    return FormerMerchants(merchants=[FormerMerchant.from_record(former)])


def _require_former(workspace_id: str, *, merchant_id: str) -> MerchantRow:
    former = merchants.find_former(workspace_id, merchant_id=merchant_id)
    if former is None or not merchants.is_replaced(former):
        raise NotFoundError(
            "No former account has this id. List the former payment accounts.",
            key="payment_account",
        )
    return former


def _set(ctx: Context, args: MerchantSet) -> MerchantResult:
    workspace_id = ctx.unit.workspace_id
    merchant = merchants.find_current(workspace_id)
    is_same = merchant is not None and _place(merchant) == (args.provider, args.shop_id)
    if is_test(workspace_id) and args.provider != "test":
        msg = "A test workspace takes payments at the provider test only."
        raise InTestWorkspaceError(msg, key="payment_provider")
    if workspace_id != PLATFORM:
        _stage_currency(ctx, args)
    if args.provider == "yookassa" and not args.shop_id:
        raise ValidationError.of(
            "shopId", message="expected the shop id of YooKassa, received none", key="required"
        )
    if args.secret is None and not is_same:
        raise ValidationError.of(
            "secret",
            message="expected the secret key of the account, received none",
            key="required",
        )
    if args.secret is not None:
        merchant = _stage_secret(ctx, args, merchant, args.secret)
    assert merchant is not None  # noqa: S101  without a secret, it is the stored account
    if merchant.has_receipts and args.vat_code is None:
        problem = "expected a code, because this shop sends receipts, received none"
        raise ValidationError.of("vatCode", message=problem)
    merchant.vat_code, merchant.tax_system_code = args.vat_code, args.tax_system_code
    merchant.closing_vat_code, merchant.refused_at = args.closing_vat_code, None
    merchant.updated_at = clock.now()
    ctx.unit.save(merchant)
    if workspace_id != PLATFORM:
        ctx.unit.mention(f"workspace:{workspace_id}")
    return MerchantResult(merchant=MerchantOut.from_record(merchant))


def _stage_currency(ctx: Context, args: MerchantSet) -> None:
    workspace = workspaces.get(ctx.workspace_id)
    takes_rubles_only = args.provider in TAKES_RUBLES_ONLY
    if takes_rubles_only and workspace.currency != RUB:
        message = (
            f"expected a provider that takes {workspace.currency}, the currency of the workspace, "
            f"received {args.provider}, which takes rubles only. Choose Stripe"
        )
        raise ValidationError.of("provider", message=message, key="provider_currency")
    if takes_rubles_only != bool(workspace.takes_rubles_only):
        workspace_currency.stage_provider(
            ctx.unit, workspace.currency, takes_rubles_only=takes_rubles_only
        )


def _stage_secret(
    ctx: Context, args: MerchantSet, current: MerchantRow | None, secret: str
) -> MerchantRow:
    # A secret of another account leaves a copy of the current one, whose payments may be refunded.
    workspace_id = ctx.unit.workspace_id
    account, same = ctx.unit.run_side_effect_once("account", lambda: _inspect(ctx, args))
    if workspace_id == PLATFORM and account.is_test and settings().payments_live:
        problem = "expected a live key, received a test key. With it, top-ups would move no money"
        raise ValidationError.of("secret", message=problem)
    row = current or merchants.new_current(workspace_id)
    if current is None or current.merchant_id != same:
        if current is not None:
            merchants.stage_former(ctx.unit, current)
        former = merchants.find_former(workspace_id, merchant_id=same) if same else None
        if former is None:
            row.merchant_id = ctx.unit.run_side_effect_once("id", lambda: token_urlsafe(24))
            ctx.unit.create(merchants.hook_claim(workspace_id, merchant_id=row.merchant_id))
            row.account_id = None
        else:
            # The address for notifications stays, and the secret applies to earlier payments.
            row.merchant_id, row.account_id = former.merchant_id, former.account_id
            ctx.unit.delete(former)
        row.replaced_at = row.secret_removed_at = None
        ctx.unit.save(merchants.returns_job(workspace_id, merchant_id=row.merchant_id))
        row.returns_read_at = former.returns_read_at if former else clock.now()
    row.provider, row.shop_id = args.provider, args.shop_id
    row.account_id, row.is_test = account.account_id or row.account_id, account.is_test
    row.has_receipts = account.has_receipts
    row.sealed_secret = accounts.seal_secret(
        workspace_id, merchant_id=row.merchant_id, secret=secret
    )
    row.last_four = secret[-SHOWN_CHARACTERS:]
    return row


def _inspect(ctx: Context, args: MerchantSet) -> tuple[Account, str | None]:
    workspace_id = ctx.unit.workspace_id
    _count_check(ctx)
    place = {"provider": args.provider, "shop_id": args.shop_id}
    try:
        client = accounts.provider_at(workspace_id, **place, secret=args.secret or "")
        account = client.inspect()
        same = accounts.find_same(workspace_id, client, account, **place)
    except ProviderError as error:
        raise ValidationError.of("secret", message=error.reason) from error
    except UnknownOutcomeError as error:
        msg = "The payment provider did not respond. Try again in a minute."
        raise UpstreamFailedError(msg, key="payment_provider") from error
    return account, same.merchant_id if same else None


def _place(merchant: MerchantRow) -> tuple[str, str]:
    return merchant.provider, merchant.shop_id


def _count_check(ctx: Context) -> None:
    # The provider is asked afterwards, so that no answer is free.
    if ctx.principal.limited:
        limits.take(CHECKS, ctx.unit.workspace_id)


def _problem(ctx: Context, merchant: MerchantRow) -> str | None:
    _count_check(ctx)
    try:
        accounts.provider_of(ctx.unit.workspace_id, merchant).inspect()
    except ProviderError as error:
        return error.reason
    except UnknownOutcomeError as error:
        msg = "The payment provider did not respond. Try again in a minute."
        raise UpstreamFailedError(msg, key="payment_provider") from error
    return None
