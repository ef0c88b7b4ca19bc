"""What the sweeps call every operation on: a world with one of everything, put back when asked for.

What operations ask outside is here, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib.domains.identity.store import workspaces
from chalicelib.gateways import photos
from tests.conftest import Api, Owner
from tests.factories.examples import Things
from tests.fakes.openverse import answer_with, image
from tests.support.restoring import Snapshots

IMAGES = [image(number) for number in range(45)]


@pytest.fixture(autouse=True)
def _outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search photos without a server: how the search goes wrong is not asked here."""

    def get(_service: str, _url: str, query: dict[str, Any], **_: object) -> Any:
        status, answer = answer_with(IMAGES, query["page"], query["page_size"])
        assert status == 200, answer
        return answer

    monkeypatch.setattr(photos, "get_json", get)
    monkeypatch.setattr(photos, "services", lambda _: {"openverse": "http://openverse"})


@dataclass(frozen=True)
class World:
    """A workspace with one of everything, and a key to it."""

    workspace_id: str
    token: str
    things: Things

    @property
    def api(self) -> Api:
        """The API through the key."""
        return Api(self.token)


@pytest.fixture
def restore(new_owner: Callable[..., Owner], snapshots: Snapshots) -> Callable[..., World]:
    """Put a world back as it was when it was made, by the name that a test has for it.

    What came later stays, unless the test empties the database before: then it is just that world.
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
    """A workspace with one of everything."""
    return restore()
