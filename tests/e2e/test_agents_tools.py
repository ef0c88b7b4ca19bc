"""Programs of others, over HTTPS: Shopify's client of UCP, and Vercel's checker for agents.

The checker audits a page for what agents look for. What it misses is named here with the reason.
"""

import json
import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme

import app as application
from chalicelib.transports.scheduled_functions import run_jobs
from infra.local import devserver
from tests.conftest import Owner, call_console
from tests.domains.sites.test_site_domains import bind
from tests.e2e.conftest import ROOT
from tests.factories.salon import Salon
from tests.support.patience import PATIENCE
from tests.transports.conftest import serving

HOSTS = ROOT / "build" / "hosts-js"
PROGRAMS = HOSTS / "node_modules" / ".bin"
SITE, SERVICE = "shop.localhost", "service.localhost"

pytestmark = pytest.mark.skipif(not PROGRAMS.exists(), reason="the programs are installed with npm")


def relay(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def serve_tls(listener: socket.socket, tls: ssl.SSLContext, port: int) -> None:
    """Pass decrypted connections on to a port."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        Thread(target=_serve, args=(connection, tls, port), daemon=True).start()


def _serve(connection: socket.socket, tls: ssl.SSLContext, port: int) -> None:
    with (
        suppress(OSError),
        tls.wrap_socket(connection, server_side=True) as encrypted,
        socket.create_connection(("127.0.0.1", port)) as plain,
    ):
        answers = Thread(target=relay, args=(plain, encrypted))
        answers.start()
        relay(encrypted, plain)
        answers.join()


@pytest.fixture
def environment(
    database: None,
    reload_settings: Callable[[], None],
    new_owner: Callable[..., Owner],
    tmp_path: Path,
) -> Iterator[dict[str, str]]:
    """The environment of a Node.js program that reaches a site with two products over HTTPS."""
    # A site has the scheme and the port of the service.
    os.environ |= {"SITE_HOSTS": "local", "PUBLIC_URL": f"https://{SERVICE}"}
    reload_settings()
    owner = new_owner(name="Bakery")
    api, workspace = owner.api(), owner.workspace.id
    site = api.post("/api/projects/create", {"title": "Bakery", "showsProducts": True})["project"][
        "id"
    ]
    page = api.post("/api/pages/create", {"projectId": site, "title": "Home", "isHome": True})
    api.post("/api/pages/save-html", {"id": page["page"]["id"], "html": "<h1>Bread</h1>"})
    for name, price in (("Rye bread", 35_000), ("Wheat bread", 12_050)):
        api.post("/api/products/create", {"name": name, "price": price})
    call_console(workspace, "set_workspace", address="5 Lesnaya Street, Moscow")
    about = "We knead, shape and bake country bread. You take the starter and the recipe home."
    salon = Salon.opened(api, name="Bread class", price=390_000, description=about)
    call_console(workspace, "set_booking_page", isOn=True, isIndexed=True, offer=[salon.service])
    call_console(workspace, "admit_assistants", isOn=True)
    bind(api, site, SITE)
    run_jobs()
    authority = trustme.CA()
    certificates = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(certificates)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(SITE, SERVICE).configure_cert(tls)
    listener = socket.create_server(("127.0.0.1", 0))
    with serving(application.app, *devserver.ROUTES) as server, listener:
        Thread(target=serve_tls, args=(listener, tls, server.port), daemon=True).start()
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "NODE_EXTRA_CA_CERTS": str(certificates),
            "NODE_OPTIONS": f"--require {HOSTS / 'at-port.cjs'}",
            "HOSTS_PORT": str(listener.getsockname()[1]),
        }

        yield environment


def run(environment: dict[str, str], program: str, *arguments: str) -> Any:
    """Run a program, and return the JSON that it prints."""
    done = subprocess.run(
        [str(PROGRAMS / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def ask(environment: dict[str, str], *arguments: str) -> Any:
    """Run the client, and return what it prints."""
    own = ("--business", f"https://{SITE}", "--format", "json")
    return run(environment, "ucp", *arguments, *own)


def test_the_client_finds_the_products_and_their_prices(environment: dict[str, str]) -> None:
    found = ask(environment, "discover")["result"]
    assert found["expectedCapabilities"] == [
        "dev.ucp.shopping.catalog.lookup",
        "dev.ucp.shopping.catalog.search",
    ]
    assert found["negotiated"]["dev.ucp.shopping"]["endpoint"] == f"https://{SITE}/mcp"
    searched = ask(environment, "catalog", "search", "--set", "/query=rye")
    assert searched["ucp"]["version"] == found["protocol"]["version"]
    (product,) = searched["result"]["products"]
    assert product["title"] == "Rye bread"
    assert product["variants"][0]["price"] == {"amount": 35_000, "currency": "RUB"}
    (again,) = ask(environment, "catalog", "lookup", "--set", f"/ids/0={product['id']}")["result"][
        "products"
    ]
    assert again["title"] == product["title"]


MARKDOWN = {
    "sitemap.md",
    "Agent UA → markdown",
    "Accept header → markdown",
    ".md URL → markdown",
    "Markdown link alternate",
    "Missing page → markdown",
}
"""Pages are HTML for all readers. What agents need is in llms.txt, JSON-LD and the tools."""
OPEN = {
    f"{SERVICE}/book/bakery": {
        *MARKDOWN,
        "sitemap.xml",  # The host's sitemap is of the blog, and has no post here.
        # Three headings and 200 characters are expected. A page with one service has fewer.
        *("Heading structure", "Server-rendered content"),
    },
    f"{SITE}/products": {
        *MARKDOWN,
        "Structured data",  # It is on the page of each product.
        "Heading structure",  # As above: the list has one.
        "Server-rendered content",  # 200 characters are expected. Two products have fewer.
        "Meta description",  # The list has no words of its own.
    },
}


@pytest.mark.parametrize("place", OPEN)
def test_a_checker_finds_nothing_but_what_has_a_reason(
    place: str, environment: dict[str, str]
) -> None:
    audit = run(environment, "agent-readability", "audit", f"https://{place}", "--json")
    checks = [check for part in audit["categories"].values() for check in part["checks"]]
    assert len(checks) > 15
    found = {check["name"] for check in checks if not (check["passed"] or check["skipped"])}
    assert found == OPEN[place]
