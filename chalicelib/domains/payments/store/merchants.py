"""Store a workspace's account at a payment provider.

The current account has a fixed key. A former account is kept under its id, because its payments may
still be refunded.
"""

from pynamodb.attributes import (
    BooleanAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

SORT_KEY = "-"
HOOK_CLAIM = "payment-hook"
"""The kind of claim by which the address of a webhook leads to a workspace."""


class MerchantRow(ContentRow):
    """An account at a payment provider.

    ``merchant_id`` is random, and part of the webhook's address. ``sealed_secret`` is encrypted
    (``gateways.sealing``), and ``last_four`` are the last characters of the secret. ``vat_code``
    and ``tax_system_code`` are the provider's codes on receipts; without ``vat_code``, the provider
    sends no receipts. ``receipts_closed_by`` says who sends the closing receipt of a payment:
    ``service``, or the ``register`` of the business. ``is_imported`` says that the account came
    with a workspace from another stage, without its secret.
    """

    version = VersionAttribute()
    merchant_id = UnicodeAttribute()
    provider = UnicodeAttribute()
    shop_id = UnicodeAttribute()
    sealed_secret = UnicodeAttribute()
    last_four = UnicodeAttribute()
    vat_code = UnicodeAttribute(null=True)
    tax_system_code = UnicodeAttribute(null=True)
    receipts_closed_by = UnicodeAttribute(default="service")
    is_imported = BooleanAttribute(null=True)
    updated_at = UTCDateTimeAttribute()


def key(workspace_id: str) -> Key:
    """Return the key of a workspace's current account."""
    return Key(MerchantRow, _partition(workspace_id), SORT_KEY)


def find_current(workspace_id: str, rows: Rows | None = None) -> MerchantRow | None:
    """Return the account that takes a workspace's payments, or None."""
    place = key(workspace_id)
    if rows is not None:
        return rows.find(MerchantRow, place)
    return MerchantRow.find(place.pk, place.sk)


def find(workspace_id: str, merchant_id: str) -> MerchantRow | None:
    """Return a current or former account, or None."""
    current = find_current(workspace_id)
    if current is not None and current.merchant_id == merchant_id:
        return current
    return MerchantRow.find(_partition(workspace_id), merchant_id)


def find_former(workspace_id: str, provider: str, shop_id: str) -> MerchantRow | None:
    """Return the former account at a place, or None.

    A workspace that returns to an account keeps its address for notifications, and the new secret
    applies to earlier payments.
    """
    for row in MerchantRow.partition(_partition(workspace_id)):
        is_former = row.sk != SORT_KEY and not row.is_imported
        if is_former and (row.provider, row.shop_id) == (provider, shop_id):
            return row
    return None


def new_current(workspace_id: str) -> MerchantRow:
    """Return the row of a workspace's first account, to save."""
    return MerchantRow(_partition(workspace_id), SORT_KEY)


def stage_former(unit: UnitOfWork, merchant: MerchantRow) -> None:
    """Stage a copy of an account that another one replaces."""
    former = MerchantRow(_partition(unit.workspace_id), merchant.merchant_id)
    for name in merchant.attribute_values.keys() - {"pk", "sk", "version"}:
        setattr(former, name, getattr(merchant, name))
    unit.save(former)


def hook_claim(workspace_id: str, merchant_id: str) -> ClaimRow:
    """Return the claim that leads from the address of a webhook to the workspace."""
    return claim(HOOK_CLAIM, merchant_id, merchant_id, workspace_id)


def workspace_of_hook(merchant_id: str) -> str | None:
    """Return the workspace of a webhook's address, or None if the address is unknown."""
    return ClaimRow.workspace_of(HOOK_CLAIM, merchant_id)


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#MERCHANT"
