"""The tool server with the official Python SDK's client, over real HTTP, in each mode."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date, timedelta
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from chalicelib import VERSION
from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.transports.assistants import TOOLS
from chalicelib.transports.json_rpc import REFUSED
from tests.conftest import Owner, call_console, call_operator
from tests.factories.examples import submit
from tests.support.patience import PATIENCE
from tests.transports.conftest import LocalServer

MODES = {
    "automatic": ("auto", "2026-07-28"),
    "handshake": ("legacy", "2025-11-25"),
    "stateless": ("2026-07-28", "2026-07-28"),
}
"""The client's ``mode``, and the protocol version that it then uses."""
NEGOTIATED = ["automatic", "handshake"]
"""The modes that send a request on connecting."""


T = TypeVar("T")
Hooks = dict[str, list[Any]]

every_mode = pytest.mark.parametrize("mode", MODES)


def next_weekday(number: int) -> date:
    """Return a weekday of next week, Monday as 0."""
    today = clock.now().date()
    return today + timedelta(days=7 - today.weekday() + number)


class Sdk:
    """The SDK's client, connected to the local server."""

    def __init__(self, server: LocalServer, mode: str) -> None:
        self.url = f"http://127.0.0.1:{server.port}/api/mcp"
        self.mode = MODES[mode][0]

    @asynccontextmanager
    async def _connected(
        self, token: str | None, query: str, headers: dict[str, str], hooks: Hooks
    ) -> AsyncIterator[Client]:
        if token is not None:
            headers = {"Authorization": f"Bearer {token}", **headers}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, event_hooks=hooks) as http:
            transport = streamable_http_client(self.url + query, http_client=http)
            async with Client(transport, mode=self.mode) as client:
                yield client

    def run(
        self,
        token: str | None,
        use: Callable[[Client], Awaitable[T]],
        query: str = "",
        on_response: Callable[[httpx2.Response], Awaitable[None]] | None = None,
        **headers: str,
    ) -> T:
        """Connect with a key, use the connection and close it, within the time limit."""
        hooks: Hooks = {"response": [on_response] if on_response else []}

        async def session() -> T:
            async with (
                asyncio.timeout(PATIENCE),
                self._connected(token, query, headers, hooks) as client,
            ):
                return await use(client)

        return asyncio.run(session())


@pytest.fixture
def sdk(mode: str, local_server: LocalServer) -> Sdk:
    return Sdk(local_server, mode)


def text(result: CallToolResult) -> dict[str, Any]:
    """Return the only text of a result."""
    (content,) = result.content
    assert content.type == "text"
    data: dict[str, Any] = json.loads(content.text)
    return data


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


def admitted(*scopes: str) -> list[str]:
    """Return the tools that a key of an ADMIN account with these scopes may call."""
    return [
        o.tool
        for o in REGISTRY.select(Audience.KEY)
        if o.tool
        if o.scope is None or not scopes or o.scope in scopes
    ]


