"""Imports of a salon's clients from the unpacked zip: their time, memory and requests.

``make bench`` writes what is measured here into docs/benchmarks.md.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from moto.dynamodb.responses import DynamoHandler

from tests.conftest import call_console
from tests.domains.events.conftest import receiver, world  # noqa: F401  fixtures
from tests.factories.workbooks import xlsx
from tests.fakes.lambda_process import Lambda
from tests.infra.deploy.test_jobs_in_zip import stage  # noqa: F401  a fixture
from tests.infra.deploy.zip_stage import SCHEDULE, Stage, delete_all_jobs_except, waiting_jobs
from tests.support.database_over_http import endpoint  # noqa: F401  a fixture

pytestmark = [
    pytest.mark.package,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("database"),
]

CLIENTS = 2_000
MOST_SECONDS = 15
"""Processor time of the whole import, of about 4 that it takes. It has a minute of real time."""
MOST_MEGABYTES = 256
"""Peak memory of a process, of about 70 that each takes. A workbook is read in one of its own, with
512 MB of address space. The API's function has 1,024 MB, that of jobs 1,769."""
MOST_REQUESTS = 700
"""Requests to the database of the job. It waits about 10 ms for each."""


def _workbook() -> bytes:
    head = ["Имя", "Телефон", "Email", "Дата рождения", "Категории", "Комментарий"]
    return xlsx([head, *map(_cells, range(CLIENTS))])


def _cells(number: int) -> Sequence[str]:
    phone, email = f"+7912{number:07d}", f"c{number}@salon{number % 50}.example"
    return (f"Клиент {number}", phone, email, "12.04.1985", "VIP", "любит рожь")


def _vcards() -> bytes:
    return "".join(map(_card, range(CLIENTS))).encode()


def _card(number: int) -> str:
    name, phone, email, _, tags, notes = _cells(number)
    lines = [f"FN:{name}", f"TEL:{phone}", f"EMAIL:{email}", "BDAY:1985-04-12"]
    lines += [f"CATEGORIES:{tags}", f"NOTE:{notes}"]
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", *lines, "END:VCARD", ""])


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests that the database has received."""
    received: list[str] = []
    answer = DynamoHandler.call_action

    def counted(handler: DynamoHandler) -> Any:
        received.append(handler.headers.get("X-Amz-Target", ""))
        return answer(handler)

    monkeypatch.setattr(DynamoHandler, "call_action", counted)
    return received


@pytest.mark.parametrize("table", [_workbook, _vcards], ids=["workbook (XLSX)", "contacts (vCard)"])
def test_two_thousand_clients_are_imported_within_the_means_of_a_function(
    table: Callable[[], bytes],
    stage: Stage,  # noqa: F811  the fixture
    requests: list[str],
    record_property: Callable[[str, object], None],
) -> None:
    content = b64encode(table()).decode()
    upload = call_console(stage.workspace_id, "upload_privately", name="c", content=content)
    token = stage.owner.token(["crm:write"])
    with Lambda(stage.task, stage.python, stage.variables) as api:
        status, started = api.call("POST", "/api/clients/import", {"fileId": upload["id"]}, token)
        assert status == 200, started
        reading = api.run("", {})
    delete_all_jobs_except(waiting_jobs("import"))
    sent = 0
    with Lambda(stage.task, stage.python, stage.variables) as jobs:
        while waiting_jobs("import"):
            before = len(requests)
            jobs.run("run_jobs", SCHEDULE)
            sent += len(requests) - before
        writing = jobs.run("", {})
    done = call_console(stage.workspace_id, "get_import", id=started["importId"])
    assert (done["state"], done["counts"]["created"]) == ("finished", CLIENTS)
    used = {
        "readSeconds": reading["seconds"],
        "writeSeconds": writing["seconds"],
        "readMegabytes": reading["peak"] / 2**20,
        "childMegabytes": reading["peak of children"] / 2**20,
        "writeMegabytes": writing["peak"] / 2**20,
        "requests": sent,
    }
    record_property("used", json.dumps({name: round(value, 1) for name, value in used.items()}))
    assert used["readSeconds"] + used["writeSeconds"] < MOST_SECONDS
    assert max(used["readMegabytes"], used["writeMegabytes"]) < MOST_MEGABYTES
    assert 0 < sent < MOST_REQUESTS
