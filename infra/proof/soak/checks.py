"""Checks of the database after the load, against the responses that clients received."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from chalicelib.domains.billing.rules import pricing
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.listing import Listing
from infra.proof.parts import BrokenPromiseError
from infra.proof.soak.acknowledged import Acknowledged, Chat
from infra.proof.soak.world import World

EVERYTHING = 10**6
"""More records than the soak makes."""
COUNTED: tuple[Listing[Any], ...] = (PRODUCTS, LEADS, BOOKINGS, CLIENTS)


def require(is_kept: object, promise: str) -> None:
    """Require a promise to be kept.

    Raises:
        BrokenPromiseError: it is broken.
    """
    if not is_kept:
        raise BrokenPromiseError(promise)


class Entry(NamedTuple):
    """An entry of the ledger, in kopecks."""

    kind: str
    amount: int
    held: int
    balance_after: int
    request_id: str | None


TOP_UPS = {ledger.TOPUP, ledger.TOPUP_RETURNED}
"""Kinds of entries whose ``request_id`` is a payment."""


def check_ledger(
    topped_up: int, *, available: int, reserved: int, entries: Sequence[Entry]
) -> dict[str, int]:
    """Check an account's money, by its entries from the oldest on.

    Returns the charged kopecks of each request.

    Raises:
        BrokenPromiseError: money is held or lost, or a request is charged twice.
    """
    require(reserved == 0, f"{reserved} kopecks are still held")
    balance = 0
    ends: defaultdict[str, list[str]] = defaultdict(list)
    charged: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        balance += entry.amount - entry.held
        require(balance == entry.balance_after, f"entry {number} does not continue the one before")
        change = entry.amount - entry.held
        may_overdraw = change >= 0 or entry.kind == ledger.TOPUP_RETURNED
        require(balance >= 0 or may_overdraw, f"entry {number} takes more than there is")
        if entry.request_id and entry.kind not in TOP_UPS:
            ends[entry.request_id].append(entry.kind)
        if entry.kind in {ledger.SETTLE, ledger.EMPTY} and entry.request_id:
            charged[entry.request_id] = -entry.amount
    require(balance == available, f"the entries give {balance} kopecks, the wallet {available}")
    for request_id, kinds in ends.items():
        require(
            kinds[:1] == [ledger.RESERVE]
            and kinds[1:] in ([ledger.SETTLE], [ledger.EMPTY], [ledger.RELEASE]),
            f"request {request_id} has the entries {', '.join(kinds)}",
        )
    credited = sum(topup.amount for topup in entries if topup.kind == ledger.TOPUP)
    require(credited == topped_up, f"{topped_up} kopecks were paid, and {credited} credited")
    spent = sum(charged.values())
    returned = -sum(entry.amount for entry in entries if entry.kind == ledger.TOPUP_RETURNED)
    require(
        topped_up - returned == available + spent,
        f"{topped_up} kopecks were paid, {returned} returned, {available} are left, and {spent} "
        "were charged",
    )
    return charged


def check_chats(
    chats: Iterable[Chat],
    charged: dict[str, int],
    prices: Prices,
    recovered: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Check that each message is charged once, by its tokens. Returns the number of ended answers.

    ``recovered`` are requests whose holds were closed by their jobs, with the estimated tokens of
    their input. Such a job charges what was stored of the answer before the database failed: less
    output, and the estimated input if the usage of the model was not stored.

    Raises:
        BrokenPromiseError: an answer is not charged, twice charged, or charged wrongly.
    """
    ended = 0
    for chat in chats:
        costs = [charged[request_id] for request_id in chat.request_ids if request_id in charged]
        require(len(costs) <= 1, f"the attempts {chat.request_ids} are charged {len(costs)} times")
        if chat.ended and chat.tokens:
            ended += 1
            cost = pricing.cost(prices, TokenUsage(*chat.tokens))
            is_exact = costs == [cost]
            estimates = [tokens for id_, tokens in recovered.items() if id_ in chat.request_ids]
            if estimates:
                used_input, output = chat.tokens
                most = TokenUsage(max(used_input, *estimates), output)
                is_exact = sum(costs) <= pricing.cost(prices, most)
            require(is_exact, f"{chat.request_ids} cost {costs} instead of {cost} kopecks")
    return ended


def check_counters(noun: str, stored_counts: Counter[str], records: Iterable[Sequence[str]]) -> int:
    """Check the counters of a noun against the counts of its records. Returns the records.

    Raises:
        BrokenPromiseError: they differ.
    """
    names = [list(record) for record in records]
    expected = Counter(name for record_names in names for name in record_names)
    differing = {name for name in expected | stored_counts if expected[name] != stored_counts[name]}
    wrong = {name: (stored_counts[name], expected[name]) for name in sorted(differing)}
    require(not wrong, f"counters of {noun} and its records differ: {wrong}")
    return len(names)


class Busy(NamedTuple):
    """A booked time of a resource."""

    resource: str
    start: int
    end: int


def check_overlaps(bookings: Iterable[Busy]) -> None:
    """Check that no two bookings of a resource overlap.

    Raises:
        BrokenPromiseError: two do.
    """
    sorted_bookings = sorted(bookings)
    for one, other in pairwise(sorted_bookings):
        apart = one.resource != other.resource or one.end <= other.start
        require(apart, f"two bookings of {one.resource} overlap: {one} and {other}")


