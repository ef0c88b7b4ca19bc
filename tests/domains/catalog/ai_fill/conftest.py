"""A fake chat model that drafts a card."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.core import retry
from chalicelib.gateways import llm
from chalicelib.gateways.llm import api_key
from tests.domains.catalog.ai_fill.helpers import KEY, model_response
from tests.fakes import openai_api
from tests.fakes.openai_api import OpenAiApi


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    """A fake model behind a chat completions server. It drafts bread unless a test changes it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(retry, "sleep", lambda _: None)
    with openai_api.serving() as server:
        config = replace(
            llm.settings(),
            llm_provider="openai",
            llm_base_url=server.url,
            llm_api_key=KEY,
            llm_model="m-1",
        )
        for module in (llm, api_key):
            monkeypatch.setattr(module, "settings", lambda: config)
        llm._provider.cache_clear()
        server.answers = [model_response()]
        yield server
        llm._provider.cache_clear()
