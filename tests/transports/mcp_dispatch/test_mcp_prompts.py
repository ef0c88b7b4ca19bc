"""Prompts, instructions and the icon of the tool server."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.principals import ApiKeyPrincipal
from chalicelib.transports import prompts, tools
from chalicelib.transports.mcp import CAPABILITIES_KEY, SERVER_INFO_KEY, VERSION_KEY
from tests.conftest import Api, Owner
from tests.transports.mcp_dispatch.helpers import MODERN, Client, rpc

NAMES = [
    "todays_bookings",
    "new_leads",
    "change_page",
    "product_from_barcode",
    "week_in_figures",
]


def get(client: Client, name: Any, arguments: Any = None) -> dict[str, Any]:
    params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
    return rpc(client.request("prompts/get", params))


def text(response: dict[str, Any]) -> str:
    (message,) = response["result"]["messages"]
    assert message["role"] == "user"
    assert message["content"]["type"] == "text"
    prompt_text: str = message["content"]["text"]
    return prompt_text


class TestList:
    def test_the_prompts_of_owners_are_listed(self, client: Client) -> None:
        prompts_list = rpc(client.request("prompts/list"))["result"]["prompts"]
        assert [prompt["name"] for prompt in prompts_list] == NAMES
        for prompt in prompts_list:
            assert set(prompt) == {"name", "title", "description", "arguments"}
            assert prompt["title"]
            assert all(set(a) == {"name", "description", "required"} for a in prompt["arguments"])

    def test_a_prompt_is_listed_only_if_all_its_tools_are(self, owner: Owner) -> None:
        client = Client(owner.api("crm:read"), modern=False)
        prompts_list = rpc(client.request("prompts/list"))["result"]["prompts"]
        assert [prompt["name"] for prompt in prompts_list] == ["new_leads"]

    def test_a_connection_that_hides_tools_hides_their_prompts(self, client: Client) -> None:
        headers: dict[str, str | None] = {"X-MCP-Readonly": "true"}
        prompts_list = rpc(client.request("prompts/list", headers=headers))["result"]["prompts"]
        names = {prompt["name"] for prompt in prompts_list}
        assert names == {"todays_bookings", "new_leads", "week_in_figures"}

    @pytest.mark.parametrize("prompt", prompts.PROMPTS.values(), ids=prompts.PROMPTS)
    def test_a_prompt_names_tools_and_arguments_that_exist(self, prompt: prompts.Prompt) -> None:
        assert set(prompt.tools) <= set(tools.entries_by_tool())
        values = {argument.name: "x" for argument in prompt.arguments}
        assert prompt.text.format_map(values) != prompt.text or not values


class TestGet:
    def test_arguments_become_part_of_the_text(self, client: Client) -> None:
        prompt_text = text(
            get(client, "change_page", {"page": "Contacts", "change": "New phone {x}."})
        )
        assert "“Contacts”" in prompt_text
        assert "New phone {x}." in prompt_text

    def test_optional_arguments_have_defaults(self, client: Client) -> None:
        assert "bookings of today" in text(get(client, "todays_bookings"))
        assert "bookings of today" in text(get(client, "todays_bookings", {"day": " "}))
        assert "bookings of tomorrow" in text(get(client, "todays_bookings", {"day": "tomorrow"}))

    @pytest.mark.parametrize(
        ("name", "arguments", "message"),
        [
            ("new_lead", None, 'Unknown prompt "new_lead"; did you mean "new_leads"?'),
            ("x" * 99, None, f'Unknown prompt "{"x" * 80}"; prompts/list returns all prompts.'),
            ("change_page", None, "arguments: expected page, change, received nothing."),
            ("change_page", {"page": "A", "change": ""}, "expected change, received nothing."),
            ("new_leads", {"limit": 5}, "limit: expected a string of at most 500 characters."),
            (
                "new_leads",
                {"limit": "5" * 501},
                "limit: expected a string of at most 500 characters",
            ),
            ("new_leads", {"most": "5"}, 'arguments: expected limit, received "most".'),
            ("new_leads", [], "params.arguments must be an object, such as {}."),
        ],
    )
    def test_a_prompt_that_cannot_be_made_is_refused_clearly(
        self, client: Client, name: str, arguments: Any, message: str
    ) -> None:
        error = get(client, name, arguments)["error"]
        assert error["code"] == -32602
        assert message in error["message"]

    @pytest.mark.parametrize("name", [None, 5, ["new_leads"]])
    def test_a_name_that_is_no_text_is_refused(self, client: Client, name: Any) -> None:
        error = get(client, name)["error"]
        assert error == {"code": -32602, "message": "params.name must be the name of a prompt."}

    def test_a_prompt_whose_tools_are_hidden_names_them(self, owner: Owner) -> None:
        client = Client(owner.api("crm:read"), modern=False)
        message = get(client, "todays_bookings")["error"]["message"]
        assert "requires the tools svc_list_bookings" in message

    def test_the_stateless_version_requires_the_name_in_a_header(self, modern: Client) -> None:
        headers: dict[str, str | None] = {"Mcp-Name": "other"}
        answer = modern.request("prompts/get", {"name": "new_leads"}, headers)
        assert (answer.status, rpc(answer)["error"]["code"]) == (400, -32020)


class TestInstructions:
    @given(
        st.frozensets(st.text(min_size=1, max_size=200), max_size=20),
        st.frozensets(st.text(min_size=1, max_size=200), max_size=20),
    )
    def test_they_have_at_most_1500_characters(
        self, toolsets: frozenset[str], names: frozenset[str]
    ) -> None:
        selection = tools.Selection(toolsets=toolsets, tools=names)
        principal = ApiKeyPrincipal(key_id="k", plan="business")
        assert len(tools.instructions(principal, selection)) <= 1_500

    def test_without_any_scope_they_still_name_every_missing_one(self) -> None:
        principal = ApiKeyPrincipal(key_id="k", plan="business")
        instructions = tools.instructions(principal, tools.Selection())
        assert "services:write" in instructions
        assert not instructions.endswith("…")


class TestIcon:
    def test_the_icon_is_where_the_server_info_says(self, handshake: Client) -> None:
        arguments = {"protocolVersion": "2025-11-25"}
        info = rpc(handshake.request("initialize", arguments))["result"]["serverInfo"]
        (icon,) = info["icons"]
        path = icon["src"].removeprefix("http://127.0.0.1:8000")
        answer = Api(None).call("GET", path)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == icon["mimeType"] == "image/svg+xml"
        assert ET.fromstring(answer.body).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314  our own

    def test_results_other_than_the_first_do_not_repeat_it(self, modern: Client) -> None:
        meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
        result_meta = rpc(modern.request("tools/list", {"_meta": meta}))["result"]["_meta"]
        assert "icons" not in result_meta[SERVER_INFO_KEY]
