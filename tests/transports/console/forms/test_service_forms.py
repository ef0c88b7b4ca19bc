"""Services in the console, over HTTP."""

import re
from typing import Any

import pytest

from tests.conftest import Owner, call_console
from tests.factories.console import Person, person
from tests.factories.salon import Salon
from tests.fakes.internet import Internet, http_response
from tests.transports.console.forms.helpers import error_beside, text, value_of


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/services"


def list_services(owner: Owner) -> list[dict[str, Any]]:
    services: list[dict[str, Any]] = call_console(owner.workspace.id, "list_services")["services"]
    return services


def make(owner: Owner, operation: str, **arguments: Any) -> Any:
    return call_console(
        owner.workspace.id, operation, account_id=owner.workspace.owner_id, **arguments
    )


def test_a_service_is_created_once_with_a_price_in_rubles_and_a_friendly_duration(
    owner: Owner, console_owner: Person, path: str
) -> None:
    fields = {
        "name": "Стрижка",
        "durationMin": "1 ч 30 мин",
        "price": "1 500,50 ₽",
        "bufferAfterMin": "15",
        "minNoticeMin": "1 день",
        "horizonDays": "30",
        "reminders": "1 д, 2 ч",
        "tags": "волосы, дети",
        "requirePayment": "yes",
        "active": "yes",
        "once": "1",
    }
    answers = [console_owner.post(path, fields) for _ in range(2)]
    (service,) = list_services(owner)
    assert {answer.headers["Location"] for answer in answers} == {
        f"{path}/{service['id']}?done=service_created"
    }
    assert (service["durationMin"], service["price"], service["bufferAfterMin"]) == (
        90,
        150_050,
        15,
    )
    assert (service["minNoticeMin"], service["horizonDays"]) == (1_440, 30)
    assert service["reminders"] == [1_440, 120]
    assert service["tags"] == ["волосы", "дети"]
    assert (service["requirePayment"], service["visitorMails"], service["status"]) == (
        True,
        False,
        "active",
    )


def test_a_saved_form_changes_nothing_that_was_not_typed(
    owner: Owner, console_owner: Person, path: str
) -> None:
    staff = make(owner, "create_resource", name="Anna")["resource"]["id"]
    service_before = make(
        owner,
        "create_service",
        name="Haircut",
        durationMin=90,
        price=150_050,
        description="Long.",
        resourceIds=[staff],
        bufferBeforeMin=5,
        slotStepMin=15,
        minNoticeMin=2_880,
        unverifiedPerHour=7,
        reminders=[90],
        tags=["a", "b"],
    )["service"]
    page = console_owner.get(f"{path}/{service_before['id']}")
    fields = form_fields(text(page))
    assert console_owner.post(f"{path}/{service_before['id']}", fields).status == 303
    service_after = make(owner, "get_service", id=service_before["id"])["service"]
    del service_before["updatedAt"], service_after["updatedAt"]
    assert service_after == service_before


def form_fields(page: str) -> list[tuple[str, str]]:
    """Return the fields that a browser would send for the form of a page, without its token."""
    form = page[page.index('<form class="card') :]
    fields = [
        (tag["name"], tag.get("value", ""))
        for tag in map(attributes, re.findall(r"<input ([^>]*)>", form))
        if tag.get("type") not in {"checkbox", "radio"} or "checked" in tag
    ]
    fields += re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n?([^<]*)</textarea>', form)
    return [(name, value) for name, value in fields if name != "csrf"]


def attributes(text: str) -> dict[str, str]:
    return {name: value for name, _, value in re.findall(r'([\w-]+)(="([^"]*)")?', text)}


@pytest.mark.parametrize(
    ("field", "typed_value"),
    [
        ("durationMin", "0"),
        ("durationMin", ""),
        ("durationMin", "полчаса"),
        ("durationMin", "25 ч"),
        ("price", "1,5 тыс"),
        ("price", "-1"),
        ("slotStepMin", "1"),
        ("bufferBeforeMin", "9 h"),
        ("minNoticeMin", "31 d"),
        ("horizonDays", "366"),
        ("unverifiedPerHour", "x"),
        ("reminders", "5"),
        ("name", " "),
    ],
)
def test_a_wrong_value_is_reported_beside_its_field_and_everything_typed_is_kept(
    field: str, typed_value: str, owner: Owner, console_owner: Person, path: str
) -> None:
    fields = {"name": "Стрижка", "durationMin": "1:30", "price": "10", "tags": "a,  b"}
    answer = console_owner.post(path, fields | {field: typed_value}, accept_language="ru")
    assert answer.status == 400
    assert re.search("[а-я]", error_beside(answer, field))
    for name, value in (fields | {field: typed_value}).items():
        assert value_of(answer, name) == value
    assert list_services(owner) == []


