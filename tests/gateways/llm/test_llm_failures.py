"""Chat models that fail, are slow, or whose answer is no longer needed, on loopback."""

import json
import logging
import random
import threading
import traceback
from functools import partial
from time import monotonic

import pytest

from chalicelib.core.logs import JsonFormatter
from chalicelib.gateways.llm import ModelError, ProviderUsage, TextDelta, attempts
from chalicelib.gateways.llm.attempts import MAX_RETRY_AFTER
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.demo import DemoModel
from chalicelib.gateways.llm.openai import OpenAiModel
from tests.factories.llm import ASKED, KEY, Said, fail, model, speak, spoken
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi, event, piece
from tests.support.patience import FOR_EVER, PATIENCE, stretched, wait_for

pytestmark = pytest.mark.usefixtures("pauses")


SECRET = "internal-host-10.1.2.3 org-SECRET"
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
    def test_status_determines_the_kind_of_a_failure(
        self,
        status: int,
        kind: str,
        attempts: int,
        openai: OpenAiApi,
        pauses: list[float],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        openai.answers = [openai_api.refusing(status, LEAKY, f"Location: {openai.url}/elsewhere")]
        with caplog.at_level(logging.DEBUG, "chalicelib"):
            pieces, error = fail(model(openai))
        assert (pieces, error.kind, error.before_first_token) == ([], kind, True)
        assert len(openai.asked) == attempts
        assert len(pauses) == attempts - 1
        assert {request.target for request in openai.asked} == {"/v1/chat/completions"}
        error_text = repr(error) + str(vars(error)) + "".join(traceback.format_exception(error))
        assert KEY not in error_text
        assert "SECRET" not in error_text
        lines = [JsonFormatter().format(record) for record in caplog.records]
        assert "SECRET" in lines[0]  # The operator finds the message in the log.
        assert not any(KEY in line for line in lines)

    def test_a_temporary_failure_is_retried(self, openai: OpenAiApi, pauses: list[float]) -> None:
        openai.answers = [
            openai_api.refusing(503, b""),
            openai_api.cut(),
            openai_api.saying("at last"),
        ]
        assert speak(model(openai)) == ["at last", ProviderUsage(11, 7)]
        assert len(pauses) == 2

    def test_the_providers_retry_delay_is_respected_or_the_failure_final(
        self, openai: OpenAiApi, pauses: list[float]
    ) -> None:
        openai.answers = [openai_api.refusing(429, b"", "Retry-After: 4"), openai_api.saying("x")]
        speak(model(openai))
        assert pauses == [4]
        openai.answers = [openai_api.refusing(429, b"", f"Retry-After: {int(MAX_RETRY_AFTER) + 1}")]
        error = fail(model(openai))[1]
        assert (error.retry_after, len(pauses)) == (MAX_RETRY_AFTER + 1, 1)

    def test_a_retry_delay_beyond_the_deadline_is_not_waited_for(
        self, openai: OpenAiApi, pauses: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attempts, "MAX_RETRY_AFTER", FOR_EVER)
        wait = f"Retry-After: {PATIENCE + 1:.0f}"
        openai.answers = [openai_api.refusing(429, b"", wait)]
        assert fail(model(openai), seconds=PATIENCE)[1].kind == "rate_limited"
        assert pauses == []

    @pytest.mark.usefixtures("openai")
    def test_a_server_that_is_down_is_unavailable(self, pauses: list[float]) -> None:
        with openai_api.serving() as gone:
            address = gone.url
        pieces, error = fail(OpenAiModel(address, lambda: KEY))
        assert (pieces, error.kind, len(pauses)) == ([], "unavailable", 2)
        assert "127.0.0.1" not in str(error)

    def test_a_key_that_is_invalid_in_a_header_is_not_shown(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        for key in ("sk-ключ", "sk-a\nb"):
            error = fail(OpenAiModel(openai.url, partial(str, key)))[1]
            assert "sk-" not in "".join(traceback.format_exception(error))
        assert openai.asked == []

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
            (openai_api.json_document({"error": SECRET}), "unavailable", 3),
            (openai_api.chunked(event(piece(""))), "unavailable", 3),
            (openai_api.cut(), "unavailable", 3),
            (lambda wire, _: wire.reset(), "unavailable", 3),
            (lambda wire, _: wire.send(b"junk\r\n\r\n"), "unavailable", 3),
        ],
    )
    def test_a_failure_before_the_first_token_is_retried_if_that_may_help(
        self, answer: Answering, kind: str, attempts: int, openai: OpenAiApi
    ) -> None:
        openai.answers = [answer]
        pieces, error = fail(model(openai))
        assert (pieces, error.kind, error.before_first_token) == ([], kind, True)
        assert len(openai.asked) == attempts
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
    def test_a_failure_after_the_first_token_is_final(
        self, answer: Answering, kind: str, openai: OpenAiApi, pauses: list[float]
    ) -> None:
        openai.answers = [answer]
        pieces, error = fail(model(openai))
        assert (pieces, error.kind, error.before_first_token) == (["half"], kind, False)
        assert (len(openai.asked), pauses) == (1, [])
        assert "SECRET" not in str(error)

    @pytest.mark.parametrize(
        "part", [event(piece("x" * 60_000)), b": " + b"x" * 60_000 + b"\n", b"x" * 60_000]
    )
    def test_an_endless_answer_is_not_read_to_its_end(self, part: bytes, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.endless(part)]
        _, error = fail(model(openai))
        assert error.kind == "garbage"
        assert openai.hung_up.wait(PATIENCE)

    def test_an_endless_line_is_not_read_to_its_end(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.endless(b"x" * 60_000)]
        stream = model(openai).stream(ASKED, model="m", max_output_tokens=10**6)
        with pytest.raises(ModelError, match="line that is too long"):
            next(stream)


