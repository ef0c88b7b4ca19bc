"""What each visitor and each IPv6 network spends of a bot's limits on a day, with open holds.

Visitors' hashes change daily, so a row counts for one day and expires soon after.
"""

from datetime import timedelta

from pynamodb.attributes import NumberAttribute

from chalicelib.core import clock
from chalicelib.domains.billing.store.budgets import BudgetRow
from chalicelib.domains.billing.store.ledger import Hold
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

KEPT_FOR = timedelta(days=2)


class VisitorSpendingRow(ControlRow):
    """Kopecks that a visitor or a network has spent or holds of a bot's limits."""

    used = NumberAttribute(default=0)


def key(workspace_id: str, agent_id: str, spender: str) -> Key:
    """Return the key of what a visitor or network spends, for ``fetch`` together with a budget."""
    return Key(VisitorSpendingRow, f"W#{workspace_id}#VISITOR-SPENDING#{agent_id}", spender)


def stage(unit: UnitOfWork, hold: Hold, amount: int, budget: BudgetRow | None = None) -> None:
    """Stage adding to what a hold's spenders spend.

    With ``budget``, the commit requires that each is within its share.
    """
    used = VisitorSpendingRow.used
    for spender in hold.spenders:
        place = key(hold.workspace_id, hold.agent_id, spender)
        share = None if budget is None else budget.share(spender)
        fits = VisitorSpendingRow.pk.exists() if share is None else used <= share - amount
        unit.update(
            VisitorSpendingRow(place.pk, place.sk),
            [used.add(amount), VisitorSpendingRow.expires.set(clock.now() + KEPT_FOR)],
            VisitorSpendingRow.pk.does_not_exist() | fits,
        )
