"""The official Python SDK's OAuth client, which connects to the tool server and calls a tool."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.support.patience import PATIENCE


@dataclass
class Storage:
    """Data of a connection that an application keeps between two runs."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registered client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registered client."""
        self.client = client_info


@dataclass
class SdkApp:
    """An application that uses the SDK. ``authorize`` opens a URL as a browser would.

    It returns the URL to which the browser is redirected in the end. ``asked`` counts its calls.
    """

    url: str
    redirect_uri: str
    authorize: Callable[[str], str]
    name: str = "SDK application"
    scope: str | None = None
    storage: Storage = field(default_factory=Storage)
    asked: int = 0

    def call_tool(self, tool: str, /, **arguments: Any) -> Any:
        """Connect, ask for consent if that is needed, and return the result of a tool.

        The client runs in a thread of its own. ``authorize`` runs in the caller's thread, as
        Playwright requires.
        """
        opened: SimpleQueue[str | None] = SimpleQueue()
        closed: SimpleQueue[str] = SimpleQueue()
        result: Future[Any] = Future()

        async def open_browser(url: str) -> None:
            opened.put(url)

        async def wait_for_redirect() -> AuthorizationCodeResult:
            target = await asyncio.to_thread(closed.get, timeout=PATIENCE)
            query = {name: value for name, (value,) in parse_qs(urlsplit(target).query).items()}
            return AuthorizationCodeResult(
                code=query["code"], state=query.get("state"), iss=query.get("iss")
            )

        async def session() -> Any:
            auth = OAuthClientProvider(
                self.url,
                OAuthClientMetadata(
                    client_name=self.name,
                    redirect_uris=[AnyUrl(self.redirect_uri)],
                    scope=self.scope,
                ),
                self.storage,
                open_browser,
                wait_for_redirect,
            )
            async with (
                asyncio.timeout(PATIENCE),
                httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http,
                Client(streamable_http_client(self.url, http_client=http)) as client,
            ):
                return await client.call_tool(tool, arguments)

        def run() -> None:
            try:
                result.set_result(asyncio.run(session()))
            except BaseException as error:
                result.set_exception(error)
            opened.put(None)

        thread = Thread(target=run)
        thread.start()
        try:
            while (url := opened.get(timeout=PATIENCE)) is not None:
                self.asked += 1
                closed.put(self.authorize(url))
        finally:
            thread.join()
        return result.result()
