"""Read the records that messages to members are about, as they are now."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from pydantic.alias_generators import to_camel

from chalicelib.application import records
from chalicelib.core.errors import NotFoundError
from chalicelib.core.events import INTERNAL_TYPES
from chalicelib.domains.billing.rules.spending_windows import LOW_BALANCES
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.tables import Record as Stored

Record = dict[str, Any]


def read_records(workspace_id: str, *, event_type: str, record_id: str) -> Record | None:
    """Return the record of an event, or None if it is deleted. Raises AppError if a read fails."""
    try:
        if read := _READERS.get(event_type):
            return read(workspace_id, record_id)
        if event_type not in INTERNAL_TYPES:
            return records.read(workspace_id, event_type=event_type, record_id=record_id)
        return _READERS[event_type.partition(".")[0]](workspace_id, record_id)
    except NotFoundError:
        return None


def _balance(_: str, account_id: str) -> Record:
    wallet = ledger.wallet(account_id)
    total = int(wallet.available + wallet.reserved)
    return {"status": "low" if total < LOW_BALANCES[0] else "enough", "kopecks": total}


def _bot(workspace_id: str, agent_id: str) -> Record:
    return {
        "id": agent_id,
        "name": listing_of("AGENT").require(workspace_id, record_id=agent_id).name,
    }


def _moved(workspace_id: str, booking_id: str) -> Record | None:
    record = records.read(workspace_id, event_type="booking.moved", record_id=booking_id)
    moves = [entry["move"] for entry in (record or {}).get("statusHistory", ()) if entry["move"]]
    if record is None or not moves:
        return record
    former = moves[-1]["from"]
    zone = ZoneInfo(record["timezone"])
    local = datetime.fromisoformat(former["startAt"]).astimezone(zone).isoformat()
    return {**record, "formerResourceId": former["resourceId"], "formerStart": local}


def _visit(workspace_id: str, booking_id: str) -> Record | None:
    """Return a booking, with the names of all services of the visit that is paid with it."""
    record = records.read(workspace_id, event_type="booking.created", record_id=booking_id)
    if record is None or "visitId" not in record:
        return record
    booking = listing_of("BOOKING").require(workspace_id, record_id=booking_id)
    facts = bookings.facts_of(bookings.visit_of(workspace_id, booking))
    return {**record, "serviceName": facts.services, "resourceName": facts.resources}


def _paid(workspace_id: str, booking_id: str) -> Record | None:
    record = _visit(workspace_id, booking_id)
    booking = listing_of("BOOKING").require(workspace_id, record_id=booking_id)
    made = payments.fetch(workspace_id, [booking.paid_by] if booking.paid_by else [])
    return record and {**record, **_currency_of(made), "paid": int(booking.paid or 0)}


def _currency_of(rows: Sequence[PaymentRow]) -> Record:
    # Payments that were imported may have another currency than the workspace.
    return {"currency": rows[0].currency} if rows else {}


def _refund(workspace_id: str, booking_id: str, *, status: str) -> Record | None:
    """Return a booking with the amount of its refunds that have failed, or that are done.

    What the business has refunded at the provider counts, too.
    """
    record = _visit(workspace_id, booking_id)
    if record is None:
        return None
    payment_ids = (
        listing_of("BOOKING").require(workspace_id, record_id=booking_id).payment_ids or []
    )
    refunds, made = (
        payments.refunds_of(workspace_id, payment_ids),
        payments.fetch(workspace_id, payment_ids),
    )
    elsewhere = sum(
        payments.refunded_elsewhere(
            [refund for refund in refunds if refund.payment_id == row.id],
            int(row.refunded_at_provider),
        )
        for row in made
    )
    amounts = {
        state: sum(int(refund.amount) for refund in refunds if refund.status == state)
        for state in (payments.DONE, payments.FAILED)
    }
    amounts[payments.DONE] += elsewhere
    has_failed = status == payments.FAILED and amounts[status] > 0
    shown = "refund_failed" if has_failed else "refunded" if amounts[payments.DONE] else "none"
    return {**record, **_currency_of(made), "status": shown, "refund": amounts[status]}


def _disputed(workspace_id: str, booking_id: str) -> Record | None:
    """Return a booking with the amount that banks have taken back."""
    record = _visit(workspace_id, booking_id)
    payment_ids = (
        listing_of("BOOKING").require(workspace_id, record_id=booking_id).payment_ids or []
    )
    made = payments.fetch(workspace_id, payment_ids)
    amount = sum(int(row.disputed) for row in made)
    return record and {
        **record,
        **_currency_of(made),
        "status": "disputed" if amount else "none",
        "disputed": amount,
    }


def _client(workspace_id: str, client_id: str) -> Record | None:
    return records.read(workspace_id, event_type="client.updated", record_id=client_id)


def _key(workspace_id: str, key_id: str) -> Record:
    key = api_keys.require(key_id, workspace_id)
    return {
        "name": key.name,
        "masked": key.masked,
        "scopes": len(key.scopes),
        "email": accounts.get(key.account_id).email,
    }


def _exporting_key(workspace_id: str, export_id: str) -> Record | None:
    export = listing_of("EXPORT").find(workspace_id, record_id=export_id)
    return export and {**_key(workspace_id, export.values["key_id"]), "id": export_id}


def _connection(workspace_id: str, connection_id: str) -> Record:
    connection = connections.require(connection_id, workspace_id)
    return {
        "name": connection.client_name,
        "host": connection.client_host,
        "scopes": len(connection.scopes),
        "email": accounts.get(connection.account_id).email,
    }


def _member(workspace_id: str, account_id: str) -> Record:
    account, membership = (
        accounts.get(account_id),
        workspaces.membership(account_id, workspace_id=workspace_id),
    )
    role = membership.role if membership else None
    return {"name": account.name, "email": account.email, "role": role}


def _payment(workspace_id: str, payment_id: str) -> Record:
    payment = payments.require(workspace_id, payment_id=payment_id)
    return {
        "description": payment.description,
        "amount": int(payment.amount),
        "currency": payment.currency,
        "reason": payment.reason,
    }


def _webhook(workspace_id: str, webhook_id: str) -> Record | None:
    row = listing_of("WEBHOOK").find(workspace_id, record_id=webhook_id)
    return row and _by_wire_name(row)


def _calendar(workspace_id: str, resource_id: str) -> Record | None:
    calendar = BusyCalendarRow.of(workspace_id, resource_id)
    resource = RESOURCES.find(workspace_id, record_id=resource_id)
    if calendar is None or resource is None:
        return None
    return {
        "resourceId": resource.id,
        "resourceName": resource.name,
        "host": calendar.host,
        "status": calendar.status,
        "problem": calendar.problem,
    }


def _by_wire_name(row: Stored) -> Record:
    return {to_camel(name): value for name, value in row.values.items()}


def _changed_webhook(workspace_id: str, webhook_id: str) -> Record | None:
    return _with_author(workspace_id, _webhook(workspace_id, webhook_id))


def _deleted_webhook(workspace_id: str, webhook_id: str) -> Record | None:
    row = listing_of("WEBHOOK").find_deleted(workspace_id, record_id=webhook_id)
    return _with_author(workspace_id, row and _by_wire_name(row))


def _with_author(workspace_id: str, record: Record | None) -> Record | None:
    """Return a webhook with the account and the key that have changed or deleted it."""
    if record is None:
        return None
    account = accounts.read_by_id([record["changedBy"]]).get(record["changedBy"])
    key_id = record.get("changedWith")
    key = api_keys.require(key_id, workspace_id) if key_id else None
    return {
        **record,
        "email": account and account.email,
        "key": key and f"{key.name} ({key.masked})",
    }


# Functions that read the record of a type, or of an internal type by its noun.
_READERS: Mapping[str, Callable[[str, str], Record | None]] = {
    "balance": _balance,
    "booking.disputed": _disputed,
    "booking.moved": _moved,
    "booking.paid": _paid,
    "booking.refund_done": partial(_refund, status=payments.DONE),
    "booking.refund_failed": partial(_refund, status=payments.FAILED),
    "bot": _bot,
    "calendar": _calendar,
    "client": _client,
    "connection": _connection,
    "export": _exporting_key,
    "key": _key,
    "member": _member,
    "payment": _payment,
    "webhook": _webhook,
    "webhook.changed": _changed_webhook,
    "webhook.deleted": _deleted_webhook,
}
