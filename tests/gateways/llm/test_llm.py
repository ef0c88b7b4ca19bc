"""The adapter for OpenAI-compatible chat models, against a server on loopback."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import Settings, settings
from chalicelib.gateways.llm import (
    Event,
    ModelError,
    ProviderUsage,
    Reasoning,
    Stop,
    TextDelta,
    complete,
    drafting_model,
)
from chalicelib.gateways.llm.demo import DemoModel
from chalicelib.gateways.llm.messages import ToolCall, ToolSpec, count_input, count_tokens
from chalicelib.gateways.llm.openai import OpenAiModel
from chalicelib.gateways.llm.provider_errors import ProviderFailedError
from tests.conftest import Time
from tests.factories.llm import ASKED, KEY, fail, model, read_chunks, speak
from tests.fakes import openai_api
from tests.fakes.openai_api import DONE, Answering, OpenAiApi, event, piece, usage
from tests.support.patience import FOR_EVER, PATIENCE

pytestmark = pytest.mark.usefixtures("pauses")


class TestAnswer:
    def test_an_answer_comes_in_pieces_followed_by_usage(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("Ёж", " — это", " 🦔.", tokens=(21, 9))]
        assert speak(model(openai)) == ["Ёж", " — это", " 🦔.", ProviderUsage(21, 9)]

    def test_a_request_has_the_key_the_roles_and_the_cap(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        speak(model(openai))
        (request,) = openai.asked
        assert request.target == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == {
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Ёж 🦔?"},
            ],
            "max_tokens": 50,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def test_no_key_is_sent_if_the_server_needs_none(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        speak(OpenAiModel(openai.url + "/", str))
        assert openai.asked[0].target == "/v1/chat/completions"
        assert "authorization" not in openai.asked[0].headers

    def test_a_proxy_is_used(self, openai: OpenAiApi, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", openai.url.removesuffix("/v1"))
        openai.answers = [openai_api.saying("x"), openai_api.silent]
        chat_model = OpenAiModel("http://models.example/v1", lambda: KEY, read_seconds=FOR_EVER)
        assert speak(chat_model)[0] == "x"
        assert openai.asked[0].target == "http://models.example/v1/chat/completions"
        assert fail(chat_model, 0.3)[1].kind == "timeout"  # closes the socket

    def test_a_netrc_file_does_not_replace_the_key(
        self, openai: OpenAiApi, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        openai.answers = [openai_api.saying("x")]
        speak(model(openai))
        speak(OpenAiModel(openai.url, str))
        assert openai.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert "authorization" not in openai.asked[1].headers

    def test_pieces_arrive_while_the_server_still_sends(self, openai: OpenAiApi) -> None:
        for answering in (self.waiting_chunked, self.waiting_plain):
            openai.answers = [answering]
            stream = model(openai, read_seconds=FOR_EVER).stream(
                ASKED, model="m", max_output_tokens=9, seconds=FOR_EVER
            )
            assert next(stream) == TextDelta("first")  # The server never sends the end.
            stream.close()

    @staticmethod
    def waiting_chunked(wire: openai_api.Wire, request: openai_api.ReceivedRequest) -> None:
        openai_api.silent_after(event(piece("first")))(wire, request)

    @staticmethod
    def waiting_plain(wire: openai_api.Wire, request: openai_api.ReceivedRequest) -> None:
        openai_api.plain(event(piece("first")))(wire, request)
        wire.wait_for_hang_up()

    def test_no_request_is_sent_before_the_first_read(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("x")]
        model(openai).stream(ASKED, model="m", max_output_tokens=9).close()
        assert openai.asked == []

    @pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
    @pytest.mark.parametrize("wrap", [openai_api.chunked, openai_api.plain])
    def test_a_stream_may_be_split_at_every_byte(
        self, wrap: Callable[..., Answering], end: str, openai: OpenAiApi
    ) -> None:
        stream = b"".join(
            event(chunk, end) for chunk in [piece("Ёж "), piece("🦔饼"), usage(3, 4), DONE]
        )
        openai.answers = [wrap(*(bytes([byte]) for byte in stream))]
        assert speak(model(openai)) == ["Ёж ", "🦔饼", ProviderUsage(3, 4)]

    def test_a_stream_may_contain_comments_other_fields_and_empty_choices(
        self, openai: OpenAiApi
    ) -> None:
        openai.answers = [
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
        assert speak(model(openai)) == ["a", Reasoning("hm"), "b", ProviderUsage(1, 2)]

    @pytest.mark.parametrize(
        "names", [["reasoning_content"], ["reasoning"], ["reasoning_content", "reasoning"]]
    )
    def test_reasoning_is_separate_and_counts_as_output(
        self, names: list[str], openai: OpenAiApi
    ) -> None:
        thoughts = [
            {"choices": [{"delta": {"content": None, **dict.fromkeys(names, thought)}}]}
            for thought in ("Let me ", "see", ". ", "")
        ]
        openai.answers = [
            openai_api.chunked(*map(event, [*thoughts, piece("Yes"), piece(None, "stop"), DONE]))
        ]
        *pieces, last = speak(model(openai))
        assert pieces == [Reasoning("Let me "), Reasoning("see"), Reasoning(". "), "Yes"]
        used = count_tokens("Let me see. ") + count_tokens("Yes")
        assert last == ProviderUsage(count_input(ASKED), used, estimated=True)

    def test_reasoning_of_an_unstreamed_answer_is_separate(self, openai: OpenAiApi) -> None:
        message = {"role": "assistant", "content": "Yes", "reasoning_content": "Let me see."}
        openai.answers = [openai_api.json_document({"choices": [{"message": message}]})]
        *pieces, last = speak(model(openai))
        assert pieces == [Reasoning("Let me see."), "Yes"]
        assert last == ProviderUsage(count_input(ASKED), 4, estimated=True)

    def test_a_complete_answer_leaves_out_the_reasoning(self, openai: OpenAiApi) -> None:
        thought = {"choices": [{"delta": {"reasoning_content": "hm"}}]}
        chunks = [thought, piece("Yes"), usage(3, 9), piece(None, "stop")]
        openai.answers = [openai_api.chunked(*map(event, chunks))]
        completion = complete(model(openai), ASKED, model="m", max_output_tokens=9)
        assert completion == ("Yes", ProviderUsage(3, 9))

    def test_escaped_halves_of_an_emoji_are_joined(self, openai: OpenAiApi) -> None:
        halves = [
            event('{"choices":[{"delta":{"content":"' + half + '"}}]}')
            for half in (r"a\ud83e", r"\udd94b")
        ]
        lone = event(r'{"choices":[{"delta":{"content":"\udd94"}}]}')
        openai.answers = [openai_api.chunked(*halves, lone, event(usage(1, 1)), event(DONE))]
        *pieces, _ = speak(model(openai))
        assert "".join(map(str, pieces)) == "a🦔b\ufffd"

    def test_a_server_may_answer_without_streaming(self, openai: OpenAiApi) -> None:
        message = {"role": "assistant", "content": "Целиком 🦔"}
        answer = {"choices": [{"message": message}], "usage": usage(5, 6)["usage"]}
        openai.answers = [openai_api.json_document(answer)]
        assert speak(model(openai)) == ["Целиком 🦔", ProviderUsage(5, 6)]
        openai.answers = [openai_api.plain(json.dumps(answer, indent=2).encode())]
        assert speak(model(openai)) == ["Целиком 🦔", ProviderUsage(5, 6)]

    @pytest.mark.parametrize(
        "usage_chunks",
        [
            [],
            [{"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 2}}],
            [{"choices": [], "usage": {"prompt_tokens": 1.5, "completion_tokens": 2}}],
            [{"choices": [], "usage": {"total_tokens": 3}}],
            [{"choices": [], "usage": "3"}],
        ],
    )
    def test_missing_usage_is_estimated_and_marked_as_such(
        self, usage_chunks: list[Any], openai: OpenAiApi
    ) -> None:
        chunks = [piece("раз два"), piece(" три", "stop"), *usage_chunks, DONE]
        openai.answers = [openai_api.chunked(*map(event, chunks))]
        expected = ProviderUsage(count_input(ASKED), count_tokens("раз два три"), estimated=True)
        assert speak(model(openai))[-1] == expected
        assert expected.output_tokens == 6  # Words of 6, 6 and 6 bytes.

    @pytest.mark.parametrize(
        "end",
        [
            [event(DONE)],
            [event(piece(None, "length"))],
            [event(piece(None, "stop")), b"data: {broken\n\n"],
        ],
    )
    def test_either_end_marker_completes_an_answer(
        self, end: list[bytes], openai: OpenAiApi
    ) -> None:
        openai.answers = [openai_api.chunked(event(piece("a")), *end)]
        assert speak(model(openai))[0] == "a"

    def test_a_connection_that_breaks_after_the_end_does_not_matter(
        self, openai: OpenAiApi
    ) -> None:
        openai.answers = [openai_api.cut(event(piece("a", "stop")))]
        piece_read, usage_read = speak(model(openai))
        assert piece_read == "a"
        assert isinstance(usage_read, ProviderUsage)
        assert usage_read.estimated


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
    def test_refused_optional_parts_are_left_out_later(
        self, status: int, complaint: str, left_out: str, openai: OpenAiApi
    ) -> None:
        refusal = openai_api.refusing(status, json.dumps({"error": complaint}).encode())
        openai.answers = [refusal, openai_api.saying("x")]
        chat_model = model(openai)
        assert speak(chat_model, json_object=True)[0] == "x"
        assert speak(chat_model, json_object=True)[0] == "x"
        first, second, third = (request.body for request in openai.asked)
        assert first["response_format"] == {"type": "json_object"}
        assert left_out in first
        renamed = {"max_completion_tokens": 50} if left_out == "max_tokens" else {}
        assert second == {k: v for k, v in first.items() if k != left_out} | renamed
        assert third == second

    def test_a_refusal_is_forgotten_after_ten_minutes(self, openai: OpenAiApi, time: Time) -> None:
        refusal = openai_api.refusing(400, b'{"error": "Unknown field: stream_options"}')
        openai.answers = [refusal, openai_api.saying("x")]
        chat_model = model(openai)
        speak(chat_model)
        time.pass_by(minutes=9, seconds=59)
        speak(chat_model)
        assert "stream_options" not in openai.asked[-1].body
        time.pass_by(seconds=2)
        speak(chat_model)
        assert "stream_options" in openai.asked[-1].body

    def test_a_server_that_refuses_to_stream_answers_in_one_piece(self, openai: OpenAiApi) -> None:
        about = {"message": "Verify", "param": "stream", "code": "unsupported_value"}
        raw = {"raw": json.dumps({"error": about})}  # as OpenRouter repeats OpenAI's error
        error_body = {"error": {"message": "Provider returned error", "code": 400, "metadata": raw}}
        refusal = openai_api.refusing(400, json.dumps(error_body).encode())
        message = {"role": "assistant", "content": "Добрый день"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 4}
        openai.answers = [refusal, openai_api.json_document({"choices": [choice], "usage": usage})]
        assert speak(model(openai)) == ["Добрый день", ProviderUsage(5, 4)]
        assert not {"stream", "stream_options"} & openai.asked[1].body.keys()

    def test_another_refusal_is_final_and_changes_nothing(self, openai: OpenAiApi) -> None:
        refusal = openai_api.refusing(400, b'{"error": "max_tokens is too large"}')
        openai.answers = [refusal, refusal, refusal, openai_api.saying("x")]
        chat_model = model(openai)
        assert fail(chat_model)[1].kind == "refused"
        assert len(openai.asked) == 1
        with pytest.raises(ModelError):
            speak(chat_model, json_object=True)
        assert len(openai.asked) == 3
        speak(chat_model, json_object=True)
        assert "response_format" in openai.asked[-1].body


class TestComplete:
    def test_complete_joins_the_pieces(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.saying("Ёж", " 🦔", tokens=(1, 2))]
        completion = complete(
            model(openai), ASKED, model="m", max_output_tokens=9, json_object=True
        )
        assert (completion.text, completion.usage) == ("Ёж 🦔", ProviderUsage(1, 2))
        assert openai.asked[0].body["response_format"] == {"type": "json_object"}

    def test_oversized_answer_is_refused_and_the_connection_closed(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.silent_after(*[event(piece("ё" * 50))] * 3)]
        with pytest.raises(ModelError) as caught:
            complete(model(openai), ASKED, model="m", max_output_tokens=9, max_bytes=299)
        assert caught.value.kind == "garbage"
        assert openai.hung_up.wait(PATIENCE)
        openai.answers = [openai_api.saying("ё" * 50)]
        assert complete(model(openai), ASKED, model="m", max_output_tokens=9, max_bytes=100)

    def test_failures_are_passed_on(self, openai: OpenAiApi) -> None:
        openai.answers = [openai_api.refusing(401, b"")]
        with pytest.raises(ModelError, match="HTTP 401"):
            complete(model(openai), ASKED, model="m", max_output_tokens=9)


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
                    "tool_calls",
                    "function",
                    "index",
                    "id",
                    "name",
                    "arguments",
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
    def test_any_stream_gives_events_or_a_failure(self, lines: list[bytes]) -> None:
        received: list[Event] = []
        with suppress(ModelError, ProviderFailedError):
            received.extend(read_chunks([b"\n".join(lines)], [ToolSpec("find", "Find.", {})]))
            assert isinstance(received.pop(), ProviderUsage)
            assert isinstance(received.pop(), Stop)
        assert all(isinstance(event, TextDelta | ToolCall) for event in received)
        "".join(str(event) for event in received).encode()


@pytest.fixture
def configure(
    reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Settings]:
    """Read the settings again with these variables."""

    def read_settings(**variables: str) -> Settings:
        for name in ("LLM_PROVIDER", "LLM_API_KEY", "LLM_BASE_URL", "LLM_MODEL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        reload_settings()
        return settings()

    return read_settings


class TestDraftingModel:
    def test_the_demo_model_is_used_if_nothing_is_configured(
        self, configure: Callable[..., Settings]
    ) -> None:
        configure()
        chat_model, name = drafting_model("w")
        assert isinstance(chat_model, DemoModel)
        assert name == "demo"

    def test_a_key_or_a_url_selects_its_provider(
        self, configure: Callable[..., Settings], openai: OpenAiApi
    ) -> None:
        openai.answers = [openai_api.saying("x")]
        configure(LLM_BASE_URL=openai.url, LLM_API_KEY=f" {KEY}\n", LLM_MODEL="m-2")
        chat_model, name = drafting_model("w")
        assert complete(chat_model, ASKED, model=name, max_output_tokens=5).text == "x"
        assert openai.asked[0].body["model"] == "m-2"
        assert openai.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert configure(LLM_API_KEY=KEY).llm_base_url == "https://api.openai.com/v1"

    @pytest.mark.parametrize(
        ("variables", "names"),
        [
            ({"LLM_PROVIDER": "off", "LLM_API_KEY": KEY}, "LLM_PROVIDER"),
            ({"LLM_API_KEY": KEY}, "LLM_MODEL"),
        ],
    )
    def test_there_is_no_model_if_drafts_are_off_or_its_name_is_missing(
        self, variables: dict[str, str], names: str, configure: Callable[..., Settings]
    ) -> None:
        configure(**variables)
        with pytest.raises(NotConfiguredError, match=names) as caught:
            drafting_model("w")
        assert (caught.value.status, caught.value.code) == (503, "not_configured")

    def test_an_unknown_provider_is_reported_to_the_operator(
        self, configure: Callable[..., Settings]
    ) -> None:
        for value in ("gpt", "demo openai", "openai off"):
            with pytest.raises(
                ValueError, match="LLM_PROVIDER: expected demo, off, bedrock, openai"
            ):
                configure(LLM_PROVIDER=value)

    def test_the_settings_do_not_show_the_key(self, configure: Callable[..., Settings]) -> None:
        assert KEY not in repr(configure(LLM_API_KEY=KEY))
