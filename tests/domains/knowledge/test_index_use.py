"""Use of the index file by the chat. Tests cover loading, copies on disk and hostile questions."""

import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.knowledge.flows import index_cache as index_cache_module
from chalicelib.domains.knowledge.flows import index_file, search
from chalicelib.domains.knowledge.flows.index_cache import IndexCache
from chalicelib.domains.knowledge.flows.index_file import Passage
from chalicelib.domains.knowledge.rules import passages
from chalicelib.gateways.object_store import FolderStore, object_store
from tests.domains.knowledge.conftest import Bot
from tests.support.patience import PATIENCE


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> IndexCache:
    """The cache of a process that has just started, with room for three files."""
    index_cache = IndexCache(tmp_path)
    monkeypatch.setattr(search, "index_cache", lambda: index_cache)
    monkeypatch.setattr(search, "LOADING_SECONDS", PATIENCE)
    monkeypatch.setattr(index_cache_module, "MAX_FILES", 3)
    return index_cache


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


TEXTS = st.text(max_size=300) | st.text(alphabet="\"'*()^:-+{}ANDORNEAабв _\0\ud800", max_size=60)


@pytest.fixture(scope="module")
def index_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "i.sqlite"
    path.write_bytes(index_file.build([Passage("s", "Bread", "", "We sell rye bread.")]))
    return path


@given(question=TEXTS)
@example(question='"')
@example(question='bread" OR title:*')
@example(question="NEAR(bread, 1) AND NOT ^rye")
@example(question="___ " * 20)
@example(question=" ".join(f"word{number}" for number in range(2000)))
@example(question="a" * 100_000)
def test_search_accepts_any_question(index_path: Path, question: str) -> None:
    index_file.search(index_path, question, 5, lambda _: True)


@given(texts=st.lists(TEXTS, max_size=5))
def test_any_text_can_be_indexed(texts: list[str]) -> None:
    normal_texts = [passages.normal_form(text) for text in texts]
    index_file.build(Passage("s", text, "", text) for text in normal_texts)


@given(text=st.text(alphabet="ab .!\n", max_size=5000))
def test_passages_are_short_and_lose_nothing(text: str) -> None:
    parts = list(passages.split(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(passage) <= passages.MAX_LENGTH for passage in parts)


def test_passages_are_scanned_without_full_text_search(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.add("Цены", text="Ржаной хлеб стоит 240 рублей.")
    bot.add("Other", text="We deliver.")
    bot.run_jobs()
    monkeypatch.setattr(index_file, "has_fts5", lambda: False)
    assert bot.finds("Сколько стоит хлеб?") == ["Цены"], "a file with full-text search"
    bot.add("Ещё", text="Хлеб каждый день.")
    bot.run_jobs()
    assert sorted(bot.finds("хлеб")) == ["Ещё", "Цены"], "a file without it"
    monkeypatch.undo()