def test_a_wrong_rare_value_opens_the_part_of_the_form_that_it_is_in(
    console_owner: Person, path: str
) -> None:
    closed = text(console_owner.get(f"{path}/new"))
    assert '<details class="more stack">' in closed
    answer = console_owner.post(path, {"name": "A", "durationMin": "30", "horizonDays": "0"})
    assert '<details class="more stack" open>' in text(answer)


def test_a_service_says_what_it_lacks_with_a_link_that_fixes_it(
    owner: Owner, console_owner: Person, path: str
) -> None:
    here = path.removesuffix("/services")
    haircut = make(owner, "create_service", name="Haircut", durationMin=60, price=150_000)
    service = haircut["service"]["id"]

    def service_page() -> str:
        return text(console_owner.get(f"{path}/{service}"))

    assert f'href="{here}/staff/new?service={service}"' in service_page()
    assert "no staff yet" in text(console_owner.get(path))
    staff = make(owner, "create_resource", name="Anna", serviceIds=[service])["resource"]["id"]
    hours = f'href="{here}/staff/{staff}/hours"'
    assert "no opening hours" in service_page()
    assert hours in service_page()
    rule = {"weekdays": ["mon", "sun"], "start": "09:00", "end": "09:30"}
    make(owner, "set_availability", resourceId=staff, rules=[rule])
    assert "longer than the opening hours" in service_page()
    assert hours in service_page()
    make(owner, "set_availability", resourceId=staff, rules=[rule | {"end": "18:00"}])
    assert "It can be booked" in service_page()
    assert re.search(r", (09|1\d):\d\d", service_page())  # it may be open now
    make(owner, "update_service", id=service, requirePayment=True)
    assert "It can be booked" not in service_page()
    assert "by phone only" in text(console_owner.get(path))
    make(owner, "update_resource", id=staff, status="inactive")
    assert "its staff is off" in service_page()
    make(owner, "update_service", id=service, status="inactive")
    assert "booking is off" in service_page()


def test_images_that_could_not_be_taken_are_named(
    owner: Owner, console_owner: Person, path: str, net: Internet
) -> None:
    net.serve("https://images.example", http_response(b"no", "404 Not Found"))
    bad = "https://images.example/a.png"
    fields = {"name": "A", "durationMin": "30", "newImages": bad, "once": "1"}
    answer = console_owner.post(path, fields)
    assert answer.status == 200
    assert "1 image could not be downloaded" in text(answer)
    assert bad in text(answer)
    (service,) = list_services(owner)
    assert f'action="{path}/{service["id"]}"' in text(answer)


def test_a_deletion_names_the_bookings_that_stay(
    owner: Owner, console_owner: Person, path: str
) -> None:
    service = make(owner, "create_service", name="Haircut", durationMin=60)["service"]["id"]
    confirmation = console_owner.get(f"{path}/{service}/delete")
    assert "Delete service “Haircut”?" in text(confirmation)
    gone = f"{path}?done=service_deleted"
    for _ in range(2):
        assert console_owner.post(f"{path}/{service}/delete").headers["Location"] == gone
    assert console_owner.get(f"{path}/{service}/delete").headers["Location"] == gone
    assert console_owner.get(f"{path}/{service}").status == 404


def test_staff_and_a_booking_page_say_what_they_lack(
    owner: Owner, console_owner: Person, path: str
) -> None:
    here = path.removesuffix("/services")
    staff = make(owner, "create_resource", name="Anna")["resource"]["id"]
    make(owner, "set_booking_page", isOn=True)

    def pages() -> list[str]:
        paths = (f"{here}/staff", f"{here}/staff/{staff}", f"{here}/booking-page")
        return [text(console_owner.get(page)) for page in paths]

    def reasons(*words: str) -> None:
        for page, word in zip(pages(), (words[0], words[0], words[1]), strict=True):
            assert word in page
            assert '<span class="tag good">' not in page

    reasons("no services yet", f'href="{here}/services/new"')
    service = make(owner, "create_service", name="Haircut", durationMin=60, resourceIds=[staff])
    reasons("no opening hours", f'href="{here}/booking-page#offered"')
    make(owner, "set_booking_page", offer=[service["service"]["id"]])
    reasons("no opening hours", f'href="{here}/staff/{staff}/hours"')
    rule = {"weekdays": ["mon"], "start": "09:00", "end": "18:00"}
    make(owner, "set_availability", resourceId=staff, rules=[rule])
    assert all('<span class="tag good">' in page for page in pages())


