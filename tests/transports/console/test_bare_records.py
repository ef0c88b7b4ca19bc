"""Every page of the console is shown for records that have nothing which they may lack."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from tests.conftest import PASSWORD, call_operator
from tests.factories.bare import EMAIL, MEMBER, bare_places
from tests.factories.console import Person, Place, begun
from tests.factories.console_forms import GUESTS, VIEWS
from tests.support.restoring import Snapshots
from tests.support.sweep import sweep

PAGES = [route for route, page in ROUTES.items() if page.get]
LISTS = [route for route in PAGES if route.startswith(WORKSPACE) and route.count("{") == 1]
LANGUAGES = ("ru", "en")
ALONE = {"workspace", "id", "site", "client", "service", "staff"}
"""Variables of a route for which the workspace has two records. What is a part of one, such as the
page of a site, only the first has."""


Places = tuple[Place, Place]


@pytest.fixture
def bare(database: None, snapshots: Snapshots) -> Places:
    """A workspace of bare records."""
    places: Places = snapshots.once("bare records", bare_places)
    return places


def opened(user: Person, path: str, language: str) -> Any:
    """Return a page, or the page that it leads to."""
    answer = user.get(path, Accept_Language=language)
    if answer.status == 303:
        answer = user.get(answer.headers["Location"], Accept_Language=language)
    return answer


@pytest.fixture
def users(bare: Place) -> dict[str, Person]:
    """The owner of the workspace, a member, an administrator of the blog, and a guest."""
    call_operator("create_account", email="admin@example.com", password=PASSWORD, role="admin")
    people = {
        name: Person(email, begun(email))
        for name, email in (("owner", EMAIL), ("member", MEMBER), ("admin", "admin@example.com"))
    }
    post = {"title": "T", "slug": "t", "content": "", "once": "1"}
    assert people["admin"].post("/console/blog", post).status == 303
    return people | {"guest": Person("")}


@sweep("route", PAGES)
def test_a_page_is_shown_for_records_that_have_only_what_they_must(
    route: str, bare: Places, users: dict[str, Person]
) -> None:
    name = "guest" if route in GUESTS else "admin" if ROUTES[route].admin else "owner"
    for path in dict.fromkeys(paths(route, bare)):
        for language in LANGUAGES:
            answer = opened(users[name], path, language)
            assert answer.status == 200, (language, path)
            assert f'<html lang="{language}"' in answer.body.decode()
        if name == "owner":  # A member sees less, by other parts of the templates.
            assert opened(users["member"], path, "en").status in {200, 403}, path


def paths(route: str, bare: Places) -> Iterator[str]:
    """Yield the paths of a route with their queries, for the records that the route has."""
    for place in bare if {*re.findall(r"{(\w+)}", route)} <= ALONE else bare[:1]:
        path = route.format(post="t") if "{post}" in route else place.path_of(route)
        yield from (path + query.format(**vars(place)) for query in VIEWS.get(route, ("",)))


@sweep("route", LISTS)
def test_a_page_is_shown_for_a_workspace_without_records(
    route: str, bare: Places, users: dict[str, Person]
) -> None:
    empty = call_operator("create_workspace", owner=EMAIL, name="E")["slug"]
    for language in LANGUAGES:
        answer = opened(users["owner"], route.format(workspace=empty), language)
        assert answer.status == 200, language
