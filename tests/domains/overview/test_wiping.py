"""A test workspace is emptied, and nothing else is."""

import base64
import re
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError
from chalicelib.domains.imports.flows import runs
from chalicelib.domains.overview.flows import emptying
from chalicelib.domains.overview.flows.emptying import WIPE
from chalicelib.engine import jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import OBJECTS, Api, Owner, all_rows, call_console, call_operator
from tests.domains.webhooks.conftest import receiver  # noqa: F401  a fixture
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things
from tests.fakes.receiver import Receiver, Request, status

# Settings, rows without records, and rows that expire.
KEPT = (
    "^identity/",
    "^ledger/",
    "^audit/",
    "#COUNT#",
    "#LOCK/",
    "#DELIVERY#",
    "#LEAD#SUBMITTED/",
    "#UPLOAD/",
    "#USAGE/",
    "#KNOWLEDGE#INDEX/",  # of a deleted bot, which a job that has begun before may write again
    "^control/",
)
LISTS = (
    *("/api/products/list", "/api/services/list", "/api/bookings/list", "/api/clients/list"),
    *("/api/forms/collection-list", "/api/projects/list", "/api/files/list", "/api/agents/list"),
)


@pytest.fixture
def things(tester: Owner, receiver: Receiver) -> Things:  # noqa: F811  the fixture
    """One record of every type in the test workspace."""

    def answer(request: Request) -> Any:
        return status(200, request.event["data"].get("challenge", "").encode())

    receiver.answer = answer
    made = Things.made_with(tester.api())
    run_jobs()  # A wipe that meets another job in the same row is repeated later.
    run_until_idle()
    return made


def wipe(owner: Owner) -> None:
    call_operator("wipe_test_workspace", workspaceId=owner.workspace.id)
    run_jobs()
    run_until_idle()


def test_a_wiped_test_workspace_has_its_settings_only(tester: Owner, things: Things) -> None:
    wipe(tester)
    workspace_id = tester.workspace.id
    left = {str(key) for key in all_rows() if workspace_id in str(key)}
    assert {key for key in left if not any(re.search(kept, key) for kept in KEPT)} == set()
    api = tester.api()
    for path in LISTS:
        assert api.get(path)["total"] == 0, path
    assert not list(OBJECTS.glob(f"{workspace_id}/*/**/*.*"))
    assert api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})


def test_an_import_ends_with_a_wipe(tester: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    api = tester.api()
    table = "name,email\n" + "".join(f"Ada,{n}@example.com\n" for n in range(150))
    content = base64.b64encode(table.encode()).decode()
    file_id = api.post("/api/files/upload", {"name": "c.csv", "content": content})["file"]["id"]
    api.post("/api/clients/import", {"fileId": file_id})
    monkeypatch.setattr(runs, "RUN_SECONDS", 0)
    run_jobs()
    assert 0 < api.get("/api/clients/list")["total"] < 150
    call_operator("wipe_test_workspace", workspaceId=tester.workspace.id)
    jobs.run({WIPE: emptying.wipe})
    run_jobs()
    assert api.get("/api/clients/list")["total"] == 0


def test_a_wipe_leaves_other_workspaces_alone(
    tester: Owner, things: Things, owner: Owner, api: Api
) -> None:
    api.post("/api/products/create", {"name": "Rye", "price": 1})
    before = {key: row for key, row in all_rows().items() if owner.workspace.id in str(key)}
    wipe(tester)
    after = {key: row for key, row in all_rows().items() if owner.workspace.id in str(key)}
    assert after == before


def test_only_a_test_workspace_is_wiped(owner: Owner, api: Api) -> None:
    api.post("/api/products/create", {"name": "Rye", "price": 1})
    answer = call_operator("wipe_test_workspace", workspaceId=owner.workspace.id)
    assert answer["isWiped"] is False
    job = jobs.row(WIPE, owner.workspace.id, {}, clock.now())
    jobs.schedule(job)
    run_jobs()
    assert api.get("/api/products/list")["total"] == 1


def test_only_the_owner_wipes(tester: Owner) -> None:
    with pytest.raises(ForbiddenError):
        call_console(tester.workspace.id, "wipe_test_workspace", membership="manager")


def test_a_wiped_workspace_is_used_again(tester: Owner, things: Things) -> None:
    wipe(tester)
    assert Things.made_with(tester.api()).product


def test_the_owner_wipes_it_in_the_console(tester: Owner, things: Things) -> None:
    boss, path = person(tester), f"/console/w/{tester.workspace.slug}"
    assert f"{path}/wipe" in boss.get(f"{path}/settings").body.decode()
    assert boss.get(f"{path}/wipe").status == 200
    assert boss.post(f"{path}/wipe", {}).status == 303
    run_jobs()
    assert tester.api().get("/api/products/list")["total"] == 0
