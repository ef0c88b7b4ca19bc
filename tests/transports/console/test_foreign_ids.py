"""The console never reports the deletion of a record that was not in the workspace."""

import re

import pytest

from chalicelib.core.ids import new_id
from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from tests.conftest import all_rows
from tests.factories.console import Place, World

DELETIONS = [
    route
    for route, page in ROUTES.items()
    if route.startswith(WORKSPACE) and page.get and page.posts.startswith("delete_")
]
"""Pages that ask before they delete a record."""


def path_to(route: str, place: Place, record_id: str = "") -> str:
    """Return the path of a page of a place, with another id of the record that it deletes."""
    (*_, variable) = re.findall(r"{(\w+)}", route)
    values = place.values_of(route)
    return route.format(**values | {variable: record_id or values[variable]})


def id_of(route: str, place: Place) -> str:
    """Return the id of the record that a page deletes."""
    (*_, variable) = re.findall(r"{(\w+)}", route)
    return place.values_of(route)[variable]


@pytest.mark.parametrize("route", DELETIONS)
@pytest.mark.parametrize("foreign", [True, False])
def test_an_id_that_was_never_here_is_not_said_to_be_deleted(
    route: str, foreign: bool, world: World
) -> None:
    console_owner, count_before = world.person("boss"), len(all_rows())
    target = path_to(route, world.here, id_of(route, world.there) if foreign else new_id())
    for answer in (console_owner.get(target), console_owner.post(target)):
        assert answer.status == 404
        assert "Location" not in answer.headers
    assert len(all_rows()) == count_before


@pytest.mark.parametrize("route", DELETIONS)
def test_a_second_click_is_answered_like_the_first(route: str, world: World) -> None:
    console_owner, target = world.person("boss"), path_to(route, world.here)
    first = console_owner.post(target)
    assert first.status == 303
    for response in (console_owner.post(target), console_owner.get(target)):
        assert response.headers["Location"] == first.headers["Location"]


@pytest.mark.parametrize(
    ("page", "field"),
    [("members", "revoke"), ("closed-days", "delete")],
    ids=["invite", "time off"],
)
def test_a_button_with_an_id_that_was_never_here_does_nothing(
    page: str, field: str, world: World
) -> None:
    console_owner, count_before = world.person("boss"), len(all_rows())
    assert console_owner.post(f"{world.here.path}/{page}", {field: new_id()}).status == 404
    assert len(all_rows()) == count_before
