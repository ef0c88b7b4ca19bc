"""Published pages of a workspace's sites, which its bots answer from."""

from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.domains.knowledge.flows import index_file, indexing
from tests.conftest import call_operator
from tests.domains.knowledge.conftest import Bot
from tests.factories import pages, sites

HTML = "<!doctype html><nav>Меню</nav><h1>О нас</h1><p>Печём хлеб с 1998 года.</p>"


@pytest.fixture
def site(bot: Bot) -> str:
    return pages.new_site(bot.api)


def test_a_published_page_is_found_with_its_url(bot: Bot, site: str) -> None:
    pages.create(bot.api, site, "Home")
    page = pages.create(bot.api, site, "О нас", slug="about")
    pages.save(bot.api, page, HTML)
    bot.run_jobs()
    (passage,) = bot.find("С какого года вы печёте?")
    assert passage.title == "О нас"
    assert passage.url.endswith("/about")
    assert "Печём хлеб с 1998 года." in passage.text
    assert "<" not in passage.text


def test_every_bot_of_the_workspace_finds_a_page(
    make_bot: Callable[..., Bot], bot: Bot, site: str
) -> None:
    pages.save(bot.api, pages.create(bot.api, site, "About"), HTML)
    later = make_bot("Later")
    bot.run_jobs()
    assert bot.finds("хлеб") == later.finds("хлеб") == ["About"]


def test_saved_renamed_or_deleted_page_updates_the_search(bot: Bot, site: str) -> None:
    pages.create(bot.api, site, "Home")
    page = pages.create(bot.api, site, "About")
    pages.save(bot.api, page, HTML)
    bot.run_jobs()
    pages.save(bot.api, page, "<p>Печём торты.</p>")
    bot.run_jobs()
    assert (bot.finds("хлеб"), bot.finds("торт")) == ([], ["About"])
    pages.update(bot.api, page, title="Кухня")
    bot.run_jobs()
    assert bot.finds("торт") == ["Кухня"]
    pages.delete(bot.api, page)
    bot.run_jobs()
    assert bot.finds("торт") == []


def test_pages_of_a_site_that_is_not_active_are_not_found(bot: Bot, site: str) -> None:
    pages.save(bot.api, pages.create(bot.api, site, "About"), HTML)
    bot.run_jobs()

    def is_found_after(change: Callable[[], object]) -> bool:
        change()
        bot.run_jobs()
        return bool(bot.find("хлеб"))

    record = {"id": site}
    assert not is_found_after(lambda: sites.update(bot.api, record, status="inactive"))
    assert is_found_after(lambda: sites.update(bot.api, record, status="active"))
    assert not is_found_after(lambda: call_operator("suspend_site", id=site))
    assert is_found_after(lambda: call_operator("resume_site", id=site))
    assert not is_found_after(lambda: sites.delete(bot.api, record))


def test_error_page_and_empty_pages_are_left_out(bot: Bot, site: str) -> None:
    pages.create(bot.api, site, "Home")
    pages.save(bot.api, pages.create(bot.api, site, "Lost", slug="404"), HTML)
    pages.save(bot.api, pages.create(bot.api, site, "Script"), "<script>хлеб()</script>")
    bot.run_jobs()
    assert bot.find("хлеб") == []


def test_change_committed_during_its_job_is_indexed(
    bot: Bot, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the same ten seconds writes the job again, so the runner leaves it."""
    monkeypatch.setattr("chalicelib.engine.jobs.CHANGES_SPREAD", 1)
    bot.run_jobs()
    page = pages.create(bot.api, site, "About")
    pages.save(bot.api, page, HTML)
    due = bot.time.now
    build = indexing._refresh

    def build_and_change(*args: Any, **options: Any) -> bool:
        outcome = build(*args, **options)
        monkeypatch.setattr(indexing, "_refresh", build)
        time_before, bot.time.now = bot.time.now, due
        pages.save(bot.api, page, "<p>Печём торты.</p>")
        bot.time.now = time_before
        return outcome

    monkeypatch.setattr(indexing, "_refresh", build_and_change)
    bot.run_jobs()
    bot.run_jobs(minutes=7)
    assert bot.finds("торт") == ["About"]


def test_failing_index_of_one_bot_does_not_stop_others(
    make_bot: Callable[..., Bot], bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_bot("Other")
    for bot_to_fill in (bot, other):
        bot_to_fill.add(text="We sell bread.")
    build = indexing._refresh

    def refuse(workspace_id: str, *, bot_id: str, **options: Any) -> bool:
        if bot_id == bot.id:
            raise AppError("no")
        return build(workspace_id, bot_id=bot_id, **options)

    with monkeypatch.context() as broken:
        broken.setattr(indexing, "_refresh", refuse)
        bot.run_jobs()
    assert (bot.finds("bread"), other.finds("bread")) == ([], ["Delivery"])
    bot.run_jobs(hours=1)
    assert bot.finds("bread") == ["Delivery"]


def test_older_index_does_not_replace_a_newer_one(
    bot: Bot, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pages.create(bot.api, site, "About")
    pages.save(bot.api, page, HTML)
    read = indexing._published

    def read_before_another_process(workspace_id: str) -> Any:
        monkeypatch.setattr(indexing, "_published", read)
        monkeypatch.setattr(indexing, "_LOCKS", [Lock()])  # the locks of another process
        published_pages = read(workspace_id)
        pages.save(bot.api, page, "<p>Печём торты.</p>")
        indexing.refresh(workspace_id, [bot.id])
        return published_pages

    monkeypatch.setattr(indexing, "_published", read_before_another_process)
    bot.run_jobs()
    assert (bot.finds("хлеб"), bot.finds("торт")) == ([], ["About"])
    bot.run_jobs()
    assert bot.finds("торт") == ["About"]


def test_many_changes_build_one_index(bot: Bot, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        pages.save(bot.api, pages.create(bot.api, site, f"Page {number}"), HTML)
    built: list[object] = []
    build = index_file.build
    monkeypatch.setattr(index_file, "build", lambda parts: built.append(1) or build(parts))
    assert bot.run_jobs()["knowledge-stale"] > 1
    assert len(built) == 1
    assert len(bot.find("хлеб", limit=20)) == 12