def first_cause(group: BaseException) -> BaseException:
    """Return the innermost failure of nested exception groups."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


@every_mode
class TestWithAKey:
    def test_the_client_connects(self, mode: str, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> tuple[str, Any, str | None, Any]:
            await client.list_tools()
            return (
                client.protocol_version,
                client.server_info,
                client.instructions,
                client.server_capabilities,
            )

        version, info, instructions, capabilities = sdk.run(owner.token(), use)
        assert version == MODES[mode][1]
        if mode in NEGOTIATED:
            assert (info.name, info.version) == ("workspace-automation", VERSION)
            assert "kopecks" in (instructions or "")
            assert capabilities.tools is not None
            assert capabilities.resources is not None
            assert capabilities.prompts is not None

    def test_all_tools_of_the_key_are_listed(self, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> Any:
            return await client.list_tools()

        listing = sdk.run(owner.token(), use)
        assert [tool.name for tool in listing.tools] == admitted()
        assert listing.next_cursor is None
        for tool in listing.tools:
            assert tool.description
            assert tool.title
            assert tool.input_schema["type"] == "object"
            assert tool.annotations is not None
            assert None not in {
                tool.annotations.read_only_hint,
                tool.annotations.destructive_hint,
                tool.annotations.idempotent_hint,
                tool.annotations.open_world_hint,
            }

    def test_a_key_with_few_scopes_lists_few_tools(self, sdk: Sdk, owner: Owner) -> None:
        assert sdk.run(owner.token(["pages:read"]), names) == admitted("pages:read")

    @pytest.mark.parametrize("by", ["header", "query"])
    def test_the_list_can_be_filtered(self, by: str, sdk: Sdk, owner: Owner) -> None:
        token = owner.token()
        if by == "header":
            headers = {"X-MCP-Toolsets": "pages", "X-MCP-Readonly": "true"}
            tool_names = sdk.run(token, names, **headers)
        else:
            tool_names = sdk.run(token, names, query="?toolsets=pages&readonly=true")
        reads = {o.tool for o in REGISTRY.select(Audience.KEY) if o.tool and o.read_only}
        assert tool_names == [name for name in admitted("pages:read") if name in reads]

    def test_records_are_written_and_read(self, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> tuple[CallToolResult, CallToolResult]:
            created = await client.call_tool("svc_create_site", {"title": "Пекарня 🥐"})
            return created, await client.call_tool("svc_list_sites", {"search": "пек"})

        created, found_site = sdk.run(owner.token(), use)
        assert (created.is_error, found_site.is_error) == (False, False)
        site = text(created)["data"]["project"]
        assert site["title"] == "Пекарня 🥐"
        assert [one["id"] for one in text(found_site)["data"]["projects"]] == [site["id"]]
        rest_projects = owner.api().get("/api/projects/list")["projects"]
        assert [one["id"] for one in rest_projects] == [site["id"]]

    def test_concurrent_calls_each_get_their_own_answer(self, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> list[CallToolResult]:
            calls = (client.call_tool("svc_create_site", {"title": f"Site {n}"}) for n in range(12))
            return list(await asyncio.gather(*calls))

        created_sites = sdk.run(owner.token(), use)
        assert [text(one)["data"]["project"]["title"] for one in created_sites] == [
            f"Site {n}" for n in range(12)
        ]

    def test_large_texts_are_returned_whole(self, sdk: Sdk, owner: Owner) -> None:
        html = "<p>" + "Ж" * 200_000 + "</p>"

        async def use(client: Client) -> tuple[CallToolResult, CallToolResult]:
            site = text(await client.call_tool("svc_create_site", {"title": "Big"}))["data"]
            created = await client.call_tool(
                "svc_create_page", {"projectId": site["project"]["id"], "title": "Big"}
            )
            page = {"id": text(created)["data"]["page"]["id"]}
            saved = await client.call_tool("svc_save_page_html", {**page, "html": html})
            return saved, await client.call_tool("svc_get_page", page)

        saved, got = sdk.run(owner.token(), use)
        assert saved.is_error is False, text(saved)
        assert html in text(got)["data"]["page"].values()

    def test_a_large_page_is_edited_with_few_bytes(self, sdk: Sdk, owner: Owner) -> None:
        """Neither the 550 KB that do not change nor the resulting page are sent."""
        line = "<p>Хлеб ржаной, 900 г: 240 ₽</p>\n"
        html = "<h1>Bread</h1>\n" + line * (550_000 // len(line.encode()))
        bodies: list[tuple[int, int]] = []

        async def weigh(response: httpx2.Response) -> None:
            if b"svc_save_page_html" in response.request.content:
                bodies.append((len(response.request.content), len(await response.aread())))

        async def use(client: Client) -> tuple[CallToolResult, CallToolResult]:
            page = {"id": new_page["id"], "ifVersion": new_page["version"]}
            edits = [
                {"find": "<h1>Bread</h1>", "replace": "<h1>Хлеб</h1>"},
                {"find": "240 ₽", "replace": "250 ₽", "all": True},
            ]
            arguments = {**page, "edits": edits, "returnHtml": False}
            saved = await client.call_tool("svc_save_page_html", arguments)
            return saved, await client.call_tool("svc_save_page_html", arguments)

        api = owner.api()
        site = api.post("/api/projects/create", {"title": "Big"})["project"]["id"]
        new_page = api.post("/api/pages/create", {"projectId": site, "title": "Big"})["page"]
        new_page = api.post("/api/pages/save-html", {"id": new_page["id"], "html": html})["page"]
        assert new_page["htmlBytes"] > 549_000
        saved, repeated = sdk.run(owner.token(), use, on_response=weigh)
        assert saved.is_error is False, text(saved)
        assert "html" not in text(saved)["data"]["page"]
        assert text(repeated)["data"]["code"] == "version_conflict"
        edited = html.replace("Bread", "Хлеб").replace("240 ₽", "250 ₽")
        assert api.get(f"/api/pages/{new_page['id']}")["page"]["html"] == edited
        (sent_bytes, received), _ = bodies
        assert (sent_bytes < 500, received < 900) == (True, True), (sent_bytes, received)

    def test_a_lead_goes_from_a_form_to_a_status(self, sdk: Sdk, owner: Owner) -> None:
        """The sequence of calls from the README."""

        async def use(client: Client) -> None:
            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert result.is_error is False, text(result)
                return text(result)["data"]

            fields = [{"name": "name", "required": True}, {"name": "phone", "type": "phone"}]
            form = (await call("svc_create_form", title="Order", fields=fields))["form"]
            assert form["id"] in form["submitUrl"]
            lead = await asyncio.to_thread(submit, form["id"], name="Ada", phone="8(495)1234567")
            listing = await call("svc_list_leads", status="new")
            assert [lead["id"] for lead in listing["collections"]] == [lead]
            found_leads = await call("svc_find_lead", phone="+7 495 123 45 67")
            assert [lead["id"] for lead in found_leads["leads"]] == [lead]
            assert found_leads["client"]["leadsCount"] == 1
            await call("svc_set_lead_status", id=lead, status="completed")
            stats = await call("svc_crm_stats")
            assert (stats["byStatus"]["completed"], stats["conversion"]) == (1, 1.0)

        sdk.run(owner.token(), use)

    def test_a_booking_is_created_moved_and_cancelled(self, sdk: Sdk, owner: Owner) -> None:
        """The sequence of calls from the README: book on Friday, then move to Saturday."""
        friday = next_weekday(4)
        saturday = friday + timedelta(days=1)

        async def use(client: Client) -> None:
            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert result.is_error is False, text(result)
                return text(result)["data"]

            async def slots(**arguments: Any) -> Any:
                slots = await call("svc_get_available_slots", serviceId=service, **arguments)
                return [slot["startLocal"] for slot in slots["slots"]]

            created = await call(
                "svc_create_service", name="Haircut", durationMin=60, price=150_000
            )
            service = created["service"]["id"]
            created = await call("svc_create_resource", name="Anna", timezone="Europe/Moscow")
            master = created["resource"]["id"]
            await call("svc_update_service", id=service, resourceIds=[master])
            rules = [{"weekdays": ["fri", "sat"], "start": "10:00", "end": "18:00"}]
            await call("svc_set_availability", resourceId=master, rules=rules)
            after_two = {"from": f"{friday}T14:00", "to": f"{friday}"}
            offered_slots = await slots(resourceId=master, **after_two)
            assert offered_slots[0] == f"{friday}T14:00:00+03:00"
            who = {"name": "Ada", "phone": "8 916 123-45-67"}
            booked = await call(
                "svc_create_booking", serviceId=service, startAt=offered_slots[0], client=who
            )
            booking = booked["booking"]["id"]
            assert offered_slots[0] not in await slots(resourceId=master, **after_two)
            later = await slots(bookingId=booking, **{"from": f"{saturday}", "to": f"{saturday}"})
            moved_booking = await call(
                "svc_set_booking_status", id=booking, status="confirmed", startAt=later[-1]
            )
            assert moved_booking["booking"]["startLocal"] == f"{saturday}T17:00:00+03:00"
            await call("svc_set_booking_status", id=booking, status="cancelled", reason="Ill")
            listing = await call("svc_list_bookings", q="8916", status="cancelled")
            assert [booking["id"] for booking in listing["bookings"]] == [booking]

        sdk.run(owner.token(), use)

    @pytest.mark.parametrize(
        ("tool", "arguments", "status", "code"),
        [
            ("svc_list_sites", {"size": 0}, 400, "validation_error"),
            ("svc_create_site", {}, 400, "validation_error"),
            ("svc_get_page", {"id": "nope"}, 404, "not_found"),
        ],
    )
    def test_a_failing_call_explains_the_reason(
        self,
        sdk: Sdk,
        owner: Owner,
        tool: str,
        arguments: dict[str, Any],
        status: int,
        code: str,
    ) -> None:
        async def use(client: Client) -> CallToolResult:
            return await client.call_tool(tool, arguments)

        result = sdk.run(owner.token(), use)
        failure = text(result)
        assert (result.is_error, failure["httpStatus"]) == (True, status)
        assert (failure["data"]["status"], failure["data"]["code"]) == (False, code)
        assert failure["data"]["message"]

    def test_a_call_beyond_the_scopes_names_the_scope(self, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> CallToolResult:
            return await client.call_tool("svc_list_sites", {})

        result = sdk.run(owner.token(["pages:read"]), use)
        failure = text(result)
        assert (result.is_error, failure["httpStatus"]) == (True, 403)
        assert failure["data"]["code"] == "insufficient_scope"
        assert "projects:read" in failure["data"]["message"]

    def test_an_unknown_tool_is_a_protocol_error(self, sdk: Sdk, owner: Owner) -> None:
        async def use(client: Client) -> MCPError:
            with pytest.raises(MCPError, match="svc_nope") as failure:
                await client.call_tool("svc_nope", {})
            assert await names(client), "the connection goes on"
            return failure.value

        assert sdk.run(owner.token(), use).code == -32602


@pytest.mark.parametrize("mode", NEGOTIATED)
def test_the_instructions_name_tools_that_the_key_hides(sdk: Sdk, owner: Owner) -> None:
    async def use(client: Client) -> str | None:
        return client.instructions

    instructions = sdk.run(owner.token(["pages:read", "pages:write"]), use) or ""
    assert "projects:write" in instructions
    assert "pages:read" not in instructions


@every_mode
class TestRefused:
    """A refusal is an error without any wait."""

    def assert_refused(self, sdk: Sdk, token: str | None, code: str = "unauthorized") -> None:
        with pytest.raises(Exception) as failure:  # noqa: PT011  the cause is looked at below
            sdk.run(token, names)
        cause = first_cause(failure.value)
        assert isinstance(cause, MCPError), cause
        assert cause.code == REFUSED, "the service's own error, beside which its data stands"
        assert cause.error.data["code"] == code
        assert cause.error.data["requestId"]
        assert "Server returned an error" not in cause.error.message

    @pytest.mark.parametrize("token", [None, "nope", "svc_live_" + "a" * 38])
    def test_a_client_without_a_valid_key_is_refused(
        self, sdk: Sdk, token: str | None, database: None
    ) -> None:
        self.assert_refused(sdk, token)

    def test_a_client_with_a_revoked_key_is_refused(self, sdk: Sdk, owner: Owner) -> None:
        key = call_operator(
            "create_key", workspaceId=owner.workspace.id, name="test", scopes=["*:read"]
        )
        token = key["token"]
        assert sdk.run(token, names)
        call_operator("revoke_key", id=key["keyId"])
        self.assert_refused(sdk, token)

    def test_a_client_below_business_is_refused(self, sdk: Sdk, owner: Owner) -> None:
        token = owner.token()
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
        self.assert_refused(sdk, token, "plan_required")

    def test_a_client_of_a_page_without_tools_is_refused(self, sdk: Sdk, owner: Owner) -> None:
        sdk.url = sdk.url.replace("/api/mcp", f"/book/{owner.workspace.slug}/mcp")
        self.assert_refused(sdk, None, "not_found")

    def test_a_client_that_calls_too_often_is_refused(
        self, sdk: Sdk, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise RateLimitedError("Too many calls.", headers={"Retry-After": "7"})

        call_console(owner.workspace.id, "set_booking_page", isOn=True)
        call_console(owner.workspace.id, "admit_assistants", isOn=True)
        monkeypatch.setattr("chalicelib.transports.mcp.authenticate_tool_call", refuse)
        monkeypatch.setattr("chalicelib.transports.assistants.visitor", refuse)
        self.assert_refused(sdk, owner.token(), "rate_limited")
        sdk.url = sdk.url.replace("/api/mcp", f"/book/{owner.workspace.slug}/mcp")
        self.assert_refused(sdk, None, "rate_limited")


@every_mode
def test_the_tools_of_a_booking_page_work_without_a_key(sdk: Sdk, owner: Owner) -> None:
    workspace = owner.workspace
    call_console(workspace.id, "set_booking_page", isOn=True)
    call_console(workspace.id, "admit_assistants", isOn=True)
    sdk.url = sdk.url.replace("/api/mcp", f"/book/{workspace.slug}/mcp")

    async def use(client: Client) -> tuple[list[str], CallToolResult, CallToolResult]:
        return (
            await names(client),
            await client.call_tool("get_business", {}),
            await client.call_tool("search_catalog", {"catalog": {"query": "bread"}}),
        )

    tool_names, business, catalog = sdk.run(None, use)
    assert tool_names == [tool.name for tool in TOOLS]
    assert business.structured_content == text(business)
    assert text(business)["name"] == workspace.name
    assert text(catalog)["ucp"]["version"] == "2026-08-25"


@every_mode
def test_an_assistant_finds_a_listed_business_and_calls_its_tools(sdk: Sdk, owner: Owner) -> None:
    workspace = owner.workspace
    call_console(workspace.id, "set_workspace", name="Barber Ivan")
    call_console(workspace.id, "set_booking_page", isOn=True)
    call_console(workspace.id, "admit_assistants", isOn=True, isListed=True)
    sdk.url = sdk.url.replace("/api/mcp", "/assistants/mcp")

    async def use(client: Client) -> tuple[list[str], CallToolResult, CallToolResult]:
        found = await client.call_tool("find_business", {"name": "ivan"})
        (business,) = text(found)["businesses"]
        arguments = {"business": business["business"], "catalog": {"query": "bread"}}
        return await names(client), found, await client.call_tool("search_catalog", arguments)

    tool_names, found, catalog = sdk.run(None, use)
    assert tool_names == ["find_business", *(tool.name for tool in TOOLS)]
    assert found.structured_content == text(found)
    assert text(catalog)["ucp"]["version"] == "2026-08-25"
