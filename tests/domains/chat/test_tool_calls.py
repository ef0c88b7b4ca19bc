"""Tests of how the tools that a model calls are carried out."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.domains.chat.flows import tool_calls
from chalicelib.domains.chat.flows.read_tools import NoArguments
from chalicelib.domains.chat.flows.tool_calls import MAX_RESULT_BYTES, ToolContext
from chalicelib.gateways.llm.messages import ToolCall
from tests.conftest import Api
from tests.domains.chat.helpers import call

pytestmark = pytest.mark.usefixtures("database")


class TestCalls:
    @pytest.mark.parametrize(
        ("name", "arguments", "expected"),
        [
            ("delete_everything", "{}", "find_products"),
            ("find_products", "[1]", "JSON object"),
            ("find_products", "{", "JSON object"),
            ("find_products", "{}", "query"),
            ("find_products", '{"query": 5}', "query"),
            ("find_products", '{"query": "' + "x" * 10**6 + '"}', "query"),
            ("find_free_times", '{"service": "x", "firstDay": "soon"}', "firstDay"),
        ],
    )
    def test_a_wrong_call_returns_the_expected_arguments(
        self, context: ToolContext, name: str, arguments: str, expected: str
    ) -> None:
        result = call(context, name, arguments)
        assert result.is_error
        assert expected in result.content
        assert len(result.content.encode()) <= MAX_RESULT_BYTES

    def test_a_long_result_is_cut_to_its_first_entries(
        self, context: ToolContext, api: Api
    ) -> None:
        for number in range(20):
            card = {"name": f"Хлеб ржаной {number}", "price": 100, "description": "Закваска. " * 40}
            api.post("/api/products/create", card)
        result = call(context, "find_products", {"query": "хлеб"})
        assert len(result.content.encode()) <= MAX_RESULT_BYTES
        content = json.loads(result.content)
        assert content["more"] is True
        assert content["found"][0]["name"] == "Хлеб ржаной 0"

    def test_a_long_result_without_lists_is_an_error(self, context: ToolContext) -> None:
        def find_much(*_: object) -> dict[str, str]:
            return {"text": "x" * MAX_RESULT_BYTES}

        tool = tool_calls.Tool("catalog", NoArguments, find_much)
        result = tool_calls.carry_out(ToolCall("1", "find_much", "{}"), [tool], context)
        assert (result.is_error, "too long" in result.content) == (True, True)

    @settings(max_examples=30)
    @given(st.text(max_size=30), st.text(max_size=60) | st.just('{"query": "x"}'))
    def test_any_call_has_a_result(self, name: str, arguments: str) -> None:
        result = tool_calls.carry_out(ToolCall("7", name, arguments), (), None)  # type: ignore[arg-type]
        assert (result.id, result.name, result.is_error) == ("7", name, True)
