"""The console never reports the deletion of a record that was not in the workspace."""

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.domains.webhooks.store.webhooks import WEBHOOKS
from tests.conftest import all_rows, call_console
from tests.factories.console import Place, World


def ids(place: Place) -> dict[str, str]:
    """Return the path of a page that deletes, below the workspace, and an id of the workspace."""
    call = call_console
    here = place.workspace_id
    service = call(here, "list_services")["services"][0]["id"]
    staff = call(here, "list_resources")["resources"][0]["id"]
    (source, *_) = call(here, "list_knowledge", id=place.bot)["sources"]
    (key, *_) = call(here, "list_bot_keys", agentId=place.bot)["keys"]
    return {
        "services/{id}/delete": service,
        "staff/{id}/delete": staff,
        "forms/{id}/delete": FORMS.latest(here, 1)[0].id,
        "webhooks/{id}/delete": WEBHOOKS.latest(here, 1)[0].id,
        f"bots/{place.bot}/knowledge/{{id}}": source["id"],
        f"bots/{place.bot}/keys/{{id}}/delete": key["id"],
    }


KINDS = ["services", "staff", "forms", "webhooks", "knowledge", "keys"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("foreign", [True, False])
def test_an_id_that_was_never_here_is_not_said_to_be_deleted(
    kind: str, foreign: bool, world: World
) -> None:
    (path,) = (path for path in ids(world.here) if kind in path)
    other = next(value for path, value in ids(world.there).items() if kind in path)
    console_owner, count_before = world.person("boss"), len(all_rows())
    target = f"{world.here.path}/{path.format(id=other if foreign else new_id())}"
    for answer in (console_owner.get(target), console_owner.post(target)):
        assert answer.status == 404
        assert "Location" not in answer.headers
    assert len(all_rows()) == count_before


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_click_is_answered_like_the_first(kind: str, world: World) -> None:
    path, own_id = next(pair for pair in ids(world.here).items() if kind in pair[0])
    console_owner, target = world.person("boss"), f"{world.here.path}/{path.format(id=own_id)}"
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
