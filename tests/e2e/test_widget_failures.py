"""The chat widget when the chat refuses, breaks off or does not answer."""

from threading import Event

import pytest
from playwright.sync_api import Page, expect

from tests.factories.widget import Opened, ask, chatting, last, open_chat, panel
from tests.fakes.chat_server import (
    CUT,
    DONE,
    FakeChat,
    Refusal,
    Step,
    chunk,
    event,
    saying,
    start,
)
from tests.support.patience import PATIENCE


def run_until(page: Page, text: str) -> None:
    """Advance the widget's clock until it shows a message."""
    for _ in range(100):
        if text in last(page).inner_text():
            return
        page.clock.run_for(500)
        page.wait_for_timeout(20)
    pytest.fail(f"the widget did not show {text}")


class TestFailures:
    @pytest.mark.parametrize(
        ("refusal", "words", "retried"),
        [
            (Refusal(400, "validation_error"), "Ответ не пришёл.", False),
            (Refusal(400, "message_too_long"), "Сообщение слишком длинное.", False),
            (Refusal(403, "forbidden"), "Этот чат недоступен.", False),
            (Refusal(404, "not_found"), "Этот чат недоступен.", False),
            (Refusal(409, "idempotency_mismatch"), "Прошлый ответ ещё не закончен.", True),
            (
                Refusal(429, "rate_limited", {"Retry-After": "40"}),
                "Слишком много сообщений подряд. Попробуйте через 40 секунд.",
                True,
            ),
            (
                Refusal(429, "limit_daily", {"Retry-After": "32000"}),
                "Сейчас чат недоступен. Попробуйте через 9 часов.",
                False,
            ),
            (
                Refusal(429, "limit_monthly", {"Retry-After": "200000"}),
                "Сейчас чат недоступен. Попробуйте через 3 дня.",
                False,
            ),
            (Refusal(429, "insufficient_balance"), "Сейчас чат недоступен.", False),
            (Refusal(500, "internal_error"), "Сейчас чат не отвечает.", True),
            (
                Refusal(503, "not_configured", {"Retry-After": "60"}),
                "Сейчас чат не отвечает. Попробуйте через 1 минуту.",
                True,
            ),
        ],
        ids=lambda value: value.code if isinstance(value, Refusal) else "",
    )
    def test_a_refusal_is_shown_in_words(
        self, chat: FakeChat, open_page: Opened, refusal: Refusal, words: str, retried: bool
    ) -> None:
        chat.will(refusal)
        with open_page() as page:
            chatting(page)
            expect(last(page).locator(".note")).to_contain_text(words)
            retry = page.get_by_role("button", name="Повторить")
            expect(retry).to_have_count(1 if retried else 0)
            expect(page.locator("chat-widget .me")).to_have_text("Вы: Сколько стоит торт?")
        assert len(chat.questions) == 1

    def test_a_busy_session_is_retried(self, chat: FakeChat, open_page: Opened) -> None:
        busy = Refusal(409, "session_busy", {"Retry-After": "2"})
        chat.will(busy, busy, saying("Вот"))
        with open_page() as page:
            chatting(page)
            run_until(page, "Вот")
        assert len({(question.key, question.raw) for question in chat.questions}) == 1

    def test_a_session_that_stays_busy_is_reported(self, chat: FakeChat, open_page: Opened) -> None:
        busy = Refusal(409, "session_busy", {"Retry-After": "2"})
        chat.will(busy, busy, busy, busy, saying("Вот"))
        with open_page() as page:
            chatting(page)
            run_until(page, "Прошлый ответ ещё не закончен.")
            assert len(chat.questions) == 4
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")
            expect(page.locator("chat-widget .note")).to_have_count(0)
        assert len({(question.key, question.raw) for question in chat.questions}) == 1

    def test_an_expired_session_is_replaced_by_a_new_one(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will(saying("Раз"), Refusal(404, "not_found"), saying("Два", session="s-2"))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Раз")
            ask(page, "Ещё")
            expect(last(page)).to_contain_text("Два")
            expect(page.locator("chat-widget .between")).to_contain_text("Это новый")
        _, first_question, second = chat.questions
        assert (first_question.body["sessionId"], second.body["sessionId"]) == ("s-1", None)
        assert first_question.key != second.key

    def test_a_message_that_may_have_arrived_is_sent_again_with_the_same_key(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        seen = Event()
        replay = saying("Торт стоит 2 400 ₽.", session="s-of-the-replay")
        chat.will([start(), chunk("Торт стоит "), seen, CUT], replay, saying("Да."))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт стоит")
            seen.set()
            expect(last(page)).to_contain_text("Ответ прервался.")
            assert len(chat.questions) == 1
            page.evaluate("history.pushState(null, '', '/elsewhere')")
            page.get_by_role("button", name="Повторить").click()
            expect(last(page).locator(".bubble")).to_have_text("Торт стоит 2 400 ₽.")
            expect(page.locator("chat-widget .note")).to_have_count(0)
            ask(page, "Ещё")
            expect(last(page)).to_contain_text("Да.")
        first, second, third = chat.questions
        assert (first.key, first.raw) == (second.key, second.raw)
        assert third.body["sessionId"] == "s-1"

    def test_a_stream_that_ends_early_is_marked_as_cut(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        chat.will([start(), chunk("Торт")])
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Ответ прервался.")

    def test_a_message_that_certainly_failed_is_sent_again_with_a_new_key(
        self, chat: FakeChat, open_page: Opened
    ) -> None:
        failure: list[Step] = [start(), event(type="error", error="The model is gone <b>.")]
        chat.will(failure, saying("Вот"))
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Ответ не пришёл.")
            expect(panel(page)).not_to_contain_text("model")
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")
        first, second = chat.questions
        assert first.key != second.key
        assert second.body["sessionId"] == "s-1"

    def test_a_stream_without_data_is_given_up(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will([start(), chunk("Торт"), SilentPeriod()])
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт")
            page.clock.fast_forward(46_000)
            expect(last(page)).to_contain_text("Ответ прервался.")
            assert chat.questions[0].visitor_left.wait(PATIENCE)

    def test_pings_keep_a_stream_alive(self, chat: FakeChat, open_page: Opened) -> None:
        more = Event()
        chat.will([start(), chunk("Торт"), more, chunk(" готов"), DONE])
        with open_page() as page:
            chatting(page)
            expect(last(page)).to_contain_text("Торт")
            for _ in range(4):
                page.clock.run_for(20_000)
                page.wait_for_timeout(200)
            more.set()
            expect(last(page)).to_contain_text("Торт готов")

    def test_a_missing_connection_is_reported(self, chat: FakeChat, open_page: Opened) -> None:
        chat.will(saying("Вот"))
        with open_page() as page:
            open_chat(page)
            page.context.set_offline(True)
            ask(page)
            expect(last(page)).to_contain_text("Нет связи с интернетом.")
            page.context.set_offline(False)
            page.get_by_role("button", name="Повторить").click()
            expect(last(page)).to_contain_text("Вот")

    def test_a_proxys_error_page_is_not_an_answer(self, chat: FakeChat, open_page: Opened) -> None:
        with open_page() as page:
            page.route(
                "**/chat-stream",
                lambda route: (
                    route.fulfill(
                        body="<h1>Login</h1>",
                        content_type="text/html",
                        headers={"Access-Control-Allow-Origin": "*"},
                    )
                    if route.request.method == "POST"
                    else route.continue_()
                ),
            )
            chatting(page)
            expect(last(page)).to_contain_text("Ответ не пришёл.")


class SilentPeriod(Event):
    """A period without any data from the server."""
