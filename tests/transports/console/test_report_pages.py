"""The page of reports, and the money of the overview."""

import csv

import pytest

from chalicelib.transports.web import texts
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.console import person
from tests.factories.salon import Salon

EARNED, TAKEN = (texts.money("en", amount, "RUB") for amount in (300_000, 150_000))


@pytest.fixture
def path(owner: Owner, api: Api, time: Time) -> str:
    """The console of a salon with a visit that is noted as paid in cash."""
    salon = Salon.opened(api)
    booking = salon.book("2027-01-15T10:00", ignoreSchedule=True)["id"]
    salon.book("2027-01-15T17:00")
    call_console(owner.workspace.id, "note_visit_payment", bookingId=booking, method="cash")
    return f"/console/w/{owner.workspace.slug}"


def test_the_page_shows_charts_with_a_table_of_their_numbers(owner: Owner, path: str) -> None:
    html = person(owner).get(f"{path}/reports").body.decode()
    assert html.count('role="img"') == 3  # revenue, load, money taken
    table = html[html.index("<caption>All weeks") : html.index("</table>")]
    (row,) = (row for row in table.split("<tr>") if EARNED in row)
    assert f"<td>2</td><td>{EARNED}</td><td>" in row
    assert f"<td>{TAKEN}</td>" in row
    assert len(html.encode()) < 60_000


def test_a_file_has_the_weeks_of_the_period(owner: Owner, path: str) -> None:
    query = "format=csv&table=weeks&from=2027-01-11&to=2027-01-24"
    file = person(owner).get(f"{path}/reports?{query}").body.decode("utf-8-sig")
    first, second = csv.DictReader(file.splitlines())
    assert (first["Week from"], first["Visits"], first["Revenue"]) == ("2027-01-11", "2", "3000.0")
    assert (first["Paid at the visit"], second["Visits"]) == ("1500.0", "0")


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("services", ["Haircut", "2", "3000.0", "120"]),
        ("staff", ["Stylist 0", "2", "3000.0", "120", "16200"]),
        ("sources", ["through the API", "2", "3000.0"]),
    ],
)
def test_a_file_has_one_part_of_the_report(
    owner: Owner, path: str, table: str, row: list[str]
) -> None:
    file = person(owner).get(f"{path}/reports?format=csv&table={table}").body.decode("utf-8-sig")
    assert list(csv.reader(file.splitlines()))[1:] == [row]


def test_an_invalid_period_is_reported_with_the_last_days(owner: Owner, path: str) -> None:
    answer = person(owner).get(f"{path}/reports?from=2020-01-01")
    assert answer.status == 400
    assert EARNED in answer.body.decode()


def test_the_overview_shows_what_bookings_have_earned(owner: Owner, path: str) -> None:
    html = person(owner).get(path).body.decode()
    assert f"Revenue of 14 days</span><b>{EARNED}</b>" in html
    assert f"Taken in 14 days</span><b>{TAKEN}</b>" in html
    assert f"{TAKEN} left to pay" in html


def test_members_who_are_no_managers_see_no_money(owner: Owner, path: str) -> None:
    overview = call_console(owner.workspace.id, "get_overview", membership="member")
    assert overview["money"] is None
