"""Cancellation and deadlines over TLS, where the connection wraps the socket."""

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from chalicelib.gateways.llm import ChatModel, ModelError, ProviderUsage
from chalicelib.gateways.llm.bedrock import BedrockModel
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.openai import OpenAiModel
from tests.factories.llm import Said, spoken
from tests.fakes import bedrock_api, openai_api
from tests.fakes.openai_api import Answering, OpenAiApi, event, piece
from tests.support.patience import FOR_EVER, PATIENCE, stretched, wait_for

ASKED = [Message("user", "Ёж?")]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def api(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenAiApi]:
    trusted = str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(trusted)
    for name in ("REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"):
        monkeypatch.setenv(name, trusted)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with openai_api.serving(context) as server:
        yield server


@pytest.fixture(params=["openai", "bedrock"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(provider: str, api: OpenAiApi) -> ChatModel:
    if provider == "openai":
        return OpenAiModel(api.url, lambda: "k", read_seconds=FOR_EVER)
    return BedrockModel(
        endpoint_url=api.url.removesuffix("/v1"),
        region_name="eu-central-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        read_seconds=FOR_EVER,
    )


def saying(provider: str) -> Answering:
    return openai_api.saying("a") if provider == "openai" else bedrock_api.saying("a")


def silent_after(provider: str, heard: list[str]) -> Answering:
    if not heard:
        return openai_api.silent
    if provider == "openai":
        return openai_api.silent_after(event(piece("a")))
    return bedrock_api.silent_after(bedrock_api.START, bedrock_api.text("a"))


class AnswerReader(threading.Thread):
    """Reads an answer in its own thread, as the chat does."""

    def __init__(
        self, model: ChatModel, cancellation: Cancellation, seconds: float = FOR_EVER
    ) -> None:
        super().__init__()
        self.said: list[Said] = []
        self.error: ModelError | None = None
        self._stream = model.stream(
            ASKED, model="m", max_output_tokens=9, seconds=seconds, cancellation=cancellation
        )

    def run(self) -> None:
        try:
            self.said.extend(spoken(self._stream))
        except ModelError as error:
            self.error = error


def test_an_answer_is_read_over_tls(api: OpenAiApi, model: ChatModel, provider: str) -> None:
    api.answers = [saying(provider)]
    reader = AnswerReader(model, Cancellation())
    reader.run()
    assert (reader.said, reader.error) == (["a", ProviderUsage(11, 7)], None)


@pytest.mark.parametrize("heard", [[], ["a"]], ids=["before the headers", "after a token"])
def test_cancelling_ends_a_waiting_read(
    heard: list[str], api: OpenAiApi, model: ChatModel, provider: str
) -> None:
    api.answers = [silent_after(provider, heard)]
    cancellation = Cancellation()
    reader = AnswerReader(model, cancellation)
    reader.start()
    wait_for(lambda: bool(api.asked) and reader.said == heard)
    cancellation.cancel()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert reader.error
    assert (reader.said, reader.error.kind) == (heard, "cancelled")
    assert len(api.asked) == 1


@pytest.mark.parametrize("heard", [[], ["a"]], ids=["before the headers", "after a token"])
def test_the_deadline_ends_a_waiting_read(
    heard: list[str], api: OpenAiApi, model: ChatModel, provider: str
) -> None:
    api.answers = [saying(provider), silent_after(provider, heard)]
    AnswerReader(
        model, Cancellation()
    ).run()  # The first use takes longer, because objects are created.

    def attempt(seconds: float) -> list[Said]:
        reader = AnswerReader(model, Cancellation(), seconds)
        reader.run()
        assert reader.error
        assert reader.error.kind == "timeout"
        return reader.said

    stretched(attempt, 0.6, lambda pieces: pieces == heard)
