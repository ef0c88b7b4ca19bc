"""Copies of index files on the disk, and questions while one is loaded."""

import threading
from pathlib import Path

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.knowledge.flows import index_cache as index_cache_module
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.knowledge.flows.index_cache import IndexCache
from chalicelib.gateways.object_store import FolderStore, object_store
from tests.domains.knowledge.conftest import Bot
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("cache")


def test_an_index_is_loaded_once(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    bot.add(text="We sell bread.")
    bot.run_jobs()
    assert bot.find("bread")
    monkeypatch.setattr(FolderStore, "get", lambda *_: 1 / 0)
    assert bot.find("bread")


def test_slow_index_is_skipped_and_used_next_time(
    bot: Bot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cache: IndexCache
) -> None:
    bot.add(text="We sell bread.")
    bot.run_jobs()
    go_on, get = threading.Event(), FolderStore.get

    def slow_get(store: FolderStore, key: str) -> bytes | None:
        go_on.wait(PATIENCE)
        return get(store, key)

    with monkeypatch.context() as slow:
        slow.setattr(FolderStore, "get", slow_get)
        slow.setattr(search, "LOADING_SECONDS", 0.001)
        assert bot.find("bread") == []
        assert search.NOT_LOADED in caplog.text
        go_on.set()
    assert bot.finds("bread") == ["Delivery"]


def test_failing_store_only_omits_the_passages(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    bot.add(text="We sell bread.")
    bot.run_jobs()

    def fail(*_: object) -> None:
        raise UnavailableError

    with monkeypatch.context() as broken:
        broken.setattr(FolderStore, "get", fail)
        assert bot.find("bread") == []
    assert bot.finds("bread") == ["Delivery"]


def test_a_damaged_or_removed_copy_is_loaded_again(bot: Bot, tmp_path: Path) -> None:
    bot.add(text="We sell bread.")
    bot.run_jobs()
    assert bot.find("bread")
    (copy,) = tmp_path.iterdir()
    copy.write_bytes(b"not a database" * 100)
    assert bot.find("bread") == []
    assert bot.find("bread")
    (copy,) = tmp_path.iterdir()
    copy.unlink()
    assert bot.find("bread") == []
    assert bot.find("bread")


def test_oldest_copy_is_removed_beyond_the_limit(cache: IndexCache, tmp_path: Path) -> None:
    for name in "abc":
        object_store().put(f"w/{name}", name.encode(), "")
        cache.request(f"w/{name}").result()
    cache.request("w/a").result()
    object_store().put("w/d", b"d", "")
    cache.request("w/d").result()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"a", b"c", b"d"]


def test_copies_are_limited_in_bytes(
    cache: IndexCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache_module, "MAX_BYTES", 10)
    for name in "abc":
        object_store().put(f"w/{name}", name.encode() * 5, "")
        cache.request(f"w/{name}").result()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"bbbbb", b"ccccc"]
