"""Fixtures for tests that call every operation in a workspace with a record of every type.

They also replace the external services that operations use.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import app as application
from chalicelib.core import manifest
from chalicelib.domains.identity.store import workspaces
from chalicelib.gateways import photos
from chalicelib.transports.api_docs import openapi
from chalicelib.transports.api_docs.model import OperationDoc, Reference
from infra.local import devserver
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.chat import propose_booking
from tests.factories.examples import Things, submit
from tests.factories.payments import payable_token
from tests.fakes.openverse import answer_with, image
from tests.support.patience import PATIENCE
from tests.support.restoring import Snapshots
from tests.transports.conftest import LocalServer, serving

WHOLE = openapi.document()
DOCUMENTED = Reference(WHOLE)
"""The reference with a placeholder for the base URL. The tests fill in the server's URL."""
EACH = {operation.name: operation for operation in DOCUMENTED.operations}
every_example = pytest.mark.parametrize("name", EACH)

IMAGES = [image(number) for number in range(45)]


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return photo search results without a server. Failures of the search are tested elsewhere."""

    def get(_service: str, *, query: dict[str, Any], **_: object) -> Any:
        status, answer = answer_with(IMAGES, query["page"], query["page_size"])
        assert status == 200, answer
        return answer

    monkeypatch.setattr(photos, "get_json", get)
    monkeypatch.setattr(photos, "services", lambda _: {"openverse": "http://openverse"})


@dataclass(frozen=True)
class World:
    """A workspace with one record of every type, and a key of the workspace."""

    workspace_id: str
    token: str
    things: Things

    @property
    def api(self) -> Api:
        """The API through the key."""
        return Api(self.token)


@pytest.fixture
def restore(new_owner: Callable[..., Owner], snapshots: Snapshots) -> Callable[..., World]:
    """Restore a world, identified by a name, to its original state.

    Rows that were added later are kept, unless the test empties the database first.
    """

    def made_or_put_back(name: str = "own", role: str = "admin", scope: str | None = None) -> World:
        def make() -> World:
            owner = new_owner("business", role)
            token = owner.token()
            return World(owner.workspace.id, token, Things.made_with(Api(token)))

        def make_key() -> str:
            return Owner(workspaces.get(world.workspace_id)).token([scope] if scope else [])

        world: World = snapshots.once(f"world {name} {role}", make)
        if scope:
            world = replace(
                world, token=snapshots.once(f"key {world.workspace_id} {scope}", make_key)
            )
        return world

    return made_or_put_back


@pytest.fixture
def world(restore: Callable[..., World]) -> World:
    """A workspace with one record of every type."""
    return restore()


@pytest.fixture(scope="module")
def server(_server: Callable[[], None]) -> Iterator[LocalServer]:
    """The whole service, on loopback."""
    with serving(application.app, *devserver.ROUTES) as served:
        yield served


@dataclass(frozen=True)
class ExampleRunner:
    """A user of the examples, with a key and ids of their own."""

    base_url: str
    world: World
    placeholders: dict[str, str]

    def fill(self, text: str) -> str:
        """Replace the base URL and the placeholders of ids in an example."""
        text = text.replace(manifest.SERVER, self.base_url)
        return re.sub(r"\b[A-Z]+(?:_[A-Z]+)+\b", self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        return self.placeholders.get(match[0], match[0])


@pytest.fixture
def new_runner(
    time: Time,
    restore: Callable[..., World],
    snapshots: Snapshots,
    empty_database: Callable[[], None],
    server: LocalServer,
) -> Callable[[], ExampleRunner]:
    """Create a workspace with one record of every type. The clock shows the same time for each."""
    url = f"http://127.0.0.1:{server.port}"

    def make() -> ExampleRunner:
        world = restore("reference")
        return ExampleRunner(url, world, {**world.things.placeholders, **_more(world)})

    def made_or_put_back() -> ExampleRunner:
        empty_database()
        return replace(snapshots.once("runner", make), base_url=url)

    return made_or_put_back


VISITORS_WORDS = (
    *("SESSION_ID", "ACTION_ID", "CANCEL_TOKEN", "MANAGE_TOKEN", "PAY_TOKEN"),
    *("WORKSPACE_SLUG", "CALENDAR_FILE", "CALENDAR_FEED", "WAITING_TOKEN"),
)
"""Words that only examples for visitors have, who have talked to a bot and booked."""


def _more(world: World) -> dict[str, str]:
    """Create further records that examples need, and return their placeholders."""
    api, things = world.api, world.things
    submit(things.form, name="Ada", email="ada@example.com", phone="8 495 123-45-67")
    post = {"title": "Why rye takes two days", "content": "Because.", "status": "published"}
    api.post("/api/admin/blog/create", post)
    about = "<h1>About us</h1><p>Rye since 1998.</p>"
    api.post("/api/pages/save-html", {"id": things.page, "html": about})
    file = {"name": "prices.txt", "content": "UnllLCA5MA==", "folderId": things.folder}
    api.post("/api/files/upload", file)
    booking = {
        "serviceId": things.service,
        "startAt": "2027-03-02T17:00:00+03:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
    }
    booked = api.post("/api/public/bookings", booking)
    call_console(world.workspace_id, "set_booking_page", isOn=True, offer=[things.service])
    start = datetime.fromisoformat("2027-03-02T14:00:00+03:00")
    waiting = {
        "serviceId": things.service,
        "day": "2027-03-06",
        "client": {"name": "Mary", "email": "mary@example.com"},
    }
    waits = api.post("/api/public/bookings/waiting", waiting)
    session, proposal = propose_booking(things.agent, things.service, things.resource, start)
    values = (
        *(session, str(proposal.id), booked["cancelToken"]),
        booked["manageUrl"].rpartition("/")[2],
        payable_token(world.workspace_id, things.booking),
        workspaces.get(world.workspace_id).slug,
        booked["icsUrl"].rpartition("/")[2],
        api.post("/api/calendar-links/create")["calendarLink"]["url"].rpartition("/")[2],
        waits["waitingUrl"].rpartition("/")[2],
    )
    return dict(zip(VISITORS_WORDS, values, strict=True))


@pytest.fixture
def runner(new_runner: Callable[[], ExampleRunner]) -> ExampleRunner:
    """A workspace with one record of every type."""
    return new_runner()


def shell(runner: ExampleRunner, command: str) -> str:
    """Run a shell command with the key in the environment."""
    environment = {"API_KEY": runner.world.token, "PATH": "/usr/bin:/bin", "no_proxy": "127.0.0.1"}
    process = subprocess.run(
        ["bash", "-euc", runner.fill(command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def succeeded(operation: OperationDoc, text: str) -> bool:
    """Whether a call returned the expected status."""
    if operation.answer_type == "application/json":
        return json.loads(text)["data"]["status"] is True
    return "BEGIN:VCALENDAR" in text or '"type":"done"' in text


@pytest.fixture
def mail_enabled(tmp_path: Path, reload_settings: Callable[[], None]) -> None:
    """Mail is on, so that owners want all messages."""
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
