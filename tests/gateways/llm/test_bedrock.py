"""The adapter for Amazon Bedrock, against a fake server with Bedrock's event framing."""

import logging
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

from chalicelib.core import retry
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, ProviderUsage, Reasoning, TextDelta
from chalicelib.gateways.llm.bedrock import BedrockModel
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message, count_input, count_tokens
from tests.factories.llm import Said, spoken
from tests.fakes import bedrock_api, openai_api
from tests.fakes.bedrock_api import BLOCK_STOP, START, STOP, THOUGHT, failing, metadata, text
from tests.fakes.openai_api import Answering, OpenAiApi
from tests.support.patience import FOR_EVER, PATIENCE, stretched, wait_for

MODEL = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
SECRET = "arn:aws:iam::123456789012:user/SECRET"
ASKED = [Message("system", "Be terse."), Message("user", "Ёж 🦔?")]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with openai_api.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(retry, "sleep", slept.append)
    return slept


def model(api: OpenAiApi, **options: Any) -> BedrockModel:
    return BedrockModel(
        endpoint_url=api.url.removesuffix("/v1"),
        region_name="eu-central-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        **options,
    )


Heard = tuple[list[Said], ModelError | None]


def read_answer(
    chat_model: BedrockModel, pieces: list[Said] | None = None, **options: Any
) -> Heard:
    """Return the pieces and the failure, if any. ``pieces`` grows as they arrive."""
    pieces = [] if pieces is None else pieces
    arguments: dict[str, Any] = {"messages": ASKED, "seconds": FOR_EVER, **options}
    try:
        pieces.extend(spoken(chat_model.stream(model=MODEL, max_output_tokens=50, **arguments)))
    except ModelError as error:
        return pieces, error
    return pieces, None


class TestAnswer:
    def test_an_answer_comes_in_pieces_followed_by_usage(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.saying("Ёж", " — это", " 🦔.", tokens=(21, 9))]
        assert read_answer(model(api)) == (["Ёж", " — это", " 🦔.", ProviderUsage(21, 9)], None)

    def test_a_request_has_the_format_of_converse_and_is_signed(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.saying("x")]
        read_answer(model(api))
        (request,) = api.asked
        assert unquote(request.target) == f"/model/{MODEL}/converse-stream"
        assert "Credential=a/" in request.headers["authorization"]
        assert "/eu-central-1/bedrock/aws4_request" in request.headers["authorization"]
        assert request.body == {
            "system": [{"text": "Be terse."}],
            "messages": [{"role": "user", "content": [{"text": "Ёж 🦔?"}]}],
            "inferenceConfig": {"maxTokens": 50},
        }

    def test_roles_alternate_whatever_the_history(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.saying("x")]
        history = [
            Message("assistant", "Hello, I am a bot."),
            Message("user", "one"),
            Message("user", "two"),
            Message("assistant", " \n"),
            Message("user", "three"),
            Message("assistant", "answer"),
            Message("system", ""),
            Message("user", "four"),
        ]
        read_answer(model(api), messages=history)
        assert api.asked[0].body == {
            "messages": [
                {"role": "user", "content": [{"text": t} for t in ("one", "two", "three")]},
                {"role": "assistant", "content": [{"text": "answer"}]},
                {"role": "user", "content": [{"text": "four"}]},
            ],
            "inferenceConfig": {"maxTokens": 50},
        }

    def test_a_stream_may_be_split_anywhere_and_contain_non_text_blocks(
        self, api: OpenAiApi
    ) -> None:
        answer_frames = b"".join(
            [START, THOUGHT, text("Ёж "), text(""), text("🦔", new="field"), BLOCK_STOP, STOP]
        )
        news = bedrock_api.frame("somethingNew", {"a": 1})
        stream = answer_frames + news + metadata(3, 4)
        api.answers = [bedrock_api.chunked(*(stream[n : n + 7] for n in range(0, len(stream), 7)))]
        assert read_answer(model(api)) == (
            [Reasoning("hm"), "Ёж ", "🦔", ProviderUsage(3, 4)],
            None,
        )

    def test_reasoning_counts_as_output_if_no_usage_is_reported(self, api: OpenAiApi) -> None:
        hidden = bedrock_api.reasoning(redactedContent="aGlkZGVu")
        signed = bedrock_api.reasoning(signature="c2lnbmVk")
        frames = [START, THOUGHT, THOUGHT, hidden, signed, text("four"), BLOCK_STOP, STOP]
        api.answers = [bedrock_api.chunked(*frames)]
        (*_, last), problem = read_answer(model(api))
        assert problem is None
        assert last == ProviderUsage(count_input(ASKED), count_tokens("hmhm") + 1, estimated=True)

    def test_pieces_arrive_while_the_server_still_sends(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.silent_after(START, text("first"))]
        stream = model(api, read_seconds=FOR_EVER).stream(
            ASKED, model=MODEL, max_output_tokens=9, seconds=FOR_EVER
        )
        assert next(stream) == TextDelta("first")
        assert not api.hung_up.is_set()
        stream.close()
        assert api.hung_up.wait(PATIENCE)

    @pytest.mark.parametrize(
        "cut", [b"", b"\0\0\0\x7f\0\0", failing("modelStreamErrorException", "x")]
    )
    def test_missing_usage_is_estimated_and_marked_as_such(
        self, cut: bytes, api: OpenAiApi
    ) -> None:
        api.answers = [bedrock_api.chunked(START, text("раз два"), STOP, *([cut] if cut else []))]
        estimate = ProviderUsage(count_input(ASKED), count_tokens("раз два"), estimated=True)
        assert read_answer(model(api)) == (["раз два", estimate], None)

    def test_connections_are_reused(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.saying("x")]
        chat_model = model(api)
        assert read_answer(chat_model) == read_answer(chat_model)
        assert (len(api.asked), api.connections) == (2, 1)


