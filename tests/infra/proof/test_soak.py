"""The checks of the soak can fail."""

from collections import Counter
from dataclasses import replace

import pytest

from chalicelib.domains.billing.rules.pricing import Prices
from infra.proof.parts import BrokenPromiseError
from infra.proof.soak import checks
from infra.proof.soak.acknowledged import Acknowledged, Chat
from infra.proof.soak.checks import Busy, Entry, Records
from infra.proof.soak.watch import Room, Sample, require_flat

ROOM = Room(memory=10, files=8, threads=4, temporary=0, blocks=1000)
PRICES = Prices(1_000_000, 2_000_000)
LEDGER = [
    Entry("topup", 1000, 0, 1000, None),
    Entry("reserve", 0, 100, 900, "one"),
    Entry("settle", -30, -100, 970, "one"),
    Entry("reserve", 0, 100, 870, "two"),
    Entry("release", 0, -100, 970, "two"),
]
CHAT = Chat(["one"], ended=True, tokens=(10, 10))


def samples(**growth: int) -> list[Sample]:
    """Samples of a process whose measures grow by these amounts in all."""
    start = Sample(at=0, memory=100, files=30, threads=70, temporary=0, blocks=10**6, cpu=0)
    grown = [
        {name: round(growth_limit * n / 99) for name, growth_limit in growth.items()}
        for n in range(100)
    ]
    return [
        start._replace(**{name: getattr(start, name) + more for name, more in values_grown.items()})
        for values_grown in grown
    ]


class TestFlat:
    def test_a_process_that_stays_as_it_is_is_flat(self) -> None:
        assert require_flat(samples(), ROOM)["memory"] == (100, 100)

    def test_growth_before_the_warm_up_ends_is_no_leak(self) -> None:
        early = [sample._replace(memory=40) for sample in samples()[:20]]
        assert require_flat([*early, *samples()[20:]], ROOM)["memory"] == (100, 100)

    @pytest.mark.parametrize(
        ("grown", "measure"),
        [
            (samples(memory=20), "memory"),
            (samples(threads=10), "threads"),
            (samples(files=20), "files"),
            (samples(temporary=3), "temporary"),
            (samples(blocks=3000), "blocks"),
        ],
    )
    def test_a_process_that_grows_is_refused(self, grown: list[Sample], measure: str) -> None:
        with pytest.raises(BrokenPromiseError, match=f"^{measure} grew"):
            require_flat(grown, ROOM)

    def test_too_few_samples_decide_nothing(self) -> None:
        with pytest.raises(BrokenPromiseError, match="only 3 samples"):
            require_flat(samples()[:3], ROOM)


class TestLedger:
    def test_an_exact_ledger_gives_the_charges(self) -> None:
        assert checks.check_ledger(1000, available=970, reserved=0, entries=LEDGER) == {"one": 30}

    @pytest.mark.parametrize(
        ("paid", "available", "reserved", "reason"),
        [
            (1000, 969, 0, "the entries give 970 kopecks, the wallet 969"),
            (1001, 970, 0, "1001 kopecks were paid, and 1000 credited"),
            (1000, 970, 100, "100 kopecks are still held"),
        ],
    )
    def test_a_kopeck_off_is_refused(
        self, paid: int, available: int, reserved: int, reason: str
    ) -> None:
        with pytest.raises(BrokenPromiseError, match=reason):
            checks.check_ledger(paid, available=available, reserved=reserved, entries=LEDGER)

    def test_an_entry_that_skips_a_balance_is_refused(self) -> None:
        wrong = [*LEDGER[:2], LEDGER[2]._replace(balance_after=971), *LEDGER[3:]]
        with pytest.raises(BrokenPromiseError, match="entry 3 does not continue"):
            checks.check_ledger(1000, available=970, reserved=0, entries=wrong)

    def test_a_request_that_is_charged_twice_is_refused(self) -> None:
        twice = [
            *LEDGER,
            Entry("reserve", 0, 100, 870, "one"),
            Entry("settle", -30, -100, 940, "one"),
        ]
        with pytest.raises(
            BrokenPromiseError, match="request one has the entries reserve, settle, reserve"
        ):
            checks.check_ledger(1000, available=940, reserved=0, entries=twice)

    def test_an_open_hold_is_refused(self) -> None:
        with pytest.raises(BrokenPromiseError, match=r"request two has the entries reserve$"):
            checks.check_ledger(1000, available=870, reserved=0, entries=LEDGER[:4])


