"""The chat endpoint streams its answer after checks in a fixed order."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import httpx
import pytest
from httpx_sse import EventSource

from chalicelib.core.errors import NotConfiguredError
from chalicelib.domains.chat.flows import accept_message, stream_answer
from chalicelib.domains.chat.store import open_streams
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import limits
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.transports.chat import chat_route
from chalicelib.transports.http import HttpRequest
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.chat import (
    Bot,
    ChatReply,
    answer_to,
    ask,
    new_bot,
    new_key,
    read_events,
)
from tests.factories.examples import request_to
from tests.transports.chat.endpoint.conftest import Script

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def production_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make limits count as in production."""
    chat_limits = replace(limits.settings(), rate_limit_scale=1)
    monkeypatch.setattr(limits, "settings", lambda: chat_limits)


def waves_until_start(bot: Bot, latency: float) -> int:
    """Return for how many requests to the database, one after the other, a visitor waits."""
    with metering(latency) as usage:
        response = answer_to(request_to(bot.id, "How much is rye bread?"))
        assert isinstance(response.body, Iterator)
        assert b'"start"' in next(response.body)
        waves = usage.waves
    response.close()
    return waves


class TestStream:
    def test_a_stream_starts_sends_word_by_word_and_ends(self, bot: Bot) -> None:
        reply = ask(bot, "How much is rye bread?")
        kinds = [event["type"] for event in reply.events]
        assert kinds[0] == "start"
        assert kinds[-1] == "done"
        assert kinds.count("chunk") == len(kinds) - 2 > 2
        assert reply.text.startswith("I do not know that.")
        usage = reply.usage
        assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
        assert reply.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert reply.response.headers["Cache-Control"] == "no-store"
        assert reply.response.headers["Access-Control-Allow-Origin"] == "*"

    def test_every_answer_is_readable_from_any_origin(self, bot: Bot, time: Time) -> None:
        preflight = HttpRequest("OPTIONS", chat_route.PATH, {"origin": "null"})
        allowed = answer_to(preflight)
        assert allowed.status == 204
        assert allowed.headers["Access-Control-Allow-Methods"] == "POST"
        names = allowed.headers["Access-Control-Allow-Headers"].lower().split(", ")
        assert names == ["content-type", "idempotency-key"]
        request = request_to(bot.id, "Hi")
        answers = [
            allowed,
            answer_to(request),
            answer_to(replace(request, method="GET")),
            answer_to(replace(request, body=b"{")),
            answer_to(replace(request, headers={"content-type": "text/html"})),
            answer_to(replace(request, body=b" " * 200_000)),
            answer_to(request_to("nobody", "Hi")),
        ]
        assert [answer.status for answer in answers] == [204, 200, 405, 400, 415, 413, 404]
        for answer in answers:
            answer.close()
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            exposed = answer.headers["Access-Control-Expose-Headers"].lower()
            assert {"retry-after", "x-request-id"} <= set(exposed.split(", "))
            assert answer.headers["X-Request-Id"]
            assert "Access-Control-Allow-Credentials" not in answer.headers

    def test_pings_are_sent_while_the_model_is_silent(
        self, bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stream_answer, "PING_SECONDS", 0.02)
        go_on = Event()
        script("Well, ", go_on, "yes.", ProviderUsage(5, 2))
        pieces = answer_to(request_to(bot.id, "Is it fresh?")).body
        raw = b""
        for piece in pieces:
            raw += piece  # type: ignore[operator]
            if raw.count(b": ping\n\n") == 2:
                go_on.set()
        assert raw.count(b": ping\n\n") >= 2
        kinds = [event["type"] for event in read_events(raw)]
        assert kinds == ["start", "chunk", "chunk", "done"]

    def test_a_piece_is_sent_before_the_model_continues(self, bot: Bot, script: Script) -> None:
        go_on = Event()
        script("one", go_on, "two", ProviderUsage(1, 2))
        pieces = iter(answer_to(request_to(bot.id, "Hi")).body)
        assert b'"start"' in next(pieces)  # type: ignore[operator]
        assert b'"one"' in next(pieces)  # type: ignore[operator]
        go_on.set()
        assert b'"two"' in next(pieces)  # type: ignore[operator]
        assert b'"done"' in next(pieces)  # type: ignore[operator]
        assert list(pieces) == []

    def test_text_is_sent_unchanged(self, bot: Bot, script: Script) -> None:
        streamed = ["\n\n", "data: x\n\n", "«Ёж» \u2028 🦔", "", '{"type": "done"}']
        script(*streamed, ProviderUsage(1, 2))
        reply = ask(bot, "Hi")
        assert reply.text == "".join(streamed)
        assert [event["type"] for event in reply.events].count("done") == 1

    def test_unicode_line_separators_are_escaped_in_data_lines(
        self, bot: Bot, script: Script
    ) -> None:
        streamed = "one\u2028two\u2029three\x85four\x0bfive\x1e"
        script(streamed, ProviderUsage(1, 2))
        reply = ask(bot, "Hi")
        assert reply.text == streamed
        lines = reply.raw.decode().splitlines()
        assert all(line == "" or line.startswith("data: {") for line in lines), lines

    def test_httpx_sse_reads_the_stream(self, bot: Bot) -> None:
        reply = ask(bot, "How much is rye bread?")
        source = EventSource(httpx.Response(200, headers=reply.response.headers, content=reply.raw))
        assert [json.loads(event.data) for event in source.iter_sse()] == reply.events


