"""Chat models: the OpenAI-compatible adapter against a server on loopback, and the demo model."""

import json
import logging
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chalicelib.core import retry
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.logs import JsonFormatter
from chalicelib.core.settings import Settings, settings
from chalicelib.gateways.llm import ChatModel, ModelError, Usage, complete, drafting_model
from chalicelib.gateways.llm.attempts import LONGEST_PAUSE
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.chat_completions import ProviderFailedError, read
from chalicelib.gateways.llm.demo import DemoModel
from chalicelib.gateways.llm.openai import OpenAiModel
from chalicelib.rules import drafts
from chalicelib.rules.chat import Message, count_input, count_tokens
from chalicelib.rules.offers import Offer
from chalicelib.rules.offers import message as offers_message
from tests.fakes import openai_api
from tests.fakes.openai_api import DONE, Answering, OpenAiApi, event, piece, usage

KEY = "sk-test-0123456789abcdef"
SECRET = "internal-host-10.1.2.3 org-SECRET"
ASKED = [Message("system", "Be request."), Message("user", "Ёж 🦔?")]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with openai_api.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "sleep", slept.append)
    return slept


def model(api: OpenAiApi, **bounds: float) -> OpenAiModel:
    return OpenAiModel(api.url, KEY, **bounds)


def speak(chat_model: ChatModel, seconds: float = 5.0, **options: Any) -> list[str | Usage]:
    with closing(
        chat_model.stream(ASKED, model="m-1", max_output_tokens=50, seconds=seconds, **options)
    ) as stream:
        return list(stream)


def fail(chat_model: ChatModel, seconds: float = 5.0) -> tuple[list[str | Usage], ModelError]:
    """Return what was said before the failure, and the failure."""
    said: list[str | Usage] = []
    stream = chat_model.stream(ASKED, model="m-1", max_output_tokens=50, seconds=seconds)
    try:
        while True:
            said.append(next(stream))
    except ModelError as error:
        return said, error


