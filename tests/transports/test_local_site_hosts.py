"""On the local server, the host of a site serves the pages of this site only."""

import os
from collections.abc import Callable, Iterator

import pytest

import app as application
from chalicelib import SERVICE
from chalicelib.transports.scheduled_functions import run_jobs
from infra.local import devserver
from tests.conftest import Api
from tests.domains.sites.test_site_domains import bind
from tests.factories.examples import Things
from tests.support.sweep import sweep
from tests.transports.conftest import Connection, serving


@pytest.fixture
def port(api: Api, things: Things, reload_settings: Callable[[], None]) -> Iterator[int]:
    """A local server with a site at shop.localhost."""
    os.environ["SITE_HOSTS"] = "local"
    reload_settings()
    html = {"id": things.home, "html": "<h1>Bread</h1>"}
    api.post("/api/pages/save-html", html)
    bind(api, things.site, "shop.localhost")
    run_jobs()
    with serving(application.app, *devserver.ROUTES) as server:
        yield server.port


def get(port: int, path: str, host: str) -> tuple[int, bytes]:
    with Connection(port) as connection:
        connection.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        reply = connection.reply()
        return reply.status, reply.body


@sweep("host", ["shop.localhost", "SHOP.localhost.", "shop.localhost:8000"])
def test_a_site_is_at_its_host(host: str, port: int) -> None:
    status, body = get(port, "/", host)
    assert status == 200
    assert b"<h1>Bread</h1>" in body


@sweep(
    "path",
    ["/console", "/api/projects/list", "/api/mcp", "/api/health", "/s/bakery/", "/blog", "/../api"],
)
def test_a_host_of_a_site_has_no_other_pages_of_the_service(path: str, port: int) -> None:
    status, body = get(port, path, "shop.localhost")
    assert status == 404
    assert b"<!doctype html>" in body.lower()


@sweep(("path", "status"), [("/widget.js", 200), ("/api/public/hit", 405)])
def test_a_host_of_a_site_has_what_pages_call(path: str, status: int, port: int) -> None:
    assert get(port, path, "shop.localhost")[0] == status


@sweep(
    "host",
    [
        *("127.0.0.1:8000", "localhost", "LOCALHOST.:8000", "[::1]:8000", "192.168.1.7:8000"),
        *("my-machine", "my-machine.lan", "MY-machine.lan.:8000", "app.example:443"),
    ],
)
def test_other_names_of_the_machine_lead_to_the_service(
    host: str, port: int, reload_settings: Callable[[], None]
) -> None:
    os.environ |= {"ALLOWED_HOSTS": "my-machine.lan Other.lan", "PUBLIC_URL": "https://app.example"}
    reload_settings()
    assert get(port, "/api/health", host)[0] == 200


@pytest.mark.parametrize("site_hosts", ["local", ""])
@sweep(
    "host",
    [
        *("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("my-machine.lan", "shop.localhost.evil.example", "xn--80ak6aa92e.com"),
    ],
)
@sweep("path", ["/", "/console", "/api/health", "/dev/mail", "/files/a/b"])
def test_a_name_of_others_that_leads_here_is_refused(
    path: str, host: str, site_hosts: str, port: int, reload_settings: Callable[[], None]
) -> None:
    """A page can let its own name lead to 127.0.0.1, and read what it is answered."""
    os.environ["SITE_HOSTS"] = site_hosts
    reload_settings()
    status, body = get(port, path, host)
    assert status == 421
    assert b"misdirected_request" in body
    assert b"ALLOWED_HOSTS" in body


def test_an_unbound_name_below_localhost_has_no_site(port: int) -> None:
    assert get(port, "/api/health", "other.localhost")[0] == 404


def test_the_service_and_a_site_have_an_llms_txt_each(port: int) -> None:
    (status, own), (site_status, of_site) = (
        get(port, "/llms.txt", host) for host in ("localhost", "shop.localhost")
    )
    assert (status, site_status) == (200, 200)
    assert own.startswith(f"# {SERVICE}\n".encode())
    assert SERVICE.encode() not in of_site
    assert b"http://shop.localhost" in of_site
