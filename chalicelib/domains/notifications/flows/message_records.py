"""Read the records that messages to members are about, as they are now."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from chalicelib.application import records
from chalicelib.core.errors import NotFoundError
from chalicelib.core.events import INTERNAL_TYPES
from chalicelib.domains.billing.rules.spending_windows import LOW_BALANCES
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.payments.store import payments
from chalicelib.engine.listing.registry import listing_of

Record = dict[str, Any]


def read_records(workspace_id: str, event_type: str, record_id: str) -> Record | None:
    """Return the record of an event, or None if it is deleted.

    Raises:
        AppError: it could not be read.
    """
    if event_type not in INTERNAL_TYPES:
        return records.read(workspace_id, event_type, record_id)
    try:
        return _READERS[event_type.partition(".")[0]](workspace_id, record_id)
    except NotFoundError:
        return None


def _balance(_: str, account_id: str) -> Record:
    wallet = ledger.wallet(account_id)
    total = int(wallet.available + wallet.reserved)
    return {"status": "low" if total < LOW_BALANCES[0] else "enough", "kopecks": total}


def _bot(workspace_id: str, agent_id: str) -> Record:
    return {"id": agent_id, "name": listing_of("AGENT").require(workspace_id, agent_id).name}


def _booking(workspace_id: str, booking_id: str) -> Record | None:
    """Return a booking as the API shows it, with the kopecks of its refunds that have failed."""
    record = records.read(workspace_id, "booking.created", booking_id)
    if record is None:
        return None
    payment_ids = listing_of("BOOKING").require(workspace_id, booking_id).payment_ids or []
    refunds = payments.refunds_of(workspace_id, payment_ids)
    failed = sum(int(refund.amount) for refund in refunds if refund.status == payments.FAILED)
    return {**record, "status": "refund_failed" if failed else "refunded", "refund": failed}


def _key(workspace_id: str, key_id: str) -> Record:
    key = api_keys.require(key_id, workspace_id)
    return {
        "name": key.name,
        "masked": key.masked,
        "scopes": len(key.scopes),
        "email": accounts.get(key.account_id).email,
    }


def _connection(workspace_id: str, connection_id: str) -> Record:
    connection = connections.require(connection_id, workspace_id)
    return {
        "name": connection.client_name,
        "host": connection.client_host,
        "scopes": len(connection.scopes),
        "email": accounts.get(connection.account_id).email,
    }


def _member(workspace_id: str, account_id: str) -> Record:
    account, membership = accounts.get(account_id), workspaces.membership(account_id, workspace_id)
    role = membership.role if membership else None
    return {"name": account.name, "email": account.email, "role": role}


def _payment(workspace_id: str, payment_id: str) -> Record:
    payment = payments.require(workspace_id, payment_id)
    return {
        "description": payment.description,
        "kopecks": int(payment.amount),
        "reason": payment.reason,
    }


def _webhook(workspace_id: str, webhook_id: str) -> Record | None:
    row = listing_of("WEBHOOK").find(workspace_id, webhook_id)
    return row and {to_camel(name): value for name, value in row.values.items()}


_READERS: Mapping[str, Callable[[str, str], Record | None]] = {
    "balance": _balance,
    "booking": _booking,
    "bot": _bot,
    "connection": _connection,
    "key": _key,
    "member": _member,
    "payment": _payment,
    "webhook": _webhook,
}
"""Functions that read the record of an internal type, by the noun of the type."""
