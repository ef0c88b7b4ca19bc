"""Requests for drafts, as the tests of this folder make them."""

import json
from typing import Any

from tests.conftest import Answer, Api
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi

PATH = "/api/products/ai-fill"
KEY = "sk-test-0123456789abcdef"
CARD = {"name": "Bread", "description": "It is baked daily.", "categoryId": None, "tags": ["rye"]}


def model_response(**changes: Any) -> Answering:
    """Return a response with the usual card, with some fields changed."""
    return openai_api.saying(json.dumps({**CARD, **changes}))


def fill(api: Api, **fields: Any) -> Any:
    return api.post(PATH, fields or {"name": "Bread"})


def refusal(api: Api, **fields: Any) -> Answer:
    return api.call_refused("POST", PATH, fields or {"name": "Bread"})


def request(model: OpenAiApi) -> Any:
    """Return the data that the model received."""
    content = model.asked[-1].body["messages"][-1]["content"]
    return json.loads(content.removeprefix("<data>\n").removesuffix("\n</data>"))


def category(api: Api, name: str, **more: Any) -> str:
    category_id: str = api.post("/api/categories/create", {"name": name, **more})["category"]["id"]
    return category_id
