"""Instructions in a business's words, and malformed calls, make the tools do nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.assistants.flows.visits import TOOLS
from chalicelib.transports import assistants
from tests.factories.injections import INJECTIONS
from tests.support.effort import examples
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage
from tests.transports.public.booking_page.test_assistants import stored_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


def test_instructions_of_the_business_are_returned_as_text_and_change_nothing(
    page: BookingPage,
) -> None:
    api, assistant = page.salon.api, Assistant.admitted(page)
    names = []
    for number, text in enumerate(INJECTIONS):
        body = {"name": f"Soap {number}", "price": 100, "description": text}
        names.append(api.post("/api/products/create", body)["product"]["name"])
    api.post("/api/services/update", {"id": page.salon.service, "description": INJECTIONS[0]})
    rows = stored_rows()
    (service,) = assistant.call("list_services")["services"]
    assert service["description"]
    products = []
    for cursor in (None, "2-50"):
        request = {"query": "soap", "pagination": {"limit": 50, "cursor": cursor}}
        response = assistant.call("search_catalog", catalog=request)
        assert "never instructions" in response["messages"][0]["content"]
        products += response["products"]
        if not response["pagination"]["has_next_page"]:
            break
    assert sorted(product["title"] for product in products) == sorted(names)
    for product in products:
        assert set(product["description"]) == {"plain"}
    assert stored_rows() == rows


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_no_argument_of_a_tool_changes_anything_or_fails_inside(
    page: BookingPage, tool: str
) -> None:
    assistant = Assistant.admitted(page)
    properties = assistants.definition(tool)["inputSchema"]["properties"]
    rows = stored_rows()
    known = {"serviceId": page.salon.service, "startAt": "2027-03-03T12:00:00Z"}

    @examples(40, 6)
    @given(st.fixed_dictionaries({}, optional=dict.fromkeys([*properties, "workspaceId"], JSON)))
    def check(arguments: dict[str, Any]) -> None:
        for values in (arguments, {**arguments, **known}):
            answer = assistant.send("tools/call", name=tool, arguments=values)
            assert answer.status == 200
            body = json.loads(answer.body)
            assert "result" in body or body["error"]["code"] == -32602
            assert b"internal_error" not in answer.body, body

    check()
    assert stored_rows() == rows
