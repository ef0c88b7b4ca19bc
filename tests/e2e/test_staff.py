"""A member with the role *staff* works a day in a browser, on narrow phones and a desktop."""

from typing import Any

import pytest
from playwright.sync_api import expect

from chalicelib.core import clock
from tests.conftest import PASSWORD, call_console, call_operator
from tests.e2e.conftest import SCREENS, OpenConsole, save_screenshot
from tests.e2e.test_team import check
from tests.factories.console import Place

EMAIL = "vera@example.com"
SMALL: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "locale": "ru-RU"}
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture
def vera(workspace: Place) -> str:
    """A member of the staff with a booking of this hour. Return the id of the booking."""

    def call(operation: str, **arguments: Any) -> Any:
        return call_console(workspace.workspace_id, operation, **arguments)

    own = call("create_resource", name="Вера Николаева")["resource"]["id"]
    rules = [{"weekdays": DAYS, "start": "00:00", "end": "24:00"}]
    call("set_availability", resourceId=own, rules=rules)
    service = call(
        "create_service", name="Маникюр", durationMin=60, price=150_000, resourceIds=[own]
    )["service"]["id"]
    start = clock.now().replace(minute=0, second=0, microsecond=0)
    booking: str = call(
        "create_booking",
        serviceId=service,
        startAt=clock.iso(start),
        resourceId=own,
        client={"name": "Ада Байрон", "phone": "+74951112233"},
        notes="Без кофеина",
        ignoreSchedule=True,
    )["booking"]["id"]
    call_operator("create_account", email=EMAIL, password=PASSWORD, name="Вера")
    member = {"email": EMAIL, "role": "staff", "resourceId": own}
    call_operator("add_member", workspaceId=workspace.workspace_id, **member)
    return booking


@pytest.mark.parametrize(
    ("name", "screen"), [("small", SMALL), *SCREENS.items()], ids=["small", *SCREENS]
)
def test_a_day_of_a_member_of_the_staff(
    name: str, screen: dict[str, Any], workspace: Place, vera: str, open_console: OpenConsole
) -> None:
    home = f"{workspace.path}/bookings"
    with open_console(**screen) as tab:
        tab.start_session(EMAIL)
        assert tab.path == home
        pages = {
            "day": home,
            "week": f"{home}?view=week",
            "list": f"{home}?view=list",
            "booking": f"{home}/{vera}",
            "move": f"{home}/{vera}?do=move",
            "new": f"{home}/new",
            "link": f"{home}/calendar-link",
            "notifications": f"{workspace.path}/notifications",
        }
        for part, path in pages.items():
            assert tab.open(path).status == 200
            check(tab.page)
            save_screenshot(tab.page, f"staff-{part}-{name}")
        tab.open(f"{home}/new")
        tab.page.locator("#name").fill("Анна")
        tab.page.locator("#phone").fill("+7 495 222-33-44")
        tab.page.locator("input[name=start]").first.check()
        tab.page.locator("button[value=book]").click()
        expect(tab.page.get_by_role("status")).to_be_visible()
        check(tab.page)


def test_without_a_link_the_page_says_whom_to_ask(
    workspace: Place, vera: str, open_console: OpenConsole
) -> None:
    assert vera
    members = call_console(workspace.workspace_id, "list_members")["members"]
    account = next(each["accountId"] for each in members if each["email"] == EMAIL)
    call_console(workspace.workspace_id, "link_member", accountId=account, resourceId=None)
    with open_console(**SMALL) as tab:
        tab.start_session(EMAIL)
        expect(tab.page.locator(".empty h2")).to_be_visible()
        check(tab.page)
        save_screenshot(tab.page, "staff-without-link")
        tab.errors.clear()  # The browser reports the status 403.
