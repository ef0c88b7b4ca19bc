"""Rate limits in the database are exact for each subject and window."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynamodb.exceptions import UpdateError

from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import HEAVY, Limit, RateLimitStatus
from chalicelib.engine import limits
from chalicelib.engine.limits import RateLimitRow, take
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Time, all_rows, run_concurrently
from tests.fakes.dynamodb_faults import failing, unreachable
from tests.support.effort import examples

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

LIMIT = Limit("test", "tests a minute", 3, timedelta(minutes=1))
DAY = Limit("test-day", "tests a day", 1, timedelta(days=1))


@pytest.fixture(autouse=True)
def set_limit_scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Set RATE_LIMIT_SCALE. It is 1 by default."""

    def choose(factor: float) -> None:
        settings = replace(real, rate_limit_scale=factor)
        monkeypatch.setattr(limits, "settings", lambda: settings)

    real = limits.settings()
    choose(1)
    return choose


def admitted(limit: Limit, subject: str, count: int) -> int:
    """Make this many attempts, and return the number admitted."""
    return count - sum(refusal(limit, subject) is not None for _ in range(count))


def refusal(limit: Limit, subject: str) -> RateLimitedError | None:
    try:
        take(limit, subject)
    except RateLimitedError as error:
        return error
    return None


def test_a_subject_is_admitted_as_often_as_allowed_and_sees_the_remaining_number(
    time: Time,
) -> None:
    time.pass_by(seconds=20)
    assert [take(LIMIT, "a") for _ in range(3)] == [
        RateLimitStatus(3, remaining, 40) for remaining in (2, 1, 0)
    ]
    with pytest.raises(RateLimitedError):
        take(LIMIT, "a")


def test_a_refusal_states_the_limit_and_when_to_retry(time: Time) -> None:
    time.pass_by(seconds=20)
    assert admitted(LIMIT, "a", 3) == 3
    error = refusal(LIMIT, "a")
    assert error
    assert error.key == LIMIT.name.replace("-", "_")
    assert error.headers == {
        "RateLimit-Limit": "3",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "40",
        "Retry-After": "40",
    }


@pytest.mark.parametrize(("begins", "wait"), [(58, 2), (58.6, 2), (59.4, 1), (59.999, 1)])
def test_a_subject_that_waits_as_advised_is_admitted(begins: float, wait: int, time: Time) -> None:
    time.pass_by(seconds=begins)
    assert admitted(LIMIT, "a", 4) == 3
    error = refusal(LIMIT, "a")
    assert error
    assert error.headers["Retry-After"] == str(wait)
    time.pass_by(seconds=wait)
    assert take(LIMIT, "a").remaining == 2


def test_a_daily_limit_counts_days_in_utc(time: Time) -> None:
    time.pass_by(hours=11, minutes=59)
    assert take(DAY, "a").reset_seconds == 60
    time.pass_by(seconds=59)
    assert refusal(DAY, "a")
    time.pass_by(seconds=1)
    assert take(DAY, "a").reset_seconds == 86_400


def test_subjects_and_limits_are_counted_separately() -> None:
    other = replace(LIMIT, name="other")
    counts = [admitted(limit, subject, 5) for limit in (LIMIT, other) for subject in ("a", "b")]
    assert counts == [3, 3, 3, 3]


@pytest.mark.parametrize(("factor", "allowed"), [(0.34, 1), (1, 3), (2, 6), (0, 0)])
def test_the_scale_multiplies_the_limit(
    factor: float, allowed: int, set_limit_scale: Callable[[float], None], time: Time
) -> None:
    set_limit_scale(factor)
    assert admitted(LIMIT, "a", 8) == allowed


def test_of_twenty_concurrent_attempts_exactly_the_limit_is_admitted(time: Time) -> None:
    limit = replace(LIMIT, max_requests=7)
    refusals = run_concurrently(20, lambda _: refusal(limit, "a"))
    assert refusals.count(None) == 7
    assert take(limit, "b").remaining == 6


@examples(40)
@given(steps=st.lists(st.floats(0, 50), max_size=25), max_requests=st.integers(1, 4))
def test_no_window_admits_more_than_allowed(
    steps: list[float], max_requests: int, time: Time
) -> None:
    limit, subject = replace(LIMIT, max_requests=max_requests), new_id()
    seen: dict[str, list[bool]] = {}
    for step in steps:
        time.pass_by(seconds=step)
        window = time.now.strftime("%H:%M")
        seen.setdefault(window, []).append(refusal(limit, subject) is None)
    for answers in seen.values():
        assert answers == [number < max_requests for number in range(len(answers))]


