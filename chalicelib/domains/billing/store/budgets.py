"""Store what bots and their visitors may spend and have spent, with open holds.

A bot has limits for windows of time. Each visitor and each IPv6 network has a share of a day.
Figures belong to the window whose key is stored in the same row. A later window's key replaces
them.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any, Self

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.domains.billing.rules.spending_windows import SHARES, WINDOWS, Window, WindowKeys
from chalicelib.domains.billing.store.ledger import Hold
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ControlRow, LedgerRow
from chalicelib.engine.unit import UnitOfWork


class BudgetRow(LedgerRow):
    """A bot's budget. No limit means unlimited; 0 refuses every paid request."""

    rev = NumberAttribute(null=True)  # changes of limits
    daily_limit = NumberAttribute(null=True)
    daily_key = UnicodeAttribute(null=True)
    daily_used = NumberAttribute(default=0)  # spent and held
    daily_held = NumberAttribute(default=0)  # the part that open holds may return
    weekly_limit = NumberAttribute(null=True)
    weekly_key = UnicodeAttribute(null=True)
    weekly_used = NumberAttribute(default=0)
    weekly_held = NumberAttribute(default=0)
    monthly_limit = NumberAttribute(null=True)
    monthly_key = UnicodeAttribute(null=True)
    monthly_used = NumberAttribute(default=0)
    monthly_held = NumberAttribute(default=0)

    def limit(self, window: Window) -> int | None:
        limit = getattr(self, f"{window}_limit")
        return None if limit is None else int(limit)

    @property
    def limits(self) -> dict[Window, int | None]:
        """The limit of each window in kopecks, or None."""
        return {window: self.limit(window) for window in WINDOWS}

    def share(self, spender: str) -> int | None:
        """Return what a visitor or a network may spend a day, in kopecks, or None if unlimited."""
        lowest = min((limit for limit in self.limits.values() if limit is not None), default=None)
        return None if lowest is None else lowest // SHARES[spender.partition(":")[0]]

    def reaches_half(self, hold: Hold, cost: int) -> bool:
        """Whether the cost of a hold takes what is spent of a limit to its half."""
        for window, key in zip(WINDOWS, hold.windows, strict=True):
            (used, reserved), limit = self.used_in(window, key), self.limit(window)
            if limit and (used - reserved) * 2 < limit <= (used - reserved + cost) * 2:
                return True
        return False

    def room(self, window: Window, key: str, *, settled_alone: bool = False) -> int | None:
        """Return the rest of a window's limit in kopecks, or None if unlimited."""
        limit, (used, reserved) = self.limit(window), self.used_in(window, key)
        # With ``settled_alone``, open holds are not counted.
        return None if limit is None else limit - used + (reserved if settled_alone else 0)

    def used_in(self, window: Window, key: str) -> tuple[int, int]:
        """Return the amount used in this window, and the part that open holds may return."""
        if getattr(self, f"{window}_key") != key:
            return 0, 0
        return int(getattr(self, f"{window}_used")), int(getattr(self, f"{window}_held"))

    def current(self, keys: WindowKeys) -> WindowKeys:
        """Return the windows to count in. A later window that has begun remains current."""
        # Clocks of two servers can differ, and the time zone of a workspace can change.
        begun = (getattr(self, f"{window}_key") or "" for window in WINDOWS)
        return WindowKeys(*map(max, keys, begun))


def budget_key(workspace_id: str, *, agent_id: str) -> Key:
    """Return the key of a bot's budget, for ``fetch`` together with a wallet."""
    return Key(BudgetRow, f"W#{workspace_id}#BUDGET", agent_id)


def budget(workspace_id: str, *, agent_id: str) -> BudgetRow:
    """Return a bot's budget, or an empty one if none is stored."""
    key = budget_key(workspace_id, agent_id=agent_id)
    return BudgetRow.find(key.pk, key.sk) or new(workspace_id, agent_id=agent_id)


def new(workspace_id: str, *, agent_id: str) -> BudgetRow:
    """Return the empty budget of a new bot."""
    key = budget_key(workspace_id, agent_id=agent_id)
    return BudgetRow(key.pk, key.sk)


def read_all(workspace_id: str) -> list[BudgetRow]:
    """Return the budgets of all bots of a workspace, including deleted bots."""
    return BudgetRow.partition(budget_key(workspace_id, agent_id="").pk)


