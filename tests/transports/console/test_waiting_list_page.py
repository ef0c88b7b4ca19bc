"""The console's page of who waits for a free time."""

import pytest

from tests.conftest import Api, Owner, Time
from tests.domains.waiting.helpers import DAY, Line, run
from tests.factories.console import Person, person
from tests.transports.console.forms.helpers import text


@pytest.fixture
def line(api: Api, time: Time) -> Line:
    return Line.of_full_day(api)


@pytest.fixture
def boss(owner: Owner, time: Time) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/bookings/waiting"


def test_a_member_adds_sees_and_removes_who_waits(
    line: Line, boss: Person, path: str, time: Time
) -> None:
    form = {"serviceId": line.salon.service, "day": DAY, "name": "Ada", "email": "ada@example.com"}
    added = boss.post(path, form)
    assert added.status == 303, added.body
    run(time)
    line.cancel()
    run(time)
    page = text(boss.get(path))
    assert "Ada" in page
    assert "Offered until" in page
    (entry,) = line.waiting
    assert boss.post(path, {"delete": entry["id"]}).status == 303
    assert boss.post(path, {"delete": entry["id"]}).status == 303
    assert line.names == []


def test_a_wrong_entry_is_named_at_its_control_and_kept(
    line: Line, boss: Person, path: str
) -> None:
    form = {"serviceId": line.salon.service, "day": DAY, "name": "Ada"}
    refused = boss.post(path, form)
    assert refused.status == 400
    page = text(refused)
    assert 'id="phone-error"' in page
    assert 'value="Ada"' in page


def test_a_day_with_free_times_says_so(line: Line, boss: Person, path: str) -> None:
    line.cancel()
    form = {"serviceId": line.salon.service, "day": DAY, "name": "Ada", "email": "ada@example.com"}
    assert boss.post(path, form).status == 409
