"""The service's start page, and the descriptions of pages for search engines."""

import re

import pytest

from tests.transports.web.test_blog_pages import get, page

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

pytestmark = pytest.mark.usefixtures("database")


def test_the_start_page_links_to_console_reference_and_blog() -> None:
    html = page("/", accept=BROWSER, accept_language="ru")
    for path in ("/console", "/api/docs", "/api/docs/tool-server", "/blog"):
        assert f'href="{path}"' in html
        assert get(path, accept=BROWSER).status in {200, 303}
    assert "Открыть консоль" in html
    assert "Open the console" in page("/", accept=BROWSER)


def test_the_start_page_is_revalidated_and_has_a_head() -> None:
    answer = get("/", accept=BROWSER)
    assert answer.headers["Vary"].startswith("Accept, Accept-Language")
    assert get("/", accept=BROWSER, if_none_match=answer.headers["ETag"]).status == 304
    head = get("/", "HEAD", accept=BROWSER)
    assert (head.status, head.headers["ETag"]) == (200, answer.headers["ETag"])


@pytest.mark.parametrize("accept", ["*/*", "application/json", ""])
def test_other_clients_get_the_json_of_an_unknown_path(accept: str) -> None:
    answer = get("/", accept=accept)
    assert (answer.status, answer.data["code"]) == (404, "not_found")
    assert answer.headers["Vary"].split(", ")[0] == "Accept"


def test_crawlers_may_read_the_reference() -> None:
    lines = get("/robots.txt").body.decode().splitlines()
    assert {"Disallow: /api/", "Allow: /api/docs"} <= set(lines)


@pytest.mark.parametrize(
    "path",
    ["/", "/api/docs", "/api/docs/errors", "/api/docs/products", "/console/sign-in", "/blog"],
)
def test_indexed_pages_have_one_description(path: str) -> None:
    html = page(path, accept=BROWSER)
    assert len(re.findall(r'<meta name="description" content="[^"]{30,}">', html)) == 1
