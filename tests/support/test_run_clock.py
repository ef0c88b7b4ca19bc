"""The clock of a whole run."""

from argparse import ArgumentTypeError

import pytest

from tests.support import run_clock
from tests.support.run_clock import BERLIN, CLOCKS, MOSCOW


def test_each_clock_begins_at_the_moment_that_it_is_named_after() -> None:
    starts = {name: run_clock.moment_of(name) for name in CLOCKS}
    local = {name: moment.astimezone(MOSCOW) for name, moment in starts.items()}
    assert local["weekend"].weekday() == 5
    assert local["night"].hour == 3
    assert (local["month-end"] + run_clock.timedelta(minutes=5)).day == 1
    assert (local["year-end"].month, local["year-end"].day) == (12, 31)
    assert (local["leap-day"].month, local["leap-day"].day) == (2, 29)
    for name in ("spring-forward", "fall-back"):
        time_before = starts[name].astimezone(BERLIN)
        time_after = (starts[name] + run_clock.timedelta(minutes=10)).astimezone(BERLIN)
        assert time_before.utcoffset() != time_after.utcoffset()


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="expected drawn or one of now, weekend"):
        run_clock.clock_name("tuesday")
