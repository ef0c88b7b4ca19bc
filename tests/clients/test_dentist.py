"""The example that builds a dentist's site with an API key alone."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from tests.clients.client import JAVASCRIPT
from tests.clients.conftest import Project
from tests.clients.owner import ROOT, Owner, admin, new_key
from tests.support.patience import PATIENCE

PROGRAMS = JAVASCRIPT / "node_modules" / ".bin"

pytestmark = pytest.mark.skipif(
    not PROGRAMS.exists(), reason="npm was not found, so no Node.js that runs TypeScript"
)


Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(project: Project) -> Run:
    """Run a program of npm's environment beside the example, and return its output."""
    folder = project("dentist")
    installed = shutil.ignore_patterns("node_modules")
    shutil.copytree(ROOT / "examples", folder, ignore=installed, dirs_exist_ok=True)

    def run(*words: str, **variables: str) -> str:
        return run_in(folder, *words, **variables)

    return run


def run_in(folder: Path, *words: str, **variables: str) -> str:
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )
    assert process.returncode == 0, f"{process.stdout[-5_000:]}\n{process.stderr[-5_000:]}"
    return process.stdout


@pytest.fixture(scope="module")
def owner() -> Owner:
    """An owner who has set up payments, as no key can."""
    owner = Owner()
    owner.set_up_payments()
    return owner


@pytest.fixture(scope="module")
def key(owner: Owner) -> str:
    """A key of the empty workspace."""
    return new_key(owner.workspace["workspaceId"])


@pytest.fixture(scope="module")
def unreliable() -> Iterator[str]:
    """The URL of a proxy that loses and refuses the first attempts of some writes.

    Of each six writes, the response of one is lost after the service has done the work, and one is
    refused before.
    """
    keys: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key = self.headers.get("Idempotency-Key")
            number = 0
            if key and key not in keys:
                keys.append(key)
                number = len(keys) % 6
            if number == 1:
                self._respond(503, {"Retry-After": "1"}, b'{"data": {"status": false}}')
                return
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            response = httpx.request(
                self.command,
                os.environ["BASE_URL"] + self.path,
                headers=headers | {"Accept-Encoding": "identity"},
                content=body,
                timeout=PATIENCE,
            )
            if number == 2:
                self.close_connection = True
                return
            kept = {"content-type", "etag", "retry-after"}
            passed = {name: value for name, value in response.headers.items() if name in kept}
            self._respond(response.status_code, passed, response.content)

        def _respond(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _forward  # noqa: N815  the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def export_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which the example exports the workspace."""
    return tmp_path_factory.mktemp("export") / "clinic.zip"


@pytest.fixture(scope="module")
def report(run: Run, key: str, unreliable: str, export_file: Path) -> dict[str, Any]:
    """What the example has found, over a connection that loses responses."""
    variables = {"API_KEY": key, "BASE_URL": unreliable, "EXPORT_FILE": str(export_file)}
    result: dict[str, Any] = json.loads(run("node", "dentist/build.ts", **variables))
    return result


def test_the_example_is_strict_typescript(run: Run) -> None:
    run("tsc", "--project", ".")


def test_a_table_is_synchronized_and_has_no_changes_the_second_time(report: dict[str, Any]) -> None:
    assert (report["products"], report["productsAgain"]) == ({"created": 300}, {"unchanged": 300})


def test_services_staff_and_clients_are_found_by_the_ids_of_another_system(
    report: dict[str, Any],
) -> None:
    clinic = report["clinic"]
    assert (clinic["first"], clinic["second"]) == ({"created": 4}, {"unchanged": 4})
    assert (report["patients"], report["patientsAgain"]) == ({"created": 3}, {"unchanged": 3})


def test_pages_have_current_prices_a_form_and_the_bot(report: dict[str, Any]) -> None:
    assert report["pages"] == {"price": True, "form": True, "bot": True}


def test_visitors_read_the_business_without_a_key(report: dict[str, Any]) -> None:
    shown = {"name": "Clear Dental", "services": 2, "products": 300, "cached": True}
    assert report["public"] == shown


def test_the_bot_answers_with_a_price_of_the_workspace(report: dict[str, Any]) -> None:
    assert "3,000" in report["answer"]


def test_a_visitor_pays_a_deposit_moves_the_visit_and_gets_the_money_back(
    report: dict[str, Any],
) -> None:
    assert report["visit"] == {
        "closedBecause": "time_off",
        "deposit": 180_000,
        "booked": "pending_payment",
        "paid": "confirmed",
        "movesLeft": 4,
        "cancelled": "cancelled",
        "refund": 180_000,
        "refundState": "returned",
    }
    assert report["phone"]["status"] == "confirmed"


def test_events_are_verified_and_a_forged_one_is_refused(report: dict[str, Any]) -> None:
    assert report["events"] == [
        "booking.created",
        "booking.moved",
        "booking.paid",
        "booking.status_changed",
        "client.created",
        "lead.created",
        "lead.status_changed",
    ]
    assert (report["forged"], report["refused"]) == (401, 1)


def test_a_restored_export_lacks_nothing_but_what_it_names(
    run: Run, report: dict[str, Any], owner: Owner, key: str, export_file: Path
) -> None:
    assert export_file.stat().st_mode & 0o077 == 0
    copy = admin("import", str(export_file), ids="new", owner=owner.email)
    restored_key = new_key(
        copy["workspaceId"], scopes="*:read,settings:read,webhooks:read", name="copy"
    )
    output = run("node", "dentist/compare.ts", API_KEY=key, RESTORED_API_KEY=restored_key)
    compared = json.loads(output)
    # Also over the connection that loses responses, each record was created once.
    assert compared["counts"] == {
        "workspace": 1,
        "bookingPage": 1,
        "sites": 1,
        "pages": 2,
        "categories": 6,
        "products": 300,
        "services": 2,
        "paymentTerms": 2,
        "resources": 2,
        "openingHours": 2,
        "timeOff": 1,
        "bookings": 2,
        "clients": 5,
        "forms": 1,
        "leads": 1,
        "files": 0,
        "agents": 1,
        "knowledge": 1,
        "dialogs": 1,
        "webhooks": 1,
    }
    different = {(found["noun"], found["field"]) for found in compared["differences"]}
    # The copy has no account at a payment provider. Its webhook is off, and no key has made it.
    assert different == {
        ("paymentTerms", "takesPayments"),
        ("webhooks", "status"),
        ("webhooks", "offBecause"),
        ("webhooks", "keyIds"),
    }
    assert {"merchants", "providerSecrets", "webhookDeliveries"} <= set(copy["notIncluded"])
    assert sorted(copy["notIncluded"]) == report["export"]["notIncluded"]
