"""Typed sources that a bot answers from, from their creation to their deletion."""

from collections.abc import Callable

import pytest

from chalicelib.domains.knowledge.rules import quotas
from chalicelib.domains.knowledge.store import indexes
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.domains.knowledge.conftest import Bot
from tests.fakes.dynamodb_faults import TRANSACTION, closed, faulty


def test_a_text_is_found_by_another_form_of_its_words(bot: Bot) -> None:
    bot.add("Доставка", text="Курьеры привозят свежую выпечку по будням с девяти утра.")
    bot.add("Opening hours", text="Our bakeries are closed on holidays.")
    bot.run_jobs()
    assert bot.finds("Когда привезёт курьер?") == ["Доставка"]
    assert bot.finds("Is the bakery closing on a holiday?") == ["Opening hours"]
    assert bot.finds("Можно ли заказать пиццу?") == []


def test_added_source_is_ready_and_listed_with_its_length(bot: Bot) -> None:
    source = bot.add("Доставка", text="  Везём\r\n\r\n\r\nвсегда.\0 ")
    assert source == {
        "id": source["id"],
        "title": "Доставка",
        "kind": "text",
        "status": "ready",
        "chars": len("Везём\n\nвсегда."),
        "updatedAt": "2027-01-15T12:00:00.000Z",
        "error": None,
        "errorDetails": None,
    }
    assert bot.sources == [source]


def test_added_source_is_found_within_two_minutes(bot: Bot) -> None:
    bot.add(text="We deliver on weekdays.")
    bot.run_jobs(seconds=10)
    assert bot.finds("Do you deliver?") == ["Delivery"]


def test_best_passages_come_first_with_title_and_text(bot: Bot) -> None:
    bot.add("Prices", text="Rye bread costs 240 rubles. " + "We bake with love. " * 60)
    bot.add("Cakes", text="Cakes cost more than bread.")
    bot.run_jobs()
    first, second = bot.find("How much is rye bread?")
    assert (first.title, second.title) == ("Prices", "Cakes")
    assert first.text.startswith("Rye bread costs 240 rubles.")
    assert len(first.text) <= 800
    assert first.score > second.score > 0
    assert bot.find("rye bread", limit=1) == [first]


def test_every_spelling_of_wifi_is_found(bot: Bot) -> None:
    bot.add("Guests", text="Free Wi-Fi for guests.")
    bot.run_jobs()
    for question in ("Is there wifi?", "Есть ли Wi-Fi?", "WIFI"):
        assert bot.finds(question) == ["Guests"], question


def test_a_deleted_source_is_no_longer_found_before_the_next_index(bot: Bot) -> None:
    source = bot.add(text="We deliver on weekdays.")
    other = bot.add("Other", text="Others deliver, too.")
    bot.run_jobs()
    bot.delete(source["id"])
    assert bot.finds("Do you deliver?") == ["Other"]
    assert bot.sources == [other]
    assert bot.api.call("DELETE", f"{bot.path}/{source['id']}").status == 404


def test_deletion_leaves_no_object_behind(bot: Bot) -> None:
    source = bot.add(text="We deliver on weekdays.")
    bot.run_jobs()
    assert len(bot.stored_files) == 2, "the text and the index"
    bot.delete(source["id"])
    assert len(bot.stored_files) == 1, "the text goes at once"
    bot.run_jobs()
    bot.run_jobs(hours=2)
    assert bot.stored_files == []


def test_replaced_index_is_removed_later(bot: Bot) -> None:
    bot.add("One", text="One loaf.")
    bot.run_jobs()
    bot.add("Two", text="Two loafs.")
    bot.run_jobs()
    assert len(bot.stored_files) == 4
    bot.run_jobs(hours=2)
    assert len(bot.stored_files) == 3
    assert sorted(bot.finds("loaf")) == ["One", "Two"]


def test_an_index_is_not_built_again_if_nothing_has_changed(bot: Bot) -> None:
    bot.add(text="We deliver on weekdays.")
    bot.run_jobs()
    files_before = bot.stored_files
    bot.api.call("PUT", f"/api/agents/{bot.id}", {"name": "Miller"})
    assert bot.run_jobs()["knowledge-stale"] >= 1
    assert bot.stored_files == files_before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"title": "T"}, 400),
        ({"title": "T", "text": "a", "url": "https://example.com/"}, 400),
        ({"title": "T", "text": " \n\0"}, 400),
        ({"title": " ", "text": "a"}, 400),
        ({"title": "T", "text": "я" * 102_401}, 413),
        ({"title": "T", "url": "ftp://example.com/"}, 400),
        ({"title": "T", "url": "https://127.0.0.1/"}, 400),
        ({"title": "T", "fileId": "none"}, 404),
    ],
)
def test_a_source_that_does_not_fit_is_refused(bot: Bot, body: dict[str, str], status: int) -> None:
    assert bot.api.call_refused("POST", bot.path, body).status == status
    assert bot.sources == []