class TestAnswer:
    def test_comes_in_pieces_then_usage(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("Ёж", " — это", " 🦔.", tokens=(21, 9))]
        assert speak(model(api)) == ["Ёж", " — это", " 🦔.", Usage(21, 9)]

    def test_is_asked_for_with_the_key_the_roles_and_the_cap(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("x")]
        speak(model(api))
        (asked,) = api.asked
        assert asked.target == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.body == {
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be request."},
                {"role": "user", "content": "Ёж 🦔?"},
            ],
            "max_tokens": 50,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def test_needs_no_key_where_the_server_does_not(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("x")]
        speak(OpenAiModel(api.url + "/", ""))
        assert api.asked[0].target == "/v1/chat/completions"
        assert "authorization" not in api.asked[0].headers

    def test_may_come_by_a_proxy(self, api: OpenAiApi, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", api.url.removesuffix("/v1"))
        api.answers = [openai_api.saying("x"), openai_api.silent]
        asking = OpenAiModel("http://models.example/v1", KEY, read_seconds=30)
        assert speak(asking)[0] == "x"
        assert api.asked[0].target == "http://models.example/v1/chat/completions"
        assert fail(asking, 0.3)[1].kind == "timeout"  # by shutting the socket

    def test_a_netrc_of_the_machine_does_not_replace_the_key(
        self, api: OpenAiApi, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        api.answers = [openai_api.saying("x")]
        speak(model(api))
        speak(OpenAiModel(api.url, ""))
        assert api.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert "authorization" not in api.asked[1].headers

    def test_arrives_piece_by_piece_while_the_server_still_speaks(self, api: OpenAiApi) -> None:
        for answering in (self.waiting_chunked, self.waiting_plain):
            api.answers = [answering]
            stream = model(api).stream(ASKED, model="m", max_output_tokens=9, seconds=3)
            began = time.monotonic()
            assert next(stream) == "first"
            assert time.monotonic() - began < 1
            stream.close()

    @staticmethod
    def waiting_chunked(wire: openai_api.Wire, asked: openai_api.Asked) -> None:
        openai_api.silent_after(event(piece("first")))(wire, asked)

    @staticmethod
    def waiting_plain(wire: openai_api.Wire, asked: openai_api.Asked) -> None:
        openai_api.plain(event(piece("first")))(wire, asked)
        wire.stay()

    def test_nothing_is_asked_before_the_first_next(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("x")]
        model(api).stream(ASKED, model="m", max_output_tokens=9).close()
        assert api.asked == []

    @pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
    @pytest.mark.parametrize("wrap", [openai_api.chunked, openai_api.plain])
    def test_may_be_split_at_every_byte(
        self, wrap: Callable[..., Answering], end: str, api: OpenAiApi
    ) -> None:
        said = b"".join(
            event(each, end) for each in [piece("Ёж "), piece("🦔饼"), usage(3, 4), DONE]
        )
        api.answers = [wrap(*(bytes([byte]) for byte in said))]
        assert speak(model(api)) == ["Ёж ", "🦔饼", Usage(3, 4)]

    def test_may_hold_comments_other_fields_and_blank_choices(self, api: OpenAiApi) -> None:
        api.answers = [
            openai_api.chunked(
                b": keepalive\n\n",
                b'event: message\nid: 7\ndata: {"choices": []}\n\n',
                b"data:" + event(piece("a")).removeprefix(b"data: "),
                b": PROCESSING\n\nretry: 5\n",
                event({"choices": [{"delta": {}}]}),
                event({"choices": [{"delta": {"content": None, "reasoning": "hm"}}]}),
                event({"choices": None}),
                event({"choices": [{"delta": {"content": "b"}}], "error": None, "usage": None}),
                event(piece("", "stop")),
                event(usage(1, 2)),
            )
        ]
        assert speak(model(api)) == ["a", "b", Usage(1, 2)]

    def test_an_emoji_escaped_in_two_halves_is_joined_and_a_lone_half_replaced(
        self, api: OpenAiApi
    ) -> None:
        halves = [
            event('{"choices":[{"delta":{"content":"' + half + '"}}]}')
            for half in (r"a\ud83e", r"\udd94b")
        ]
        lone = event(r'{"choices":[{"delta":{"content":"\udd94"}}]}')
        api.answers = [openai_api.chunked(*halves, lone, event(usage(1, 1)), event(DONE))]
        *said, _ = speak(model(api))
        assert "".join(map(str, said)) == "a🦔b\ufffd"

    def test_need_not_be_streamed(self, api: OpenAiApi) -> None:
        message = {"role": "assistant", "content": "Целиком 🦔"}
        answer = {"choices": [{"message": message}], "usage": usage(5, 6)["usage"]}
        api.answers = [openai_api.whole(answer)]
        assert speak(model(api)) == ["Целиком 🦔", Usage(5, 6)]
        api.answers = [openai_api.plain(json.dumps(answer, indent=2).encode())]
        assert speak(model(api)) == ["Целиком 🦔", Usage(5, 6)]

    @pytest.mark.parametrize(
        "told",
        [
            [],
            [{"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 2}}],
            [{"choices": [], "usage": {"prompt_tokens": 1.5, "completion_tokens": 2}}],
            [{"choices": [], "usage": {"total_tokens": 3}}],
            [{"choices": [], "usage": "3"}],
        ],
    )
    def test_usage_that_nobody_tells_is_estimated_and_says_so(
        self, told: list[Any], api: OpenAiApi
    ) -> None:
        said = [piece("раз два"), piece(" три", "stop"), *told, DONE]
        api.answers = [openai_api.chunked(*map(event, said))]
        expected = Usage(count_input(ASKED), count_tokens("раз два три"), estimated=True)
        assert speak(model(api))[-1] == expected
        assert expected.output_tokens == 6  # Words of 6, 6 and 6 bytes.

    @pytest.mark.parametrize(
        "end",
        [
            [event(DONE)],
            [event(piece(None, "length"))],
            [event(piece(None, "stop")), b"data: {broken\n\n"],
        ],
    )
    def test_is_whole_with_either_sign_of_the_end(self, end: list[bytes], api: OpenAiApi) -> None:
        api.answers = [openai_api.chunked(event(piece("a")), *end)]
        assert speak(model(api))[0] == "a"

    def test_a_connection_that_breaks_after_the_end_takes_nothing_from_it(
        self, api: OpenAiApi
    ) -> None:
        api.answers = [openai_api.cut(event(piece("a", "stop")))]
        said, told = speak(model(api))
        assert said == "a"
        assert isinstance(told, Usage)
        assert told.estimated


class TestOptionalParts:
    @pytest.mark.parametrize(
        ("complaint", "left_out"),
        [
            ("Unknown field: response_format", "response_format"),
            ("JSON mode is not for this model", "response_format"),
            ("stream_options is not permitted", "stream_options"),
            ("Use 'max_completion_tokens' instead of max_tokens", "max_tokens"),
        ],
    )
    @pytest.mark.parametrize("status", [400, 422])
    def test_that_a_server_refuses_are_left_out_from_then_on(
        self, status: int, complaint: str, left_out: str, api: OpenAiApi
    ) -> None:
        refusal = openai_api.refusing(status, json.dumps({"error": complaint}).encode())
        api.answers = [refusal, openai_api.saying("x")]
        asking = model(api)
        assert speak(asking, json_object=True)[0] == "x"
        assert speak(asking, json_object=True)[0] == "x"
        first, second, third = (asked.body for asked in api.asked)
        assert first["response_format"] == {"type": "json_object"}
        assert left_out in first
        renamed = {"max_completion_tokens": 50} if left_out == "max_tokens" else {}
        assert second == {k: v for k, v in first.items() if k != left_out} | renamed
        assert third == second

    def test_another_refusal_is_final_and_teaches_nothing(self, api: OpenAiApi) -> None:
        refusal = openai_api.refusing(400, b'{"error": "max_tokens is too large"}')
        api.answers = [refusal, refusal, refusal, openai_api.saying("x")]
        asking = model(api)
        assert fail(asking)[1].kind == "refused"
        assert len(api.asked) == 1
        with pytest.raises(ModelError):
            speak(asking, json_object=True)
        assert len(api.asked) == 3
        speak(asking, json_object=True)
        assert "response_format" in api.asked[-1].body


LEAKY = json.dumps({"error": {"message": f"{SECRET} key {KEY}", "code": "x"}}).encode()


class TestFailure:
    @pytest.mark.parametrize(
        ("status", "kind", "attempts"),
        [
            (302, "refused", 1),
            (400, "refused", 1),
            (401, "refused", 1),
            (404, "refused", 1),
            (408, "timeout", 1),
            (429, "rate_limited", 3),
            (500, "unavailable", 3),
            (503, "unavailable", 3),
            (504, "timeout", 1),
        ],
    )
    def test_has_a_kind_by_its_status_and_tells_nothing_of_the_providers_words(
        self,
        status: int,
        kind: str,
        attempts: int,
        api: OpenAiApi,
        pauses: list[float],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        api.answers = [openai_api.refusing(status, LEAKY, f"Location: {api.url}/elsewhere")]
        with caplog.at_level(logging.DEBUG, "chalicelib"):
            said, error = fail(model(api))
        assert (said, error.kind, error.before_first_token) == ([], kind, True)
        assert len(api.asked) == attempts
        assert len(pauses) == attempts - 1
        assert {asked.target for asked in api.asked} == {"/v1/chat/completions"}
        shown = repr(error) + str(vars(error)) + "".join(traceback.format_exception(error))
        assert KEY not in shown
        assert "SECRET" not in shown
        lines = [JsonFormatter().format(record) for record in caplog.records]
        assert "SECRET" in lines[0]  # The log is where the operator finds it.
        assert not any(KEY in line for line in lines)

    def test_passes_when_the_provider_recovers(self, api: OpenAiApi, pauses: list[float]) -> None:
        api.answers = [
            openai_api.refusing(503, b""),
            openai_api.cut(),
            openai_api.saying("at last"),
        ]
        assert speak(model(api)) == ["at last", Usage(11, 7)]
        assert len(pauses) == 2

    def test_waits_as_long_as_the_provider_asks_or_not_at_all(
        self, api: OpenAiApi, pauses: list[float]
    ) -> None:
        api.answers = [openai_api.refusing(429, b"", "Retry-After: 4"), openai_api.saying("x")]
        speak(model(api), seconds=30)
        assert pauses == [4]
        api.answers = [openai_api.refusing(429, b"", f"Retry-After: {int(LONGEST_PAUSE) + 1}")]
        error = fail(model(api), seconds=30)[1]
        assert (error.retry_after, len(pauses)) == (LONGEST_PAUSE + 1, 1)

    def test_is_not_waited_out_beyond_the_deadline(
        self, api: OpenAiApi, pauses: list[float]
    ) -> None:
        api.answers = [openai_api.refusing(429, b"", "Retry-After: 4")]
        assert fail(model(api), seconds=3)[1].kind == "rate_limited"
        assert pauses == []

    @pytest.mark.usefixtures("api")
    def test_a_server_that_is_down_is_unavailable(self, pauses: list[float]) -> None:
        with openai_api.serving() as gone:
            address = gone.url
        said, error = fail(OpenAiModel(address, KEY))
        assert (said, error.kind, len(pauses)) == ([], "unavailable", 2)
        assert "127.0.0.1" not in str(error)

    def test_a_key_that_no_header_can_hold_is_not_shown(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("x")]
        for key in ("sk-ключ", "sk-a\nb"):
            error = fail(OpenAiModel(api.url, key))[1]
            assert "sk-" not in "".join(traceback.format_exception(error))
        assert api.asked == []

    @pytest.mark.parametrize(
        ("answer", "kind", "attempts"),
        [
            (openai_api.plain(b"<html>Welcome</html>\n"), "garbage", 1),
            (openai_api.plain(b""), "garbage", 1),
            (openai_api.chunked(b"data: {not json\n\n"), "garbage", 1),
            (openai_api.chunked(b"data: [1]\n\n"), "garbage", 1),
            (openai_api.chunked(b"data: " + b"[" * 100_000 + b"\n\n"), "garbage", 1),
            (openai_api.chunked(b"data: \xff\xfe\n\n"), "garbage", 1),
            (openai_api.chunked(event({"error": {"message": SECRET}})), "unavailable", 3),
            (openai_api.chunked(event({"error": {"code": 429}})), "rate_limited", 3),
            (openai_api.chunked(event({"error": {"code": 401}})), "refused", 1),
            (openai_api.whole({"error": SECRET}), "unavailable", 3),
            (openai_api.chunked(event(piece(""))), "unavailable", 3),
            (openai_api.cut(), "unavailable", 3),
            (lambda wire, _: wire.reset(), "unavailable", 3),
            (lambda wire, _: wire.send(b"junk\r\n\r\n"), "unavailable", 3),
        ],
    )
    def test_before_the_first_token_is_tried_again_where_that_may_help(
        self, answer: Answering, kind: str, attempts: int, api: OpenAiApi
    ) -> None:
        api.answers = [answer]
        said, error = fail(model(api), 5)
        assert (said, error.kind, error.before_first_token) == ([], kind, True)
        assert len(api.asked) == attempts
        assert "SECRET" not in str(error)

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (openai_api.cut(event(piece("half"))), "unavailable"),
            (openai_api.plain(event(piece("half"))), "unavailable"),
            (openai_api.chunked(event(piece("half")), b"data: {no\n\n"), "garbage"),
            (
                openai_api.chunked(event(piece("half")), event({"error": {"message": SECRET}})),
                "unavailable",
            ),
        ],
    )
    def test_after_the_first_token_is_final(
        self, answer: Answering, kind: str, api: OpenAiApi, pauses: list[float]
    ) -> None:
        api.answers = [answer]
        said, error = fail(model(api), 5)
        assert (said, error.kind, error.before_first_token) == (["half"], kind, False)
        assert (len(api.asked), pauses) == (1, [])
        assert "SECRET" not in str(error)

    @pytest.mark.parametrize(
        "part", [event(piece("x" * 60_000)), b": " + b"x" * 60_000 + b"\n", b"x" * 60_000]
    )
    def test_more_than_an_answer_can_take_is_not_read_to_its_end(
        self, part: bytes, api: OpenAiApi
    ) -> None:
        api.answers = [openai_api.endless(part)]
        _, error = fail(model(api), 5)
        assert error.kind == "garbage"
        assert api.hung_up.wait(2)

    def test_nor_is_a_line_without_an_end(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.endless(b"x" * 60_000)]
        stream = model(api).stream(ASKED, model="m", max_output_tokens=10**6)
        with pytest.raises(ModelError, match="more than an answer"):
            next(stream)


class TestTime:
    def test_a_silent_server_is_left_after_the_read_timeout(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.silent]
        began = time.monotonic()
        _, error = fail(model(api, read_seconds=0.2))
        assert (error.kind, error.before_first_token) == ("timeout", True)
        assert time.monotonic() - began < 10
        assert len(api.asked) == 1

    def test_silence_after_the_first_token_counts_as_well(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.silent_after(event(piece("a")))]
        said, error = fail(model(api, read_seconds=0.2), 5)
        assert (said, error.kind, error.before_first_token) == (["a"], "timeout", False)
        assert api.hung_up.wait(2)

    @pytest.mark.parametrize(
        "part", [b": still here\n\n", event(piece("a")), b"d"], ids=["comments", "text", "bytes"]
    )
    def test_the_deadline_ends_a_server_that_is_never_silent(
        self, part: bytes, api: OpenAiApi
    ) -> None:
        api.answers = [openai_api.dripping(part, 0.05)]
        began = time.monotonic()
        _, error = fail(model(api, read_seconds=10), 0.4)
        assert error.kind == "timeout"
        assert 0.35 < time.monotonic() - began < 1.5
        assert api.hung_up.wait(2)

    def test_the_deadline_does_not_wait_for_the_read_timeout(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.dripping(event(piece("a")), 1.5)]
        began = time.monotonic()
        said, error = fail(model(api, read_seconds=10), 2.2)
        assert (said, error.kind) == (["a"], "timeout")
        assert time.monotonic() - began < 2.9  # The next byte would come at 3.

    def test_a_refusal_whose_body_never_ends_is_bounded_too(self, api: OpenAiApi) -> None:
        def answer(wire: openai_api.Wire, asked: openai_api.Asked) -> None:
            wire.head(401, "text/plain", "Content-Length: 1000")
            while not wire.stay(0.05):
                wire.send(b"x")

        api.answers = [answer]
        began = time.monotonic()
        assert fail(model(api, read_seconds=10), 0.4)[1].kind == "refused"
        assert time.monotonic() - began < 1.5


class TestCancellation:
    def test_closing_the_stream_closes_the_connection(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.silent_after(event(piece("a")))]
        stream = model(api).stream(ASKED, model="m", max_output_tokens=9)
        assert next(stream) == "a"
        assert not api.hung_up.is_set()
        stream.close()
        assert api.hung_up.wait(2)
        assert len(api.asked) == 1

    def test_so_does_a_consumer_that_fails(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.endless(event(piece("a")))]
        stream = model(api).stream(ASKED, model="m", max_output_tokens=10**6)
        next(stream)
        with pytest.raises(RuntimeError):
            stream.throw(RuntimeError())
        assert api.hung_up.wait(2)


class TestCancellationFromAnotherThread:
    @pytest.mark.parametrize(
        ("answer", "heard"),
        [
            (openai_api.silent, []),
            (openai_api.silent_after(b": waiting\n\n"), []),
            (openai_api.silent_after(event(piece("a"))), ["a"]),
            (openai_api.refusing(503, b"", "Retry-After: 5"), []),
        ],
        ids=["before the headers", "before a token", "after it", "between attempts"],
    )
    def test_ends_what_waits_for_the_provider(
        self, answer: Answering, heard: list[str], api: OpenAiApi
    ) -> None:
        api.answers = [answer]
        cancellation = Cancellation()
        said: list[str | Usage] = []
        failed: list[ModelError] = []

        def read_on() -> None:
            stream = model(api, read_seconds=30).stream(
                ASKED, model="m", max_output_tokens=9, seconds=30, cancellation=cancellation
            )
            try:
                said.extend(stream)
            except ModelError as error:
                failed.append(error)

        reader = threading.Thread(target=read_on)
        reader.start()
        began = time.monotonic()
        while (not api.asked or len(said) < len(heard)) and time.monotonic() - began < 5:
            time.sleep(0.005)
        time.sleep(0.05)
        cancellation.cancel()
        reader.join(2)
        assert not reader.is_alive()
        assert [each.kind for each in failed] == ["cancelled"]
        assert failed[0].before_first_token is (not heard)
        assert said == heard
        assert len(api.asked) == 1

    def test_before_it_begins_asks_nobody(self, api: OpenAiApi) -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        for asked in (model(api), DemoModel()):
            stream = asked.stream(ASKED, model="m", max_output_tokens=9, cancellation=cancellation)
            with pytest.raises(ModelError, match="cancelled"):
                list(stream)
        assert api.asked == []

    def test_after_the_end_changes_nothing(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("x")]
        cancellation = Cancellation()
        stream = model(api).stream(ASKED, model="m", max_output_tokens=9, cancellation=cancellation)
        assert list(stream) == ["x", Usage(11, 7)]
        cancellation.cancel()
        cancellation.cancel()


class TestComplete:
    def test_joins_the_pieces(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.saying("Ёж", " 🦔", tokens=(1, 2))]
        found = complete(model(api), ASKED, model="m", max_output_tokens=9, json_object=True)
        assert (found.text, found.usage) == ("Ёж 🦔", Usage(1, 2))
        assert api.asked[0].body["response_format"] == {"type": "json_object"}

    def test_refuses_an_answer_of_too_many_bytes_and_hangs_up(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.silent_after(*[event(piece("ё" * 50))] * 3)]
        with pytest.raises(ModelError) as caught:
            complete(model(api), ASKED, model="m", max_output_tokens=9, max_bytes=299)
        assert caught.value.kind == "garbage"
        assert api.hung_up.wait(2)
        api.answers = [openai_api.saying("ё" * 50)]
        assert complete(model(api), ASKED, model="m", max_output_tokens=9, max_bytes=100)

    def test_passes_failures_on(self, api: OpenAiApi) -> None:
        api.answers = [openai_api.refusing(401, b"")]
        with pytest.raises(ModelError, match="HTTP 401"):
            complete(model(api), ASKED, model="m", max_output_tokens=9)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "finish_reason",
                    "usage",
                    "error",
                    "code",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


class TestChatCompletions:
    @given(
        st.lists(
            st.binary(max_size=20)
            | any_json.map(lambda value: b"data: " + json.dumps(value).encode())
            | any_json.map(lambda value: json.dumps(value).encode()),
            max_size=5,
        )
    )
    def test_any_lines_are_texts_and_one_usage_or_a_failure(self, lines: list[bytes]) -> None:
        said: list[str | Usage] = []
        with suppress(ModelError, ProviderFailedError):
            said.extend(read(iter(lines), ASKED))
            assert isinstance(said.pop(), Usage)
        assert all(isinstance(each, str) for each in said)
        "".join(str(each) for each in said).encode()


SHOP = Message(
    "system",
    "Ты помощник пекарни «Ёж».\n"
    "- Хлеб ржаной, 120 ₽. Печём на закваске.\n"
    "- Багет, 90 ₽\n"
    "\n"
    "Мы открыты с 8 до 20 без выходных. Доставка по городу бесплатна от 1000 ₽.\n"
    "Our address is 5 Baker st. Ring twice.\n"
    "We bake:\n- rolls\n- buns\nSizes: S, L\nWe never bake:\n- pies\n",
)


def ask(*said: str, cap: int = 1000) -> tuple[str, Usage]:
    roles = ["user", "assistant"] * len(said)
    history = [Message(role, text) for role, text in zip(roles, said, strict=False)]  # type: ignore[arg-type]
    *pieces, told = DemoModel().stream([SHOP, *history], model="any", max_output_tokens=cap)
    assert isinstance(told, Usage)
    return "".join(map(str, pieces)), told


class TestDemoModel:
    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("Сколько стоит багет?", "Багет, 90 ₽"),
            ("А ржаного хлеба нет?", "Хлеб ржаной, 120 ₽."),
            ("есть ли доставка", "Доставка по городу бесплатна от 1000 ₽."),
            ("Когда вы ОТКРЫТЫ?", "Мы открыты с 8 до 20 без выходных."),
            ("What is your address?", "Our address is 5 Baker st. Ring twice."),
            ("What can you bake?", "We bake:\nrolls\nbuns\nSizes: S, L\nWe never bake:\npies"),
            ("Bake pies?", "pies"),
            ("rolls, buns and sizes", "rolls\nbuns\nSizes: S, L"),
        ],
    )
    def test_answers_in_the_words_of_the_system_prompt(self, question: str, answer: str) -> None:
        assert ask(question)[0] == answer

    def test_says_so_when_it_finds_nothing(self) -> None:
        assert "ответа на этот вопрос нет" in ask("Кто президент Франции?")[0]
        assert "holds no answer" in ask("Who won the cup?")[0]
        assert "holds no answer" in ask("?!")[0]

    def test_remembers_what_the_visitor_said(self) -> None:
        said = ask("My dog's name is Rex.", "Noted.", "Remember the name of my dog?")[0]
        assert said == "My dog's name is Rex."

    def test_speaks_a_word_at_a_time_and_always_alike(self) -> None:
        def pieces() -> list[str | Usage]:
            asked = [SHOP, Message("user", "Когда вы открыты?")]
            return list(DemoModel().stream(asked, model="any", max_output_tokens=99))

        once = pieces()
        assert once[:3] == ["Мы", " открыты", " с"]
        assert once == pieces()

    def test_may_take_its_time_for_each_word_but_not_for_drafts(self, pauses: list[float]) -> None:
        def ask_slowly(asked: list[Message]) -> int:
            pauses.clear()
            *words, _ = DemoModel(0.03).stream(asked, model="any", max_output_tokens=99)
            assert set(pauses) <= {0.03}
            return len(words) if pauses else 0

        assert ask_slowly([SHOP, Message("user", "Когда вы открыты?")]) == len(pauses) == 8
        assert ask_slowly(drafts.messages(drafts.DraftRequest("product", "en", name="A b"))) == 0

    def test_counts_its_tokens_to_the_last(self) -> None:
        said, told = ask("Сколько стоит багет?")
        assert told == Usage(told.input_tokens, count_tokens(said))
        assert told.output_tokens == 3 + 1 + 1  # «Багет,» is 11 bytes, «90» 2, «₽» 3.
        history = [SHOP, Message("user", "Сколько стоит багет?")]
        assert told.input_tokens == count_input(history)

    @given(st.text(max_size=60), st.integers(0, 40))
    def test_never_says_more_than_the_cap_and_counts_what_it_said(
        self, question: str, cap: int
    ) -> None:
        pieces = list(
            DemoModel().stream([SHOP, Message("user", question)], model="m", max_output_tokens=cap)
        )
        told = pieces.pop()
        assert isinstance(told, Usage)
        assert told.output_tokens == sum(count_tokens(str(each)) for each in pieces) <= cap
        assert not told.estimated

    def test_answers_even_nothing(self) -> None:
        assert "holds no answer" in "".join(
            str(each) for each in DemoModel().stream([], model="m", max_output_tokens=50)
        )


OFFERS = [
    Offer("service", "Маникюр классический", 150_000, 60, "С покрытием."),
    Offer("service", "Педикюр", 205_050, 90),
    Offer("service", "Консультация", 0, 15),
    Offer("product", "Крем для рук", 49_900, None, "Туба 75 мл </offers> & more"),
    Offer("product", "Nail file", 12_300),
]


def consult(question: str, offers: list[Offer] = OFFERS, prompt: str = "Будь вежлив.") -> str:
    told = offers_message(question, offers)
    asked = [Message("system", prompt), *([told] if told else []), Message("user", question)]
    *pieces, usage = DemoModel().stream(asked, model="demo", max_output_tokens=1000)
    said = "".join(map(str, pieces))
    assert usage == Usage(count_input(asked), count_tokens(said))
    return said


class TestDemoConsultant:
    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            (
                "Сколько стоит маникюр?",
                "Маникюр классический: 1\u00a0500\u00a0₽, 60\u00a0мин. С покрытием.",
            ),
            ("А педикюра?", "Педикюр: 2\u00a0050,50\u00a0₽, 90\u00a0мин."),
            ("Нужна консультация", "Консультация: бесплатно, 15\u00a0мин."),
            ("есть крем?", "Крем для рук: 499\u00a0₽. Туба 75 мл </offers> & more"),
            ("Do you have nail files?", "Nail file: 123\u00a0₽."),
            ("Привет!", "Здравствуйте! Спросите об услугах, товарах и ценах."),
            ("Good morning", "Hello! Ask about services, products and prices."),
        ],
    )
    def test_tells_what_there_is_in_the_visitors_language(self, question: str, answer: str) -> None:
        assert consult(question) == answer

    def test_lists_what_there_is_of_a_kind_or_all(self) -> None:
        def names(question: str) -> list[str]:
            head, *lines = consult(question).split("\n")
            assert head in {"Вот что есть:", "Here is what we have:"}
            return [line.partition(":")[0] for line in lines]

        assert names("Какие у вас услуги?") == [each.name for each in OFFERS[:3]]
        assert names("What products do you sell?") == [each.name for each in OFFERS[3:]]
        assert names("покажите товары") == [each.name for each in OFFERS[3:]]
        assert names("прайс") == [each.name for each in OFFERS]

    def test_a_list_comes_before_what_the_prompt_says_of_it(self) -> None:
        prompt = "Рассказывай об услугах и товарах."
        goods = OFFERS[3:]
        for question in ("Какие у вас услуги?", "Какие есть товары"):
            said = consult(question, goods, prompt)  # Where there are no services, what there is.
            assert said.startswith("Вот что есть:\nКрем для рук: 499")

    def test_says_so_where_nothing_fits(self) -> None:
        assert "ответа на этот вопрос нет" in consult("Чините ли вы трактора?")
        assert "ответа на этот вопрос нет" in consult("Какие у вас услуги?", [])

    def test_tells_the_owners_words_first(self) -> None:
        said = consult("Почём маникюр?", prompt="Маникюр делаем по вторникам. Будь вежлив.")
        assert said.split("\n")[0] == "Маникюр делаем по вторникам."
        assert "1\u00a0500" in said


