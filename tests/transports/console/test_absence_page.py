"""The page on which a member of the staff is reported absent."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest

from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, call_console
from tests.factories.console import Person, person
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import text

MONDAY = "2027-01-18"


@dataclass(frozen=True)
class Desk:
    """A salon of Anna and Olga, and its owner in the console. In Moscow it is Friday, 15:00."""

    salon: Salon
    boss: Person
    path: str

    @property
    def page_path(self) -> str:
        return f"{self.path}/staff/{self.salon.resource}/absence"

    def open(self, query: str = f"?from={MONDAY}") -> str:
        return text(self.boss.get(f"{self.page_path}{query}"))

    def book(self, hour: int, client: str, staff: int = 0) -> Any:
        return self.salon.book(
            f"{MONDAY}T{hour:02}:00", client, resourceId=self.salon.resources[staff]
        )

    def send(self, page: str, **changes: str) -> Any:
        return self.boss.post(self.page_path, fields(page) | changes)


def fields(page: str) -> dict[str, str]:
    """Return what the form of the page sends unless somebody changes it."""
    form = page[page.index('<form class="stack"') :]
    form = form[: form.index("</form>")]
    sent = {
        name: unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    }
    sent |= {
        name: chosen[1]
        for name, options in re.findall(r'<select id="[^"]+" name="([^"]+)">(.*?)</select>', form)
        if (chosen := re.search(r'<option value="([^"]*)" selected', options))
    }
    return sent | ({"timeOff": "1"} if 'name="timeOff" value="1" checked' in form else {})


@pytest.fixture
def desk(owner: Owner, time: Time) -> Desk:
    salon = Salon.opened(owner.api(), [{"name": "Anna"}, {"name": "Olga"}])
    return Desk(salon, person(owner), f"/console/w/{owner.workspace.slug}")


def test_a_colleague_at_the_same_time_is_chosen_and_nothing_else_by_default(desk: Desk) -> None:
    free, taken = desk.book(10, "Ada"), desk.book(12, "Bob")
    desk.book(12, "Eve", staff=1)
    sent = fields(desk.open())
    assert sent[f"do-{free['id']}"] == f"reassign {desk.salon.resources[1]}"
    assert sent[f"do-{taken['id']}"] == "leave"
    assert sent["timeOff"] == "1"


@pytest.mark.parametrize("for_all", ["cancel", "leave"])
def test_one_choice_is_made_for_all(for_all: str, desk: Desk) -> None:
    booking = desk.book(10, "Ada")
    assert fields(desk.open(f"?from={MONDAY}&all={for_all}"))[f"do-{booking['id']}"] == for_all


def test_the_result_says_for_each_booking_what_happened_and_what_not(desk: Desk) -> None:
    rows = [desk.book(hour, client) for hour, client in ((10, "Ada"), (11, "Bob"), (12, "Eve"))]
    page = desk.open()
    desk.salon.set_status(rows[2]["id"], "confirmed", startAt=f"{MONDAY}T13:00")
    result = text(desk.send(page, **{f"do-{rows[1]['id']}": "cancel"}))
    for words in (
        "Same time with Olga",
        "Cancelled",
        "somebody changed the booking in the meantime",
        "1 booking was left as it was",
        "There is time off",
        "Show the 1 booking that is left",
    ):
        assert words in result


def test_a_form_sent_twice_shows_the_same_result_and_changes_nothing_more(desk: Desk) -> None:
    booking = desk.book(10, "Ada")
    page = desk.open()
    first, second = (text(desk.send(page)) for _ in range(2))
    assert "Same time with Olga" in first
    assert "Same time with Olga" in second
    history = desk.salon.api.get(f"/api/bookings/{booking['id']}")["booking"]["statusHistory"]
    assert len(history) == 2


def test_time_off_is_left_out_on_request(desk: Desk, owner: Owner) -> None:
    page = desk.open()
    sent = {name: value for name, value in fields(page).items() if name != "timeOff"}
    result = text(desk.boss.post(desk.page_path, sent))
    assert "this period can still be booked" in result
    assert call_console(owner.workspace.id, "list_time_off")["timeOff"] == []


def test_a_refused_form_keeps_what_was_chosen(desk: Desk) -> None:
    booking = desk.book(10, "Ada")
    changes = {f"do-{booking['id']}": "cancel", "reason": "x" * 501}
    answer = desk.send(desk.open(), **changes)
    assert answer.status == 400
    assert fields(answer.body.decode())[f"do-{booking['id']}"] == "cancel"


@pytest.mark.parametrize(
    "query", ["?from=yesterday", "?from=2027-01-01", f"?from={MONDAY}&to=2027-03-01"]
)
def test_wrong_days_are_explained_at_their_field(query: str, desk: Desk) -> None:
    answer = desk.boss.get(f"{desk.page_path}{query}")
    assert answer.status == 400
    assert "up to 14 days" in answer.body.decode()


def test_the_calendar_and_the_time_off_link_to_it(desk: Desk) -> None:
    day = text(desk.boss.get(f"{desk.path}/bookings?date={MONDAY}"))
    assert f'href="{desk.page_path}?from={MONDAY}"' in day
    assert f'href="{desk.page_path}"' in text(desk.boss.get(f"{desk.path}/bookings"))
    assert f'href="{desk.page_path}"' not in text(
        desk.boss.get(f"{desk.path}/bookings?date=2027-01-14")
    )
    of_staff = f"{desk.path}/staff/{desk.salon.resource}/time-off"
    assert f'href="{desk.page_path}"' in text(desk.boss.get(of_staff))


def test_requests_of_the_page_do_not_grow_with_the_bookings(desk: Desk) -> None:
    def count() -> int:
        with metering() as usage:
            desk.open()
        return len(usage.calls)

    desk.book(9, "Ada")
    one = count()
    for hour in range(10, 17):
        desk.book(hour, f"Client {hour}")
    assert count() <= one + 1


def test_the_preview_says_that_a_cancellation_is_of_the_whole_visit(desk: Desk) -> None:
    body = {"name": "Colour", "durationMin": 30, "price": 100}
    body["resourceIds"] = desk.salon.resources[1:]
    colour = desk.salon.api.post("/api/services/create", body)["service"]["id"]
    start, anna = f"{MONDAY}T10:00", desk.salon.resource
    made = desk.salon.try_to_book(start, andThen=[colour], resourceId=anna).data["visit"]
    alone = desk.book(14, "Bob")
    page = desk.open()
    assert page.count("Cancel the whole visit") == 1
    sent = {f"do-{made[0]['id']}": "cancel", f"do-{alone['id']}": "leave"}
    assert desk.send(page, **sent).status == 200
    stored = [desk.salon.api.get(f"/api/bookings/{each['id']}")["booking"] for each in made]
    assert {each["status"] for each in stored} == {"cancelled"}
