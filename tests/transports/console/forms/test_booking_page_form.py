"""The settings of the booking page in the console."""

import re
from typing import Any

import pytest

from chalicelib.domains.booking_page.operations import page_settings
from tests.conftest import Api, Owner, call_console
from tests.factories.console import Fields, Person, person
from tests.transports.console.forms.helpers import error_beside, text, value_of

PHONE = "+7 495 123-45-67"


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/booking-page"


@pytest.fixture
def services(api: Api) -> list[str]:
    """Three services."""
    responses = [
        api.post("/api/services/create", {"name": f"Cut {n}", "durationMin": 60}) for n in range(3)
    ]
    return [response["service"]["id"] for response in responses]


def settings_of(owner: Owner) -> Any:
    page = call_console(owner.workspace.id, "get_booking_page")
    return {**page["bookingPage"], "services": page["services"]}


def offered_ids(owner: Owner) -> list[str]:
    return [service["id"] for service in settings_of(owner)["services"] if service["isOffered"]]


def fields(services: list[str], offered_services: list[str], **more: str) -> Fields:
    listed_fields = [("listed", service) for service in services]
    return [*listed_fields, *(("offered", service) for service in offered_services), *more.items()]


def test_the_page_is_off_at_first_and_its_link_says_so(
    console_owner: Person, path: str, services: list[str]
) -> None:
    settings_page = text(console_owner.get(path))
    assert "The link works when the page is on." in settings_page
    assert "Open page" not in settings_page
    assert 'name="isOn" value="1" checked' not in settings_page


def test_a_page_that_was_never_used_proposes_all_services(
    console_owner: Person, path: str, services: list[str], owner: Owner
) -> None:
    settings_page = text(console_owner.get(path))
    ticked_services = re.findall(r'name="offered" value="(\w+)" checked', settings_page)
    assert sorted(ticked_services) == services
    console_owner.post(path, fields(services, ticked_services, isOn="1"))
    assert offered_ids(owner) == services
    console_owner.post(path, fields(services, [], isOn="1"))
    assert 'name="offered" checked' not in text(console_owner.get(path))
    assert offered_ids(owner) == []


def test_a_manager_switches_the_page_on_and_visitors_see_the_chosen_services(
    console_owner: Person, path: str, services: list[str], owner: Owner
) -> None:
    form = fields(services, services[:2], isOn="1", phone=PHONE)
    answer = console_owner.post(path, form)
    assert (answer.status, answer.headers["Location"]) == (303, f"{path}?done=booking_page_saved")
    saved_page = console_owner.get(f"{path}?done=booking_page_saved")
    assert "Booking page saved." in text(saved_page)
    assert value_of(saved_page, "phone") == PHONE
    assert f"/book/{owner.workspace.slug}" in text(saved_page)
    assert f'book.js" data-workspace="{owner.workspace.slug}"' in text(saved_page)
    assert offered_ids(owner) == services[:2]
    public = Api(None).call("GET", f"/book/{owner.workspace.slug}")
    assert "Cut 0" in text(public)
    assert "Cut 2" not in text(public)


def test_unticked_services_are_withdrawn_and_those_that_were_not_listed_stay(
    console_owner: Person, path: str, services: list[str], owner: Owner
) -> None:
    console_owner.post(path, fields(services, services, isOn="1"))
    console_owner.post(path, fields(services[:2], services[:1], isOn="1"))
    assert offered_ids(owner) == [services[0], services[2]]


def test_switches_that_are_not_ticked_are_off(
    console_owner: Person, path: str, services: list[str], owner: Owner
) -> None:
    console_owner.post(path, fields(services, services, isOn="1", isIndexed="1", phone=PHONE))
    console_owner.post(path, fields(services, services))
    now = settings_of(owner)
    assert (now["isOn"], now["isIndexed"], now["phone"]) == (False, False, None)


def test_a_page_without_services_warns(
    console_owner: Person, path: str, services: list[str]
) -> None:
    console_owner.post(path, fields(services, [], isOn="1"))
    assert "offers no services yet" in text(console_owner.get(path))


def test_a_refused_form_keeps_what_was_typed(
    console_owner: Person, path: str, services: list[str], owner: Owner
) -> None:
    answer = console_owner.post(path, fields(services, services[:1], isOn="1", phone="9" * 100))
    assert answer.status == 400
    assert "at most 60 characters" in error_beside(answer, "phone")
    assert value_of(answer, "phone") == "9" * 100
    assert text(answer).count("checked") == 2
    assert not settings_of(owner)["isOn"]


def test_a_page_offers_a_limited_number_of_services(
    console_owner: Person,
    path: str,
    services: list[str],
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_settings, "MAX_OFFERED", 2)
    answer = console_owner.post(path, fields(services, services, isOn="1"))
    assert answer.status == 409
    assert "up to 100 services" in text(answer)
    console_owner.post(path, fields(services, services[:2], isOn="1"))
    owner.api().post("/api/services/delete", {"id": services[0]})
    console_owner.post(path, fields(services[1:], services[1:], isOn="1"))
    assert offered_ids(owner) == services[1:], "a deleted service takes no place"


def test_services_of_another_workspace_cannot_be_offered(
    console_owner: Person, path: str, new_owner: Any, owner: Owner
) -> None:
    body = {"name": "Foreign", "durationMin": 60}
    foreign = new_owner().api().post("/api/services/create", body)["service"]["id"]
    assert console_owner.post(path, fields([foreign], [foreign], isOn="1")).status == 404
    assert not settings_of(owner)["isOn"]


def test_a_long_list_has_a_search_and_pages(console_owner: Person, path: str, owner: Owner) -> None:
    api = owner.api()
    for number in range(page_settings.SIZE + 1):
        api.post("/api/services/create", {"name": f"Cut {number}", "durationMin": 60})
    first = text(console_owner.get(path))
    assert 'type="search"' in first
    assert "page=2" in first
    assert "Cut 50" in text(console_owner.get(f"{path}?page=2"))
    search_page = text(console_owner.get(f"{path}?q=cut+50"))
    assert "Cut 50" in search_page
    assert "Cut 1<" not in search_page
    for odd in ("?page=0", "?page=x", "?page=99999", "?page=-1", "?q=%00"):
        assert console_owner.get(path + odd).status == 200
