"""The overview as the desk of today, and the menu, as members of a workspace read them."""

import re

import pytest

from chalicelib.transports.console.menu import GROUPS
from tests.conftest import Owner, Time, call_console
from tests.factories.console import Person, person
from tests.factories.examples import submit
from tests.factories.forms import new_form
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import text


@pytest.fixture
def boss(owner: Owner, time: Time) -> Person:
    """The owner of a workspace. In Moscow it is Friday, 15:00."""
    return person(owner)


@pytest.fixture
def home(owner: Owner) -> str:
    """The path of the workspace."""
    return f"/console/w/{owner.workspace.slug}"


def headings(page: str) -> list[str]:
    """Return the headings of the sections of a page."""
    return re.findall("<h2>([^<]+?) ?<", page)


def menu_of(page: str) -> str:
    """Return the menu of a page."""
    return page[page.index("<nav aria-label") : page.index("</nav>")]


class TestDesk:
    def test_a_visit_of_today_opens_with_its_time_client_and_service(
        self, owner: Owner, boss: Person, home: str
    ) -> None:
        salon = Salon.opened(owner.api())
        booking = salon.book("2027-01-15T17:00", client="Ada Byron")
        page = text(boss.get(home))
        row = page[page.index(f'href="{home}/bookings/{booking["id"]}"') :].split("</li>")[0]
        for part in ("17:00", "18:00", "Ada Byron", "Haircut · Stylist 0"):
            assert part in row
        assert headings(page)[:2] == ["Today", "Waiting for you"]

    def test_more_visits_than_shown_are_counted_with_a_link_to_all(
        self, owner: Owner, boss: Person, home: str
    ) -> None:
        salon = Salon.opened(owner.api(), [{"capacity": 40}])
        for _ in range(13):
            salon.book("2027-01-15T17:00")
        assert f'<a href="{home}/bookings">12 of 13, all</a>' in text(boss.get(home))

    def test_a_shop_with_leads_alone_begins_with_them_and_has_no_calendar(
        self, owner: Owner, boss: Person, home: str
    ) -> None:
        submit(new_form(owner.api()), name="Ada")
        page = text(boss.get(home))
        assert headings(page)[:2] == ["Latest leads", "Waiting for you"]
        assert "Today" not in headings(page)
        assert f'href="{home}/leads?status=new"' in page
        assert "1 new lead<" in page

    def test_each_thing_that_waits_is_a_link_with_its_number(
        self, owner: Owner, boss: Person, home: str
    ) -> None:
        salon = Salon.opened(owner.api())
        for day in (18, 19):
            salon.book(f"2027-01-{day}T12:00", status="pending_payment")
        page = text(boss.get(home))
        path = f"{home}/bookings?view=list&status=pending_payment"
        assert f'href="{path}"' in page
        assert "2 bookings await payment" in page
        listed = text(boss.get(path))
        assert listed.count("Ada") >= 2

    @pytest.mark.usefixtures("boss")
    def test_a_member_sees_the_desk_without_the_balance(self, owner: Owner) -> None:
        Salon.opened(owner.api()).book("2027-01-15T17:00")
        overview = call_console(owner.workspace.id, "get_overview", membership="member")
        assert overview["funds"] is None
        assert len(overview["visits"]) == 1


class TestMenu:
    def test_fifteen_links_are_open_and_two_groups_are_closed(
        self, boss: Person, home: str
    ) -> None:
        menu = menu_of(text(boss.get(home)))
        open_part, *closed = menu.split("<details")
        assert open_part.count("<a ") == 15
        assert len(closed) == 2
        assert not any(re.match("[^>]* open", part) for part in closed)

    @pytest.mark.parametrize("name", ["settings_pages", "for_programs"])
    def test_a_closed_group_is_open_on_its_own_pages(
        self, name: str, boss: Person, home: str
    ) -> None:
        for link in GROUPS[name]:
            menu = menu_of(text(boss.get(home + link.path)))
            (group,) = re.findall("<details[^>]* open>.*?</details>", menu, re.DOTALL)
            assert f'href="{home}{link.path}" aria-current="page"' in group
