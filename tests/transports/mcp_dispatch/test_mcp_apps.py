"""Pages that AI clients show beside the results of tools, and the resources of the tool server."""

import json
from typing import Any

import pytest

from chalicelib.transports import mcp_apps
from chalicelib.transports.mcp import CAPABILITIES_KEY
from tests.conftest import Api, Owner, call_console
from tests.factories.salon import Salon
from tests.transports.mcp_dispatch.helpers import META, Client, error, rpc

SHOWS_PAGES = {mcp_apps.EXTENSION: {"mimeTypes": [mcp_apps.MEDIA_TYPE]}}
WITH_PAGES = {**META, CAPABILITIES_KEY: {"extensions": SHOWS_PAGES}}
BOOKINGS = mcp_apps.BOOKINGS.uri


def tools_of(client: Client, **params: Any) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = rpc(client.request("tools/list", params))["result"]["tools"]
    return tools


def resources_of(client: Client) -> dict[str, dict[str, Any]]:
    listed = rpc(client.request("resources/list"))["result"]["resources"]
    return {resource["uri"]: resource for resource in listed}


def read(client: Client, uri: Any, name: str | None = None) -> Any:
    headers: dict[str, str | None] = {"Mcp-Name": name or str(uri)} if client.modern else {}
    return client.request("resources/read", {"uri": uri}, headers)


class TestTools:
    def test_the_list_differs_by_the_pages_only(self, modern: Client) -> None:
        plain, with_pages = tools_of(modern), tools_of(modern, _meta=WITH_PAGES)
        pages = {tool["name"]: tool.pop("_meta") for tool in with_pages if "_meta" in tool}
        assert with_pages == plain
        assert pages == {
            tool: {"ui": {"resourceUri": app.uri}}
            for app in mcp_apps.FOR_MEMBERS
            for tool in app.tools
        }

    def test_a_client_with_a_handshake_sees_the_pages(
        self, handshake: Client, modern: Client
    ) -> None:
        assert tools_of(handshake) == tools_of(modern, _meta=WITH_PAGES)

    @pytest.mark.parametrize(
        "capabilities", [{}, {"extensions": {}}, {"extensions": []}, [], None, "ui", 5]
    )
    def test_other_capabilities_show_no_page(self, modern: Client, capabilities: Any) -> None:
        listed = tools_of(modern, _meta={**META, CAPABILITIES_KEY: capabilities})
        assert all("_meta" not in tool for tool in listed)

    def test_results_are_the_same_with_and_without_pages(self, modern: Client, api: Api) -> None:
        Salon.opened(api).book("2027-01-18T10:00")
        name, headers = "svc_list_bookings", {"Mcp-Name": "svc_list_bookings"}
        results = [
            rpc(modern.request("tools/call", {"name": name, "_meta": meta}, headers))["result"]
            for meta in (META, WITH_PAGES)
        ]
        assert results[0] == results[1]


class TestPages:
    def test_each_page_of_the_list_is_one_document_without_requests(self, client: Client) -> None:
        for app in mcp_apps.FOR_MEMBERS:
            listed = resources_of(client)[app.uri]
            (contents,) = rpc(read(client, app.uri))["result"]["contents"]
            for described in (listed, contents):
                assert described["mimeType"] == "text/html;profile=mcp-app"
                csp = described["_meta"]["ui"]["csp"]
                assert csp["connectDomains"] == csp["frameDomains"] == csp["baseUriDomains"] == []
                assert described["_meta"]["ui"]["prefersBorder"] is True
                assert "domain" not in described["_meta"]["ui"]
            html = contents["text"]
            assert "<!doctype html>" in html
            assert "innerHTML" not in html
            assert not any(word in html for word in (" src=", "href=", "@import", "url(", "fetch("))
            script = html.rpartition("<script>")[2]
            assert len(script.encode()) <= 20_000

    def test_pages_are_listed_with_their_tools(self, owner: Owner) -> None:
        leads_only = Client(owner.api("crm:read"), modern=False)
        assert [*resources_of(leads_only)] == [mcp_apps.REPORT.uri]
        assert error(read(leads_only, mcp_apps.DAY.uri)) == (200, -32602)
        assert error(read(leads_only, BOOKINGS)) == (200, -32602)

    def test_there_are_no_templates(self, client: Client) -> None:
        result = rpc(client.request("resources/templates/list"))["result"]
        assert result["resourceTemplates"] == []

    @pytest.mark.parametrize("uri", ["ui://workspace-automation/none", "", "file:///etc/passwd"])
    def test_an_unknown_resource_is_refused(self, client: Client, uri: str) -> None:
        refused = read(client, uri)
        assert error(refused) == (400 if client.modern else 200, -32602)
        assert rpc(refused)["error"]["data"]["uri"] == uri

    @pytest.mark.parametrize("uri", [None, 5, ["x"], {}])
    def test_an_address_that_is_no_text_is_refused(self, client: Client, uri: Any) -> None:
        assert error(read(client, uri, "x")) == (400 if client.modern else 200, -32602)

    def test_the_header_must_name_the_resource(self, modern: Client) -> None:
        assert error(read(modern, mcp_apps.DAY.uri, mcp_apps.REPORT.uri)) == (400, -32020)

    def test_lists_and_pages_may_be_kept(self, modern: Client) -> None:
        for answer in (modern.request("resources/list"), read(modern, mcp_apps.DAY.uri)):
            result = rpc(answer)["result"]
            assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
            assert result["ttlMs"] > 0


class TestReport:
    def test_a_report_is_stale_at_once(self, modern: Client) -> None:
        result = rpc(read(modern, BOOKINGS))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")

    def test_a_resource_is_the_report_of_a_period(self, client: Client, api: Api) -> None:
        salon = Salon.opened(api)
        salon.book("2027-01-18T10:00")
        uri = f"{BOOKINGS}?from=2027-01-01&to=2027-01-31"
        (contents,) = rpc(read(client, uri))["result"]["contents"]
        assert (contents["uri"], contents["mimeType"]) == (uri, "application/json")
        report = json.loads(contents["text"])
        by_api = api.get("/api/reports?from=2027-01-01&to=2027-01-31")
        assert {**report, "asOf": ""} == {**by_api, "asOf": ""}
        assert report["totals"]["bookings"] == 1

    def test_a_wrong_period_is_refused(self, client: Client) -> None:
        refused = read(client, f"{BOOKINGS}?from=soon")
        assert error(refused) == (400 if client.modern else 200, -32602)

    def test_another_workspace_is_not_in_it(self, client: Client, new_owner: Any) -> None:
        Salon.opened(new_owner().api()).book("2027-01-18T10:00")
        (contents,) = rpc(read(client, f"{BOOKINGS}?from=2027-01-01&to=2027-01-31"))["result"][
            "contents"
        ]
        assert json.loads(contents["text"])["totals"]["bookings"] == 0


def test_a_page_has_the_currency_of_the_workspace(new_owner: Any) -> None:
    owner = new_owner()
    call_console(owner.workspace.id, "set_workspace", currency="KWD")
    page = rpc(read(Client(owner.api(), modern=False), mcp_apps.DAY.uri))["result"]["contents"][0]
    config = json.loads(page["text"].partition('id="config">')[2].partition("</script>")[0])
    assert (config["currency"], config["digits"]) == ("KWD", 3)
    assert config["texts"]["en"].keys() == config["texts"]["ru"].keys()