class TestChats:
    def test_an_answer_is_charged_by_its_tokens(self) -> None:
        assert checks.check_chats([CHAT], {"one": 30}, PRICES) == 1

    @pytest.mark.parametrize(
        ("chat", "charged"),
        [
            (CHAT, {}),
            (CHAT, {"one": 31}),
            (replace(CHAT, request_ids=["one", "again"]), {"one": 30, "again": 30}),
        ],
        ids=["not at all", "a kopeck more", "twice"],
    )
    def test_another_charge_is_refused(self, chat: Chat, charged: dict[str, int]) -> None:
        with pytest.raises(BrokenPromiseError, match="one"):
            checks.check_chats([chat], charged, PRICES)

    @pytest.mark.parametrize("charged", [{}, {"one": 10}])
    def test_an_answer_whose_hold_was_recovered_may_cost_less(
        self, charged: dict[str, int]
    ) -> None:
        assert checks.check_chats([CHAT], charged, PRICES, {"one": 10}) == 1

    def test_an_answer_whose_usage_was_lost_costs_its_estimated_input(self) -> None:
        assert checks.check_chats([CHAT], {"one": 50}, PRICES, {"one": 30}) == 1

    @pytest.mark.parametrize(("cost", "estimate"), [(31, 10), (51, 30)])
    def test_an_answer_whose_hold_was_recovered_does_not_cost_more(
        self, cost: int, estimate: int
    ) -> None:
        with pytest.raises(BrokenPromiseError, match=r"instead of 30 kopecks"):
            checks.check_chats([CHAT], {"one": cost}, PRICES, {"one": estimate})


class TestRecords:
    def test_bookings_one_after_another_do_not_overlap(self) -> None:
        checks.check_overlaps([Busy("a", 10, 20), Busy("b", 10, 20), Busy("a", 0, 10)])

    def test_bookings_at_the_same_time_are_refused(self) -> None:
        with pytest.raises(BrokenPromiseError, match="two bookings of a overlap"):
            checks.check_overlaps([Busy("a", 10, 20), Busy("a", 19, 29)])

    def test_a_counter_that_differs_from_the_records_is_refused(self) -> None:
        names = [["total", "status:new"], ["total"]]
        assert checks.check_counters("LEAD", Counter(total=2, **{"status:new": 1}), names) == 2
        with pytest.raises(BrokenPromiseError, match=r"'total': \(3, 2\)"):
            checks.check_counters("LEAD", Counter(total=3, **{"status:new": 1}), names)

    @pytest.mark.parametrize(
        ("acknowledged", "reason"),
        [
            (Acknowledged("w", products={"missing": 5}), "product missing costs None"),
            (Acknowledged("w", products={"kept": 6}), "product kept costs 5, and 6 was"),
            (Acknowledged("w", products={"kept": None}), "product kept costs 5, and None was"),
            (Acknowledged("w", submissions={"text": "other"}), "lead other was acknowledged"),
            (Acknowledged("w", bookings={"missing": False}), "booking missing is missing"),
            (Acknowledged("w", contests=[1, 2]), "more than one winner"),
        ],
    )
    def test_an_acknowledged_write_that_is_not_there_is_refused(
        self, acknowledged: Acknowledged, reason: str
    ) -> None:
        records = Records({"kept": 5}, {"text": ["lead"]}, {}, [])
        with pytest.raises(BrokenPromiseError, match=reason):
            checks.check_writes(acknowledged, records)

    def test_a_write_that_was_never_answered_may_be_there_or_not(self) -> None:
        acknowledged = Acknowledged("w", products={"kept": 6}, unsure={"kept"}, contests=[0, 1])
        assert checks.check_writes(acknowledged, Records({"kept": 5}, {}, {}, [])) == 1
