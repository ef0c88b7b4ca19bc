"""Tests of the steps to the first booking, on the overview of a new workspace."""

import re
from typing import Any

import pytest

from tests.conftest import Api, Owner, call_console
from tests.factories.console import Person, person
from tests.factories.salon import CREATE, DAILY, Salon

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def boss(owner: Owner) -> Person:
    return person(owner)


def steps(owner: Owner, boss: Person) -> dict[str, str]:
    """Return the state of each step on the overview, by the path of its page in the workspace."""
    here = f"/console/w/{owner.workspace.slug}"
    page = boss.get(here).body.decode()
    rows = re.findall(
        rf'<li><a class="row" href="{here}/([^"]+)">.*?<span class="tag[^>]*>([^<]+)', page
    )
    return dict(rows)


def test_a_new_workspace_has_the_steps_to_the_first_booking(
    owner: Owner, boss: Person, api: Api
) -> None:
    assert list(steps(owner, boss).values()) == ["To do"] * 6
    assert "services/new" in steps(owner, boss)
    assert "staff/new" in steps(owner, boss)
    service = {"name": "Haircut", "durationMin": 60, "price": 100}
    service_id = api.post("/api/services/create", service)["service"]["id"]
    assert steps(owner, boss)[f"services/{service_id}"] == "Done"
    staff: Any = {"name": "Anna", "serviceIds": [service_id]}
    staff_id = api.post("/api/resources/create", staff)["resource"]["id"]
    assert steps(owner, boss)[f"staff/{staff_id}/hours"] == "To do"
    Salon.set_hours(api, staff_id, DAILY)
    assert steps(owner, boss)[f"staff/{staff_id}/hours"] == "Done"
    call_console(owner.workspace.id, "set_workspace", address="1 Main Street")
    assert steps(owner, boss)["settings"] == "Done"
    call_console(owner.workspace.id, "set_booking_page", isOn=True, offer=[service_id])
    assert steps(owner, boss)["booking-page"] == "Done"
    assert (
        f"/book/{owner.workspace.slug}"
        in boss.get(f"/console/w/{owner.workspace.slug}").body.decode()
    )


def test_steps_stay_below_the_bookings_until_they_are_hidden(
    owner: Owner, boss: Person, api: Api
) -> None:
    salon = Salon.opened(api)
    booking = api.post(CREATE, salon.order("2027-01-18T12:00"))["booking"]
    home = f"/console/w/{owner.workspace.slug}"
    page = boss.get(home).body.decode()
    assert page.index(f'{home}/bookings/{booking["id"]}"') < page.index("First steps")
    assert boss.post(f"{home}/first-steps").status == 303
    assert "settings" not in steps(owner, boss)
