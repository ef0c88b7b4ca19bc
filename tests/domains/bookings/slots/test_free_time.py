"""Tests of a resource's free time between bookings and closures in its opening hours."""

from chalicelib.domains.bookings.rules.slots import clip, gaps
from chalicelib.lib.spans import Span

MORNING, EVENING = Span(0, 10), Span(20, 30)


def test_spans_are_cut_to_the_bounds_and_merged_where_they_touch() -> None:
    spans = [Span(8, 12), Span(0, 3), Span(3, 5), Span(10, 20)]
    assert clip(spans, Span(2, 11)) == [Span(2, 5), Span(8, 11)]


def test_spans_that_only_touch_the_bounds_are_left_out() -> None:
    assert clip([Span(0, 2), Span(11, 20)], Span(2, 11)) == []


def test_bookings_divide_opening_hours_into_gaps() -> None:
    assert gaps([MORNING], [Span(2, 4), Span(6, 8)], 1) == [Span(0, 2), Span(4, 6), Span(8, 10)]


def test_a_booking_leaves_the_opening_hours_before_and_after_it_whole() -> None:
    assert gaps([MORNING, EVENING], [Span(22, 24)], 1) == [MORNING, Span(20, 22), Span(24, 30)]
    assert gaps([MORNING, EVENING], [Span(2, 4)], 1) == [Span(0, 2), Span(4, 10), EVENING]
    both = [Span(0, 2), Span(4, 10), Span(20, 22), Span(24, 30)]
    assert gaps([MORNING, EVENING], [Span(2, 4), Span(22, 24)], 1) == both


def test_a_booking_across_a_break_shortens_the_hours_on_both_sides() -> None:
    assert gaps([MORNING, EVENING], [Span(8, 22)], 1) == [Span(0, 8), Span(22, 30)]


def test_back_to_back_bookings_leave_no_gap() -> None:
    assert gaps([MORNING], [Span(0, 5), Span(5, 10)], 1) == []


def test_time_stays_free_until_the_last_seat_is_taken() -> None:
    busy = [Span(0, 6), Span(4, 10)]
    assert gaps([MORNING], busy, 3) == [MORNING]
    assert gaps([MORNING], busy, 2) == [Span(0, 4), Span(6, 10)]


def test_a_seat_taken_twice_is_free_after_both_bookings() -> None:
    """A booking may be placed over another one, and the number of seats may become lower."""
    assert gaps([MORNING], [Span(1, 6), Span(3, 8)], 1) == [Span(0, 1), Span(8, 10)]
    assert gaps([MORNING], [Span(1, 8), Span(3, 6)], 1) == [Span(0, 1), Span(8, 10)]


def test_closures_take_all_seats() -> None:
    closed = [Span(1, 3), Span(3, 4)]
    assert gaps([MORNING], [Span(3, 5)], 2, closed) == [Span(0, 1), Span(4, 10)]
    assert gaps([MORNING], [Span(3, 5)], 1, closed) == [Span(0, 1), Span(5, 10)]
