"""Services, staff and hours of the console in a browser."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from chalicelib.core import clock
from tests.conftest import PASSWORD, Api, call_console, call_operator
from tests.e2e.conftest import (
    EMAIL,
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG = "Парикмахерская" + "Донаудампфшиффартсгезельшафт" * 10
RTL = "مقص الشعر " * 15 + "للأطفال"
TEXTS = {
    "phone": {
        "add": "Добавить услугу",
        "duration": "Длительность",
        "price": "Цена",
        "create": "Создать услугу",
        "who": "Добавить сотрудников",
        "next": "Сохранить и задать часы",
        "monday": "Понедельник",
        "save": "Сохранить часы",
        "saved": "Часы работы сохранены.",
        "bookable": "Можно записаться",
    },
    "desktop": {
        "add": "Add service",
        "duration": "Duration",
        "price": "Price",
        "create": "Create service",
        "who": "Add staff",
        "next": "Save and set hours",
        "monday": "Monday",
        "save": "Save hours",
        "saved": "Hours saved.",
        "bookable": "It can be booked",
    },
}


def check(tab: ConsoleTab, name: str) -> None:
    """Check the open page as it is: its accessibility, its width and its markup."""
    save_screenshot(tab.page, f"console-{name}")
    assert elements(tab.page, OVERFLOW) == []
    assert elements(tab.page, UNCUT) == []
    assert findings(tab.page) == []


@pytest.fixture
def early_morning() -> Iterator[None]:
    """The service's clock is before working hours in Moscow, so that the whole day is free."""
    real = datetime.now(UTC)
    early = (real + timedelta(days=1)).replace(hour=1, minute=0)
    with clock.using(lambda: datetime.now(UTC) + (early - real)):
        yield


@pytest.fixture
def empty_workspace(service: str) -> dict[str, str]:
    """A workspace without records."""
    call_operator("create_account", email=EMAIL, password=PASSWORD, name="Анна")
    created: dict[str, str] = call_operator("create_workspace", owner=EMAIL, name="Салон")
    return created


@pytest.mark.usefixtures("early_morning")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_an_empty_workspace_becomes_bookable_by_its_pages_alone(
    screen: str, script: bool, empty_workspace: dict[str, str], open_console: OpenConsole
) -> None:
    texts = TEXTS[screen]
    with open_console(**SCREENS[screen], java_script_enabled=script) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"/console/w/{empty_workspace['slug']}/services")
        page.get_by_role("link", name=texts["add"]).click()
        page.locator("#name").fill("Стрижка")
        page.get_by_label(texts["duration"], exact=True).fill("1 ч 30 мин")
        page.get_by_label(texts["price"]).fill("1,5 тыс")
        page.get_by_role("button", name=texts["create"]).click()
        expect(page.locator("#price-error")).to_be_visible()
        expect(page.locator("#durationMin")).to_have_value("1 ч 30 мин")
        page.locator("#price").fill("1500")
        page.get_by_role("button", name=texts["create"]).click()
        page.get_by_role("link", name=texts["who"]).click()
        expect(page.get_by_label("Стрижка")).to_be_checked()
        page.locator("#name").fill("Анна")
        page.get_by_role("button", name=texts["next"]).click()
        expect(page.get_by_label(texts["monday"], exact=True)).to_be_checked()
        page.get_by_role("button", name=texts["save"]).click()
        expect(page.get_by_role("status")).to_have_text(texts["saved"])
        page.get_by_role("link", name="Стрижка").click()
        expect(page.get_by_role("heading", name=texts["bookable"])).to_be_visible()
        expect(page.locator(".rights .tag").first).to_contain_text("09:00")
        tab.errors = [error for error in tab.errors if "400" not in error]
    token = call_operator(
        "create_key",
        workspaceId=empty_workspace["workspaceId"],
        name="Check",
        scopes=["*:read"],
    )["token"]
    (service,) = Api(token).get("/api/services/list")["services"]
    assert (service["durationMin"], service["price"]) == (90, 150_000)
    assert Api(token).get(f"/api/bookings/slots?serviceId={service['id']}")["slots"]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_hours_are_edited_by_buttons_and_wrong_ones_are_kept(
    screen: str, script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen], java_script_enabled=script) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/staff/{workspace.staff}/hours")
        page.locator('[value="add:mon"]').click()
        fill(page, "mon", 0, "09:00", "13:00")
        fill(page, "mon", 1, "12:00", "18:00")
        page.locator("form.week .actions .button").first.click()
        expect(page.locator("#mon-1-error")).to_be_visible()
        expect(page.locator("#mon-1")).to_have_value("12:00")
        if script:
            check(tab, f"hours-error-{screen}-light")
        fill(page, "mon", 1, "14:00", "18:00")
        page.locator('[value="copy"]').click()
        expect(page.locator("#fri-1")).to_have_value("14:00")
        fill(page, "fri", 1, "22:00", "02:00")
        page.locator("form.week > .actions .button").first.click()
        page.locator('[name="next-fri"]').check()
        page.locator('[name="open"][value="wed"]').uncheck()
        expect(page.locator("#wed-0")).to_be_hidden()
        page.locator("form.week > .actions .button").first.click()
        expect(page.get_by_role("status").first).to_be_visible()
        tab.errors = [error for error in tab.errors if "400" not in error]
    rules = call_console(workspace.workspace_id, "list_availability", resourceId=workspace.staff)[
        "rules"
    ]
    by_day = {hours["weekday"] or hours["date"]: hours["intervals"] for hours in rules}
    assert by_day["thu"] == [
        {"start": "09:00", "end": "13:00"},
        {"start": "14:00", "end": "18:00"},
    ]
    assert by_day["fri"][1] == {"start": "22:00", "end": "02:00"}
    assert "wed" not in by_day
    assert by_day["2036-01-01"] == []


def fill(page: Page, day: str, line: int, start: str, end: str) -> None:
    """Fill in a line of a day's hours."""
    page.locator(f'[name="start-{day}"]').nth(line).fill(start)
    page.locator(f'[name="end-{day}"]').nth(line).fill(end)


@pytest.mark.parametrize("name", [LONG, RTL], ids=["long", "right-to-left"])
@pytest.mark.parametrize("screen", SCREENS)
def test_pages_stay_readable_with_long_names(
    screen: str, name: str, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        for operation, record in (
            ("update_service", workspace.service),
            ("update_resource", workspace.staff),
        ):
            call_console(workspace.workspace_id, operation, id=record, name=name[:200])
        service, staff = f"/services/{workspace.service}", f"/staff/{workspace.staff}"
        paths = ["/services", service, f"{service}/delete", "/staff", staff, f"{staff}/delete"]
        for number, path in enumerate([*paths, f"{staff}/hours", f"{staff}/time-off"]):
            tab.open(workspace.path + path)
            check(tab, f"names-{number}-{screen}")
            assert markup_errors(tab.page) == []
