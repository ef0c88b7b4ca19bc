"""Jobs, cancellations and people who join and leave at the same moment keep a line in order."""

from datetime import date

import pytest

from chalicelib.domains.waiting.flows import lines
from chalicelib.domains.waiting.store.waiting_lines import LinePlace
from chalicelib.engine import jobs
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.domains.waiting.helpers import DAY, Line, run

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def offers_of(owner: Owner) -> set[tuple[str, int]]:
    """Return the offers whose messages wait, each with who gets it and until when."""
    waiting = jobs.read_workspace_jobs(owner.workspace.id)
    return {
        (job.payload["waitingId"], job.payload["until"])
        for job in waiting
        if job.kind == "tell-waiting" and job.payload["until"]
    }


def test_two_jobs_and_a_cancellation_at_once_make_one_offer(
    api: Api, owner: Owner, time: Time
) -> None:
    line = Line.of_full_day(api)
    ada = line.add("Ada")
    line.add("Grace")
    run(time)
    place = LinePlace(date.fromisoformat(DAY), line.salon.service)

    def act(number: int) -> None:
        if number == 0:
            line.cancel()
        else:
            lines.attend(owner.workspace.id, place)

    run_concurrently(3, act)
    run_concurrently(4, lambda _: lines.attend(owner.workspace.id, place))
    ((holder, _),) = offers_of(owner)
    assert (holder, line.offered_to) == (ada["id"], "Ada")


def test_people_who_join_at_once_have_a_place_each(api: Api, time: Time) -> None:
    line = Line.of_full_day(api)
    entries = run_concurrently(5, lambda number: line.add(f"Client{number}"))
    assert sorted(each["position"] for each in entries) == [1, 2, 3, 4, 5]
    assert len(line.names) == 5


def test_one_person_who_joins_twice_at_once_has_one_place(api: Api, time: Time) -> None:
    line = Line.of_full_day(api)
    entries = run_concurrently(3, lambda _: line.add("Ada"))
    assert len({each["id"] for each in entries}) == 1
    assert line.names == ["Ada"]


def test_who_leaves_while_jobs_run_is_offered_nothing_more(
    api: Api, owner: Owner, time: Time
) -> None:
    line = Line.of_full_day(api)
    ada = line.add("Ada")
    line.add("Grace")
    run(time)
    line.cancel()
    run(time)
    place = LinePlace(date.fromisoformat(DAY), line.salon.service)

    def act(number: int) -> None:
        if number == 0:
            assert line.remove(ada)
        else:
            lines.attend(owner.workspace.id, place)

    run_concurrently(3, act)
    run(time)
    assert (line.names, line.offered_to) == (["Grace"], "Grace")
