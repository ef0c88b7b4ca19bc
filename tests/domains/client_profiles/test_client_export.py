"""What a workspace knows of a client, as a file, and its clients as a table."""

import json
from typing import Any

import pytest

from chalicelib.engine import audit
from tests.conftest import Api, Owner, Time
from tests.factories.console import person
from tests.factories.examples import FORM, submit
from tests.factories.forms import client_of
from tests.factories.salon import Salon

ADA = {"name": "Ada", "email": "ada@example.com", "phone": "84951234567"}


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}"


@pytest.fixture
def form(api: Api) -> str:
    form_id: str = api.post("/api/forms/create", FORM)["form"]["id"]
    return form_id


def downloaded(owner: Owner, path: str) -> Any:
    answer = person(owner).post(path)
    assert answer.status == 200
    assert "attachment" in answer.headers["Content-Disposition"]
    return json.loads(answer.body)


def test_the_file_has_the_records_that_an_erasure_would_find(
    api: Api, form: str, owner: Owner, path: str, time: Time
) -> None:
    client = client_of(api, submit(form, **ADA))
    submit(form, name="Bob", email="bob@example.com")
    salon = Salon.opened(api)
    order = salon.order("2027-03-03T12:00:00Z", notes="Window seat") | {"client": ADA}
    booking = api.post("/api/bookings/create", order)["booking"]
    api.post("/api/clients/update", {"id": client["id"], "birthday": "1985-12-24"})
    known = downloaded(owner, f"{path}/clients/{client['id']}/file")
    assert [(each["id"], each["birthday"]) for each in known["clients"]] == [
        (client["id"], "1985-12-24")
    ]
    assert [lead["data"]["name"] for lead in known["leads"]] == ["Ada"]
    (booked,) = known["bookings"]
    assert (booked["booking"]["id"], booked["booking"]["notes"]) == (booking["id"], "Window seat")
    assert booked["history"]
    assert "bob" not in json.dumps(known)
    assert not known["isCut"]


def test_a_download_is_in_the_audit_log(api: Api, form: str, owner: Owner, path: str) -> None:
    client = client_of(api, submit(form, **ADA))
    downloaded(owner, f"{path}/clients/{client['id']}/file")
    (entry, *_) = audit.page(owner.workspace.id, 10).rows
    assert entry.operation == "export_client"
    assert f"client:{client['id']}" in entry.resources


def test_a_client_of_another_workspace_has_no_file(api: Api, owner: Owner, path: str) -> None:
    assert person(owner).post(f"{path}/clients/{'0' * 26}/file").status == 404


def test_the_table_has_the_clients_of_the_filter_and_no_erased_ones(
    api: Api, form: str, owner: Owner, path: str
) -> None:
    ada = client_of(api, submit(form, **ADA))
    api.post("/api/clients/update", {"id": ada["id"], "tags": ["vip"], "birthday": "1985-12-24"})
    bob = client_of(api, submit(form, name="=Bob", email="bob@example.com"))
    boss = person(owner)
    table = boss.post(f"{path}/clients-table", {"q": "", "tag": "vip"})
    lines = table.body.decode("utf-8-sig").splitlines()
    assert len(lines) == 2
    assert "+74951234567" in lines[1]
    assert "1985-12-24" in lines[1]
    everybody = boss.post(f"{path}/clients-table").body.decode("utf-8-sig")
    assert len(everybody.splitlines()) == 3
    assert ",=Bob" not in everybody.replace("\n=Bob", ",=Bob")
    api.post("/api/clients/delete", {"id": bob["id"]})
    assert len(boss.post(f"{path}/clients-table").body.decode().splitlines()) == 2
