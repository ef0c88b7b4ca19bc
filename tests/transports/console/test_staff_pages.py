"""What a member with the role *staff* opens in the console, and what the pages show."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from tests.conftest import PASSWORD, call_console, call_operator
from tests.factories.console import FORM, Person, World, begun
from tests.factories.people import read_rows
from tests.support.restoring import Snapshots
from tests.transports.console.forms.helpers import text

EMAIL = "vera@example.com"
# Whatever belongs to other members of the staff, or is not for the staff, has one of these words.
HIDDEN = ("OTHERS", "hidden@example.com", "4957654321")
PAGES = {
    f"{WORKSPACE}/bookings",
    f"{WORKSPACE}/bookings/new",
    f"{WORKSPACE}/bookings/calendar-link",
    f"{WORKSPACE}/bookings/{{booking}}",
    f"{WORKSPACE}/notifications",
}
"""The pages of a workspace that the staff open. All of them have a form, but the calendar."""
OF_WORKSPACE = [route for route in ROUTES if route.startswith(WORKSPACE)]


@dataclass(frozen=True)
class Desk:
    """A workspace with all nouns, in which Vera has the role *staff* and a booking of today."""

    world: World
    account: str
    own: str
    other: str
    service: str
    booking: str
    other_booking: str

    @property
    def path(self) -> str:
        return self.world.here.path

    def vera(self) -> Person:
        return Person(EMAIL, begun(EMAIL))

    def as_owner(self, operation: str, **arguments: Any) -> Any:
        return call_console(self.world.here.workspace_id, operation, **arguments)

    def path_of(self, route: str, booking: str) -> str:
        values = self.world.here.values_of(route)
        return route.format(**values | {"booking": booking})

    @property
    def foreign(self) -> list[str]:
        """Words that no page for the staff may have."""
        place = self.world.here
        ids = (place.client, place.lead, place.dialog, place.form, place.booking, place.file)
        return [*HIDDEN, self.other, self.other_booking, *ids]


@pytest.fixture
def desk(world: World, snapshots: Snapshots) -> Desk:
    def make() -> Desk:
        home = world.here.workspace_id

        def call(operation: str, **arguments: Any) -> Any:
            return call_console(home, operation, **arguments)

        own, other = (
            call("create_resource", name=name)["resource"]["id"] for name in ("Vera", "Olga OTHERS")
        )
        service = call(
            "create_service",
            name="Manicure",
            durationMin=60,
            price=150_000,
            resourceIds=[own, other],
        )["service"]["id"]
        call("create_service", name="Tattoo OTHERS", durationMin=60, price=1, resourceIds=[other])
        days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        for resource in (own, other):
            rules = [{"weekdays": days, "start": "00:00", "end": "24:00"}]
            call("set_availability", resourceId=resource, rules=rules)
        start = clock.iso(clock.now().replace(minute=0, second=0, microsecond=0))
        clients = {
            own: {"name": "Ada Byron", "phone": "+74951112233", "email": "hidden@example.com"},
            other: {"name": "Eve OTHERS", "phone": "+74957654321"},
        }
        made = [
            call(
                "create_booking",
                serviceId=service,
                startAt=start,
                resourceId=resource,
                client=client,
                notes="Decaf" if resource == own else "OTHERS",
                ignoreSchedule=True,
            )["booking"]
            for resource, client in clients.items()
        ]
        call("update_client", id=made[0]["client"]["id"], notes="OTHERS", tags=["OTHERS"])
        call("create_calendar_link", resourceId=other)
        call("note_visit_payment", bookingId=made[0]["id"], method="cash", amount=77_700)
        account = call_operator("create_account", email=EMAIL, password=PASSWORD, name="Vera")
        call_operator("add_member", workspaceId=home, email=EMAIL, role="staff", resourceId=own)
        ids = [booking["id"] for booking in made]
        return Desk(world, account["accountId"], own, other, service, *ids)

    made: Desk = snapshots.once("desk of the staff in the console", make)
    return made


def test_each_page_is_refused_or_has_the_own_only(desk: Desk) -> None:
    vera = desk.vera()
    opened = set()
    for route in OF_WORKSPACE:
        if ROUTES[route].get is None:
            continue
        answer = vera.get(desk.path_of(route, desk.booking))
        if answer.status == 200:
            opened.add(route)
            shown = [word for word in desk.foreign if word in text(answer)]
            assert not shown, (route, shown)
        elif route == WORKSPACE:
            assert answer.headers["Location"] == f"{desk.path}/bookings"
        else:
            assert answer.status == 403, (route, answer.status)
    assert opened == PAGES


def test_each_form_is_refused_or_is_of_an_own_page(desk: Desk) -> None:
    vera, sent = desk.vera(), set()
    for route in OF_WORKSPACE:
        if ROUTES[route].post is None:
            continue
        before = read_rows()
        path = desk.path_of(route, desk.other_booking)
        body = f"csrf={vera.csrf}&action=cancelled&name=x".encode()
        answer = vera.request("POST", path, body, Content_Type=FORM)
        if answer.status == 403:
            assert read_rows() == before, route
        else:
            sent.add(route)
    assert sent <= PAGES


@pytest.mark.parametrize("query", ["", "?view=week", "?view=list", "?view=list&q=OTHERS"])
def test_the_calendar_and_the_list_cannot_be_widened(desk: Desk, query: str) -> None:
    vera = desk.vera()
    joint = "&" if query else "?"
    for staff in ("", "all", desk.other):
        # A filter that is not for the staff is reported and ignored.
        page = text(vera.get(f"{desk.path}/bookings{query}{joint}staff={staff}"))
        # The fields of the form may repeat the address.
        page = re.sub(r"<input[^>]*>|<select.*?</select>", "", page, flags=re.DOTALL)
        page = re.sub(r"href=\"[^\"]*\"", "", page)
        assert not [word for word in desk.foreign if word in page]


def test_a_booking_of_another_is_not_found_in_any_part(desk: Desk) -> None:
    vera, before = desk.vera(), read_rows()
    path = f"{desk.path}/bookings/{desk.other_booking}"
    for do in ("", "?do=move", "?do=cancel"):
        assert vera.get(path + do).status == 404
    for action in ("cancelled", "move", "cash", "send_link", "times"):
        assert vera.post(path, {"action": action, "staff": desk.own}).status == 404
    assert vera.get(f"{path}/payments/{desk.world.here.payment}").status == 403
    assert read_rows().keys() == before.keys()


def test_a_booking_shows_no_money_but_its_price(desk: Desk) -> None:
    vera = desk.vera()
    page = text(vera.get(f"{desk.path}/bookings/{desk.booking}"))
    for shown in ("Ada Byron", "1,500", "Decaf", "tel:+74951112233", "a colleague"):
        assert shown in page
    assert "777" not in page
    before = read_rows()
    answer = vera.post(f"{desk.path}/bookings/{desk.booking}", {"action": "cash", "amount": "1"})
    assert answer.status == 403
    assert read_rows() == before


def test_the_menu_has_what_the_staff_may_open(desk: Desk) -> None:
    page = text(desk.vera().get(f"{desk.path}/bookings"))
    menu = page[page.index("<nav aria-label") : page.index("</nav>")]
    links = re.findall(r'href="([^"]+)"', menu)
    assert [link for link in links if link.startswith(desk.path)] == [
        f"{desk.path}/bookings",
        f"{desk.path}/notifications",
    ]


def test_every_link_of_an_own_page_opens(desk: Desk) -> None:
    vera = desk.vera()
    for route in PAGES:
        page = text(vera.get(desk.path_of(route, desk.booking)))
        links = set(re.findall(rf'(?:href|action)="({desk.path}[^"#]*)', page))
        for link in links:
            status = 303 if link == desk.path else 200  # The overview leads to the own day.
            assert vera.get(link.replace("&amp;", "&")).status == status, (route, link)


def test_the_staff_books_moves_and_cancels_in_the_own_calendar(desk: Desk) -> None:
    vera = desk.vera()
    form = text(vera.get(f"{desk.path}/bookings/new"))
    assert "Manicure" in form
    assert 'name="q"' not in form
    assert 'name="add"' not in form
    fields = {
        "service": desk.service,
        "staff": desk.other,  # A form that was changed by hand books for oneself all the same.
        "client": desk.world.here.client,
        "then": desk.service,
        "date": "2027-03-01",
        "exact": "12:00",
        "outside": "1",
        "name": "Ann",
        "phone": "+7 495 222-33-44",
        "action": "book",
    }
    answer = vera.post(f"{desk.path}/bookings/new", fields)
    assert answer.status == 303, text(answer)
    path = answer.headers["Location"].partition("?")[0]
    booking_id = path.rpartition("/")[2]
    booking = desk.as_owner("get_booking", id=booking_id)["booking"]
    assert (booking["resourceId"], booking["client"]["name"]) == (desk.own, "Ann")
    assert "visitId" not in booking
    assert desk.other not in text(vera.get(f"{path}?do=move"))
    moved = vera.post(
        path, {"action": "move", "date": "2027-03-02", "exact": "13:00", "outside": "1"}
    )
    assert moved.status == 303, text(moved)
    assert vera.post(path, {"action": "cancelled", "reason": "Ill"}).status == 303
    booking = desk.as_owner("get_booking", id=booking_id)["booking"]
    assert (booking["status"], booking["startLocal"][:10]) == ("cancelled", "2027-03-02")


def test_an_open_session_loses_the_right_at_the_next_request(desk: Desk) -> None:
    vera, path = desk.vera(), f"{desk.path}/bookings/{desk.booking}"
    assert vera.get(path).status == 200
    desk.as_owner("link_member", accountId=desk.account, resourceId=desk.other)
    assert vera.get(path).status == 404
    desk.as_owner("link_member", accountId=desk.account, resourceId=None)
    for page in ("", "/new", "/calendar-link", f"/{desk.booking}"):
        answer = vera.get(f"{desk.path}/bookings{page}")
        assert answer.status == 403
        assert "not linked" in text(answer)
    assert vera.get(f"{desk.path}/notifications").status == 200
    call_operator("remove_member", workspaceId=desk.world.here.workspace_id, email=EMAIL)
    assert vera.get(f"{desk.path}/bookings").status == 404


def test_pages_of_a_deleted_resource_say_that_there_is_no_calendar(desk: Desk) -> None:
    desk.as_owner("delete_resource", id=desk.own, force=True)
    vera = desk.vera()
    for page in ("bookings", "bookings?view=week", "bookings/new", "bookings/calendar-link"):
        assert vera.get(f"{desk.path}/{page}").status == 200


def test_the_own_calendar_link_is_made_and_ends_with_the_right(desk: Desk) -> None:
    vera, path = desk.vera(), f"{desk.path}/bookings/calendar-link"
    assert vera.post(path, {"action": "make"}).status == 303
    url = re.search(r"/api/public/calendars/[\w.~-]+", text(vera.get(path)))
    assert url is not None
    feed = vera.get(url[0])
    assert feed.status == 200
    assert "Manicure" in text(feed)
    assert not [word for word in HIDDEN if word in text(feed)]
    links = json.dumps(desk.as_owner("get_calendar_links"))
    assert desk.own in links
    assert vera.post(path, {"action": "revoke"}).status == 303
    assert vera.get(url[0]).status == 404
    # The links of others stay.
    assert desk.other in json.dumps(desk.as_owner("get_calendar_links"))


class TestMembers:
    def test_the_owner_invites_a_member_of_the_staff(self, desk: Desk) -> None:
        boss = desk.world.person("boss")
        path = f"{desk.path}/members"
        fields = {"email": "ivy@example.com", "role": "staff"}
        refused = boss.post(path, fields)
        assert refused.status == 400
        assert "Choose whose calendar" in text(refused)
        made = boss.post(path, {**fields, "resourceId": desk.other})
        assert made.status == 200
        assert "Olga OTHERS" in text(boss.get(path))

    def test_a_manager_invites_the_staff_without_a_password(self, desk: Desk) -> None:
        manager = desk.world.person("manager")
        fields = {"email": "ivy@example.com", "role": "staff", "resourceId": desk.other}
        answer = manager.post(f"{desk.path}/members", {**fields, "currentPassword": ""})
        assert answer.status == 200

    def test_the_owner_changes_roles(self, desk: Desk) -> None:
        boss, member = desk.world.person("boss"), desk.world.here.member
        path = f"{desk.path}/members/{member}"
        refused = boss.post(path, {"role": "staff"})
        assert refused.status == 400
        assert "Choose whose calendar" in text(refused)
        assert boss.post(path, {"role": "staff", "resourceId": desk.own}).status == 303
        members = {each["accountId"]: each for each in desk.as_owner("list_members")["members"]}
        assert (members[member]["role"], members[member]["resourceId"]) == ("staff", desk.own)
        assert boss.post(path, {"role": "manager"}).status == 303
        members = {each["accountId"]: each for each in desk.as_owner("list_members")["members"]}
        assert members[member]["role"] == "manager"
