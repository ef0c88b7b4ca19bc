"""The pages of the console on which the owner switches advertising on, and withdraws a consent."""

from typing import Any

import pytest

from chalicelib.domains.booking_page.rules import advertising_texts
from tests.conftest import Owner, Time
from tests.domains.notifications.clients import ADA, book
from tests.factories.console import Person, person
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import error_beside, text, value_of

START = "2027-03-03T12:00:00Z"


@pytest.fixture
def salon(owner: Owner, time: Time) -> Salon:
    return Salon.opened(owner.api(), bookAgainDays=28)


@pytest.fixture
def console(owner: Owner, time: Time) -> Person:
    return person(owner)


@pytest.fixture
def client(owner: Owner, salon: Salon, time: Time) -> Any:
    shown = advertising_texts.text("en", owner.workspace.name)
    book(salon, START, advertisingVersion=shown.version)
    (client,) = owner.api().get(f"/api/clients/list?search={ADA}")["clients"]
    return client


def test_the_owner_sets_the_days_of_a_service(owner: Owner, salon: Salon, console: Person) -> None:
    path = f"/console/w/{owner.workspace.slug}/services/{salon.service}"
    assert value_of(console.get(path), "bookAgainDays") == "28"
    fields = {"name": "Haircut", "durationMin": "60", "price": "1500", "active": "yes"}
    refused = console.post(path, fields | {"bookAgainDays": "3"})
    assert refused.status == 400
    assert "7" in error_beside(refused, "bookAgainDays")
    assert console.post(path, fields | {"bookAgainDays": ""}).status == 303
    service = owner.api().get(f"/api/services/{salon.service}")["service"]
    assert service["bookAgainDays"] is None


def test_the_owner_sees_the_evidence_and_withdraws_for_the_client(
    owner: Owner, client: Any, console: Person
) -> None:
    base = f"/console/w/{owner.workspace.slug}/clients/{client['id']}"
    path = f"{base}/advertising"
    assert f'href="{path}"' in text(console.get(base))
    page = text(console.get(path))
    assert advertising_texts.text("en", owner.workspace.name).text in page
    assert ADA in page
    for _ in range(2):
        assert console.post(path).status == 303
    answer = owner.api().get(f"/api/clients/{client['id']}/advertising")
    assert answer["agrees"] is False
    assert [entry["source"] for entry in answer["history"]] == ["public", "console"]
    assert '<form method="post" action="' + path not in text(console.get(path))


def test_a_client_without_a_consent_has_no_button(owner: Owner, console: Person) -> None:
    made = owner.api().post("/api/clients/create", {"name": "Bob"})["client"]
    path = f"/console/w/{owner.workspace.slug}/clients/{made['id']}/advertising"
    answer = console.get(path)
    assert answer.status == 200
    assert f'action="{path}"' not in text(answer)
