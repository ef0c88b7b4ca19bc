"""Requests for drafts, as the tests of this folder make them."""

import json
from typing import Any

from tests.conftest import Answer, Api
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi

PATH = "/api/products/ai-fill"
KEY = "sk-test-0123456789abcdef"
CARD = {"name": "Bread", "description": "It is baked daily.", "categoryId": None, "tags": ["rye"]}


def model_response(**changed: Any) -> Answering:
    """Answer with the usual card, with some fields changed."""
    return openai_api.saying(json.dumps({**CARD, **changed}))


def fill(api: Api, **given: Any) -> Any:
    return api.post(PATH, given or {"name": "Bread"})


def refused(api: Api, **given: Any) -> Answer:
    return api.refused("POST", PATH, given or {"name": "Bread"})


def request(model: OpenAiApi) -> Any:
    """Return the data that the model received."""
    sent = model.asked[-1].body["messages"][-1]["content"]
    return json.loads(sent.removeprefix("<data>\n").removesuffix("\n</data>"))


def category(api: Api, name: str, **more: Any) -> str:
    made: str = api.post("/api/categories/create", {"name": name, **more})["category"]["id"]
    return made