class TestStaffTerms:
    @pytest.fixture
    def salon(self, owner: Owner) -> Salon:
        return Salon.opened(owner.api(), [{}, {"name": "Master"}])

    def test_a_price_and_a_length_are_typed_beside_a_ticked_member_and_shown_with_from(
        self, owner: Owner, console_owner: Person, path: str, salon: Salon
    ) -> None:
        page, master = f"{path}/{salon.service}", salon.resources[1]
        own = {f"price-{master}": "2 500", f"duration-{master}": "1:30"}
        answer = console_owner.post(page, opened(console_owner, page, own))
        assert answer.status == 303, text(answer)
        (service,) = list_services(owner)
        stored = [{"resourceId": master, "price": 250_000, "durationMin": 90}]
        assert service["resourceOverrides"] == stored
        assert "from 1 h · from" in text(console_owner.get(path))
        shown = console_owner.get(page)
        assert value_of(shown, f"price-{master}") == "2500"
        console_owner.post(page, opened(console_owner, page, {"name": "Cut"}))
        (service,) = list_services(owner)
        assert (service["name"], service["resourceOverrides"]) == ("Cut", stored)

    def test_a_tick_that_is_taken_away_takes_the_price_away(
        self, owner: Owner, console_owner: Person, path: str, salon: Salon
    ) -> None:
        page, (first, master) = f"{path}/{salon.service}", salon.resources
        own = {"resourceId": master, "price": 1}
        body = {"id": salon.service, "resourceOverrides": [own]}
        owner.api().post("/api/services/update", body)
        form = opened(console_owner, page, {"resourceIds": first})
        assert console_owner.post(page, form).status == 303
        (service,) = list_services(owner)
        assert (service["resourceIds"], service["resourceOverrides"]) == ([first], [])

    @pytest.mark.parametrize(
        "wrong", [{"price": "-5"}, {"price": "cheap"}, {"duration": "2 d"}, {"duration": "1"}]
    )
    def test_a_wrong_value_is_shown_again_beside_its_message(
        self, wrong: dict[str, str], console_owner: Person, path: str, salon: Salon
    ) -> None:
        page, master = f"{path}/{salon.service}", salon.resources[1]
        typed = {f"{name}-{master}": value for name, value in wrong.items()}
        answer = console_owner.post(page, opened(console_owner, page, typed))
        assert answer.status == 400
        assert 'id="resourceOverrides-error"' in text(answer)
        assert [value_of(answer, name) for name in typed] == list(typed.values())

    def test_a_price_of_somebody_who_is_not_ticked_is_refused(
        self, owner: Owner, console_owner: Person, path: str, salon: Salon
    ) -> None:
        page, (first, master) = f"{path}/{salon.service}", salon.resources
        typed = {"resourceIds": first, f"price-{master}": "100"}
        answer = console_owner.post(page, opened(console_owner, page, typed))
        assert (answer.status, value_of(answer, f"price-{master}")) == (400, "100")
        assert list_services(owner)[0]["resourceIds"] == salon.resources

    def test_the_desk_shows_the_length_and_the_price_of_each_time(
        self, owner: Owner, console_owner: Person, salon: Salon
    ) -> None:
        master = salon.resources[1]
        own = {"resourceId": master, "price": 250_000, "durationMin": 90}
        body = {"id": salon.service, "resourceOverrides": [own]}
        owner.api().post("/api/services/update", body)
        desk = f"/console/w/{owner.workspace.slug}/bookings/new?service={salon.service}"
        day = f"{desk}&date=2027-01-18"
        anyone, chosen = (text(console_owner.get(f"{day}&staff={who}")) for who in ("any", master))
        assert "from 1 h · from" in anyone
        assert "Stylist 0 · 1 h · 1,500" in anyone
        assert "· 1 h 30 min · 2,500" in chosen

    def test_the_table_of_prices_says_that_own_prices_stay(
        self, console_owner: Person, path: str, salon: Salon
    ) -> None:
        assert "stay as they are" in text(console_owner.get(f"{path}/many"))

    def test_a_page_of_fifty_with_own_prices_stays_small(
        self, owner: Owner, console_owner: Person, path: str
    ) -> None:
        api = owner.api()
        salon = Salon.opened(api, [{"name": f"Stylist with a long name {n}"} for n in range(50)])
        overrides = [
            {"resourceId": each, "price": 1_234_500, "durationMin": 95} for each in salon.resources
        ]
        body = {"id": salon.service, "resourceOverrides": overrides}
        api.post("/api/services/update", body)
        page = console_owner.get(f"{path}/{salon.service}")
        assert page.body.count(b'name="price-') == 50
        assert len(page.body) <= 60_000


def opened(console_owner: Person, page: str, changes: dict[str, str]) -> list[tuple[str, str]]:
    """Return what a browser sends of a form of a service in which these fields were changed."""
    fields = form_fields(text(console_owner.get(page)))
    kept = [(name, value) for name, value in fields if name not in changes]
    return [*kept, *changes.items()]
