"""HTML, title, slug and URLs of imported pages."""

import re
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.operations import pages as records
from tests.conftest import Api, Owner
from tests.domains.sites.page_import.helpers import (
    IMAGE_SERVER,
    IMPORT,
    MIB,
    html_of,
    images,
    import_page,
    page,
)
from tests.factories.files import list_stored_files
from tests.factories.pages import rows_of
from tests.factories.products import png
from tests.factories.urls import HOSTILE, INSIDE
from tests.fakes.internet import Internet, Server, http_response, to
from tests.support.warned import warned


class TestPage:
    def test_given_html_is_stored_unchanged(self, api: Api, site: str) -> None:
        html = '<title> Пекарня\n «Ёж» </title><a href="/menu">Menu</a>'
        answer = import_page(api, site, html=html)
        assert html_of(api, answer) == html
        assert (answer["page"]["title"], answer["page"]["slug"]) == ("Пекарня «Ёж»", "pekarnya-ezh")
        assert answer["imported"] == {"images": 0, "failed": []}
        stored_page = api.get(f"/api/pages/{answer['page']['id']}")["page"]
        assert stored_page == answer["page"] | {"html": html, "sections": None}

    def test_a_fetched_page_has_absolute_urls(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {
            "/shop/": page('<title>Shop</title><a href="cakes?a=1&amp;b=2">x</a><a href="#top">')
        }
        answer = import_page(api, site, url=f"{IMAGE_SERVER}/shop/")
        assert f'href="{IMAGE_SERVER}/shop/cakes?a=1&amp;b=2"' in html_of(api, answer)
        assert 'href="#top"' in html_of(api, answer)

    def test_urls_are_resolved_against_the_final_redirect(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": to("/new/"), "/new/": page('<a href="x">')}
        assert f"{IMAGE_SERVER}/new/x" in html_of(api, import_page(api, site, url=IMAGE_SERVER))

    def test_a_page_is_read_in_its_own_encoding(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        body = "<title>Пекарня</title>".encode("cp1251")
        image_server.pages = {
            "/": http_response(body, content_type="text/html; charset=windows-1251")
        }
        assert import_page(api, site, url=IMAGE_SERVER)["page"]["title"] == "Пекарня"

    @pytest.mark.parametrize(
        ("html_title", "title"),
        [
            ("a\x07b&#7;\x7fc", "abc"),
            ("Invoice\u202efdp.exe", "Invoicefdp.exe"),
            ("❤️ 👩‍🚀", "❤️ 👩‍🚀"),
            ("\u200d" * 300 + "hidden", "Imported page"),
        ],
    )
    def test_the_title_is_always_a_valid_one(
        self, html_title: str, title: str, api: Api, site: str
    ) -> None:
        new_page = import_page(api, site, html=f"<title>{html_title}</title>")["page"]
        assert new_page["title"] == title
        copy = api.post("/api/pages/create", {"projectId": site, "title": new_page["title"]})
        assert copy["page"]["title"] == title

    def test_an_import_may_replace_a_page_and_increments_its_version(
        self, api: Api, site: str
    ) -> None:
        keys_before = list_stored_files()
        first = import_page(api, site, html="<title>One</title>1")["page"]
        second = api.post(IMPORT, {"pageId": first["id"], "html": "<title>Two</title>2"})
        assert (second["page"]["title"], second["page"]["version"]) == ("Two", 2)
        assert html_of(api, second).endswith("2")
        body = {"pageId": first["id"], "html": "3", "title": "Three"}
        third = api.post(IMPORT, body)["page"]
        assert (third["title"], third["slug"], third["version"]) == ("Three", "one", 3)
        untitled = api.post(IMPORT, {"pageId": first["id"], "html": "<title> </title>4"})["page"]
        assert (untitled["title"], untitled["version"]) == ("Three", 4)
        assert len(list_stored_files() - keys_before) == 4, "each save of the last 24 hours"

    def test_version_mismatch_is_refused_before_the_fetch(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": page("<p>new")}
        existing = import_page(api, site, html="<p>old")["page"]
        body = {"pageId": existing["id"], "url": IMAGE_SERVER}
        answer = api.call_refused("POST", IMPORT, {**body, "ifVersion": 7})
        assert (answer.status, answer.data["code"]) == (409, "version_conflict")
        assert (answer.data["version"], image_server.paths) == (1, [])
        assert api.post(IMPORT, {**body, "ifVersion": 1})["page"]["version"] == 2

    def test_a_page_changed_during_the_fetch_is_a_conflict(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        existing = import_page(api, site, html="<p>old")["page"]

        def slow(sock: Any) -> None:
            api.post("/api/pages/save-html", {"id": existing["id"], "html": "<p>rival"})
            page("<p>new")(sock)

        image_server.pages = {"/": slow}
        body = {"pageId": existing["id"], "url": IMAGE_SERVER, "ifVersion": 1}
        assert api.call_refused("POST", IMPORT, body).data["code"] == "version_conflict"
        assert api.get(f"/api/pages/{existing['id']}")["page"]["html"] == "<p>rival"

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ({"projectId": "here", "ifVersion": 1}, "ifVersion"),
            ({"pageId": "x", "slug": "s"}, "slug"),
            (
                {"projectId": "here", "html": None, "url": IMAGE_SERVER, "baseUrl": IMAGE_SERVER},
                "baseUrl",
            ),
            *(
                ({"projectId": "here", "baseUrl": url}, "baseUrl")
                for url in ("/a", "ftp://a.b", "http://", "https://u:p@a.b", "x", "http://a b/", 1)
            ),
        ],
    )
    def test_arguments_that_do_not_apply_are_refused(
        self, more: dict[str, Any], field: str, api: Api, site: str
    ) -> None:
        body = {"html": "<p>"} | more
        body |= {"projectId": site} if "projectId" in more else {}
        answer = api.call_refused("POST", IMPORT, body)
        assert answer.status == 400
        assert [error["field"] for error in answer.data["errors"]] == [field]

    def test_the_description_comes_from_the_meta_tag(self, api: Api, site: str) -> None:
        html = '<meta name="Description" content=" Свежий\n хлеб &amp; торты ">'
        new_page = import_page(api, site, html=html)["page"]
        assert new_page["description"] == "Свежий хлеб & торты"
        here = {"pageId": new_page["id"]}
        assert (
            api.post(IMPORT, here | {"html": "<p>"})["page"]["description"]
            == (new_page["description"])
        )
        long = f"<meta name=description content='{'ж' * 600}'>"
        assert api.post(IMPORT, here | {"html": long})["page"]["description"] == "ж" * 500
        assert import_page(api, site, html="<p>")["page"]["description"] is None

    @pytest.mark.parametrize("html", ["", " \n\t", "\ufeff"])
    def test_an_empty_page_is_400(
        self, html: str, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": page(html)}
        for source in ("html", "url"):
            fields = {"projectId": site, source: html if source == "html" else IMAGE_SERVER}
            answer = api.call_refused("POST", IMPORT, fields)
            assert answer.status == 400
            assert [error["field"] for error in answer.data["errors"]] == [source]

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"html": "<p>", "url": IMAGE_SERVER},
            {"html": "<p>", "pageId": "x"},
            {"html": "<p>", "projectId": None},
            {"html": "<p>", "projectId": None, "pageId": "x", "slug": "s"},
        ],
    )
    def test_exactly_one_source_and_one_target_are_required(
        self, more: dict[str, Any], api: Api, site: str
    ) -> None:
        fields = {"projectId": site} | more
        body = {name: value for name, value in fields.items() if value is not None}
        assert api.call_refused("POST", IMPORT, body).status == 400

    @pytest.mark.parametrize("place", ["projectId", "pageId", "full"])
    def test_full_target_is_refused_before_the_fetch(
        self, place: str, image_server: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image_server.pages = {"/": page(images("a.png")), "/a.png": http_response(png())}
        if place == "full":
            monkeypatch.setattr(records, "MAX_PAGES", 1)
            import_page(api, site, html="<p>")
        where = {"projectId": site} if place == "full" else {place: new_id()}
        answer = api.call_refused("POST", IMPORT, where | {"url": IMAGE_SERVER})
        assert answer.status == (409 if place == "full" else 404)
        assert image_server.paths == []

    def test_html_and_images_share_one_fetch_limit(
        self, image_server: Server, api: Api, owner: Owner, site: str
    ) -> None:
        image_server.pages = {"/a.png": http_response(png())}
        new_page = import_page(api, site, html="<p>" + images(f"{IMAGE_SERVER}/a.png"))["page"]
        (file,) = rows_of(owner, "FILE")
        (row,) = rows_of(owner, "PAGE")
        assert int(row["html_bytes"]["N"]) == new_page["htmlBytes"]
        size = new_page["htmlBytes"] + int(file["size"]["N"])
        assert files.used_bytes(owner.workspace.id) == size

    @pytest.mark.parametrize("source", ["html", "url"])
    def test_oversized_page_is_413_before_its_images_are_fetched(
        self, source: str, image_server: Server, api: Api, site: str
    ) -> None:
        html = images("a.png") + "<a href=b>" * 60_000
        image_server.pages = {"/": page(html), "/a.png": http_response(png())}
        source_field = (
            {"html": html, "baseUrl": IMAGE_SERVER} if source == "html" else {"url": IMAGE_SERVER}
        )
        answer = api.call_refused("POST", IMPORT, {"projectId": site, **source_field})
        grown = len(images(f"{IMAGE_SERVER}/a.png") + f'<a href="{IMAGE_SERVER}/b">' * 60_000)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert f"{grown:,}" in answer.data["message"]
        assert answer.data["errors"][0]["field"] == source
        assert "/a.png" not in image_server.paths

    @pytest.mark.parametrize("times", [20_000, 65_000], ids=["a little", "beyond measure"])
    def test_a_page_that_image_urls_grow_over_a_mebibyte_is_413(
        self, times: int, net: Internet, api: Api, site: str
    ) -> None:
        net.serve("http://b.co", http_response(png()))
        keys_before = list_stored_files()
        body = {"projectId": site, "html": "<style>" + "url(http://b.co)" * times}
        answer = api.call_refused("POST", IMPORT, body)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert "rehostImages" in answer.data["message"]
        assert len(net.connections) == 1
        assert list_stored_files() == keys_before
        new_page = api.post(IMPORT, {**body, "rehostImages": False})["page"]
        assert new_page["htmlBytes"] == len(body["html"])

    def test_a_page_over_a_mebibyte_is_413(self, image_server: Server, api: Api, site: str) -> None:
        html = "<p>" + "x" * MIB
        image_server.pages = {"/": page(html)}
        for source in ({"html": html}, {"url": IMAGE_SERVER}):
            assert api.call_refused("POST", IMPORT, {"projectId": site, **source}).status == 413

    @pytest.mark.parametrize(
        ("body", "kind"),
        [(b"%PDF-1.7", "application/pdf"), (b"\x89PNG\r\n\x1a\n", "text/html"), (b"{}", "x/y")],
    )
    def test_content_that_is_not_a_web_page_is_415(
        self, body: bytes, kind: str, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": http_response(body, content_type=kind)}
        answer = api.call_refused("POST", IMPORT, {"projectId": site, "url": IMAGE_SERVER})
        assert (answer.status, answer.data["code"]) == (415, "unsupported_media_type")

    def test_a_host_that_fails_is_502(self, image_server: Server, api: Api, site: str) -> None:
        for url in (f"{IMAGE_SERVER}/none", "http://nobody.example.com"):
            answer = api.call_refused("POST", IMPORT, {"projectId": site, "url": url})
            assert (answer.status, answer.data["code"]) == (502, "upstream_failed")

    @pytest.mark.parametrize("url", [url for url in HOSTILE[::7] if not url.startswith("http://")])
    def test_a_url_of_an_internal_address_is_400(
        self, url: str, net: Internet, api: Api, site: str
    ) -> None:
        net.names |= INSIDE
        answer = api.call_refused("POST", IMPORT, {"projectId": site, "url": url})
        assert answer.status == 400
        assert net.connections == []

    def test_a_redirect_to_an_internal_address_is_400(
        self, image_server: Server, net: Internet, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": to("http://169.254.169.254/latest/")}
        assert (
            api.call_refused("POST", IMPORT, {"projectId": site, "url": IMAGE_SERVER}).status == 400
        )
        assert len(net.connections) == 1


def sitemap(site_url: str) -> list[str]:
    """Return the URLs of a site's sitemap."""
    path = site_url.removeprefix("http://127.0.0.1:8000")
    answer = Api(None).call("GET", f"{path}/sitemap.xml")
    return re.findall("<loc>(.*?)</loc>", answer.body.decode())


class TestSearchEngines:
    @pytest.mark.parametrize(
        ("head", "canonical"),
        [
            ("<meta name=robots content=noindex>", None),
            ("<META NAME=Robots CONTENT='NOINDEX, nofollow'>", None),
            ("<meta name=robots content=index><meta name=robots content='follow none'>", None),
            ("<meta name=' googlebot' content='max-snippet:0,noindex'>", None),
            ("<meta name=yandex content=none>", None),
            ("<link rel=canonical href=https://old.example/a>", "https://old.example/a"),
            ("<link rel='x CANONICAL' href=' //old.example '>", "https://old.example/"),
            (
                "<link rel=canonical href=http://127.0.0.1:8000/s/other>",
                "http://127.0.0.1:8000/s/other",
            ),
        ],
    )
    def test_noindex_page_is_in_no_sitemap(
        self, head: str, canonical: str | None, api: Api, site: str
    ) -> None:
        home = api.get("/api/projects/list")["projects"][0]["url"]
        first = import_page(api, site, html="<p>Home")
        response = import_page(api, site, html=f"<title>T</title>{head}<p>x", slug="hidden")
        expected = {"code": "not_indexed"}
        if canonical:
            expected = {"code": "canonical_elsewhere", "url": canonical}
        assert expected in warned(response)
        assert sitemap(home) == [f"{home}/"]
        page = {"id": response["page"]["id"], "html": "<p>Listed"}
        api.post("/api/pages/save-html", page)
        assert sitemap(home) == [f"{home}/", f"{home}/hidden"]
        api.post("/api/pages/save-html", {"id": first["page"]["id"], "html": f"<head>{head}"})
        assert sitemap(home) == [f"{home}/hidden"]

    @pytest.mark.parametrize(
        "head",
        [
            "<meta name=robots content='index, follow'><meta name=description content=noindex>",
            "<link rel=canonical href='{home}/hidden'><link rel=next href=https://old.example>",
            "<link rel=canonical href=/a><link rel=canonical>",
            "</head><body><p>&lt;meta name=robots content=noindex&gt; canonical",
            "<meta name=robots><meta content=noindex><script>robots('noindex')</script>",
        ],
    )
    def test_other_pages_are_listed(self, head: str, api: Api, site: str) -> None:
        home = api.get("/api/projects/list")["projects"][0]["url"]
        response = import_page(api, site, html=head.replace("{home}", home), slug="hidden")
        assert not {each["code"] for each in warned(response)} & {
            "not_indexed",
            "canonical_elsewhere",
        }
        assert sitemap(home) == [f"{home}/"]

    def test_relative_canonical_url_belongs_to_the_fetched_host(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/": page('<link rel="canonical" href="/start">')}
        facts = {"url": f"{IMAGE_SERVER}/start"}
        answer = import_page(api, site, url=IMAGE_SERVER)
        assert warned(answer) == [{"code": "canonical_elsewhere", **facts}]


class TestRelativeUrls:
    def test_relative_urls_are_kept_and_counted_without_a_base(self, api: Api, site: str) -> None:
        html = '<a href="/menu"><a href="/menu"><img src="a.png"><a href="#x"><a href="mailto:a@b">'
        answer = import_page(api, site, html=html)
        assert html_of(api, answer) == html
        assert warned(answer) == [{"code": "relative_urls", "count": 2}]

    def test_relative_urls_are_resolved_against_the_given_base_url(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/shop/a.png": http_response(png())}
        html = '<a href="/menu"><img src="a.png"><meta http-equiv=refresh content="5; url=next">'
        answer = import_page(api, site, html=html, baseUrl=f"{IMAGE_SERVER}/shop/index.html")
        stored_html = html_of(api, answer)
        assert f'<a href="{IMAGE_SERVER}/menu">' in stored_html
        assert f'content="5; url={IMAGE_SERVER}/shop/next"' in stored_html
        assert answer["imported"]["images"] == 1
        assert "warnings" not in answer

    def test_the_pages_own_base_takes_precedence(self, api: Api, site: str) -> None:
        html = '<base href="/sub/"><a href="x">'
        answer = import_page(api, site, html=html, baseUrl="http://localhost:3000")
        assert html_of(api, answer) == '<a href="http://localhost:3000/sub/x">'

    def test_urls_without_a_scheme_get_https(self, net: Internet, api: Api, site: str) -> None:
        cdn = net.serve("https://cdn.example.com", http_response(png()))
        answer = import_page(
            api, site, html='<img src="//cdn.example.com/a.png"><a href="//b.example/">'
        )
        assert (cdn.paths, answer["imported"]["images"]) == (["/a.png"], 1)
        assert 'href="https://b.example/"' in html_of(api, answer)
        assert "warnings" not in answer
