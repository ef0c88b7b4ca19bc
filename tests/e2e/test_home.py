"""The start page of the service in a browser."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.e2e.conftest import markup_errors, save_screenshot


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_start_page_is_small_and_accessible(
    service: str, open_url: Any, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    with open_url(f"{service}/", color_scheme=scheme, viewport=size, locale="ru-RU") as page:
        assert page.evaluate("performance.getEntriesByType('resource').length") <= 5
        assert page.evaluate("document.documentElement.scrollWidth") == width
        violations = Axe().run(page).response["violations"]
        assert [
            f"{violation['id']}: {violation['nodes'][0]['html'][:160]}" for violation in violations
        ] == []
        assert markup_errors(page) == []
        save_screenshot(page, f"home-{width}-{scheme}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Запись")
        page.get_by_role("link", name="English").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Bookings")
        page.get_by_role("link", name="API reference").click()
        assert page.url == f"{service}/api/docs"
