"""The first minutes of an owner in a browser, from the empty overview to the first booking."""

import pytest
from playwright.sync_api import Locator, expect

from tests.conftest import PASSWORD, call_operator
from tests.e2e.conftest import EMAIL, SCREENS, ConsoleTab, OpenConsole
from tests.e2e.test_console_services import check
from tests.factories.console import Place

MAX_TAPS = 15
STEPS = {
    "phone": (
        "Добавьте услугу",
        "Создать услугу",
        "Добавить сотрудников",
        "Сохранить и задать часы",
    ),
    "desktop": ("Add a service", "Create service", "Add staff", "Save and set hours"),
}
SAVE = {"phone": "Сохранить часы", "desktop": "Save hours"}


@pytest.fixture
def slug(service: str) -> str:
    """The slug of a workspace without records."""
    call_operator("create_account", email=EMAIL, password=PASSWORD, name="Анна")
    return call_operator("create_workspace", owner=EMAIL, name="Салон")["slug"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_the_first_bookable_service_takes_few_taps(
    screen: str, scheme: str, slug: str, open_console: OpenConsole
) -> None:
    taps = 0

    def tap(target: Locator, text: str = "") -> None:
        nonlocal taps
        taps += 1
        target.click()
        if text:
            target.fill(text)

    add, create, who, hours = STEPS[screen]
    with open_console(**SCREENS[screen], color_scheme=scheme) as tab:
        page = tab.page
        tab.open("/console/sign-in")
        check(tab, f"owner-sign-in-{screen}-{scheme}")
        tab.start_session()
        expect(page.locator("ol.rows li")).to_have_count(6)
        check(tab, f"owner-first-steps-{screen}-{scheme}")
        tap(page.get_by_role("link", name=add))
        tap(page.locator("#name"), "Стрижка")
        tap(page.locator("#durationMin"), "60")
        tap(page.locator("#price"), "1500")
        tap(page.get_by_role("button", name=create))
        tap(page.get_by_role("link", name=who))
        tap(page.locator("#name"), "Анна")
        tap(page.get_by_role("button", name=hours))
        tap(page.get_by_role("button", name=SAVE[screen]))
        tap(page.get_by_role("link", name="Стрижка"))
        expect(page.locator(".head .tag.good")).to_be_visible()
        assert taps <= MAX_TAPS
        tab.open(f"/console/w/{slug}")
        expect(page.locator("ol.rows .tag.good")).to_have_count(2)
        tab.open(f"/console/w/{slug}/settings")
        check(tab, f"owner-settings-{screen}-{scheme}")
        tab.open(f"/console/w/{slug}/booking-page")
        check(tab, f"owner-booking-page-{screen}-{scheme}")
        tab.open(f"/console/w/{slug}/booking-page/assistants")
        check(tab, f"owner-assistants-{screen}-{scheme}")


@pytest.mark.parametrize("screen", SCREENS)
def test_what_was_typed_without_a_connection_is_kept(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen]) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/services/new")
        page.locator("#name").fill("Педикюр")
        page.locator("#durationMin").fill("60")
        page.context.set_offline(True)
        page.locator("form.card button.button").first.click()
        expect(page.locator("#offline")).to_be_visible()
        expect(page.locator("#name")).to_have_value("Педикюр")
        page.context.set_offline(False)
        page.reload()
        expect(page.locator("#name")).to_have_value("Педикюр")
        expect(page.locator("#durationMin")).to_have_value("60")
        page.locator("form.card button.button").first.click()
        expect(page.get_by_role("heading", name="Педикюр")).to_be_visible()
        tab.open(f"{workspace.path}/services/new")
        expect(page.locator("#name")).to_have_value("")


def test_the_browsers_zone_is_offered(workspace: Place, open_console: OpenConsole) -> None:
    with open_console(timezone_id="Europe/Berlin") as tab:
        tab.start_session()
        tab.open(f"{workspace.path}/settings")
        tab.page.get_by_role("button", name="Use the zone of this device: Europe/Berlin").click()
        expect(tab.page.locator("#timezone")).to_have_value("Europe/Berlin")


def test_the_overview_begins_with_today_and_what_waits(
    workspace: Place, open_console: OpenConsole
) -> None:
    for screen in SCREENS:
        with open_console(**SCREENS[screen]) as tab:
            tab.start_session()
            today, waits = {
                "phone": ("Сегодня", "Ждёт вас"),
                "desktop": ("Today", "Waiting for you"),
            }[screen]
            expect(tab.page.locator("h2").nth(0)).to_contain_text(today)
            expect(tab.page.locator("h2").nth(1)).to_have_text(waits)
            _check_overview(tab, screen)


def _check_overview(tab: ConsoleTab, screen: str) -> None:
    check(tab, f"owner-overview-{screen}-light")