def test_a_text_of_exactly_200_kb_is_accepted(bot: Bot) -> None:
    assert bot.add(text="я" * 102_400)["chars"] == 102_400


def test_a_bot_has_at_most_100_sources(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_SOURCES", 2)
    bot.add(text="One.")
    bot.add(text="Two.")
    answer = bot.api.call_refused("POST", bot.path, {"title": "Three", "text": "Three."})
    assert (answer.status, answer.data["code"]) == (409, "conflict")
    assert (answer.data["key"], answer.data["maximum"]) == ("too_many_sources", 2)


def test_a_bot_has_at_most_3_mb_of_text(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_BOT_BYTES", 20)
    bot.add(text="a" * 15)
    answer = bot.api.call_refused("POST", bot.path, {"title": "More", "text": "a" * 6})
    assert (answer.status, answer.data["code"]) == (409, "conflict")
    assert "use 15 of 20 bytes" in answer.data["message"]
    bot.add(text="a" * 5)


def test_concurrent_texts_do_not_exceed_the_quota(
    make_bot: Callable[..., Bot], monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = make_bot()
    monkeypatch.setattr(quotas, "MAX_SOURCES", 3)
    body = {"title": "T", "text": "Bread."}
    answers = run_concurrently(6, lambda _: bot.api.call("POST", bot.path, body).status)
    assert sorted(answers) == [200] * 3 + [409] * 3
    assert len(bot.sources) == 3
    assert len(bot.stored_files) == 3, "refused calls leave no text"


def test_a_text_whose_record_was_not_written_is_removed(bot: Bot) -> None:
    with faulty(TRANSACTION, closed, "before"):
        bot.api.call_refused("POST", bot.path, {"title": "T", "text": "Bread."})
    bot.run_jobs(hours=2)
    assert (bot.sources, bot.stored_files) == ([], [])


def test_kill_before_publishing_keeps_the_old_index(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.add("One", text="One loaf.")
    bot.run_jobs()
    bot.add("Two", text="Two loafs.")
    with monkeypatch.context() as killed:
        killed.setattr("chalicelib.domains.knowledge.store.indexes.publish", lambda _: 1 / 0)
        bot.run_jobs()
    assert bot.finds("loaf") == ["One"]
    bot.run_jobs(minutes=10)
    assert sorted(bot.finds("loaf")) == ["One", "Two"]
    bot.run_jobs(hours=2)
    assert len(bot.stored_files) == 3, "two texts and one index"


def test_sources_of_another_bot_or_workspace_are_not_found(
    bot: Bot, make_bot: Callable[..., Bot], new_owner: Callable[..., Owner], time: Time
) -> None:
    source = bot.add(text="We deliver on weekdays.")
    neighbour = make_bot("Neighbour")
    owner = new_owner()
    stranger = Bot(Api(owner.token()), owner, time)
    bot.run_jobs()
    assert bot.finds("deliver") == ["Delivery"]
    for other in (neighbour, stranger):
        assert other.find("deliver") == []
        assert other.sources == []
        answer = other.api.call_refused("DELETE", f"{other.path}/{source['id']}")
        assert answer.status == 404
    for method, path in (("GET", bot.path), ("DELETE", f"{bot.path}/{source['id']}")):
        answer = stranger.api.call_refused(method, path)
        assert answer.status == 404
    assert stranger.api.call_refused("POST", bot.path, {"title": "T", "text": "x"}).status == 404
    assert bot.sources == [source]


def test_missing_index_is_built_after_the_first_question(bot: Bot, owner: Owner) -> None:
    bot.run_jobs()
    row = indexes.find(owner.workspace.id, agent_id=bot.id)
    assert row is not None
    row.delete()
    bot.run_jobs(hours=1)
    assert bot.find("Anything?") == []
    assert bot.run_jobs()["knowledge-stale"] == 1
    assert indexes.find(owner.workspace.id, agent_id=bot.id) is not None