class TestFailure:
    @pytest.mark.parametrize(
        ("status", "code", "kind", "attempts"),
        [
            (400, "ValidationException", "refused", 1),
            (403, "AccessDeniedException", "refused", 1),
            (403, "UnrecognizedClientException", "refused", 1),
            (404, "ResourceNotFoundException", "refused", 1),
            (408, "ModelTimeoutException", "timeout", 1),
            (424, "ModelErrorException", "unavailable", 3),
            (429, "ThrottlingException", "rate_limited", 3),
            (429, "ModelNotReadyException", "rate_limited", 3),
            (500, "InternalServerException", "unavailable", 3),
            (503, "ServiceUnavailableException", "unavailable", 3),
        ],
    )
    def test_a_failure_has_a_kind_and_hides_the_providers_text(
        self,
        status: int,
        code: str,
        kind: str,
        attempts: int,
        api: OpenAiApi,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        api.answers = [bedrock_api.refusing(status, code, SECRET)]
        with caplog.at_level(logging.WARNING, "chalicelib"):
            pieces, error = read_answer(model(api))
        assert error
        assert (pieces, error.kind, error.before_first_token) == ([], kind, True)
        assert len(api.asked) == attempts
        assert "SECRET" not in str(error)
        assert vars(caplog.records[0])["provider_says"] == SECRET

    @pytest.mark.parametrize(
        ("message", "kind"),
        [
            ("Input is too long for requested model.", "too_long"),
            ("This model doesn't support tool use.", "no_tools"),
            ("This model doesn't support tool use in streaming mode.", "no_tools"),
        ],
    )
    def test_a_refusal_without_a_code_of_its_own_is_known_by_its_words(
        self, message: str, kind: str, api: OpenAiApi
    ) -> None:
        api.answers = [bedrock_api.refusing(400, "ValidationException", message)]
        _, error = read_answer(model(api))
        assert error
        assert error.kind == kind

    def test_throttling_before_the_first_token_is_retried(
        self, api: OpenAiApi, pauses: list[float]
    ) -> None:
        api.answers = [
            bedrock_api.refusing(429, "ThrottlingException", "Too many tokens"),
            bedrock_api.chunked(START, failing("throttlingException", "slow down")),
            bedrock_api.saying("at last"),
        ]
        assert read_answer(model(api)) == (["at last", ProviderUsage(11, 7)], None)
        assert len(pauses) == 2

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            ("modelStreamErrorException", "unavailable"),
            ("internalServerException", "unavailable"),
            ("serviceUnavailableException", "unavailable"),
            ("throttlingException", "rate_limited"),
            ("validationException", "refused"),
        ],
    )
    def test_a_failure_in_midstream_is_final(
        self, code: str, kind: str, api: OpenAiApi, pauses: list[float]
    ) -> None:
        api.answers = [bedrock_api.chunked(START, text("half"), failing(code, SECRET))]
        pieces, error = read_answer(model(api))
        assert error
        assert (pieces, error.kind, error.before_first_token) == (["half"], kind, False)
        assert (len(api.asked), pauses) == (1, [])
        assert "SECRET" not in str(error)

    @pytest.mark.parametrize(
        ("answer", "kind", "attempts"),
        [
            (bedrock_api.chunked(START), "unavailable", 3),
            (bedrock_api.chunked(START, end=b"ff\r\nabc"), "unavailable", 3),
            (bedrock_api.chunked(b"junk " * 20), "garbage", 1),
            (bedrock_api.chunked(START[:-1] + b"\0"), "garbage", 1),
            (lambda wire, _: wire.reset(), "unavailable", 3),
            (lambda wire, _: wire.send(b"junk\r\n\r\n"), "unavailable", 3),
        ],
    )
    def test_a_network_error_is_a_failure(
        self, answer: Answering, kind: str, attempts: int, api: OpenAiApi
    ) -> None:
        api.answers = [answer]
        pieces, error = read_answer(model(api))
        assert error
        assert (pieces, error.kind, len(api.asked)) == ([], kind, attempts)

    def test_missing_credentials_or_region_are_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
        for options in ({}, {"region_name": "eu-central-1"}):
            _, error = read_answer(BedrockModel(**options))
            assert error
            assert error.kind == "refused"


