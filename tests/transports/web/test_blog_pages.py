"""The blog's pages over HTTP, for browsers, feed readers and caches."""

import base64
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from chalicelib.core.settings import settings
from chalicelib.transports.web import assets
from tests.conftest import Answer, Api, Time
from tests.factories.examples import create_post
from tests.factories.files import photo
from tests.fakes.internet import Internet, http_response

BASE = settings().public_url


def get(path: str, method: str = "GET", **headers: str) -> Answer:
    with_hyphens = {name.replace("_", "-"): value for name, value in headers.items()}
    return Api(None).call(method, path, headers=with_hyphens)


def page(path: str, status: int = 200, **headers: str) -> str:
    answer = get(path, **headers)
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return answer.body.decode()


@pytest.fixture
def publish(database: None) -> Callable[..., dict[str, Any]]:
    def make(title: str = "Bread", **fields: Any) -> dict[str, Any]:
        return create_post(title=title, **{"status": "published"} | fields)

    return make


class TestPost:
    def test_a_post_has_metadata_for_search_engines_and_previews(
        self, publish: Any, time: Time
    ) -> None:
        publish(
            "Хлеб & <соль>",
            slug="bread",
            description='О "хлебе"',
            content="# Начало\n\nТекст **важный**.",
            tags=["ржаной хлеб"],
            author="Анна",
            category="Кухня",
        )
        html = page("/blog/bread", accept_language="ru")
        assert html.startswith('<!doctype html>\n<html lang="ru">')
        assert "<title>Хлеб &amp; &lt;соль&gt; | Workspace Automation API</title>" in html
        assert html.count("<h1>") == 1
        assert "<h2>Начало</h2>\n<p>Текст <strong>важный</strong>.</p>" in html
        assert f'<link rel="canonical" href="{BASE}/blog/bread">' in html
        assert '<meta name="description" content="О &#34;хлебе&#34;">' in html
        for name, value in {
            "og:type": "article",
            "og:title": "Хлеб &amp; &lt;соль&gt;",
            "og:url": f"{BASE}/blog/bread",
            "article:published_time": "2027-01-15T12:00:00.000Z",
            "article:tag": "ржаной хлеб",
        }.items():
            assert f'<meta property="{name}" content="{value}">' in html
        assert "15 января 2027" in html
        assert "1 минута чтения" in html
        assert (
            'href="/blog?tag=%D1%80%D0%B6%D0%B0%D0%BD%D0%BE%D0%B9%20%D1%85%D0%BB%D0%B5%D0%B1"'
            in html
        )
        assert "<script" not in html
        assert "15 January 2027" in page("/blog/bread", accept_language="en-GB,en;q=0.9")

    def test_a_post_is_cached_for_a_minute_and_revalidated(self, publish: Any) -> None:
        publish()
        answer = get("/blog/bread")
        assert answer.headers["Cache-Control"] == "public, max-age=60"
        assert answer.headers["Vary"] == "Accept-Language, Accept-Encoding"
        revalidated = get("/blog/bread", if_none_match=answer.headers["ETag"])
        assert (revalidated.status, revalidated.body) == (304, b"")
        head = get("/blog/bread", "HEAD")
        assert (head.status, head.headers["ETag"]) == (200, answer.headers["ETag"])
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith(
            "default-src 'none'; style-src 'self'; img-src 'self' https: data:"
        )
        assert "script-src" not in policy

    def test_a_post_edited_days_after_publication_shows_the_date_of_the_edit(
        self, publish: Any, time: Time, api: Api
    ) -> None:
        post = publish()
        assert "Updated" not in page("/blog/bread")
        time.pass_by(days=3)
        api.call("PUT", f"/api/admin/blog/{post['id']}", {"content": "new"})
        assert "Updated 18 January 2027" in page("/blog/bread")

    def test_a_former_slug_redirects_to_the_current_one(self, publish: Any, api: Api) -> None:
        post = publish(slug="one")
        api.call("PUT", f"/api/admin/blog/{post['id']}", {"slug": "two"})
        answer = get("/blog/one")
        assert (answer.status, answer.headers["Location"]) == (301, "/blog/two")

    def test_an_unpublished_or_unknown_post_is_a_404_page_with_links_to_others(
        self, publish: Any
    ) -> None:
        publish("Shown")
        create_post(title="Hidden")
        for path in ("/blog/none", "/blog/hidden", "/blog/%D1%8F", "/blog/list", "/blog?page=2"):
            html = page(path, 404, accept_language="ru")
            assert "<h1>Такой страницы нет</h1>" in html
            assert '<a href="/blog/shown">Shown</a>' in html
            assert '<meta name="robots" content="noindex">' in html
        assert get("/blog/none").headers["Cache-Control"] == "no-store"