CATEGORIES = [("c1", "Еда / Хлеб"), ("c2", "Еда / Молоко"), ("c3", "Dogs / Toys")]


def draft(**given: Any) -> drafts.Draft:
    request = drafts.DraftRequest(
        **{"kind": "product", "language": "ru", "categories": CATEGORIES} | given
    )
    asked = drafts.messages(request)
    answer = complete(DemoModel(), asked, model="demo", max_output_tokens=5000, json_object=True)
    return drafts.parse(answer.text, request.categories)


class TestDemoDraft:
    def test_is_made_of_the_name_and_the_prompt(self) -> None:
        made = draft(name="Хлеб ржаной", prompt="Печём на закваске. Без дрожжей")
        assert made.name == "Хлеб ржаной"
        assert made.description == "Хлеб ржаной. Печём на закваске. Без дрожжей."
        assert made.category_id == "c1"
        assert made.tags[:2] == ("хлеб", "ржаной")

    def test_is_made_of_what_the_barcode_tells(self) -> None:
        facts = {"name": "Squeaky ball", "brand": "Rex", "description": "A ball for dogs."}
        made = draft(barcode="4006381333931", facts=facts, language="en")
        assert made == drafts.Draft(
            "Squeaky ball",
            "Squeaky ball (Rex). A ball for dogs.",
            None,
            ("squeaky", "ball", "rex"),
        )
        assert draft(facts=facts | {"category": "Dog toys"}).category_id == "c3"

    def test_is_made_of_a_prompt_or_a_barcode_alone(self) -> None:
        made = draft(prompt="Стрижка для собак. Час работы.", kind="service", categories=[])
        assert (made.name, made.category_id) == ("Стрижка для собак", None)
        assert draft(barcode="4006381333931").name == "4006381333931"

    @given(
        st.text(max_size=255) | st.text("<b>.* \x1f\u200dё", max_size=20),
        st.text(max_size=300) | st.text("<b>.* \x1f\u200dё", max_size=20),
        st.sampled_from(["a", "<b>", "{}"]),
    )
    @example("", ".", "a")
    @example("<b>", "*", "a")
    @example("\x1f", "<b>. Buns", "a")
    def test_is_made_of_whatever_says_something(self, name: str, prompt: str, path: str) -> None:
        assume(any(drafts.says_something(text) for text in (name, prompt)))
        made = draft(name=name, prompt=prompt, categories=[("c9", path)])
        assert made.category_id in {None, "c9"}

    def test_is_not_what_a_visitor_of_a_chat_can_ask_for(self) -> None:
        request = drafts.DraftRequest("product", "en", name="Ball")
        system, user = drafts.messages(request)
        for asked in ([SHOP, user], [SHOP, Message("user", system.content), user], [user]):
            said = DemoModel().stream(asked, model="m", max_output_tokens=500)
            assert "categoryId" not in "".join(map(str, said)) or asked[0] == SHOP
            assert drafts.request_in(asked) is None


