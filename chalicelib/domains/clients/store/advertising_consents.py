"""Store to which advertising clients have agreed, and when they have withdrawn it (ADR 140)."""

from typing import Literal

from pynamodb.attributes import UnicodeAttribute

from chalicelib.engine.history import HistoryRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails

State = Literal["granted", "withdrawn"]
GRANTED: State = "granted"
WITHDRAWN: State = "withdrawn"
MAX_READ = 100  # newest entries of a client that decide on an e-mail


class AdvertisingConsentRow(HistoryRow):
    """An agreement of a client to e-mail that advertises, or its withdrawal.

    The rows stay as evidence until the client is erased.
    """

    noun = "CLIENT"

    state = UnicodeAttribute()
    # Where the client has agreed, as the ``source`` of a booking; or withdrawn: in the ``console``,
    # with a ``key`` or by a ``link``.
    source = UnicodeAttribute()
    # Of an agreement: the text beside the box, as shown, its version and its language.
    label = UnicodeAttribute(null=True)
    version = UnicodeAttribute(null=True)
    language = UnicodeAttribute(null=True)
    email = UnicodeAttribute(null=True)  # the address that the e-mail goes to
    booking_id = UnicodeAttribute(null=True)  # the booking with which the client has agreed

    kept_when_erased = HistoryRow.kept_when_erased | {
        *("state", "source", "version", "language", "booking_id"),
    }


def read(
    workspace_id: str, *, client_id: str, limit: int = MAX_READ
) -> list[AdvertisingConsentRow]:
    """Return the newest agreements and withdrawals of a client, oldest first."""
    return AdvertisingConsentRow.newest(workspace_id, record_id=client_id, limit=limit)


def standing(entries: list[AdvertisingConsentRow]) -> list[AdvertisingConsentRow]:
    """Return the agreements since the last withdrawal. Erased ones have no address.

    Several may stand: a stranger may have typed the address for one, so each needs its own proof.
    """
    last = max((n for n, row in enumerate(entries) if row.state == WITHDRAWN), default=-1)
    return [row for row in entries[last + 1 :] if row.state == GRANTED and row.email]


def is_for(consent: AdvertisingConsentRow, address: str | None) -> bool:
    """Return whether a client has agreed for this address."""
    return bool(address and consent.email) and emails.is_same(consent.email, address or "")


def stage_grant(  # noqa: PLR0913  what is evidence
    unit: UnitOfWork,
    *,
    client_id: str,
    by: str,
    source: str,
    label: str,
    version: str,
    language: str,
    email: str,
    booking_id: str,
) -> None:
    """Stage an agreement, in the transaction of the booking with which the client agrees."""
    unit.create(
        AdvertisingConsentRow.new(
            unit.workspace_id,
            record_id=client_id,
            by=by,
            state=GRANTED,
            source=source,
            label=label,
            version=version,
            language=language,
            email=email,
            booking_id=booking_id,
        )
    )


def stage_withdrawal(
    unit: UnitOfWork, *, client_id: str, by: str, source: str
) -> list[AdvertisingConsentRow]:
    """Stage the withdrawal of what a client has agreed to, if anything, and return all entries."""
    entries = read(unit.workspace_id, client_id=client_id)
    if not standing(entries):
        return entries
    entry = AdvertisingConsentRow.new(
        unit.workspace_id, record_id=client_id, by=by, state=WITHDRAWN, source=source
    )
    unit.create(entry)
    return [*entries, entry]
