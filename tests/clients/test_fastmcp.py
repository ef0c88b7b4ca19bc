"""What fastmcp shows of refusals, and how it signs in. It has version 2 of the Python SDK."""

import asyncio
import html
import json
import os
import re
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest
from fastmcp import Client
from fastmcp.client.auth import OAuth
from fastmcp.client.transports import StreamableHttpTransport
from key_value.aio.stores.memory import MemoryStore
from mcp import MCPError

from tests.clients.client import Server
from tests.support.patience import PATIENCE

REFUSED = -32000
EVIL = {"Origin": "https://evil.example"}


async def connect_and_call(
    transport: StreamableHttpTransport, tool: str, arguments: dict[str, Any], auth: Any = None
) -> Any:
    async with Client(transport, auth=auth) as client:
        return await client.call_tool(tool, arguments)


def refusal(url: str, headers: dict[str, str], tool: str = "", **arguments: Any) -> MCPError:
    """Return the error that an application sees."""
    transport = StreamableHttpTransport(url, headers=headers)
    with pytest.raises(MCPError) as refused:
        asyncio.run(connect_and_call(transport, tool, arguments))
    return refused.value


def check(error: MCPError, code: str, words: str) -> None:
    reason = error.error.data
    assert (error.error.code, reason["code"]) == (REFUSED, code)
    assert reason["requestId"]
    assert words in error.error.message
    assert words in str(error)


@pytest.fixture
def page(server: Server) -> str:
    """The URL of the tools of the demo's booking page."""
    url = server.url.replace("/api/mcp", "/api/workspaces/list")
    answer = httpx.get(url, headers=server.headers, timeout=PATIENCE).raise_for_status()
    (workspace,) = answer.json()["data"]["workspaces"]
    return server.url.replace("/api/", f"/book/{workspace['slug']}/")


class TestRefusals:
    def test_a_wrong_key(self, server: Server) -> None:
        error = refusal(server.url, {"Authorization": "Bearer svc_live_wrong"})
        check(error, "unauthorized", "key")

    def test_a_page_of_another_origin(self, server: Server, page: str) -> None:
        check(refusal(server.url, {**server.headers, **EVIL}), "forbidden", "ALLOWED_ORIGINS")
        check(refusal(page, EVIL), "forbidden", "ALLOWED_ORIGINS")

    def test_a_booking_page_that_does_not_exist(self, page: str) -> None:
        check(refusal(page.replace("/mcp", "-none/mcp"), {}), "not_found", "does not exist")

    @pytest.mark.parametrize("size", [40_000, 100_000])
    def test_a_call_of_a_visitor_that_is_too_large(self, page: str, size: int) -> None:
        """The error of a body above 64 KB has no id."""
        error = refusal(page, {}, "list_services", query="x" * size)
        check(error, "payload_too_large", "32,768")

    def test_a_call_that_is_too_large(self, server: Server) -> None:
        arguments = {"id": "none", "html": "x" * 5_000_000}
        error = refusal(server.url, server.headers, "svc_save_page_html", **arguments)
        check(error, "payload_too_large", "5,000,000")


class LoopbackTransport(httpx.HTTPTransport):
    """Lets cookies be sent back that are secure, as browsers do on this machine."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        fields = response.headers.multi_items()
        response.headers = httpx.Headers([(k, v.replace("; Secure", "")) for k, v in fields])
        return response


class Browser:
    """The browser of the demo's owner, who allows some scopes."""

    def __init__(self, allows: Sequence[str]) -> None:
        self.allows = allows
        self.asked: list[list[str]] = []
        # The application listens for the redirect only after it has opened the browser.
        transport = LoopbackTransport(retries=5)
        self.http = httpx.Client(timeout=PATIENCE, follow_redirects=True, transport=transport)
        self.demo = json.loads((Path(os.environ["DATA_DIR"]) / "demo.json").read_text())

    def open(self, url: str) -> bool:
        """Open a URL as ``webbrowser.open`` does, which does not wait for the user."""
        Thread(target=self.allow, args=[url]).start()
        return True

    def allow(self, url: str) -> None:
        """Sign in, allow the scopes and follow the redirect to the application."""
        self.asked.append(parse_qs(urlsplit(url).query)["scope"][0].split())
        page = self.http.get(url)
        if 'action="/console/sign-in"' in page.text:
            page = self.send(page, {"email": self.demo["email"], "password": self.demo["password"]})
        scopes = [scope for scope in self.asked[-1] if scope in self.allows]
        confirmed = {
            "decision": "allow",
            "scopes": scopes,
            "currentPassword": self.demo["password"],
        }
        page = self.send(page, {"workspace": self.demo["workspaceSlug"], **confirmed})
        assert page.url.path == "/callback", page.text

    def send(self, page: httpx.Response, fields: dict[str, Any]) -> httpx.Response:
        """Send the last form of a page."""
        *_, (attributes, form) = re.findall(r"<form(.*?)>(.*?)</form>", page.text, re.DOTALL)
        (action, *_) = [*re.findall(r'action="([^"]*)"', attributes), str(page.url)]
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
        hidden.pop("review", None)  # It is for browsers without script.
        values = {name: html.unescape(value) for name, value in hidden.items()}
        return self.http.post(page.url.join(action), data={**values, **fields})


class TestOAuth:
    @pytest.fixture
    def browser(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
        browser = Browser(["products:read"])
        monkeypatch.setattr(webbrowser, "open", browser.open)
        yield browser
        browser.http.close()

    def call(self, server: Server, store: MemoryStore, tool: str, **arguments: Any) -> Any:
        auth = OAuth(client_name="Application", token_storage=store, callback_timeout=30)
        transport = StreamableHttpTransport(server.url)
        return asyncio.run(connect_and_call(transport, tool, arguments, auth))

    def test_it_signs_in_and_asks_for_the_scope_that_a_call_needs(
        self, server: Server, browser: Browser
    ) -> None:
        store = MemoryStore()
        listed = self.call(server, store, "svc_list_products", size=1)
        assert json.loads(listed.content[0].text)["data"]["status"] is True
        assert len(browser.asked) == 1
        browser.allows = ["products:read", "products:write"]
        product = {"name": f"Loaf {uuid4().hex}", "price": 100}
        created = self.call(server, store, "svc_create_product", **product)
        assert json.loads(created.content[0].text)["data"]["product"]["price"] == 100
        assert browser.asked[1:] == [["products:read", "products:write"]]
