"""A bot with sources, the scheduled jobs, and the cache of its index files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.knowledge.flows import index_cache as index_cache_module
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.knowledge.flows.index_cache import IndexCache
from chalicelib.domains.knowledge.flows.index_file import Passage
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.support.patience import PATIENCE


class Bot:
    """A bot of a workspace, with the actions of its owner and its chat."""

    def __init__(self, api: Api, owner: Owner, time: Time, name: str = "Baker") -> None:
        self.api, self.time, self.workspace_id = api, time, owner.workspace.id
        body = {"name": name, "systemPrompt": "You sell bread.", "model": "demo"}
        self.id: str = api.post("/api/agents/create", body)["agent"]["id"]
        self.path = f"/api/agents/{self.id}/knowledge"

    def add(self, title: str = "Delivery", **content: str) -> dict[str, Any]:
        """Add a source."""
        source: dict[str, Any] = self.api.post(self.path, {"title": title, **content})["source"]
        return source

    def source(self, source_id: str) -> dict[str, Any]:
        """Return a source as the list shows it."""
        (source,) = [source for source in self.sources if source["id"] == source_id]
        return source

    @property
    def sources(self) -> list[dict[str, Any]]:
        """All sources."""
        sources: list[dict[str, Any]] = self.api.get(self.path)["sources"]
        return sources

    @property
    def stored_files(self) -> list[Path]:
        """Files of the bot's sources and indexes in the object store."""
        folder = self.store / self.workspace_id / "knowledge" / self.id
        return sorted(path for path in folder.rglob("*") if path.is_file())

    @property
    def store(self) -> Path:
        """The folder of the object store."""
        return Path(settings().object_store.removeprefix("file://"))

    def problem_codes(self, source_id: str) -> list[str]:
        """Return the codes of what went wrong when a source was last read."""
        source = self.source(source_id)
        details = source["errorDetails"] or []
        assert source["error"] == " ".join(detail["message"] for detail in details)
        return [detail["code"] for detail in details]

    def delete(self, source_id: str) -> None:
        """Delete a source."""
        assert self.api.call("DELETE", f"{self.path}/{source_id}").status == 200

    def run_jobs(self, **later: float) -> dict[str, int]:
        """Run the jobs that are due after some time, by default after a change's job."""
        self.time.pass_by(**(later or {"seconds": 10}))
        return run_jobs()

    def find(self, question: str, limit: int = 5) -> list[Passage]:
        """Return the passages that the bot finds for a question."""
        return search.find(self.workspace_id, bot_id=self.id, question=question, limit=limit)

    def finds(self, question: str) -> list[str]:
        """Return the titles of the sources that the bot finds for a question."""
        return [passage.title for passage in self.find(question)]


@pytest.fixture
def make_bot(api: Api, owner: Owner, time: Time) -> Callable[..., Bot]:
    """Return a function that creates a bot."""
    return lambda *name: Bot(api, owner, time, *name)


@pytest.fixture
def bot(make_bot: Callable[..., Bot]) -> Bot:
    """A bot without sources."""
    return make_bot()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> IndexCache:
    """The cache of a process that has just started, with room for three files."""
    index_cache = IndexCache(tmp_path)
    monkeypatch.setattr(search, "index_cache", lambda: index_cache)
    monkeypatch.setattr(search, "LOADING_SECONDS", PATIENCE)
    monkeypatch.setattr(index_cache_module, "MAX_FILES", 3)
    return index_cache