class TestTime:
    @pytest.mark.parametrize("answer", [openai_api.silent, openai_api.silent_after(b": wait\n\n")])
    def test_only_the_deadline_ends_a_wait_for_the_first_event(
        self, answer: Answering, openai: OpenAiApi
    ) -> None:
        openai.answers = [answer]
        begun = monotonic()
        _, error = fail(model(openai, read_seconds=0.01), 0.4)
        assert (error.kind, error.before_first_token) == ("timeout", True)
        assert monotonic() - begun >= 0.3
        assert len(openai.asked) == 1

    def test_the_usage_is_waited_for_only_shortly_after_the_end(
        self, openai: OpenAiApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attempts, "USAGE_SECONDS", 0.05)
        openai.answers = [openai_api.silent_after(event(piece("a", "stop")))]
        piece_read, usage_read = speak(model(openai, read_seconds=FOR_EVER), FOR_EVER)
        assert piece_read == "a"
        assert isinstance(usage_read, ProviderUsage)
        assert usage_read.estimated

    def test_the_read_timeout_applies_after_the_first_token(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.silent_after(event(piece("a")))]

        def attempt(seconds: float) -> tuple[list[Said], ModelError]:
            pieces, error = fail(model(openai, read_seconds=seconds), FOR_EVER)
            assert (error.kind, error.before_first_token) == ("timeout", not pieces)
            return pieces, error

        stretched(attempt, 0.2, lambda result: result[0] == ["a"])
        assert openai.hung_up.wait(PATIENCE)

    @pytest.mark.parametrize(
        "part", [b": still here\n\n", event(piece("a")), b"d"], ids=["comments", "text", "bytes"]
    )
    def test_the_deadline_ends_a_server_that_keeps_sending(
        self, part: bytes, openai: OpenAiApi
    ) -> None:
        openai.answers = [openai_api.dripping(part, 0.05)]
        _, error = fail(model(openai, read_seconds=FOR_EVER), 0.4)
        assert error.kind == "timeout"
        assert openai.hung_up.wait(PATIENCE)

    def test_the_deadline_does_not_wait_for_the_read_timeout(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.silent_after(event(piece("a")))]

        def attempt(seconds: float) -> list[Said]:
            pieces, error = fail(model(openai, read_seconds=FOR_EVER), seconds)
            assert error.kind == "timeout"
            return pieces

        stretched(attempt, 0.4, lambda pieces: pieces == ["a"])

    def test_a_refusal_with_an_endless_body_is_bounded_too(self, openai: OpenAiApi) -> None:
        def answer(wire: openai_api.Wire, request: openai_api.ReceivedRequest) -> None:
            wire.head(401, "text/plain", "Content-Length: 1000")
            while not wire.wait_for_hang_up(0.05) and not wire.over:
                wire.send(b"x")

        openai.answers = [answer]

        def attempt(seconds: float) -> str:
            return fail(model(openai, read_seconds=FOR_EVER), seconds)[1].kind

        stretched(attempt, 0.4, lambda kind: kind == "refused")