class TestTime:
    def test_read_timeout_ends_a_stream_after_its_first_event(self, api: OpenAiApi) -> None:
        api.answers = [bedrock_api.silent_after(text("a"))]

        def attempt(seconds: float) -> Heard:
            pieces, error = read_answer(model(api, read_seconds=seconds))
            assert error
            assert error.kind == "timeout"
            return pieces, error

        stretched(attempt, 0.2, lambda result: result[0] == ["a"])

    @pytest.mark.parametrize(
        ("answer", "heard"),
        [(openai_api.silent, []), (bedrock_api.silent_after(START, text("a")), ["a"])],
    )
    def test_the_deadline_does_not_wait_for_the_read_timeout(
        self, answer: Answering, heard: list[str], api: OpenAiApi
    ) -> None:
        api.answers = [answer]
        chat_model = model(api, read_seconds=FOR_EVER)
        chat_model._client  # noqa: B018  making it takes a while

        def attempt(seconds: float) -> Heard:
            api.asked.clear()
            pieces, error = read_answer(chat_model, seconds=seconds)
            assert error
            assert error.kind == "timeout"
            return pieces, error

        stretched(attempt, 0.4, lambda result: (result[0], len(api.asked)) == (heard, 1))


class TestCancellation:
    @pytest.mark.parametrize(
        ("answer", "heard"),
        [(openai_api.silent, []), (bedrock_api.silent_after(START, text("a")), ["a"])],
        ids=["before the headers", "after a token"],
    )
    @pytest.mark.parametrize("is_reused", [False, True], ids=["new connection", "kept connection"])
    def test_cancelling_from_another_thread_ends_a_waiting_read(
        self, is_reused: bool, answer: Answering, heard: list[str], api: OpenAiApi
    ) -> None:
        chat_model = model(api, read_seconds=FOR_EVER)
        if is_reused:
            api.answers = [bedrock_api.saying("x")]
            read_answer(chat_model)
            api.asked.clear()
        api.answers = [answer]
        cancellation = Cancellation()
        pieces: list[Said] = []
        result: list[Heard] = []
        reader = threading.Thread(
            target=lambda: result.append(read_answer(chat_model, pieces, cancellation=cancellation))
        )
        reader.start()
        wait_for(lambda: bool(api.asked) and pieces == heard)
        cancellation.cancel()
        reader.join(PATIENCE)
        assert not reader.is_alive()
        assert api.connections == 1
        ((_, error),) = result
        assert error
        assert (pieces, error.kind, error.before_first_token) == (heard, "cancelled", not heard)
        assert len(api.asked) == 1


def test_bedrock_is_the_provider_of_its_models(
    reload_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PROVIDER", "bedrock openai")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("LLM_MODEL", "claude-haiku-4.5")
    reload_settings()
    spec = llm.resolve("Claude Haiku 4.5", tenant="w")
    assert spec.provider_id == MODEL
    assert isinstance(llm.chat_model_for(spec), BedrockModel)
    drafting, name = llm.drafting_model("w")
    assert (type(drafting), name) == (BedrockModel, MODEL)
    monkeypatch.setenv("LLM_MODEL", "their-own")
    monkeypatch.setenv("BEDROCK_PROFILE", "global")
    reload_settings()
    assert llm.drafting_model("w")[1] == "their-own"
    assert llm.resolve("Claude Haiku 4.5", tenant="w").provider_id == MODEL.replace(
        "eu.", "global."
    )
