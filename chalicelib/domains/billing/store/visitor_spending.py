"""What each visitor spends of a bot's limits on a day, with open holds.

Visitors' hashes change daily, so a row counts for one day and expires soon after.
"""

from datetime import timedelta

from pynamodb.attributes import NumberAttribute

from chalicelib.core import clock
from chalicelib.domains.billing.store.ledger import Hold
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

KEPT_FOR = timedelta(days=2)


class VisitorSpendingRow(ControlRow):
    """Kopecks that a visitor has spent or holds of a bot's limits."""

    used = NumberAttribute(default=0)


def key(workspace_id: str, agent_id: str, visitor: str) -> Key:
    """Return the key of a visitor's spending, for ``fetch`` together with a budget."""
    return Key(VisitorSpendingRow, f"W#{workspace_id}#VISITOR-SPENDING#{agent_id}", visitor)


def stage(unit: UnitOfWork, hold: Hold, amount: int, share: int | None = None) -> None:
    """Stage adding to a visitor's spending. The commit requires that it is within the share."""
    if not hold.visitor:
        return
    place, used = key(hold.workspace_id, hold.agent_id, hold.visitor), VisitorSpendingRow.used
    fits = VisitorSpendingRow.pk.exists() if share is None else used <= share - amount
    unit.update(
        VisitorSpendingRow(place.pk, place.sk),
        [used.add(amount), VisitorSpendingRow.expires.set(clock.now() + KEPT_FOR)],
        VisitorSpendingRow.pk.does_not_exist() | fits,
    )