class TestIndex:
    def test_an_empty_blog_shows_a_message(self, database: None) -> None:
        assert "Nothing here yet" in page("/blog")

    def test_ten_posts_are_listed_per_page_latest_first(self, publish: Any, time: Time) -> None:
        for number in range(12):
            time.pass_by(minutes=1)
            publish(f"Post {number:02}", tags=["even"] if number % 2 == 0 else [])
        first, second = page("/blog"), page("/blog?page=2")

        def titles(html: str) -> list[str]:
            return re.findall(r'<h2><a href="/blog/[a-z0-9-]+">(Post \d\d)</a></h2>', html)

        assert titles(first) == [f"Post {n:02}" for n in range(11, 1, -1)]
        assert titles(second) == ["Post 01", "Post 00"]
        assert '<a rel="next" href="/blog?page=2">' in first
        assert '<a rel="prev" href="/blog">' in second
        assert f'<link rel="canonical" href="{BASE}/blog?page=2">' in second
        tagged = page("/blog?tag=even")
        assert titles(tagged) == [f"Post {n:02}" for n in range(10, -1, -2)]
        assert "Posts tagged “even”" in tagged
        assert "6 posts" in tagged
        assert "No posts have this tag." in page("/blog?tag=%3Cb%3E")

    def test_a_cover_has_a_thumbnail_for_small_sizes(self, api: Api) -> None:
        content = base64.b64encode(photo(size=(800, 400))).decode()
        file = api.post("/api/files/upload", {"name": "a.jpg", "content": content})["file"]
        body = {"title": "Bread", "status": "published", "coverImage": file["url"]}
        cover = api.post("/api/admin/blog/create", body)["post"]["coverImage"]
        (image,) = re.findall('<img src="([^"]+)" srcset="([^"]+)" sizes', page("/blog"))
        small, large = image[1].split(", ")
        assert image[0] == cover
        assert large == f"{cover} 800w"
        assert re.fullmatch(r"http.*/files/.*/thumbnail/a\.jpg 400w", small)
        html = page("/blog/bread")
        assert f'<meta property="og:image" content="{cover}">' in html
        assert f'src="{cover}" alt="" width="800" height="400" fetchpriority="high"' in html

    def test_a_cover_that_could_not_be_imported_is_shown_from_its_original_url(
        self, api: Api, net: Internet
    ) -> None:
        net.serve("https://images.example.com", http_response(b"no", "404 Not Found"))
        url = 'https://images.example.com/a.png?x=1&y="<b>'
        body = {"title": "Bread", "status": "published", "coverImage": url}
        api.post("/api/admin/blog/create", body)
        original_url = "https://images.example.com/a.png?x=1&amp;y=&#34;&lt;b&gt;"
        assert f'<img src="{original_url}" alt="" decoding="async"' in page("/blog")
        answer = get("/blog/bread")
        html = answer.body.decode()
        assert f'<meta property="og:image" content="{original_url}">' in html
        assert "og:image:width" not in html
        assert '<meta name="twitter:card" content="summary_large_image">' in html
        assert f'<img class="cover" src="{original_url}" alt="" fetchpriority="high"' in html
        assert 'referrerpolicy="no-referrer"' in html
        assert "img-src 'self' https: data:" in answer.headers["Content-Security-Policy"]
        (listed_post,) = Api(None).get("/api/blog/list")["posts"]
        assert listed_post["coverImage"] == url

    @pytest.mark.parametrize("number", ["0", "-1", "x", "1e3", "99999999999", "٣"])
    def test_an_invalid_page_number_is_not_found(self, number: str, database: None) -> None:
        page(f"/blog?page={number}", 404)


