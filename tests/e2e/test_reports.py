"""The page of reports in a browser: readable charts in light and dark, on narrow screens."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from chalicelib.domains.identity.store import accounts
from tests.conftest import Owner, Time, call_console
from tests.e2e.conftest import (
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import MOST_BYTES, OVERFLOW
from tests.factories.salon import CREATE, Salon

NARROW = {"viewport": {"width": 320, "height": 640}, "locale": "ru-RU"}
WEEKS = 12


@pytest.fixture
def owner_of_salon(service: str, new_owner: Callable[..., Owner], time: Time) -> Owner:
    """The owner of a salon with visits of twelve weeks."""
    owner, chance = new_owner(name="Salon"), random.Random(1)
    salon = Salon.opened(owner.api(), [{"name": "Анна Соколова"}, {"name": "Ольга"}])
    body = {"name": "Окрашивание волос в один тон", "durationMin": 120, "price": 520_000}
    body["resourceIds"] = salon.resources
    colour = salon.api.post("/api/services/create", body)["service"]["id"]
    for week in range(WEEKS):
        for number in range(chance.randrange(1, 5)):
            start = time.now - timedelta(weeks=week, hours=3 + 3 * number)
            made = salon.api.post(
                CREATE,
                salon.order(
                    start.isoformat(),
                    f"Client {chance.randrange(9)}",
                    serviceId=chance.choice([salon.service, colour]),
                    resourceId=chance.choice(salon.resources),
                    ignoreSchedule=True,
                ),
            )["booking"]["id"]
            status = chance.choice(["completed", "completed", "completed", "no_show"])
            salon.set_status(made, status)
            if status == "completed" and chance.random() < 0.7:
                call_console(
                    owner.workspace.id, "note_visit_payment", bookingId=made, method="cash"
                )
    return owner


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", ["narrow", "desktop"])
def test_reports_are_readable(
    owner_of_salon: Owner, open_console: OpenConsole, screen: str, scheme: str
) -> None:
    options = {"narrow": NARROW, **SCREENS}[screen] | {"color_scheme": scheme}
    with open_console(**options) as tab:
        tab.start_session(accounts.get(owner_of_salon.workspace.owner_id).email)
        path = f"/console/w/{owner_of_salon.workspace.slug}"
        for name, query in (("reports", "?from=2026-10-20&to=2027-01-15"), ("", "")):
            tab.open(f"{path}/{name}{query}")
            assert findings(tab.page) == []
            assert markup_errors(tab.page) == []
            assert elements(tab.page, OVERFLOW) == []
            save_screenshot(tab.page, f"{name or 'overview-money'}-{screen}-{scheme}")
        tab.open(f"{path}/reports?from=2025-01-16&to=2027-01-15")
        assert elements(tab.page, OVERFLOW) == []
        assert sum(len(response.body()) for response in tab.responses) <= MOST_BYTES
        save_screenshot(tab.page, f"reports-two-years-{screen}-{scheme}")


def test_charts_are_a_table_without_script(
    owner_of_salon: Owner, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS["desktop"], java_script_enabled=False) as tab:
        tab.start_session(accounts.get(owner_of_salon.workspace.owner_id).email)
        tab.open(f"/console/w/{owner_of_salon.workspace.slug}/reports?from=2026-10-20")
        chart = tab.page.get_by_role("img", name="Revenue by week")
        expect(chart).to_be_visible()
        table = tab.page.get_by_role("table", name="All weeks as a table")
        expect(table.get_by_role("rowheader")).to_have_count(WEEKS + 1)
        expect(table.get_by_role("columnheader").first).to_have_text("Week from")
