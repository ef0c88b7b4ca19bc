"""A stage without an edge has a path in its base URL, and a chat URL of its own."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports import widget
from chalicelib.transports.chat import chat_route, function_url
from chalicelib.transports.console.routes import BOT
from chalicelib.transports.http import HttpResponse
from tests.conftest import Answer, Api
from tests.factories.console import Person, World
from tests.factories.console_forms import sweep_of_pages

API_URL = "https://a1.execute-api.eu-central-1.amazonaws.com/dev"
CHAT_URL = "https://c1.lambda-url.eu-central-1.on.aws"
PATHS = re.compile(r'(?:href|src|action|formaction|data-chat)="(/[^"]*)')


@pytest.fixture(autouse=True)
def _no_edge(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[None]:
    monkeypatch.setenv("PUBLIC_URL", API_URL)
    monkeypatch.setenv("CHAT_URL", f"{CHAT_URL}/")
    reload_settings()
    widget._read.cache_clear()
    yield
    widget._read.cache_clear()


def get(path: str) -> Answer:
    return Api(None).call("GET", path, headers={"Accept": "text/html"})


def stray(answer: Answer) -> list[str]:
    """Return the paths of a page's attributes that are outside of the base URL."""
    paths = PATHS.findall(answer.body.decode())
    assert paths, (answer.status, answer.headers, answer.body)
    return [path for path in paths if not path.startswith("/dev/")]


@sweep_of_pages
def test_links_and_forms_of_the_console_stay_below_the_base_url(
    route: str, world: World, console_owner: Person
) -> None:
    answer = console_owner.get(world.here.path_of(route))
    if answer.status == 303:
        assert answer.headers["Location"].startswith("/dev/console")
    else:
        assert stray(answer) == []


@pytest.mark.parametrize("path", ["/", "/blog", "/api/docs", "/api/docs/agents"])
def test_links_of_pages_stay_below_the_base_url(database: None, path: str) -> None:
    assert stray(get(path)) == []


def test_redirects_stay_below_the_base_url(database: None) -> None:
    assert get("/console").headers["Location"] == "/dev/console/sign-in"


def test_the_page_of_a_bot_shows_how_to_call_its_chat(world: World) -> None:
    page = world.person("boss").get(world.here.path_of(f"{BOT}/chat")).body.decode()
    assert CHAT_URL + chat_route.PATH in page
    assert "data-chat" not in page


def test_the_widget_calls_the_url_of_the_chat() -> None:
    script = get("/widget.js").body.decode()
    assert f'fetch("{CHAT_URL}{chat_route.PATH}"' in script
    assert f"${{base}}{chat_route.PATH[1:]}" not in script


def test_the_openapi_document_names_both_servers() -> None:
    document = json.loads(get("/api/openapi.json").body)
    assert document["servers"] == [{"url": API_URL}]
    assert document["paths"][chat_route.PATH]["post"]["servers"] == [{"url": CHAT_URL}]


def test_the_reference_shows_the_url_of_the_chat(database: None) -> None:
    document = json.loads(get("/api/openapi.json").body)
    (section,) = document["paths"][chat_route.PATH]["post"]["tags"]
    page = get(f"/api/docs/{section}").body.decode()
    assert f"{CHAT_URL}{chat_route.PATH}" in page
    assert f"{API_URL}{chat_route.PATH}" not in page


@pytest.mark.parametrize("path", ["cake.png", "thumbnail/cake.png"])
def test_a_file_is_a_redirect_to_the_bucket(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def download_url(_: object, key: str, seconds: int) -> str:
        return f"https://bucket.example/{key}?expires={seconds}"

    monkeypatch.setattr(FolderStore, "download_url", download_url)
    answer = get(f"/files/{'a' * 48}/{path}")
    assert answer.status == 302
    key = f"files/{'a' * 48}/{path}"
    assert answer.headers["Location"] == f"https://bucket.example/{key}?expires=900"


@pytest.mark.parametrize("path", ["a/cake.png", f"{'a' * 48}/..%2F..%2Fstate", f"{'a' * 48}/.x"])
def test_no_other_object_is_public(path: str) -> None:
    answer = get(f"/files/{path}")
    assert (answer.status, answer.data["code"]) == (404, "not_found")


def test_the_chat_takes_the_address_of_whoever_connects() -> None:
    event = {
        "rawPath": chat_route.PATH,
        "headers": {"x-viewer-address": "203.0.113.9", "x-forwarded-for": "203.0.113.9"},
        "requestContext": {"requestId": "1", "http": {"method": "POST", "sourceIp": "203.0.113.7"}},
    }
    seen: list[str] = []

    def handler(request: object) -> HttpResponse:
        seen.append(request.client_ip)  # type: ignore[attr-defined]
        return HttpResponse(200, b"{}")

    assert function_url.respond(event, handler).status == 200
    assert seen == ["203.0.113.7"]