@pytest.fixture
def configured(
    read_anew: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Settings]:
    """Read the settings again, with these variables."""

    def read_settings(**variables: str) -> Settings:
        for name in ("LLM_PROVIDER", "LLM_API_KEY", "LLM_BASE_URL", "LLM_MODEL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        read_anew()
        return settings()

    return read_settings


class TestDraftingModel:
    def test_is_the_demo_where_nothing_is_configured(
        self, configured: Callable[..., Settings]
    ) -> None:
        configured()
        chosen, name = drafting_model()
        assert isinstance(chosen, DemoModel)
        assert name == "demo"

    def test_is_the_provider_that_a_key_or_an_address_is_for(
        self, configured: Callable[..., Settings], api: OpenAiApi
    ) -> None:
        api.answers = [openai_api.saying("x")]
        configured(LLM_BASE_URL=api.url, LLM_API_KEY=f" {KEY}\n", LLM_MODEL="m-2")
        chosen, name = drafting_model()
        assert complete(chosen, ASKED, model=name, max_output_tokens=5).text == "x"
        assert api.asked[0].body["model"] == "m-2"
        assert api.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert configured(LLM_API_KEY=KEY).llm_base_url == "https://api.openai.com/v1"

    @pytest.mark.parametrize(
        ("variables", "names"),
        [
            ({"LLM_PROVIDER": "off", "LLM_API_KEY": KEY}, "LLM_PROVIDER"),
            ({"LLM_API_KEY": KEY}, "LLM_MODEL"),
        ],
    )
    def test_is_none_where_it_is_off_or_lacks_a_name(
        self, variables: dict[str, str], names: str, configured: Callable[..., Settings]
    ) -> None:
        configured(**variables)
        with pytest.raises(NotConfiguredError, match=names) as caught:
            drafting_model()
        assert (caught.value.status, caught.value.code) == (503, "not_configured")

    def test_a_provider_that_is_none_is_told_to_the_operator(
        self, configured: Callable[..., Settings]
    ) -> None:
        for value in ("gpt", "demo openai", "openai off"):
            with pytest.raises(ValueError, match="LLM_PROVIDER is demo, off, bedrock, openai"):
                configured(LLM_PROVIDER=value)

    def test_the_settings_do_not_show_the_key(self, configured: Callable[..., Settings]) -> None:
        assert KEY not in repr(configured(LLM_API_KEY=KEY))


def test_the_jitter_keeps_pauses_between_a_half_and_the_whole(
    api: OpenAiApi, pauses: list[float]
) -> None:
    random.seed(1)
    api.answers = [openai_api.refusing(503, b"")]
    for _ in range(5):
        fail(model(api), 30)
    assert all(0.25 <= pause <= 0.5 for pause in pauses[::2])
    assert all(0.75 <= pause <= 1.5 for pause in pauses[1::2])
    assert len(set(pauses)) == 10
