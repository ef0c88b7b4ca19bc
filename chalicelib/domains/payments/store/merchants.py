"""Store a workspace's account at a payment provider, and its former accounts."""

from datetime import datetime, timedelta

from pynamodb.attributes import (
    BooleanAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.domains.payments.rules.job_kinds import END_MERCHANT_SECRET, READ_RETURNS
from chalicelib.engine import jobs
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

# The current account has this key. A former account is kept under its id, because its payments may
# still be refunded.
SORT_KEY = "-"
# Time after which the secret of a former account is removed, whatever can be refunded.
FORMER_KEPT_FOR = timedelta(days=400)
RETURNS_READ_AFTER = timedelta(days=1)  # between two lists of refunds and disputes
# Time after which it is removed if nothing can be refunded. Late money arrives for 8 days.
FORMER_CHECKED_AFTER = timedelta(days=9)
# The kind of claim by which the address of a webhook leads to a workspace.
HOOK_CLAIM = "payment-hook"


class MerchantRow(ContentRow):
    """An account at a payment provider."""

    version = VersionAttribute()
    merchant_id = UnicodeAttribute()  # random, and part of the webhook's address
    provider = UnicodeAttribute()
    shop_id = UnicodeAttribute()
    sealed_secret = UnicodeAttribute()  # encrypted (``gateways.sealing``)
    last_four = UnicodeAttribute()  # characters of the secret
    # The provider's id, or None if no key was allowed to read it.
    account_id = UnicodeAttribute(null=True)
    is_test = BooleanAttribute(null=True)  # None in rows that are older than this fact
    returns_read_at = UTCDateTimeAttribute(null=True)  # when refunds and disputes were last listed
    replaced_at = UTCDateTimeAttribute(null=True)  # set if it is a former account
    secret_removed_at = UTCDateTimeAttribute(null=True)  # The secret is then empty.
    has_receipts = BooleanAttribute(null=True)  # The provider demands receipts.
    # When a payment was refused, of which the owner was told.
    refused_at = UTCDateTimeAttribute(null=True)
    vat_code = UnicodeAttribute(null=True)  # None if the provider sends no receipts
    closing_vat_code = UnicodeAttribute(null=True)  # the provider's code on closing receipts
    tax_system_code = UnicodeAttribute(null=True)
    receipts_closed_by = UnicodeAttribute(default="service")  # or ``register``, of the business
    # The account came with a workspace from another stage, without its secret.
    is_imported = BooleanAttribute(null=True)
    updated_at = UTCDateTimeAttribute()

    @property
    def secret_ends_at(self) -> datetime | None:
        return self.replaced_at and self.replaced_at + FORMER_KEPT_FOR


def key(workspace_id: str) -> Key:
    """Return the key of a workspace's current account."""
    return Key(MerchantRow, _partition(workspace_id), SORT_KEY)


def find_current(workspace_id: str, rows: Rows | None = None) -> MerchantRow | None:
    """Return the account that takes a workspace's payments, or None."""
    place = key(workspace_id)
    if rows is not None:
        return rows.find(MerchantRow, place)
    return MerchantRow.find(place.pk, place.sk)


def find(workspace_id: str, *, merchant_id: str) -> MerchantRow | None:
    """Return a current or former account, or None."""
    # An account may become the current one again between two reads.
    for _ in range(2):
        current = find_current(workspace_id)
        if current is not None and current.merchant_id == merchant_id:
            return current
        if (former := find_former(workspace_id, merchant_id=merchant_id)) is not None:
            return former
    return None


def find_former(workspace_id: str, *, merchant_id: str) -> MerchantRow | None:
    """Return a former account, or None."""
    return MerchantRow.find(_partition(workspace_id), merchant_id)


def is_replaced(merchant: MerchantRow) -> bool:
    """Whether an account of this stage was replaced by another one."""
    return merchant.sk != SORT_KEY and not merchant.is_imported


def read_all(workspace_id: str) -> list[MerchantRow]:
    """Return the current account and the former ones."""
    return MerchantRow.partition(_partition(workspace_id))


def new_current(workspace_id: str) -> MerchantRow:
    """Return the row of a workspace's first account, to save."""
    return MerchantRow(_partition(workspace_id), SORT_KEY)


def stage_former(unit: UnitOfWork, merchant: MerchantRow) -> None:
    """Stage a copy of an account that another one replaces, and the job that ends its secret."""
    former = MerchantRow(_partition(unit.workspace_id), merchant.merchant_id)
    for name in merchant.attribute_values.keys() - {"pk", "sk", "version"}:
        setattr(former, name, getattr(merchant, name))
    former.replaced_at = clock.now()
    unit.save(former)
    payload = {"merchantId": former.merchant_id}
    due = former.replaced_at + FORMER_CHECKED_AFTER
    # An account that is replaced twice within a moment has the same job.
    unit.save(
        jobs.row(END_MERCHANT_SECRET, unit.workspace_id, payload, due, job_id=former.merchant_id)
    )


def stage_returns_read(unit: UnitOfWork, merchant: MerchantRow, at: datetime) -> None:
    """Stage when refunds and disputes at the provider were listed."""
    unit.update(merchant, [MerchantRow.returns_read_at.set(at)])


def stage_refusal(unit: UnitOfWork, merchant: MerchantRow, at: datetime | None) -> None:
    """Stage that the owner was told of a refused payment, or that a payment was taken again."""
    path = MerchantRow.refused_at
    is_unchanged = path == merchant.refused_at if merchant.refused_at else path.does_not_exist()
    unit.update(merchant, [path.set(at) if at else path.remove()], is_unchanged)


def returns_job(workspace_id: str, *, merchant_id: str) -> jobs.JobRow:
    """Return the job that lists refunds and disputes at the provider for the first time."""
    due = clock.now() + RETURNS_READ_AFTER
    payload = {"merchantId": merchant_id}
    return jobs.row(READ_RETURNS, workspace_id, payload, due, job_id=merchant_id)


def stage_end_of_secret(unit: UnitOfWork, former: MerchantRow) -> None:
    """Stage the removal of the secret of a former account."""
    former.sealed_secret, former.secret_removed_at = "", clock.now()
    unit.save(former)


def hook_claim(workspace_id: str, *, merchant_id: str) -> ClaimRow:
    """Return the claim that leads from the address of a webhook to the workspace."""
    return claim(HOOK_CLAIM, name=merchant_id, target=merchant_id, workspace_id=workspace_id)


def workspace_of_hook(merchant_id: str) -> str | None:
    """Return the workspace of a webhook's address, or None if the address is unknown."""
    return ClaimRow.workspace_of(HOOK_CLAIM, name=merchant_id)


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#MERCHANT"
