"""Pages of sites, as visitors open them."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domains.sites.store.pages import MAX_FORMER_SLUGS
from tests.conftest import Answer, Api, call_console, call_operator
from tests.factories.examples import Things
from tests.transports.web.test_blog_pages import get

HTML = "<!doctype html><html><head><meta charset=utf-8></head><body><h1>Свежий хлеб</h1></body>"


@pytest.fixture
def bakery(api: Api, things: Things) -> Things:
    """A site with a home page and another one."""
    api.post("/api/pages/save-html", {"id": things.home, "html": HTML})
    api.post("/api/pages/save-html", {"id": things.page, "html": "<title>Own</title>About us"})
    return things


def set_logo(api: Api, url: str) -> None:
    workspace = api.get("/api/workspaces/list")["workspaces"][0]["id"]
    call_console(workspace, "set_workspace", logoUrl=url)


def test_a_page_is_served_with_missing_tags_added(api: Api, bakery: Things) -> None:
    api.post("/api/pages/update", {"id": bakery.home, "description": 'Bread & "rolls"'})
    answer = get("/s/bakery/")
    assert answer.status == 200
    html = answer.body.decode()
    assert html.startswith(
        "<!doctype html><html><head><title>Home</title>"
        '<meta name="description" content="Bread &amp; &quot;rolls&quot;">'
        '<link rel="canonical" href="http://127.0.0.1:8000/s/bakery/"><meta charset=utf-8>'
    )
    assert '<h1>Свежий хлеб</h1><script>navigator.sendBeacon("http' in html
    link = '<link rel="canonical" href="http://127.0.0.1:8000/s/bakery/about">'
    about = get("/s/bakery/about").body.decode()
    assert about.startswith(f"{link}<title>Own</title>About us<script>")
    assert get("/s/bakery/home").body == answer.body


def test_a_page_has_a_separate_origin_and_is_cached_for_a_minute(bakery: Things) -> None:
    answer = get("/s/bakery/")
    assert answer.headers["Content-Security-Policy"] == (
        "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox "
        "allow-downloads allow-modals"
    )
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert get("/s/bakery/", if_none_match=answer.headers["ETag"]).status == 304
    assert get("/s/bakery/", "HEAD").status == 200


def test_a_page_is_served_unchanged_if_counting_is_off(api: Api, bakery: Things) -> None:
    api.post("/api/projects/toggle-stats", {"id": bakery.site, "enabled": False})
    html = '<link rel="canonical" href="/about"><title>Own</title>About us'
    api.post("/api/pages/save-html", {"id": bakery.page, "html": html})
    assert get("/s/bakery/about").body.decode() == html


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
    call_operator("suspend_site", id=bakery.site)
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
    site = api.post("/api/projects/create", {"title": "Empty"})["project"]
    assert "This page is not ready yet" in get(f"/s/{site['slug']}").body.decode()


class TestNotFoundPage:
    def test_a_site_shows_its_own_page_for_unknown_addresses(
        self, api: Api, bakery: Things
    ) -> None:
        page = {"projectId": bakery.site, "title": "Lost?", "slug": "404"}
        page_id = api.post("/api/pages/create", page)["page"]["id"]
        assert "На главную" in get("/s/bakery/none", accept_language="ru").body.decode()
        api.post("/api/pages/save-html", {"id": page_id, "html": "<h1>Lost?</h1>"})
        for path in ("none", "404"):
            answer = get(f"/s/bakery/{path}")
            assert answer.status == 404
            assert b"<h1>Lost?</h1>" in answer.body
            assert b"canonical" not in answer.body
            assert answer.headers["Content-Security-Policy"].startswith("sandbox")
            assert "public" not in answer.headers["Cache-Control"]


LOGO = "https://cdn.example/logo.png"
PIXEL = '<img src="https://mc.yandex.ru/watch/1"><img src="/dot.gif" width="1" height="1">'


class TestIcons:
    def save(self, api: Api, bakery: Things, html: str) -> str:
        api.post("/api/pages/save-html", {"id": bakery.page, "html": html})
        return get("/s/bakery/about").body.decode()

    def image_of(self, html: str) -> list[str]:
        return re.findall('<meta property="?og:image"? content="?([^">]+)', html)

    def test_a_page_has_the_logo_as_icon_and_its_first_image_as_preview(
        self, api: Api, bakery: Things
    ) -> None:
        html = self.save(api, bakery, f"<h1>Rye</h1>{PIXEL}<img src='b.svg'><img src='a b.jpg'>")
        assert "icon" not in html
        assert self.image_of(html) == ["http://127.0.0.1:8000/s/bakery/a%20b.jpg"]
        set_logo(api, LOGO)
        html = self.save(api, bakery, "<img src='https://a.example/x.png?a=1&amp;b'>")
        assert f'<link rel="icon" href="{LOGO}">' in html
        assert self.image_of(html) == ["https://a.example/x.png?a=1&amp;b"]

    @pytest.mark.parametrize(
        ("html", "image"),
        [
            ("<h1>Rye</h1>", LOGO),
            (f"<p>{PIXEL}", LOGO),
            ("<img src='data:image/gif;base64,AAAA' data-src='//cdn.example/1.jpg'>", None),
        ],
    )
    def test_a_page_without_images_has_the_logo_as_preview(
        self, html: str, image: str | None, api: Api, bakery: Things
    ) -> None:
        set_logo(api, LOGO)
        expected = image or "http://cdn.example/1.jpg"
        assert self.image_of(self.save(api, bakery, html)) == [expected]

    def test_a_page_keeps_its_own_icon_and_preview(self, api: Api, bakery: Things) -> None:
        set_logo(api, LOGO)
        own = (
            "<link rel='shortcut icon' href=/own.ico><meta property=og:image content=/own.png>"
            "<title>Own</title><img src=/1.png>"
        )
        html = self.save(api, bakery, own)
        assert LOGO not in html
        assert self.image_of(html) == ["/own.png"]
        assert html.count("icon") == 1

    def test_favicon_ico_leads_to_the_logo(self, api: Api, bakery: Things) -> None:
        assert get("/s/bakery/favicon.ico").status == 404
        set_logo(api, LOGO)
        answer = get("/s/bakery/favicon.ico")
        assert (answer.status, answer.headers["Location"]) == (302, LOGO)
        assert "public" in answer.headers["Cache-Control"]
        assert get("/s/none/favicon.ico").status == 404


class TestFormerSlugs:
    def rename(self, api: Api, page: str, slug: str) -> None:
        api.post("/api/pages/update", {"id": page, "slug": slug})

    def test_a_former_slug_redirects_to_the_present_one(self, api: Api, bakery: Things) -> None:
        for slug in ("team", "people"):
            self.rename(api, bakery.page, slug)
        for former in ("about", "team"):
            answer = get(f"/s/bakery/{former}?a=1")
            assert (answer.status, answer.headers["Location"]) == (301, "/s/bakery/people?a=1")
        self.rename(api, bakery.page, "about")
        assert get("/s/bakery/about").status == 200
        assert get("/s/bakery/people").headers["Location"] == "/s/bakery/about"

    def test_addresses_of_files_redirect_to_pages(self, api: Api, bakery: Things) -> None:
        self.rename(api, bakery.page, "team")
        for name, right in (
            ("team.html", "team"),
            ("team.HTM?a=1", "team?a=1"),
            ("index.html", ""),
            ("about.html", "team"),
        ):
            answer = get(f"/s/bakery/{name}")
            assert (answer.status, answer.headers["Location"]) == (301, f"/s/bakery/{right}")
        for name in ("none.html", "team.php", ".html", "team.html.html"):
            assert get(f"/s/bakery/{name}").status == 404
        index = {"projectId": bakery.site, "title": "Index", "slug": "index"}
        api.post("/api/pages/create", index)
        assert get("/s/bakery/index.html").headers["Location"] == "/s/bakery/index"

    def test_another_page_may_take_a_former_slug(self, api: Api, bakery: Things) -> None:
        self.rename(api, bakery.page, "team")
        page = {"projectId": bakery.site, "title": "About", "slug": "about"}
        other = api.post("/api/pages/create", page)["page"]["id"]
        api.post("/api/pages/save-html", {"id": other, "html": "<h1>New</h1>"})
        assert b"<h1>New</h1>" in get("/s/bakery/about").body
        self.rename(api, other, "story")
        assert get("/s/bakery/about").headers["Location"] == "/s/bakery/story", "the last one"

    def test_the_former_slugs_of_a_deleted_page_lead_nowhere(
        self, api: Api, bakery: Things
    ) -> None:
        self.rename(api, bakery.page, "team")
        api.post("/api/pages/delete", {"id": bakery.page, "confirm": True})
        assert get("/s/bakery/about").status == 404

    def test_only_the_latest_former_slugs_redirect(self, api: Api, bakery: Things) -> None:
        for number in range(MAX_FORMER_SLUGS + 1):
            self.rename(api, bakery.page, f"about-{number}")
        assert get("/s/bakery/about").status == 404
        assert get("/s/bakery/about-0").status == 301


class TestFilesForSearchEngines:
    def test_the_sitemap_has_the_pages_with_html(self, api: Api, bakery: Things) -> None:
        for slug in ("404", "empty"):
            page = {"projectId": bakery.site, "title": slug, "slug": slug}
            page_id = api.post("/api/pages/create", page)["page"]["id"]
            if slug == "404":
                api.post("/api/pages/save-html", {"id": page_id, "html": "<h1>Lost?</h1>"})
        answer = get("/s/bakery/sitemap.xml")
        assert answer.headers["Content-Type"] == "application/xml; charset=utf-8"
        base = "http://127.0.0.1:8000/s/bakery"
        assert re.findall("<loc>(.*?)</loc>", answer.body.decode()) == [f"{base}/", f"{base}/about"]
        for location in (f"{base}/", f"{base}/about"):
            assert get(location.removeprefix("http://127.0.0.1:8000")).status == 200

    def test_robots_txt_names_the_sitemap(self, bakery: Things) -> None:
        answer = get("/s/bakery/robots.txt")
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.body.decode().splitlines() == [
            "User-agent: *",
            "Allow: /",
            "",
            "Sitemap: http://127.0.0.1:8000/s/bakery/sitemap.xml",
        ]

    @pytest.mark.parametrize("file", ["robots.txt", "sitemap.xml"])
    def test_a_hidden_site_has_none(self, file: str, api: Api, bakery: Things) -> None:
        api.post("/api/projects/update", {"id": bakery.site, "status": "inactive"})
        assert get(f"/s/bakery/{file}").status == get(f"/s/none/{file}").status == 404


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

    def test_the_edge_names_the_host_in_the_path(self, api: Api, bakery: Things) -> None:
        host = "bakery.sites.example"
        answer = get(f"/s/{host}", host=host)
        assert (answer.status, answer.body) == (200, get("/s/bakery", host=host).body)
        assert b'href="https://bakery.sites.example/"' in answer.body
        assert get(f"/s/{host}/about/", host=host).status == 200
        assert (
            b"https://bakery.sites.example/about<" in get(f"/s/{host}/sitemap.xml", host=host).body
        )
        api.post("/api/pages/update", {"id": bakery.page, "slug": "team"})
        assert get(f"/s/{host}/about", host=host).headers["Location"] == "/team"
        assert get(f"/s/{host}/team.html", host=host).headers["Location"] == "/team"
        assert get(f"/s/{host}/index.html", host=host).headers["Location"] == "/"
        set_logo(api, LOGO)
        assert get(f"/s/{host}/favicon.ico", host=host).headers["Location"] == LOGO
        for other in ("other.sites.example", "a.bakery.sites.example", "evil.example"):
            assert get(f"/s/{host}", host=other).status == 404
            assert get(f"/s/{other}", host=other).status == 404

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
