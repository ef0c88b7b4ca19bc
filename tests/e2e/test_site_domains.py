"""A customer's own domain in a browser, on the local server."""

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api
from tests.domains.sites.test_site_domains import Records, bind, new_site, project
from tests.e2e.conftest import save_screenshot
from tests.factories.widget import Opened

PAGE = "<h1>{title}</h1><p><a href='/'>Home</a> <a href='/menu'>Menu</a></p>"


@pytest.fixture
def site(service: str, api: Api, reload_settings: Callable[[], None]) -> str:
    """A site with two pages and a notice of its own for unknown addresses."""
    os.environ["SITE_HOSTS"] = "local"
    reload_settings()
    site = new_site(api)
    for title, slug in (("Bakery", "home"), ("Menu", "menu"), ("Lost?", "404")):
        about = {"projectId": site, "title": title, "slug": slug}
        page: dict[str, Any] = api.post("/api/pages/create", about)["page"]
        html = PAGE.format(title=title)
        api.post("/api/pages/save-html", {"id": page["id"], "html": html})
    return site


def set_records(records: Records, binding: dict[str, Any]) -> None:
    for record in binding["records"]:
        if record["type"] == "TXT":
            records[record["host"]] = {record["value"]}


def test_a_site_moves_to_its_own_domain_and_back(
    service: str, site: str, api: Api, open_url: Opened, txt_records: Records
) -> None:
    port, at_platform = urlsplit(service).port, f"{service}/s/bakery"
    own_url = f"http://www.example.com:{port}"
    pending = bind(api, site)
    assert pending["status"] == "pending"
    with open_url(f"{at_platform}/") as page:
        expect(page.get_by_role("heading")).to_have_text("Bakery")
        assert page.url == f"{at_platform}/"
    set_records(txt_records, pending)
    assert bind(api, site)["status"] == "verified"
    run_jobs()
    assert project(api, site)["domain"]["status"] == "active"
    assert project(api, site)["url"] == own_url
    with open_url(f"{at_platform}/menu?from=mail") as page:
        assert page.url == f"{own_url}/menu?from=mail"
        expect(page.get_by_role("heading")).to_have_text("Menu")
        canonical = page.locator("link[rel=canonical]")
        assert canonical.get_attribute("href") == f"{own_url}/menu"
        save_screenshot(page, "own-domain")
        page.get_by_role("link", name="Home").click()
        expect(page.get_by_role("heading")).to_have_text("Bakery")
        assert page.url == f"{own_url}/"
        for path in ("/console", "/api/projects/list", "/nothing/here"):
            answer = page.goto(f"{own_url}{path}")
            assert answer is not None
            assert answer.status == 404
            expect(page.get_by_role("heading")).to_have_text("Lost?")
        answer = page.goto(f"{at_platform}/sitemap.xml")
        assert answer is not None
        assert f"<loc>{own_url}/menu</loc>" in answer.text()
    assert bind(api, site, None) is None
    run_jobs()
    with open_url(f"{at_platform}/menu") as page:
        assert page.url == f"{at_platform}/menu"
        expect(page.get_by_role("heading")).to_have_text("Menu")
    with open_url(f"{own_url}/menu") as page:
        assert "Menu" not in page.content()


def test_a_name_below_localhost_needs_no_dns(
    service: str, site: str, api: Api, open_url: Opened
) -> None:
    own_url = f"http://shop.localhost:{urlsplit(service).port}"
    assert bind(api, site, "shop.localhost")["status"] == "verified"
    run_jobs()
    with open_url(f"{own_url}/menu") as page:
        expect(page.get_by_role("heading")).to_have_text("Menu")
    with open_url(f"http://other.localhost:{urlsplit(service).port}/menu") as page:
        assert "Menu" not in page.content()