def set_limits(
    unit: UnitOfWork, budget: BudgetRow, limits: Mapping[Window, int | None]
) -> dict[Window, int | None]:
    """Stage a change of some limits, and return all limits as they will be."""
    actions: list[Action] = [BudgetRow.rev.set((budget.rev or 0) + 1)]
    for window, limit in limits.items():
        path = _path(window, "limit")
        actions.append(path.remove() if limit is None else path.set(limit))
    unit.update(budget, actions, _unchanged(budget))
    return budget.limits | dict(limits)


def reserve(unit: UnitOfWork, budget: BudgetRow, hold: Hold) -> None:
    """Stage reserving a hold's amount in its windows. The commit requires unchanged limits."""
    actions: list[Action] = []
    conditions: list[Condition] = [_unchanged(budget)]
    for window, key in zip(WINDOWS, hold.windows, strict=True):
        begun, limit = getattr(budget, f"{window}_key"), budget.limit(window)
        used, reserved_path = _path(window, "used"), _path(window, "held")
        # Another request may have begun the window since the budget was read.
        conditions.append(_is(_path(window, "key"), value=begun))
        if begun != key:
            actions += [
                _path(window, "key").set(key),
                used.set(hold.amount),
                reserved_path.set(hold.amount),
            ]
            continue
        actions += [used.add(hold.amount), reserved_path.add(hold.amount)]
        if limit is not None:
            # The condition names the new total, because DynamoDB cannot add in a condition.
            conditions.append(used <= limit - hold.amount)
    unit.update(budget, actions, _all(conditions))


def release(unit: UnitOfWork, budget: BudgetRow, hold: Hold, amount: int) -> None:
    """Stage the release of a hold. ``amount`` is returned to its windows that are still current."""
    actions: list[Action] = []
    conditions: list[Condition] = []
    for window, key in zip(WINDOWS, hold.windows, strict=True):
        # A later window has replaced the figures, so they no longer include the old hold.
        if getattr(budget, f"{window}_key") == key:
            conditions.append(_is(_path(window, "key"), value=key))
            actions += [
                _path(window, "used").add(-amount),
                _path(window, "held").add(-hold.amount),
            ]
    if actions:
        unit.update(budget, actions, _all(conditions))


def _path(window: Window, name: str) -> Any:  # noqa: ANN401  PynamoDB's attributes have no common type for this
    return getattr(BudgetRow, f"{window}_{name}")


def _unchanged(budget: BudgetRow) -> Condition:
    return _is(BudgetRow.rev, value=budget.rev)


def _is(path: Any, *, value: Any) -> Condition:  # noqa: ANN401  as above
    condition: Condition = path.does_not_exist() if value is None else path == value
    return condition


def _all(conditions: Iterable[Condition]) -> Condition:
    return reduce(and_, conditions)


# Visitors' hashes change daily, so a visitor's row counts for one day.
VISITORS_KEPT_FOR = timedelta(days=2)


class VisitorSpendingRow(ControlRow):
    """Kopecks that a visitor or a network has spent or holds of a bot's limits."""

    used = NumberAttribute(default=0)


def visitor_key(workspace_id: str, *, agent_id: str, spender: str) -> Key:
    """Return the key of what a visitor or network spends, for ``fetch`` together with a budget."""
    return Key(VisitorSpendingRow, f"W#{workspace_id}#VISITOR-SPENDING#{agent_id}", spender)


def stage_visitor(
    unit: UnitOfWork, hold: Hold, amount: int, budget: BudgetRow | None = None
) -> None:
    """Stage adding to what a hold's spenders spend, with ``budget`` within the share of each."""
    used = VisitorSpendingRow.used
    for spender in hold.spenders:
        place = visitor_key(hold.workspace_id, agent_id=hold.agent_id, spender=spender)
        share = None if budget is None else budget.share(spender)
        fits = VisitorSpendingRow.pk.exists() if share is None else used <= share - amount
        unit.update(
            VisitorSpendingRow(place.pk, place.sk),
            [used.add(amount), VisitorSpendingRow.expires.set(clock.now() + VISITORS_KEPT_FOR)],
            VisitorSpendingRow.pk.does_not_exist() | fits,
        )


NOTICES_KEPT_FOR = timedelta(days=40)  # longer than a month, the longest window


class LimitNoticeRow(ControlRow):
    """The mark of a bot's window, such as ``daily#2027-01-15``, which is the sort key."""

    @classmethod
    def new(cls, workspace_id: str, *, agent_id: str, window: str) -> Self:
        place = f"W#{workspace_id}#BOT-LIMIT#{agent_id}"
        return cls(place, window, expires=clock.now() + NOTICES_KEPT_FOR)
