"""The links of calendars in the console: made, copied, replaced and switched off."""

import html
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.transports.console.routes import STAFF, WORKSPACE
from tests.conftest import Answer, Api, Owner, call_console
from tests.factories.console import Person, World, person
from tests.transports.console.forms.helpers import text


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def staff(owner: Owner) -> str:
    made: Any = call_console(owner.workspace.id, "create_resource", name="Anna")
    resource_id: str = made["resource"]["id"]
    return resource_id


@pytest.fixture(params=["business", "staff"])
def path(request: pytest.FixtureRequest, owner: Owner, staff: str) -> str:
    """The page of the link of the business, or of a member of the staff."""
    home = f"/console/w/{owner.workspace.slug}"
    of_staff = f"{home}/staff/{staff}/calendar-link"
    return of_staff if request.param == "staff" else f"{home}/bookings/calendar-link"


def link_on(page: Answer) -> str | None:
    found = re.search(r'id="calendar-link"><code>([^<]*)</code>', page.body.decode())
    return html.unescape(found[1]) if found else None


def works(link: str | None) -> bool:
    assert link is not None
    return Api(None).call("GET", urlsplit(link).path).status == 200


def test_a_link_is_made_replaced_and_switched_off(console_owner: Person, path: str) -> None:
    assert link_on(console_owner.get(path)) is None
    made = console_owner.post(path, {"action": "make"})
    assert (made.status, made.headers["Location"]) == (303, f"{path}?done=calendar_link_made")
    first = link_on(console_owner.get(made.headers["Location"]))
    assert works(first)
    assert link_on(console_owner.get(path)) == first  # It can be copied again.
    console_owner.post(path, {"action": "make"})  # from a page that was opened before
    assert link_on(console_owner.get(path)) == first
    console_owner.post(path, {"action": "replace"})
    second = link_on(console_owner.get(path))
    assert (works(first), works(second)) == (False, True)
    gone = console_owner.post(path, {"action": "revoke"})
    assert gone.headers["Location"] == f"{path}?done=calendar_link_revoked"
    assert link_on(console_owner.get(path)) is None
    assert not works(second)
    assert console_owner.post(path, {"action": "revoke"}).status == 303


def test_a_form_that_is_sent_twice_makes_one_new_link(console_owner: Person, path: str) -> None:
    console_owner.post(path, {"action": "make"})
    for _ in range(2):
        console_owner.post(path, {"action": "replace", "once": "one-page"})
        link = link_on(console_owner.get(path))
    console_owner.post(path, {"action": "replace", "once": "one-page"})
    assert link_on(console_owner.get(path)) == link


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["without signing in", "up to a day", "stops at once"]),
        ("ru", ["без входа", "через сутки", "сразу перестанет работать"]),
    ],
)
def test_the_page_says_who_sees_the_bookings_and_that_google_is_slow(
    language: str, words: list[str], console_owner: Person, path: str
) -> None:
    console_owner.post(path, {"action": "make"})
    page = text(console_owner.get(f"{path}?lang={language}", Accept_Language=language))
    assert [word for word in words if word not in page] == []


def test_the_page_of_the_business_leads_to_the_links_of_staff(
    console_owner: Person, owner: Owner, staff: str
) -> None:
    home = f"/console/w/{owner.workspace.slug}"
    page, of_staff = f"{home}/bookings/calendar-link", f"{home}/staff/{staff}/calendar-link"
    assert of_staff not in text(console_owner.get(page))
    console_owner.post(of_staff, {"action": "make"})
    assert of_staff in text(console_owner.get(page))
    assert page in text(console_owner.get(f"{home}/bookings"))
    assert of_staff in text(console_owner.get(f"{home}/staff/{staff}"))


def test_members_see_no_links(world: World) -> None:
    member, here = world.person("member"), world.here
    for route in (f"{WORKSPACE}/bookings/calendar-link", f"{STAFF}/calendar-link"):
        path = here.path_of(route)
        assert member.get(path).status == 403
        assert member.post(path, {"action": "make"}).status == 403
    for route in (f"{WORKSPACE}/bookings", STAFF):
        assert "calendar-link" not in text(member.get(here.path_of(route)))