class TestCancellation:
    def test_closing_the_stream_closes_the_connection(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.silent_after(event(piece("a")))]
        stream = model(openai).stream(ASKED, model="m", max_output_tokens=9)
        assert next(stream) == TextDelta("a")
        assert not openai.hung_up.is_set()
        stream.close()
        assert openai.hung_up.wait(PATIENCE)
        assert len(openai.asked) == 1

    def test_a_consumer_that_fails_closes_the_connection(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.endless(event(piece("a")))]
        stream = model(openai).stream(ASKED, model="m", max_output_tokens=10**6)
        next(stream)
        with pytest.raises(RuntimeError):
            stream.throw(RuntimeError())
        assert openai.hung_up.wait(PATIENCE)


class TestCancellationFromAnotherThread:
    @pytest.mark.parametrize(
        ("answer", "heard"),
        [
            (openai_api.silent, []),
            (openai_api.silent_after(b": waiting\n\n"), []),
            (openai_api.silent_after(event(piece("a"))), ["a"]),
            (openai_api.refusing(503, b"", f"Retry-After: {FOR_EVER:.0f}"), []),
        ],
        ids=["before the headers", "before a token", "after it", "between attempts"],
    )
    def test_cancelling_ends_a_waiting_read(
        self,
        answer: Answering,
        heard: list[str],
        openai: OpenAiApi,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(attempts, "MAX_RETRY_AFTER", FOR_EVER)
        openai.answers = [answer]
        cancellation = Cancellation()
        pieces: list[Said] = []
        failed: list[ModelError] = []

        def read_on() -> None:
            stream = model(openai, read_seconds=FOR_EVER).stream(
                ASKED,
                model="m",
                max_output_tokens=9,
                seconds=2 * FOR_EVER,
                cancellation=cancellation,
            )
            try:
                pieces.extend(spoken(stream))
            except ModelError as error:
                failed.append(error)

        reader = threading.Thread(target=read_on)
        reader.start()
        wait_for(lambda: bool(openai.asked) and pieces == heard)
        cancellation.cancel()
        reader.join(PATIENCE)
        assert not reader.is_alive()
        assert [failure.kind for failure in failed] == ["cancelled"]
        assert failed[0].before_first_token is (not heard)
        assert pieces == heard
        assert len(openai.asked) == 1

    def test_cancelling_before_the_start_sends_no_request(self, openai: OpenAiApi) -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        for chat_model in (model(openai), DemoModel()):
            stream = chat_model.stream(
                ASKED, model="m", max_output_tokens=9, cancellation=cancellation
            )
            with pytest.raises(ModelError, match="cancelled"):
                list(stream)
        assert openai.asked == []

    def test_cancelling_after_the_end_changes_nothing(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        cancellation = Cancellation()
        stream = model(openai).stream(
            ASKED, model="m", max_output_tokens=9, cancellation=cancellation
        )
        assert list(spoken(stream)) == ["x", ProviderUsage(11, 7)]
        cancellation.cancel()
        cancellation.cancel()


def test_jitter_keeps_pauses_between_half_and_full_length(
    openai: OpenAiApi, pauses: list[float]
) -> None:
    random.seed(1)
    openai.answers = [openai_api.refusing(503, b"")]
    for _ in range(5):
        fail(model(openai), 30)
    assert all(0.25 <= pause <= 0.5 for pause in pauses[::2])
    assert all(0.75 <= pause <= 1.5 for pause in pauses[1::2])
    assert len(set(pauses)) == 10
