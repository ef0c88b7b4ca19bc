"""The way of the official Python SDK from the tool server's refusal to a call, over real HTTP."""

import os
from collections.abc import Callable, Container
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp import MCPError

from chalicelib.domains.identity.store import connections
from tests.factories.console import Person, World
from tests.factories.oauth_http import allow
from tests.factories.oauth_sdk import SdkApp
from tests.transports.conftest import LocalServer

REDIRECT_URI = "http://127.0.0.1:33418/callback"


@pytest.fixture(params=["127.0.0.1", "localhost"])
def server_url(
    request: pytest.FixtureRequest, local_server: LocalServer, reload_settings: Callable[[], None]
) -> str:
    """The tool server's URL, with each name of this machine. ``PUBLIC_URL`` has the first."""
    os.environ["PUBLIC_URL"] = f"http://127.0.0.1:{local_server.port}"
    reload_settings()
    return f"http://{request.param}:{local_server.port}/api/mcp"


def browser(
    person: Person, world: World, *, allows: Container[str] = ("products:read", "projects:read")
) -> Callable[[str], str]:
    """Return a function that gives consent to some of the scopes of an authorization request."""

    def authorize(url: str) -> str:
        path = urlsplit(url)._replace(scheme="", netloc="").geturl()
        host = urlsplit(url).netloc
        if not person.token:
            person.get(path)
            path = person.start_session(next=path).headers["Location"]
        assert person.get(path, host=host).status == 200
        requested = parse_qs(urlsplit(url).query)["scope"][0].split()
        scopes = [scope for scope in requested if scope in allows]
        answer = allow(person, path, world.here.slug, *scopes, host=host)
        return answer.headers["Location"]

    return authorize


def test_the_sdk_connects_and_calls_tools_within_the_granted_scopes(
    server_url: str, world: World
) -> None:
    visitor = Person("boss@example.com")
    app = SdkApp(server_url, REDIRECT_URI, browser(visitor, world))
    assert not app.call_tool("svc_list_products").is_error
    assert app.storage.tokens
    assert app.storage.tokens.scope == "projects:read products:read"
    assert app.storage.client
    assert app.storage.client.client_id
    assert app.storage.client.client_id.startswith("dcr_")
    assert app.asked == 1
    tokens_before = app.storage.tokens
    app.storage.tokens = tokens_before.model_copy(update={"access_token": "wsat_x"})
    assert not app.call_tool("svc_list_sites").is_error


def test_the_sdk_asks_for_the_scope_that_a_call_needs(server_url: str, world: World) -> None:
    allows = ["projects:read"]
    app = SdkApp(
        server_url, REDIRECT_URI, browser(Person("boss@example.com"), world, allows=allows)
    )
    assert not app.call_tool("svc_list_sites").is_error
    with pytest.raises(Exception) as refused:  # noqa: PT011  the cause is looked at below
        app.call_tool("svc_create_site", title="Bakery")
    cause = refused.value
    while isinstance(cause, BaseExceptionGroup):
        (cause,) = cause.exceptions
    assert isinstance(cause, MCPError)
    assert cause.error.data["code"] == "insufficient_scope", "the person has not allowed it"
    assert app.asked == 2
    allows.append("projects:write")
    assert not app.call_tool("svc_create_site", title="Bakery").is_error
    assert app.asked == 3
    assert app.storage.tokens
    assert app.storage.tokens.scope == "projects:read projects:write"


def test_the_sdk_asks_again_after_the_person_disconnected_it(server_url: str, world: World) -> None:
    console_owner = world.person("boss")
    app = SdkApp(server_url, REDIRECT_URI, browser(console_owner, world))
    app.call_tool("svc_list_products")
    *_, connection = connections.live(world.here.workspace_id)
    console_owner.post(f"{world.here.path}/apps/{connection.id}/disconnect")
    assert not app.call_tool("svc_list_products").is_error
    assert app.asked == 2