class TestChecks:
    @pytest.mark.parametrize(
        "fields",
        [
            {"message": ""},
            {"message": " \n\t "},
            {"message": "x" * 10_001},
            {"message": None},
            {"message": 5},
            {"sessionId": 5},
            {"sessionId": {"id": "x"}},
            {"apiKey": 5},
            {"agentId": None},
            {"agentId": 7},
            {"agentId": "x" * 3_000},
            {"visitId": "x" * 65},
            {"channel": "fax"},
        ],
    )
    def test_an_invalid_body_is_400(self, fields: dict[str, Any], bot: Bot) -> None:
        body = {"agentId": bot.id, "message": "Hi", **fields}
        request = replace(request_to(bot.id, "Hi"), body=json.dumps(body).encode())
        reply = ChatReply(answer_to(request), answer_to(request).whole_body())
        assert (reply.status, reply.answer.data["code"]) == (400, "validation_error")
        assert bot.kinds == ["topup"]

    @pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'{"message": "\\ud800"}'])
    def test_a_body_that_is_not_an_object_is_400(self, body: bytes, bot: Bot) -> None:
        assert answer_to(replace(request_to(bot.id, "Hi"), body=body)).status == 400

    def test_ten_thousand_code_points_are_accepted_whatever_their_bytes(self, bot: Bot) -> None:
        reply = ask(bot, "🦔" * 10_000)
        assert reply.events[-1]["type"] == "done"

    @pytest.mark.parametrize("name", ["sessionId", "apiKey", "channel", "visitId"])
    def test_an_empty_text_counts_as_omitted(self, name: str, bot: Bot) -> None:
        reply = ask(bot, "Hi", **{name: ""})
        assert (reply.status, bool(reply.session)) == (200, True)
        contact = {"name": "Ada", "email": "ada@example.com", "phone": ""}
        assert ask(bot, "Hi", sessionId=reply.session, contact=contact, apiKey="").status == 200

    def test_null_counts_as_omitted_and_plain_text_is_read_as_json(self, bot: Bot) -> None:
        assert ask(bot, "Hi", sessionId=None, apiKey=None, channel=None).status == 200
        request = request_to(bot.id, "Hi")
        plain = answer_to(replace(request, headers={"content-type": "text/plain"}))
        assert plain.status == 200
        plain.close()

    def test_a_bot_whose_owner_is_disabled_is_unknown_and_charges_nothing(self, bot: Bot) -> None:
        first = ask(bot, "Hi")
        balance_before, unknown = bot.money, ask("nobody", "Hi").answer
        call_operator("disable_account", email=accounts.get(bot.account_id).email)
        replies = [ask(bot, "Hi"), ask(bot, "Hi", sessionId=first.session)]
        for reply in replies:
            assert reply.status == 404
            assert reply.answer.data["message"] == unknown.data["message"]
        assert bot.money == balance_before
        event = {"agentId": bot.id, "visitId": "visit-1", "stage": "opened"}
        assert Api(None).call_refused("POST", "/api/public/widget-event", event).status == 404
        assert Api(None).call_refused("GET", f"/api/public/agents/{bot.id}").status == 404

    def test_a_bot_that_is_switched_off_is_unknown(self, bot: Bot) -> None:
        unknown = ask("nobody", "Hi").answer
        bot.change(is_active=False)
        off = ask(bot, "Hi").answer
        assert (off.status, unknown.status) == (404, 404)
        for answer in (off, unknown):
            answer.data.pop("requestId")
        assert off.data | {"requestId": ""} == unknown.data | {"requestId": ""}

    def test_the_visitors_limit_also_counts_requests_with_wrong_keys(
        self, bot: Bot, time: Time, production_limits: None
    ) -> None:
        bot.change(is_private=True)
        codes = [ask(bot, "Hi", apiKey="x").status for _ in range(60)]
        assert set(codes) == {403}
        refusal = ask(bot, "Hi", apiKey="x").answer
        assert (refusal.status, refusal.data["code"]) == (429, "rate_limited")
        assert int(refusal.headers["Retry-After"]) <= 60
        assert ask(bot, "Hi", apiKey="x", ip="203.0.113.8").status == 403
        time.pass_by(minutes=1)
        assert ask(bot, "Hi", apiKey="x").status == 403

    def test_a_bot_whose_owner_is_disabled_is_unknown_to_a_visitor_over_the_limit(
        self, bot: Bot, time: Time, production_limits: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            accept_message, "MESSAGES", replace(accept_message.MESSAGES, max_requests=1)
        )
        statuses = [ask(bot, "Hi").status for _ in range(2)]
        call_operator("disable_account", email=accounts.get(bot.account_id).email)
        assert [*statuses, ask(bot, "Hi").status] == [200, 429, 404]

    def test_a_visitor_over_the_limit_costs_no_search_for_facts(
        self, bot: Bot, production_limits: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            accept_message, "MESSAGES", replace(accept_message.MESSAGES, max_requests=1)
        )
        ask(bot, "Hi")
        with metering() as usage:
            assert ask(bot, "Hi").status == 429
        assert "Query" not in usage.calls

    def test_an_answer_starts_after_five_waves_of_requests(self, api: Api, bot: Bot) -> None:
        api.post("/api/products/create", {"name": "Rye bread", "price": 9_900})
        ask(bot, "How much is rye bread?")  # The process then knows the currency.
        # A busy machine may start a thread late, for which the second latency is long enough.
        assert 5 in map(partial(waves_until_start, bot), (0.05, 0.5))

    def test_of_several_reasons_for_a_refusal_the_first_in_order_is_given(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = llm.resolve("demo", tenant="w")._replace(context_tokens=400)
        monkeypatch.setattr(llm, "resolve", lambda _, **_more: small)
        bot.change(is_private=True)
        bot.limit(daily=0)
        key, session = new_key(bot), {"sessionId": "nonsense"}
        refusals = [
            ask(bot, "word " * 400, key="x" * 300, **session),
            ask(bot, "word " * 400, key="x" * 300, apiKey=key, **session),
            ask(bot, "word " * 400, key="x" * 300, apiKey=key),
            ask(bot, "word " * 400, key="k", apiKey=key),
            ask(bot, "word", key="k", apiKey=key),
        ]
        assert [refusal.answer.data["code"] for refusal in refusals] == [
            "forbidden",
            "not_found",
            "validation_error",
            "message_too_long",
            "limit_daily",
        ]

    def test_a_private_bot_requires_its_own_key(self, bot: Bot, owner: Owner) -> None:
        other = new_bot(owner, is_private=True)
        bot.change(is_private=True)
        key, others = new_key(bot), new_key(other)
        for wrong in (None, "", "svc_bot_x", others, key[:-1] + "?"):
            refusal = ask(bot, "Hi", apiKey=wrong).answer
            assert (refusal.status, refusal.data["code"]) == (403, "forbidden")
        assert ask(bot, "Hi", apiKey=key).status == 200
        assert ask(other, "Hi", apiKey=others).status == 200

    def test_a_session_of_a_bot_that_became_private_requires_the_key(self, bot: Bot) -> None:
        session = ask(bot, "Hi").session
        bot.change(is_private=True)
        assert ask(bot, "Hi", sessionId=session).status == 403
        assert ask(bot, "Hi", sessionId=session, apiKey=new_key(bot)).status == 200

    def test_another_bots_session_is_not_found(
        self, bot: Bot, owner: Owner, new_owner: Callable[..., Owner]
    ) -> None:
        session = ask(bot, "Hi").session
        for other in (new_bot(owner), new_bot(new_owner())):
            refusal = ask(other, "Hi", sessionId=session).answer
            unknown = ask(other, "Hi", sessionId="nonsense").answer
            assert (refusal.status, unknown.status) == (404, 404)
            assert refusal.data["message"] == unknown.data["message"]

    def test_a_message_that_does_not_fit_the_model_is_too_long(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = llm.resolve("demo", tenant="w")._replace(context_tokens=400)
        monkeypatch.setattr(llm, "resolve", lambda _, **_more: small)
        refusal = ask(bot, "word " * 400).answer
        assert (refusal.status, refusal.data["code"]) == (400, "message_too_long")
        assert ask(bot, "word").status == 200

    def test_a_model_without_a_provider_is_503(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_: str, *, tenant: str) -> None:
            raise NotConfiguredError("Bots are switched off.")

        monkeypatch.setattr(llm, "resolve", refuse)
        refusal = ask(bot, "Hi").answer
        assert (refusal.status, refusal.data["code"]) == (503, "not_configured")
        assert bot.kinds == ["topup"]

    def test_a_session_has_one_stream_at_a_time(self, bot: Bot, script: Script) -> None:
        session = ask(bot, "Hi").session
        go_on = Event()
        script("Well", go_on, ProviderUsage(1, 1))
        first = iter(answer_to(request_to(bot.id, "One", sessionId=session)).body)
        next(first)
        refusal = ask(bot, "Two", sessionId=session).answer
        assert (refusal.status, refusal.data["code"]) == (409, "session_busy")
        assert refusal.headers["Retry-After"] == "2"
        go_on.set()
        list(first)
        script("Fine", ProviderUsage(1, 1))
        assert ask(bot, "Two", sessionId=session).text == "Fine"

    def test_a_session_is_unlocked_when_its_stream_stops_responding(
        self, bot: Bot, script: Script, time: Time
    ) -> None:
        session = ask(bot, "Hi").session
        go_on = Event()
        script("Well", go_on, ProviderUsage(1, 1))
        dead = answer_to(request_to(bot.id, "One", sessionId=session))
        next(iter(dead.body))  # type: ignore[call-overload]
        time.pass_by(seconds=19)
        assert ask(bot, "Two", sessionId=session).status == 409
        time.pass_by(seconds=2)
        script("Fine", ProviderUsage(1, 1))
        living = answer_to(request_to(bot.id, "Three", sessionId=session))
        next(iter(living.body))  # type: ignore[call-overload]
        dead.close()  # It settles its own request, and keeps the new holder's lock.
        assert ask(bot, "Four", sessionId=session).status == 409
        living.close()
        assert ask(bot, "Five", sessionId=session).status == 200
        assert bot.money[1] == 0


class TestBehindTheEdge:
    @pytest.fixture(autouse=True)
    def _edge(self, monkeypatch: pytest.MonkeyPatch, production_limits: None) -> None:
        chat_settings = replace(accept_message.settings(), edge_secret="secret", rate_limit_scale=1)
        for module in (accept_message, open_streams):
            monkeypatch.setattr(module, "settings", lambda: chat_settings)

    def test_a_visitor_has_at_most_ten_streams(self, bot: Bot, script: Script) -> None:
        script("Yes.", ProviderUsage(1, 1))
        assert ask(bot, "Hi").status == 200  # an ended stream is no longer counted
        assert ask(bot, "Hi", sessionId="nonsense").status == 404  # nor is a refused one
        streams = [answer_to(request_to(bot.id, "Hi")) for _ in range(10)]
        assert {stream.status for stream in streams} == {200}
        refusal = ask(bot, "Hi").answer
        assert (refusal.status, refusal.data["code"]) == (429, "rate_limited")
        assert ask(bot, "Hi", ip="203.0.113.8").status == 200
        for stream in streams:
            stream.close()
        assert ask(bot, "Hi").status == 200

    def test_a_bot_has_a_limit_of_messages_per_minute(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch, time: Time
    ) -> None:
        assert accept_message.MESSAGES_OF_BOT.max_requests == 600
        monkeypatch.setattr(
            accept_message,
            "MESSAGES_OF_BOT",
            replace(accept_message.MESSAGES_OF_BOT, max_requests=2),
        )
        statuses = [ask(bot, "Hi", ip=f"203.0.113.{n}").status for n in range(3)]
        assert statuses == [200, 200, 429]

    def test_a_message_refused_by_the_bots_limit_ends_its_stream_and_keeps_its_key_usable(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch, time: Time
    ) -> None:
        monkeypatch.setattr(
            accept_message,
            "MESSAGES_OF_BOT",
            replace(accept_message.MESSAGES_OF_BOT, max_requests=1),
        )
        statuses = [ask(bot, "Hi", key=f"{n}").status for n in range(12)]
        assert statuses == [200] + [429] * 11
        assert bot.kinds == ["topup", "reserve", "settle"]
        time.pass_by(minutes=1)
        assert ask(bot, "Hi", key="1").status == 200
