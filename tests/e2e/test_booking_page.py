"""The page behind the link in mails about a booking, in a browser without script."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.conftest import Api, Time
from tests.domains.notifications.clients import book, mails_to
from tests.domains.notifications.inbox import Inbox, run_until_idle, text_of
from tests.e2e.conftest import SCREENS, findings, markup_errors, save_screenshot
from tests.e2e.test_console import OVERFLOW
from tests.factories.salon import Salon

NOON = "2027-03-03T12:00:00Z"


@pytest.fixture
def link(
    service: str,
    api: Api,
    time: Time,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> str:
    """The link in the mail about a new booking."""
    monkeypatch.setenv("MAIL", "file")
    monkeypatch.setenv("MAIL_FOLDER", str(tmp_path))
    reload_settings()
    salon = Salon.opened(api, resources=[{"name": "Grace " + "Hopper" * 12}])
    book(salon, NOON)
    run_until_idle()
    found = re.search(r"http\S+/booking/[\w=-]+", text_of(mails_to(Inbox(tmp_path))[0]))
    assert found
    return found[0]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_client_sees_and_cancels_the_booking_on_any_screen(
    screen: str, link: str, open_url: Callable[..., object]
) -> None:
    options = SCREENS[screen] | {"locale": "en-GB"}
    with open_url(link, **options) as page:  # type: ignore[attr-defined]  # a context manager
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is confirmed")
        assert findings(page) == []
        assert markup_errors(page) == []
        assert page.evaluate(OVERFLOW) == []
        save_screenshot(page, f"booking-{screen}")
        page.get_by_role("button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")
        assert urlsplit(page.url).path == urlsplit(link).path
        assert page.get_by_role("button").count() == 0
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")


def test_the_page_works_without_script(link: str, open_url: Callable[..., object]) -> None:
    with open_url(link, java_script_enabled=False) as page:  # type: ignore[attr-defined]
        page.get_by_role("button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")
