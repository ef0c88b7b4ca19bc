"""Pages of a workspace with more records than a page shows, in a browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.conftest import call_console
from tests.e2e.conftest import (
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import MOST_BYTES, OVERFLOW
from tests.factories.console import Place
from tests.factories.crowd import NAMES, seed

PAGES = {
    "new-booking": "bookings/new",
    "booking-list": "bookings?view=list",
    "day": "bookings?date=2027-01-18",
    "new-service": "services/new",
    "new-staff": "staff/new",
    "leads": "leads?tag=x",
    "sites": "sites",
    "forms": "forms",
    "booking-page": "booking-page",
    "capabilities": "bots/{bot}/capabilities",
    "embed": "bots/{bot}/embed",
    "member": "members/{member}",
}
SCREEN = {**SCREENS, "narrow": {"viewport": {"width": 320, "height": 640}, "locale": "ru-RU"}}


@pytest.fixture
def crowd(workspace: Place) -> Place:
    """The workspace with many records of each noun."""
    seed(workspace)
    return workspace


@pytest.mark.parametrize("screen", SCREEN)
def test_pages_of_many_records_are_light_and_accessible(
    screen: str, crowd: Place, open_console: OpenConsole
) -> None:
    problems: dict[str, list[str]] = {}
    with open_console(**SCREEN[screen]) as tab:
        tab.start_session()
        for name, path in PAGES.items():
            tab.open(f"{crowd.path}/{path.format(**vars(crowd))}")
            bad = [f"wider than the screen: {each}" for each in elements(tab.page, OVERFLOW)]
            size = sum(len(response.body()) for response in tab.responses)
            bad += [f"{size} bytes"] if size > MOST_BYTES else []
            bad += markup_errors(tab.page) + findings(tab.page)
            save_screenshot(tab.page, f"long-{name}-{screen}")
            if bad:
                problems[path] = bad
    assert not problems, problems


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no script"])
def test_a_service_beyond_the_first_fifty_is_bound_and_booked(
    scripts: bool, crowd: Place, open_console: OpenConsole
) -> None:
    name = sorted(NAMES["SERVICE"])[110]
    with open_console(java_script_enabled=scripts) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{crowd.path}/staff/new")
        page.get_by_label("Name", exact=True).fill("Vera")
        expect(page.get_by_label(name)).to_have_count(0)
        find = page.get_by_label("find by a part of the name")
        expect(find).to_have_accessible_description(re.compile("The first 50 of 121"))
        find.fill(name)
        find.press("Enter")
        expect(page.get_by_label("Name", exact=True)).to_have_value("Vera")
        page.get_by_label(name).check()
        save_screenshot(page, "long-found")
        page.get_by_label("Name", exact=True).press("Enter")
        expect(page.get_by_role("status")).to_be_visible()
        tab.open(f"{crowd.path}/bookings/new")
        page.get_by_label("find by a part of the name").first.fill(name)
        page.locator('button[name="find"][value="service"]').click()
        page.get_by_role("button", name=name).click()
        expect(page.locator("button.chip[aria-pressed]")).to_contain_text(name)
    service = call_console(crowd.workspace_id, "list_services", q=name)["services"][0]
    assert len(service["resourceIds"]) == 1
