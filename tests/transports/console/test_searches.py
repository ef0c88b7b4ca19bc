"""A search for signs alone finds the texts that contain these signs, in every list."""

import json
import re
from urllib.parse import quote

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.transports.console.routes import ROUTES
from tests.conftest import call_console
from tests.factories.console import World
from tests.factories.transfer import call_with_key
from tests.support.sweep import sweep

SEARCHES = {
    operation.name: name
    for operation in REGISTRY.select(Audience.SESSION, Audience.KEY)
    if operation.name != "export_leads"  # The query of list_leads, and few exports a day.
    for name in ("q", "search")
    if name in operation.input.model_fields
}
CONTAINED = ["{", "}}", ">{{", "*", "\uff0a"]
"""Parts of the hostile name, the last one in full width."""
MISSING = ["%", "((", "'\"", "%_", "~", "\u2014", "[", "?!", "\u2026", "\U0001f642"]
NOTHING = "Nothing found"
SEARCH_FORM = re.compile(r'role="search"(?:(?!</form>).)*name="q"', re.DOTALL)


def found(world: World, operation: str, text: str) -> bool:
    """Whether a list shows the record with the hostile name, which is the only record."""
    arguments = {SEARCHES[operation]: text}
    if operation == "list_agent_dialogs":
        arguments["agentId"] = world.here.bot
    by_member = Audience.SESSION in REGISTRY[operation].audience
    call = call_console if by_member else call_with_key
    answer = call(world.here.workspace_id, operation, **arguments)
    return "733*733" in json.dumps([value for value in answer.values() if isinstance(value, list)])


def test_each_list_with_a_search_is_known() -> None:
    assert {"list_services", "list_dialogs", "list_readable_files"} <= SEARCHES.keys()


@sweep("operation", SEARCHES)
def test_a_search_without_letters_finds_what_contains_it_as_it_stands(
    world: World, operation: str
) -> None:
    assert [text for text in CONTAINED if not found(world, operation, text)] == []
    assert [text for text in MISSING if found(world, operation, text)] == []


@sweep("route", [route for route, page in ROUTES.items() if page.get and "{workspace}" in route])
def test_a_page_with_a_search_shows_only_what_contains_the_signs(world: World, route: str) -> None:
    path, boss = world.here.path_of(route), world.person("boss")
    nothing = boss.get(f"{path}?view=list&q={quote('[')}")
    if nothing.status == 200 and SEARCH_FORM.search(nothing.body.decode()):
        something = boss.get(f"{path}?view=list&q={quote('{')}")
        assert NOTHING in nothing.body.decode()
        assert NOTHING not in something.body.decode()
