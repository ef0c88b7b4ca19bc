"""Auditor of the ledger. It recomputes every total from the ledger's entries."""

from collections import Counter, defaultdict

from chalicelib.domains.billing.flows.charging import Hold
from chalicelib.domains.billing.rules.spending_windows import WINDOWS
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.billing.store.ledger import HoldRow, LedgerEntryRow
from chalicelib.engine import jobs


def audit(account_id: str, workspace_id: str, *agents: str) -> None:
    """Check every invariant of an account's money and of its bots' budgets."""
    entries = ledger.entries(account_id)[::-1]
    rows = {row.sk: row for row in ledger.holds(account_id)}
    check_prefixes(entries)
    check_requests(entries, rows)
    wallet = ledger.wallet(account_id)
    assert wallet.seq == len(entries)
    assert wallet.available == sum(entry.amount - entry.held for entry in entries)
    assert wallet.reserved == sum(row.amount for row in rows.values() if row.state == ledger.OPEN)
    for agent in agents:
        check_budget(workspace_id, agent, [row for row in rows.values() if row.agent_id == agent])


def check_prefixes(entries: list[LedgerEntryRow]) -> None:
    """Check the invariants that hold after each entry."""
    available = reserved = 0
    for number, entry in enumerate(entries, start=1):
        available += entry.amount - entry.held
        reserved += entry.held
        assert entry.seq == number
        assert entry.balance_after == available
        # Only a returned top-up takes more than there is; afterwards the balance may only rise.
        change = entry.amount - entry.held
        assert available >= 0 or change >= 0 or entry.kind == ledger.TOPUP_RETURNED
        assert reserved >= 0


def check_requests(entries: list[LedgerEntryRow], rows: dict[str, HoldRow]) -> None:
    """Check that each request has one reserve entry, then at most one settle or release entry."""
    entries_by_request: defaultdict[str, list[LedgerEntryRow]] = defaultdict(list)
    for entry in entries:
        if entry.request_id:
            entries_by_request[entry.request_id].append(entry)
    assert entries_by_request.keys() == rows.keys()
    for request_id, row in rows.items():
        reserve, *closing = entries_by_request[request_id]
        assert (reserve.kind, reserve.amount, reserve.held) == (ledger.RESERVE, 0, row.amount)
        hold = ledger.hold_of(row)
        assert row.amount > 0
        assert jobs.is_there(hold.job) == (row.state == ledger.OPEN)
        if row.state == ledger.OPEN:
            assert closing == []
            continue
        (close,) = closing
        charged = (ledger.SETTLE, ledger.EMPTY)
        expected = charged if row.state == ledger.SETTLED else (ledger.RELEASE,)
        assert close.kind in expected
        assert (close.amount, close.held) == (-row.cost, -row.amount)
        assert 0 <= row.cost <= row.amount
        assert row.cost == 0 or expected == charged


def check_budget(workspace_id: str, agent_id: str, rows: list[HoldRow]) -> None:
    """Check that each window of a bot contains exactly its charged and held amounts."""
    used, held_amounts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        for window, key in zip(WINDOWS, ledger.hold_of(row).windows, strict=True):
            is_open = row.state == ledger.OPEN
            used[window, key] += row.amount if is_open else row.cost
            held_amounts[window, key] += row.amount if is_open else 0
    budget = budgets.budget(workspace_id, agent_id=agent_id)
    for window in WINDOWS:
        key = getattr(budget, f"{window}_key") or ""
        assert key == max((k for w, k in used if w == window), default="")
        assert getattr(budget, f"{window}_used") == used[window, key]
        assert getattr(budget, f"{window}_held") == held_amounts[window, key]


def open_holds(account_id: str) -> list[Hold]:
    """Return the requests that hold money."""
    return [ledger.hold_of(r) for r in ledger.holds(account_id) if r.state == ledger.OPEN]