class TestFeeds:
    def test_the_feed_is_rss_with_the_latest_posts(self, publish: Any, time: Time) -> None:
        publish("A & <b> \U0001f35e", description="d", tags=["t"], author="Ada")
        create_post(title="Draft")
        answer = get("/blog/rss.xml", accept_language="ru")
        assert answer.headers["Content-Type"] == "application/rss+xml; charset=utf-8"
        channel = ET.fromstring(answer.body)[0]  # noqa: S314  generated here
        (item,) = channel.findall("item")
        assert item.findtext("title") == "A & <b> \U0001f35e"
        assert item.findtext("link") == f"{BASE}/blog/a-b-bread"
        assert item.findtext("pubDate") == "Fri, 15 Jan 2027 12:00:00 +0000"
        assert channel.findtext("title") == "Workspace Automation API: Блог"
        assert get("/blog/rss.xml", if_none_match=answer.headers["ETag"]).status == 200
        headers = {"accept_language": "ru", "if_none_match": answer.headers["ETag"]}
        assert get("/blog/rss.xml", **headers).status == 304

    def test_characters_that_xml_cannot_contain_are_left_out(self, publish: Any) -> None:
        publish("Odd", content="a\x0bb\x00c \ufffe")
        ET.fromstring(get("/blog/rss.xml").body)  # noqa: S314  generated here

    def test_the_sitemap_lists_published_posts(self, publish: Any) -> None:
        publish("One")
        publish("Two")
        create_post(title="Draft")
        root = ET.fromstring(get("/sitemap.xml").body)  # noqa: S314  generated here
        urls = [url[0].text for url in root]
        assert urls == [f"{BASE}/blog", f"{BASE}/blog/two", f"{BASE}/blog/one"]
        assert f"Sitemap: {BASE}/sitemap.xml" in get("/robots.txt").body.decode()


class TestAssets:
    def test_a_style_sheet_is_cached_for_a_year_under_its_current_hash(
        self, database: None
    ) -> None:
        path = assets.style_url("blog")
        assert f'<link rel="stylesheet" href="{path}">' in page("/blog")
        answer = get(path)
        assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        old = get("/assets/blog.000000000000.css")
        assert (old.status, old.body) == (200, answer.body)
        assert old.headers["Cache-Control"] == "public, max-age=60"
        for path in ("/assets/x.css", "/assets/none.000000000000.css", "/assets/..%2Fblog.py"):
            assert get(path).status == 404

    def test_style_sheets_are_small_besides_normalize_css_and_its_licence(
        self,
    ) -> None:
        vendored = (assets._FOLDER / "static" / "normalize.css").read_bytes()
        normalize_size = len(assets.style_sheet("plain")) - len(
            assets.minified("tokens", "base", "brand", "notice")
        )
        for name in assets.STYLE_SHEETS:
            limit = 20_480 if name.startswith("console") else 12_288
            assert len(assets.style_sheet(name)) - normalize_size <= limit, name
        assert b"MIT" in vendored
        assert b"MIT" in assets.style_sheet("blog")
        for name in assets.STYLE_SHEETS:
            assert assets.style_sheet(name).count(b"{") == assets.style_sheet(name).count(b"}")

    def test_every_icon_is_hidden_from_screen_readers(self) -> None:
        for path in (assets._FOLDER / "icons").glob("*.svg"):
            svg = assets.icon(path.stem)
            assert svg.startswith('<svg class="icon" aria-hidden="true"')
            assert "script" not in svg


def test_a_page_refuses_a_post_request_and_lists_its_methods(database: None) -> None:
    answer = Api(None).call_refused("POST", "/blog", {})
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_failure_is_shown_as_an_html_page_with_the_request_id(
    monkeypatch: pytest.MonkeyPatch, database: None
) -> None:
    from chalicelib.core.errors import UnavailableError
    from chalicelib.domains.blog.operations import reading

    def fail(*_: object, **__: object) -> None:
        raise UnavailableError

    monkeypatch.setattr(reading, "published", fail)
    answer = get("/blog", accept_language="ru")
    assert answer.status == 503
    assert "Страница не открылась" in answer.body.decode()
    assert answer.headers["X-Request-Id"] in answer.body.decode()
