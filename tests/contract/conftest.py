"""Fixtures for the tests that call every operation: a workspace with one record of every type.

They also replace the external services that operations use.
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
    """Answer photo searches without a server. Failures of the search are tested elsewhere."""

    def get(_service: str, _url: str, query: dict[str, Any], **_: object) -> Any:
        status, answer = answer_with(IMAGES, query["page"], query["page_size"])
        assert status == 200, answer
        return answer

    monkeypatch.setattr(photos, "get_json", get)
    monkeypatch.setattr(photos, "services", lambda _: {"openverse": "http://openverse"})


@dataclass(frozen=True)
class World:
    """A workspace with one record of every type, and a key to it."""

    workspace_id: str
    token: str
    things: Things

    @property
    def api(self) -> Api:
        """The API through the key."""
        return Api(self.token)


@pytest.fixture
def restore(new_owner: Callable[..., Owner], snapshots: Snapshots) -> Callable[..., World]:
    """Restore a world, identified by the test's name for it, to its original state.

    Rows that were added later stay, unless the test empties the database first.
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