def check_writes(acknowledged: Acknowledged, records: "Records") -> int:
    """Check that every acknowledged write is there. Returns the number of acknowledged records.

    Raises:
        BrokenPromiseError: one is missing, changed or twice there.
    """
    for id_, price in acknowledged.products.items():
        if id_ not in acknowledged.unsure:
            stored_price = records.prices.get(id_)
            require(
                stored_price == price,
                f"product {id_} costs {stored_price}, and {price} was acknowledged",
            )
    for text, id_ in acknowledged.submissions.items():
        there = records.leads.get(text, [])
        require(there == [id_], f"the lead {id_} was acknowledged; there are {there}")
    for id_, cancelled in acknowledged.bookings.items():
        booking = records.bookings.get(id_)
        require(booking is not None, f"the acknowledged booking {id_} is missing")
        if booking and id_ not in acknowledged.unsure:
            require(booking.blocks != cancelled, f"booking {id_} is {booking.status}")
    require(
        all(n <= 1 for n in acknowledged.contests), "a slot of one seat had more than one winner"
    )
    return len(acknowledged.products) + len(acknowledged.submissions) + len(acknowledged.bookings)


class Records(NamedTuple):
    """The prices and bookings of a workspace by id, and ids of leads by their message."""

    prices: dict[str, int]
    leads: dict[str, list[str]]
    bookings: dict[str, BookingRow]
    twice: list[str]


def read_records(workspace_id: str) -> Records:
    """Read the records of a workspace, with the names of duplicate products as ``twice``."""
    products = PRODUCTS.read_after(workspace_id, record_id="", limit=EVERYTHING)
    leads: defaultdict[str, list[str]] = defaultdict(list)
    for lead in LEADS.read_after(workspace_id, record_id="", limit=EVERYTHING):
        leads[lead.data["message"]].append(lead.id)
    return Records(
        {product.id: int(product.price) for product in products},
        leads,
        {
            booking.id: booking
            for booking in BOOKINGS.read_after(workspace_id, record_id="", limit=EVERYTHING)
        },
        [name for name, number in Counter(p.name for p in products).items() if number > 1],
    )


def check_world(world: World, topped_up: int, acknowledged: Sequence[Acknowledged]) -> Counter[str]:
    """Check all that belongs to a workspace. Returns what was checked, in numbers.

    Raises:
        BrokenPromiseError: a promise is broken.
    """
    records, counts = read_records(world.workspace_id), Counter[str]()
    require(not records.twice, f"products were created twice: {records.twice}")
    duplicates = {text: ids for text, ids in records.leads.items() if len(ids) > 1}
    require(not duplicates, f"submissions were stored twice: {duplicates}")
    for session in acknowledged:
        counts["writes"] += check_writes(session, records)
        counts["contests"] += len(session.contests)
        counts["undecided"] += session.undecided + len(session.unsure)
    blocking = [booking for booking in records.bookings.values() if booking.blocks]
    check_overlaps(_busy(booking) for booking in blocking)
    counts["bookings"] = len(blocking)
    for listing in COUNTED:
        rows = listing.read_after(world.workspace_id, record_id="", limit=EVERYTHING)
        names = [listing.counters(row.facets) for row in rows]
        stored_counts = counters.read_all(world.workspace_id, noun=listing.noun)
        counts["counted"] += check_counters(listing.noun, stored_counts, names)
    return counts + _check_money(world, topped_up, acknowledged)


def _busy(booking: BookingRow) -> Busy:
    start, end = booking.busy.buffered
    return Busy(booking.resource_id, start, end)


def _check_money(
    world: World, topped_up: int, acknowledged: Sequence[Acknowledged]
) -> Counter[str]:
    wallet = ledger.wallet(world.account_id)
    rows = reversed(ledger.entries(world.account_id))
    charged = check_ledger(
        topped_up,
        available=int(wallet.available),
        reserved=int(wallet.reserved),
        entries=[
            Entry(e.kind, int(e.amount), int(e.held), int(e.balance_after), e.request_id)
            for e in rows
        ],
    )
    holds = ledger.holds(world.account_id)
    is_open = [hold.sk for hold in holds if hold.state == ledger.OPEN]
    require(not is_open, f"holds are still open: {is_open}")
    costs = {hold.sk: int(hold.cost) for hold in holds if hold.state == ledger.SETTLED}
    require(costs == charged, "the holds and the ledger have different charges")
    spent = sum(charged.values())
    budget = budgets.budget(world.workspace_id, agent_id=world.agent_id)
    require(int(budget.monthly_held) == 0, f"a budget holds {budget.monthly_held} kopecks")
    require(int(budget.monthly_used) == spent, f"a budget has {budget.monthly_used}, not {spent}")
    chats = [chat for acknowledgement in acknowledged for chat in acknowledgement.chats]
    prices = ledger.hold_of(holds[0]).prices if holds else Prices(0, 0)
    recovered = {
        hold.sk: int(hold.input_tokens)
        for hold in holds
        if hold.closed_at and hold.closed_at >= hold.due_at
    }
    ended = check_chats(chats, charged, prices, recovered)
    return Counter({"charges": len(charged), "ended chats": ended, "chats": len(chats)})
