"""Pages of sites, as visitors open them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Answer, Api, as_operator
from tests.factories.examples import Things
from tests.transports.web.test_blog_pages import get

HTML = "<!doctype html><html><head><meta charset=utf-8></head><body><h1>Свежий хлеб</h1></body>"


@pytest.fixture
def bakery(api: Api, things: Things) -> Things:
    """A site with a home page and another one."""
    api.post("/api/pages/save-html", {"id": things.home, "html": HTML})
    api.post("/api/pages/save-html", {"id": things.page, "html": "<title>Own</title>About us"})
    return things


def test_a_page_is_served_with_missing_tags_added(api: Api, bakery: Things) -> None:
    api.post("/api/pages/update", {"id": bakery.home, "description": 'Bread & "rolls"'})
    answer = get("/s/bakery/")
    assert answer.status == 200
    html = answer.body.decode()
    assert html.startswith(
        "<!doctype html><html><head><title>Home</title>"
        '<meta name="description" content="Bread &amp; &quot;rolls&quot;"><meta charset=utf-8>'
    )
    assert '<h1>Свежий хлеб</h1><script>navigator.sendBeacon("http' in html
    assert get("/s/bakery/about").body.startswith(b"<title>Own</title>About us<script>")
    assert get("/s/bakery/home").body == answer.body


def test_a_page_has_a_separate_origin_and_is_cached_for_a_minute(bakery: Things) -> None:
    answer = get("/s/bakery/")
    assert answer.headers["Content-Security-Policy"] == (
        "sandbox allow-scripts allow-forms allow-popups"
    )
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert get("/s/bakery/", if_none_match=answer.headers["ETag"]).status == 304
    assert get("/s/bakery/", "HEAD").status == 200


def test_a_page_is_served_unchanged_if_counting_is_off(api: Api, bakery: Things) -> None:
    api.post("/api/projects/toggle-stats", {"id": bakery.site, "enabled": False})
    assert get("/s/bakery/about").body == b"<title>Own</title>About us"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/s/none", "По этому адресу нет сайта"),
        ("/s/bakery/none", "На главную страницу сайта"),
        ("/s/%3Cscript%3E", "По этому адресу нет сайта"),
    ],
)
def test_an_unknown_page_shows_a_message(path: str, message: str, bakery: Things) -> None:
    answer = get(path, accept_language="ru")
    assert answer.status == 404
    assert message in answer.body.decode()
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert "style-src 'sha256-" in answer.headers["Content-Security-Policy"]


def test_an_inactive_site_shows_its_state(api: Api, bakery: Things) -> None:
    def site_page() -> Answer:
        answer = get("/s/bakery", accept_language="en")
        assert answer.status == 404
        return answer

    api.post("/api/projects/update", {"id": bakery.site, "status": "inactive"})
    assert "This site is switched off" in site_page().body.decode()
    as_operator("suspend_site", id=bakery.site)
    assert "This site is suspended" in site_page().body.decode()
    api.post("/api/projects/delete", {"id": bakery.site})
    assert "There is no site at this address" in site_page().body.decode()


def test_a_home_page_ends_with_a_slash_and_other_pages_do_not(bakery: Things) -> None:
    for path, right in (
        ("/s/bakery", "/s/bakery/"),
        ("/s/bakery?utm_source=x&b=%D1%85&b=2", "/s/bakery/?utm_source=x&b=%D1%85&b=2"),
        ("/s/bakery/about/?utm=1", "/s/bakery/about?utm=1"),
    ):
        for method in ("GET", "HEAD"):
            answer = get(path, method)
            assert (answer.status, answer.headers["Location"]) == (301, right)
        assert get(right).status == 200
    assert get("/s/bakery/none/").status == get("/s/none").status == 404


def test_an_empty_page_shows_a_message(api: Api, things: Things) -> None:
    assert "This page is not ready yet" in get("/s/bakery").body.decode()
    made = api.post("/api/projects/create", {"title": "Empty"})["project"]
    assert "This page is not ready yet" in get(f"/s/{made['slug']}").body.decode()


class TestCustomDomain:
    @pytest.fixture(autouse=True)
    def _deployed(
        self, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("SITES_DOMAIN", "Sites.Example.")
        reload_settings()

    def test_a_site_is_recognised_by_its_host(self, api: Api, bakery: Things) -> None:
        site = api.get("/api/projects/list")["projects"][0]
        assert site["url"] == "https://bakery.sites.example"
        answer = get("/s/bakery", host="Bakery.sites.example:8000")
        assert answer.status == 200
        assert "Content-Security-Policy" not in answer.headers

    @pytest.mark.parametrize(
        "host", ["", "other.sites.example", "sites.example", "evil.example", "bakery.sites.evil"]
    )
    def test_an_unknown_host_is_not_found(self, host: str, bakery: Things) -> None:
        answer = get("/s/bakery", **({"host": host} if host else {}))
        assert answer.status == 404
        assert b"sites.example" not in answer.body

    def test_a_lead_has_the_page_it_came_from(self, api: Api, bakery: Things) -> None:
        body: dict[str, Any] = {"name": "Ada", "_page": "https://bakery.sites.example/about"}
        path = f"/api/public/forms/{bakery.form}/submit"
        lead = Api(None).post(path, body)["id"]
        assert api.get(f"/api/forms/collection/{lead}")["lead"]["pageId"] == bakery.page