def test_counters_expire_after_their_window(time: Time) -> None:
    take(LIMIT, "a")
    (row,) = all_rows().values()
    assert row["expires"]["N"] == str(int((time.now + timedelta(minutes=1)).timestamp()))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that refuses writes."""

    def fail(*_: object, **__: object) -> None:
        raise UpdateError(cause=None)

    monkeypatch.setattr(RateLimitRow, "update", fail)


@pytest.mark.usefixtures("broken")
def test_a_database_that_cannot_count_refuses_unless_the_limit_fails_open() -> None:
    with pytest.raises(UnavailableError):
        take(LIMIT, "a")
    status = take(HEAVY, "a")
    assert (status.limit, status.remaining) == (60, 60)
    assert 1 <= status.reset_seconds <= 60


@pytest.mark.usefixtures("broken")
def test_a_database_that_cannot_give_a_call_back_is_reported(time: Time) -> None:
    with pytest.raises(UnavailableError):
        limits.give_back(LIMIT, "a", time.now)


def test_a_call_refused_by_one_of_several_limits_counts_only_under_the_limits_before_it() -> None:
    limit_before, limit_after = (
        replace(DAY, name="before", max_requests=9),
        replace(DAY, name="after"),
    )
    take(LIMIT, "a", 3)
    with pytest.raises(RateLimitedError, match="3 tests a minute"):
        limits.take_each([(limit_before, "a"), (LIMIT, "a"), (limit_after, "a")])
    assert take(limit_before, "a").remaining == 7
    limits.take_each([(limit_before, "a"), (limit_after, "a")])
    with pytest.raises(RateLimitedError, match="1 tests a day"):
        limits.take_each([(limit_before, "a"), (limit_after, "a")])
    assert take(limit_before, "a").remaining == 4
    with pytest.raises(RateLimitedError):
        limits.take_each([(LIMIT, "a"), (limit_after, "a")])
    assert refusal(limit_after, "a")


def test_a_call_is_given_back_to_the_window_that_counted_it(time: Time) -> None:
    counted_at = time.now
    assert admitted(LIMIT, "a", 3) == 3
    time.pass_by(minutes=1)
    assert admitted(LIMIT, "a", 3) == 3
    limits.give_back(LIMIT, "a", counted_at)
    assert refusal(LIMIT, "a")
    limits.give_back(LIMIT, "a", time.now)
    assert admitted(LIMIT, "a", 2) == 1


def test_a_subject_gets_no_calls_back_that_were_not_counted(time: Time) -> None:
    limits.give_back(LIMIT, "a", time.now)
    assert admitted(LIMIT, "a", 4) == 3


def test_a_call_that_exceeds_the_limit_by_itself_is_refused_and_not_counted() -> None:
    with pytest.raises(RateLimitedError):
        take(LIMIT, "a", 4)
    assert take(LIMIT, "a", 2).remaining == 1
    with pytest.raises(RateLimitedError):
        take(LIMIT, "a", 2)
    assert take(LIMIT, "a").remaining == 0


def test_a_check_refuses_a_subject_at_its_limit_and_counts_nothing(time: Time) -> None:
    for _ in range(3):
        limits.check(LIMIT, "a")
        take(LIMIT, "a")
    with pytest.raises(RateLimitedError, match="3 tests a minute"):
        limits.check(LIMIT, "a")
    limits.check(LIMIT, "b")
    time.pass_by(minutes=1)
    limits.check(LIMIT, "a")
    assert take(LIMIT, "a").remaining == 2


def commit_one(subject: str, *, read_ahead: bool = False) -> None:
    def stage(unit: UnitOfWork) -> None:
        if read_ahead:
            unit.rows.read([limits.key(LIMIT, subject)])
        limits.stage(unit, LIMIT, subject)

    run_unit("w", None, stage)


def test_a_staged_unit_is_counted_by_the_commit_alone(time: Time) -> None:
    unit = UnitOfWork("w")
    limits.stage(unit, LIMIT, "a")
    assert take(LIMIT, "a", 2).remaining == 1
    unit.commit()
    with pytest.raises(RateLimitedError):
        take(LIMIT, "a")
    rows_before = all_rows()
    with pytest.raises(RateLimitedError, match="3 tests a minute"):
        commit_one("a")
    assert all_rows() == rows_before


def test_a_limit_that_was_reached_when_its_rows_were_read_is_refused_without_a_transaction(
    time: Time,
) -> None:
    commit_one("a", read_ahead=True)
    take(LIMIT, "a")
    commit_one("a", read_ahead=True)
    with failing("TransactWriteItems", 100, unreachable), pytest.raises(RateLimitedError):
        commit_one("a", read_ahead=True)
    commit_one("b", read_ahead=True)
    assert take(LIMIT, "b").remaining == 1


def test_a_limit_that_was_reached_when_it_was_read_is_refused_without_a_write() -> None:
    rows = Rows()
    assert admitted(LIMIT, "a", 2) == 2
    limits.require_room([(LIMIT, "a"), (LIMIT, "b")], rows)
    assert admitted(LIMIT, "a", 1) == 1
    stored = all_rows()
    with pytest.raises(RateLimitedError) as refused:
        limits.require_room([(LIMIT, "b"), (LIMIT, "a")], Rows())
    assert refused.value.key == "test"
    assert all_rows() == stored
