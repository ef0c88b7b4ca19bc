"""Rules of waiting lists hold for every line, every day and every order of what happens."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chalicelib.domains.waiting.rules.line_steps import (
    CHECKED_EVERY,
    LONGEST_OFFER,
    MAX_IN_LINE,
    SHORTEST_OFFER,
    Line,
    Offer,
    Step,
    Waiting,
    attend,
    offer_end,
    starts_for,
)

MINUTE = 60_000
RESOURCES = ("anna", "boris")
DAY = 24 * 60 * MINUTE

waiting = st.lists(
    st.builds(
        Waiting,
        st.sampled_from([f"w{number}" for number in range(6)]),
        st.sampled_from([None, *RESOURCES]),
    ),
    max_size=6,
    unique_by=lambda each: each.id,
).map(tuple)
moments = st.integers(0, DAY // MINUTE).map(lambda minute: minute * MINUTE)


@st.composite
def lines(draw: Callable[[Any], Any]) -> Line:
    people = draw(waiting)
    ids = [each.id for each in people] or ["nobody"]
    offer = draw(st.none() | st.builds(Offer, st.sampled_from([*ids, "nobody"]), moments))
    return Line(people, offer)


@st.composite
def cases(draw: Callable[[Any], Any]) -> tuple[Line, Step, dict[str, Any]]:
    """Return a line, its next state and what has decided."""
    line, now = draw(lines()), draw(moments)
    notice = draw(st.sampled_from([0, 30 * MINUTE]))
    starts = draw(st.lists(moments, max_size=4, unique=True))
    free = {
        start: draw(st.sets(st.sampled_from(RESOURCES), min_size=1))
        for start in starts
        if start >= now + notice  # as the search returns them
    }
    about = {
        "booked": draw(st.sets(st.sampled_from([each.id for each in line.waiting] or [""]))),
        "now": now,
        "ends": draw(moments),
        "notice": notice,
    }
    return line, attend(line, free, **about), {"free": free, **about}


def test_who_waits_for_a_person_is_offered_only_their_times() -> None:
    free = {1: {"anna"}, 2: {"boris"}, 3: set(RESOURCES)}
    assert starts_for(Waiting("w", "anna"), free) == [1, 3]
    assert starts_for(Waiting("w"), free) == [1, 2, 3]


def test_an_offer_lasts_at_least_as_long_as_people_need_to_read_it() -> None:
    assert offer_end([10 * MINUTE], now=0) == SHORTEST_OFFER
    assert offer_end([10 * MINUTE - 1], now=0) is None


def test_the_next_is_offered_the_time_if_the_holder_has_booked() -> None:
    line = Line((Waiting("a"), Waiting("b")), Offer("a", 60 * MINUTE))
    step = attend(line, {DAY: {"anna"}}, booked={"a"}, now=0, ends=DAY)
    assert step.is_new_offer
    assert step.line == Line((Waiting("b"),), Offer("b", LONGEST_OFFER))


def test_whoever_lets_an_offer_end_leaves_and_nobody_else() -> None:
    line = Line((Waiting("a"), Waiting("b")), Offer("b", MINUTE))
    step = attend(line, {DAY: {"anna"}}, booked=(), now=MINUTE, ends=DAY)
    assert step.line == Line((Waiting("a"),), Offer("a", MINUTE + LONGEST_OFFER))


def test_a_time_that_begins_too_soon_is_not_offered() -> None:
    line = Line((Waiting("a"),))
    step = attend(line, {5 * MINUTE: {"anna"}}, booked=(), now=0, ends=DAY)
    assert (step.line, step.is_new_offer) == (line, False)


@given(cases())
def test_an_offer_that_stands_stays_and_nobody_else_gets_one(case: Any) -> None:
    line, step, about = case
    holder = line.offer and line.offer.waiting_id
    stands = (
        line.offer is not None
        and about["now"] < min(line.offer.until, about["ends"])
        and holder in {each.id for each in line.waiting} - about["booked"]
    )
    if stands:
        assert (step.line.offer, step.is_new_offer) == (line.offer, False)


@given(cases())
def test_a_new_offer_goes_to_the_first_for_whom_a_time_is_free(case: Any) -> None:
    _, step, about = case
    if not step.is_new_offer:
        return
    offer = step.line.offer
    able = [each.id for each in step.line.waiting if starts_for(each, about["free"])]
    assert offer is not None
    assert offer.waiting_id == able[0]
    assert about["now"] < about["ends"]


@given(cases())
def test_an_offer_ends_after_two_hours_or_half_of_what_is_left(case: Any) -> None:
    _, step, about = case
    offer = step.line.offer
    if not step.is_new_offer or offer is None:
        return
    (holder,) = (each for each in step.line.waiting if each.id == offer.waiting_id)
    starts, now = starts_for(holder, about["free"]), about["now"]
    assert all(start >= now for start in starts)
    left = max(starts) - about["notice"] - now
    assert SHORTEST_OFFER <= offer.until - now <= min(LONGEST_OFFER, left / 2)


@given(cases())
def test_the_order_stays_and_only_who_is_done_leaves(case: Any) -> None:
    line, step, about = case
    kept = list(step.line.waiting)
    assert kept == [each for each in line.waiting if each in kept]
    gone = {each.id for each in line.waiting} - {each.id for each in kept}
    if about["now"] >= about["ends"]:
        assert kept == []
        return
    missed = gone - about["booked"]
    assert about["booked"] & {each.id for each in line.waiting} <= gone
    if missed:
        offer = line.offer
        assert offer is not None
        assert missed == {offer.waiting_id}
        assert about["now"] >= offer.until
        (holder,) = (each for each in line.waiting if each.id == offer.waiting_id)
        assert starts_for(holder, about["free"])


@given(cases())
def test_a_line_with_people_is_looked_at_again(case: Any) -> None:
    _, step, about = case
    if not step.line.waiting:
        assert (step.check_at, step.line.offer) == (None, None)
        return
    assert step.check_at is not None
    assert about["now"] < step.check_at <= about["now"] + max(CHECKED_EVERY, DAY)
    if step.line.offer is None:
        assert step.check_at <= min(about["now"] + CHECKED_EVERY, about["ends"])
    else:
        assert step.check_at == step.line.offer.until


@given(cases())
def test_a_second_look_at_the_same_moment_changes_nothing(case: Any) -> None:
    _, step, about = case
    free = about.pop("free")
    again = attend(step.line, free, **about)
    assert (again.line, again.is_new_offer) == (step.line, False)


@given(st.lists(moments, max_size=4), moments)
def test_no_offer_is_made_for_what_begins_too_soon(starts: list[int], now: int) -> None:
    until = offer_end(starts, now=now)
    if until is None:
        assert max(starts, default=now) - now < 2 * SHORTEST_OFFER


class WaitingDay(RuleBasedStateMachine):
    """A day with one time: people join, leave, book and cancel, and jobs run at any moment."""

    @initialize()
    def open(self) -> None:
        self.now, self.line, self.is_free, self.made = 0, Line(()), False, 0
        self.offers: list[tuple[int, int, str]] = []
        self.booked: set[str] = set()
        self.done: set[str] = set()

    def _attend(self) -> None:
        free = {DAY: {"anna"}} if self.is_free else {}
        step = attend(self.line, free, booked=self.booked, now=self.now, ends=DAY + 1)
        if step.is_new_offer and step.line.offer:
            assert self.is_free
            offer = step.line.offer
            self.offers.append((self.now, offer.until, offer.waiting_id))
        self.line = step.line

    @precondition(lambda self: self.made < MAX_IN_LINE)
    @rule()
    def join(self) -> None:
        self.line = self.line._replace(
            waiting=(*self.line.waiting, Waiting(f"w{self.made:02}", None))
        )
        self.made += 1

    @precondition(lambda self: self.line.waiting)
    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        gone = data.draw(st.sampled_from(self.line.waiting))
        self.done.add(gone.id)
        offer = self.line.offer
        self.line = Line(
            tuple(each for each in self.line.waiting if each != gone),
            None if offer and offer.waiting_id == gone.id else offer,
        )

    @rule(is_free=st.booleans())
    def change_the_day(self, is_free: bool) -> None:
        self.is_free = is_free

    @precondition(lambda self: self.is_free and self.line.waiting)
    @rule(data=st.data())
    def book(self, data: Any) -> None:
        who = data.draw(st.sampled_from(self.line.waiting)).id
        self.booked.add(who)
        self.done.add(who)
        self.is_free = False

    @precondition(lambda self: self.now < DAY - 10 * MINUTE)
    @rule(minutes=st.integers(1, 200))
    def wait_and_look(self, minutes: int) -> None:
        self.now = min(self.now + minutes * MINUTE, DAY - MINUTE)
        self._attend()

    @rule()
    def look(self) -> None:
        self._attend()

    @invariant()
    def two_offers_never_stand_at_once(self) -> None:
        stood: tuple[int, int, str] | None = None
        for offer in getattr(self, "offers", []):
            if stood is not None and stood[2] != offer[2]:
                assert offer[0] >= stood[1] or stood[2] in self.done
            stood = offer

    @invariant()
    def first_offers_go_in_the_order_of_the_line(self) -> None:
        first = list(dict.fromkeys(who for *_, who in getattr(self, "offers", [])))
        assert first == sorted(first)


TestWaitingDay = WaitingDay.TestCase
