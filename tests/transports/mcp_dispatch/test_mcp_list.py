"""The list of tools and the instructions, filtered by key, header and query."""

import json
from collections.abc import Callable

import pytest

from tests.conftest import Owner
from tests.transports.mcp_dispatch.helpers import META, MODERN, Client, rpc


class TestList:
    def names(
        self, client: Client, headers: dict[str, str] | None = None, query: str = ""
    ) -> list[str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = client.api.call("POST", "/api/mcp" + query, message, headers)
        return [tool["name"] for tool in rpc(answer)["result"]["tools"]]

    def test_the_list_has_exactly_the_tools_that_the_key_may_call(self, owner: Owner) -> None:
        client = Client(owner.api("pages:read"), modern=False)
        assert set(self.names(client)) == {
            "svc_list_workspaces",
            "svc_search_card_images",
            "svc_list_pages",
            "svc_get_page",
        }

    def test_the_list_is_the_same_bytes_every_time(self, client: Client) -> None:
        assert client.request("tools/list").body == client.request("tools/list").body

    @pytest.mark.parametrize("by", ["header", "query"])
    def test_the_instructions_warn_about_an_unknown_name(self, by: str, client: Client) -> None:
        method = "server/discover" if client.modern else "initialize"
        names = "prodcuts,pages,all"
        if by == "header":
            tools = "svc_get_product,svc_get_prodct"
            answer = client.request(
                method, {}, {"X-MCP-Toolsets": names, "X-MCP-Exclude-Tools": tools}
            )
        else:
            path = f"/api/mcp?toolsets={names}&exclude=svc_get_prodct"
            params = {"_meta": META} if client.modern else {}
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            answer = client.api.call("POST", path, message, headers if client.modern else {})
        instructions = rpc(answer)["result"]["instructions"]
        assert 'an unknown toolset, "prodcuts"; did you mean "products"?' in instructions
        assert 'an unknown tool, "svc_get_prodct"; did you mean "svc_get_product"?' in instructions
        assert instructions.count("Warning") == 2

    def test_the_instructions_list_the_toolsets_if_no_name_is_similar(
        self, handshake: Client
    ) -> None:
        answer = handshake.request("initialize", {}, {"X-MCP-Toolsets": "zzz"})
        instructions = rpc(answer)["result"]["instructions"]
        assert '"zzz"; known names: workspace, projects, pages, products' in instructions

    def test_the_instructions_name_the_hidden_tools(self, new_owner: Callable[..., Owner]) -> None:
        user = new_owner("business", "user")
        client = Client(user.api("pages:read", "pages:write"), modern=False)
        instructions = rpc(client.request("initialize", {}))["result"]["instructions"]
        assert "projects:read" in instructions
        assert "projects:write" in instructions
        assert "pages:read" not in instructions
        assert "blog" not in instructions

    def test_the_instructions_do_not_mention_hidden_tools_if_there_are_none(
        self, handshake: Client
    ) -> None:
        instructions = rpc(handshake.request("initialize", {}))["result"]["instructions"]
        assert "Hidden" not in instructions

    @pytest.mark.parametrize(
        ("header", "parameter", "value", "tool_names", "hidden"),
        [
            ("X-MCP-Toolsets", "toolsets", "pages", "svc_get_page", "svc_list_sites"),
            ("X-MCP-Toolsets", "toolsets", "pages, projects", "svc_list_sites", None),
            ("X-MCP-Toolsets", "toolsets", "all", "svc_list_sites", None),
            ("X-MCP-Tools", "tools", "svc_get_page", "svc_get_page", "svc_list_pages"),
            ("X-MCP-Exclude-Tools", "exclude", "svc_get_page", "svc_list_pages", "svc_get_page"),
            (
                "X-MCP-Exclude-Tools",
                "exclude",
                "svc_list_workspaces",
                "svc_get_page",
                "svc_list_workspaces",
            ),
            ("X-MCP-Readonly", "readonly", "true", "svc_get_page", "svc_create_page"),
            ("X-MCP-Readonly", "readonly", "false", "svc_create_page", None),
        ],
    )
    def test_the_list_can_be_filtered_by_header_or_query(
        self,
        handshake: Client,
        header: str,
        parameter: str,
        value: str,
        tool_names: str,
        hidden: str | None,
    ) -> None:
        by_header = self.names(handshake, {header: value})
        assert by_header == self.names(handshake, query=f"?{parameter}={value.replace(' ', '')}")
        assert tool_names in by_header
        assert hidden not in by_header
        if "exclude" not in parameter:
            assert "svc_list_workspaces" in by_header

    def test_toolsets_and_tools_are_combined_and_exclusion_wins(self, handshake: Client) -> None:
        headers = {
            "X-MCP-Toolsets": "pages",
            "X-MCP-Tools": "svc_list_sites,svc_delete_site",
            "X-MCP-Exclude-Tools": "svc_delete_site,svc_delete_page",
        }
        names = self.names(handshake, headers)
        assert {"svc_list_sites", "svc_get_page"} <= set(names)
        assert not {"svc_delete_site", "svc_delete_page"} & set(names)

    def test_a_filtered_out_tool_cannot_be_called(self, client: Client) -> None:
        params = {"name": "svc_create_site", "arguments": {"title": "x"}}
        answer = client.request("tools/call", params, {"X-MCP-Readonly": "true"})
        failure = json.loads(rpc(answer)["result"]["content"][0]["text"])
        assert (failure["httpStatus"], failure["data"]["code"]) == (403, "forbidden")
