"""Imported pages: HTML from another site, whose images become files of the workspace."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from PIL import Image

from chalicelib.core import plans
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.settings import settings
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.operations import pages as records
from chalicelib.engine import idempotency, limits
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import fetch
from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports.schedules import run_jobs
from tests.conftest import Api, Owner, Time
from tests.factories.files import kept, listed, upload
from tests.factories.pages import rows_of
from tests.factories.urls import HOSTILE, INSIDE
from tests.fakes.internet import Answer, Internet, Server, reset, says, silence, to

IMPORT = "/api/pages/import-html"
SAVE = "/api/pages/save-html"
AWAY = "http://old.example.com"
HTML = "text/html; charset=utf-8"
MIB = 2**20


@cache
def png(number: int = 0) -> bytes:
    body = io.BytesIO()
    Image.new("RGB", (8 + number, 8), (number * 5 % 256, 80, 160)).save(body, "PNG")
    return body.getvalue()


def page(html: str) -> Answer:
    return says(html.encode(), content_type=HTML)


@pytest.fixture
def away(net: Internet) -> Server:
    """A fake host. Paths that are not among its pages are not found."""
    return net.serve(AWAY, says(b"no", "404 Not Found"))


def take(api: Api, site: str, **more: Any) -> Any:
    return api.post(IMPORT, {"projectId": site, **more})


def html_of(api: Api, answer: Any) -> str:
    """Return the HTML of an imported page, which the import's answer does not contain."""
    assert "html" not in answer["page"]
    html: str = api.get(f"/api/pages/{answer['page']['id']}")["page"]["html"]
    assert answer["page"]["htmlBytes"] == len(html.encode())
    return html


def images(*addresses: str) -> str:
    return "".join(f'<img src="{address}">' for address in addresses)


def reasons(answer: Any) -> dict[str, str]:
    return {one["url"]: one["reason"] for one in answer["imported"]["failed"]}


class TestPage:
    def test_given_html_is_stored_unchanged(self, api: Api, site: str) -> None:
        html = '<title> Пекарня\n «Ёж» </title><a href="/menu">Menu</a>'
        answer = take(api, site, html=html)
        assert html_of(api, answer) == html
        assert (answer["page"]["title"], answer["page"]["slug"]) == ("Пекарня «Ёж»", "pekarnya-ezh")
        assert answer["imported"] == {"images": 0, "failed": []}
        shown = api.get(f"/api/pages/{answer['page']['id']}")["page"]
        assert shown == answer["page"] | {"html": html}

    def test_a_fetched_page_has_absolute_urls(self, away: Server, api: Api, site: str) -> None:
        away.pages = {
            "/shop/": page('<title>Shop</title><a href="cakes?a=1&amp;b=2">x</a><a href="#top">')
        }
        answer = take(api, site, url=f"{AWAY}/shop/")
        assert f'href="{AWAY}/shop/cakes?a=1&amp;b=2"' in html_of(api, answer)
        assert 'href="#top"' in html_of(api, answer)

    def test_redirects_are_followed_and_urls_resolved_against_the_final_one(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {"/": to("/new/"), "/new/": page('<a href="x">')}
        assert f"{AWAY}/new/x" in html_of(api, take(api, site, url=AWAY))

    def test_a_page_is_read_in_its_own_encoding(self, away: Server, api: Api, site: str) -> None:
        body = "<title>Пекарня</title>".encode("cp1251")
        away.pages = {"/": says(body, content_type="text/html; charset=windows-1251")}
        assert take(api, site, url=AWAY)["page"]["title"] == "Пекарня"

    def test_the_given_title_and_slug_are_used(self, api: Api, site: str) -> None:
        made = take(api, site, html="<title>T</title>", title="Mine", slug="mine")["page"]
        assert (made["title"], made["slug"], made["isHome"]) == ("Mine", "mine", True)
        assert take(api, site, html="<p>")["page"]["title"] == "Imported page"
        again = api.refused("POST", IMPORT, {"projectId": site, "html": "<p>", "slug": "mine"})
        assert (again.status, again.data["code"]) == (409, "slug_taken")

    @pytest.mark.parametrize(
        ("written", "title"),
        [
            ("a\x07b&#7;\x7fc", "abc"),
            ("a \x0b\x1f \u2028 b", "a b"),
            ("Invoice\u202efdp.exe", "Invoicefdp.exe"),
            ("\u2066a\u2069\u200e\u200f\u061c b", "a b"),
            ("❤️ 👩‍🚀", "❤️ 👩‍🚀"),
            ("\u200b\u202e\ufeff", "Imported page"),
            ("\u200d" * 300 + "hidden", "Imported page"),
            ("\u3164", "Imported page"),
        ],
    )
    def test_the_title_is_always_a_valid_one(
        self, written: str, title: str, api: Api, site: str
    ) -> None:
        made = take(api, site, html=f"<title>{written}</title>")["page"]
        assert made["title"] == title
        again = api.post("/api/pages/create", {"projectId": site, "title": made["title"]})
        assert again["page"]["title"] == title

    def test_a_long_title_is_cut(self, api: Api, site: str) -> None:
        made = take(api, site, html=f"<title>{'Ё' * 300}</title>")["page"]
        assert made["title"] == "Ё" * 200

    def test_an_import_may_replace_a_page_and_increments_its_version(
        self, api: Api, site: str
    ) -> None:
        before = kept()
        first = take(api, site, html="<title>One</title>1")["page"]
        again = api.post(IMPORT, {"pageId": first["id"], "html": "<title>Two</title>2"})
        assert (again["page"]["title"], again["page"]["version"]) == ("Two", 2)
        assert html_of(api, again).endswith("2")
        named = api.post(IMPORT, {"pageId": first["id"], "html": "3", "title": "Three"})["page"]
        assert (named["title"], named["slug"], named["version"]) == ("Three", "one", 3)
        untitled = api.post(IMPORT, {"pageId": first["id"], "html": "<title> </title>4"})["page"]
        assert (untitled["title"], untitled["version"]) == ("Three", 4)
        assert len(kept() - before) == 1

    def test_a_version_mismatch_is_refused_before_anything_is_fetched(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {"/": page("<p>new")}
        there = take(api, site, html="<p>old")["page"]
        body = {"pageId": there["id"], "url": AWAY}
        answer = api.refused("POST", IMPORT, {**body, "ifVersion": 7})
        assert (answer.status, answer.data["code"]) == (409, "version_conflict")
        assert (answer.data["version"], away.paths) == (1, [])
        assert api.post(IMPORT, {**body, "ifVersion": 1})["page"]["version"] == 2

    def test_a_page_changed_during_the_fetch_is_a_conflict(
        self, away: Server, api: Api, site: str
    ) -> None:
        there = take(api, site, html="<p>old")["page"]

        def slow(sock: Any) -> None:
            api.post("/api/pages/save-html", {"id": there["id"], "html": "<p>rival"})
            page("<p>new")(sock)

        away.pages = {"/": slow}
        body = {"pageId": there["id"], "url": AWAY, "ifVersion": 1}
        assert api.refused("POST", IMPORT, body).data["code"] == "version_conflict"
        assert api.get(f"/api/pages/{there['id']}")["page"]["html"] == "<p>rival"

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ({"projectId": "here", "ifVersion": 1}, "ifVersion"),
            ({"pageId": "x", "slug": "s"}, "slug"),
            ({"projectId": "here", "html": None, "url": AWAY, "baseUrl": AWAY}, "baseUrl"),
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
        answer = api.refused("POST", IMPORT, body)
        assert answer.status == 400
        assert [error["field"] for error in answer.data["errors"]] == [field]

    def test_the_description_comes_from_the_meta_tag(self, api: Api, site: str) -> None:
        html = '<meta name="Description" content=" Свежий\n хлеб &amp; торты ">'
        made = take(api, site, html=html)["page"]
        assert made["description"] == "Свежий хлеб & торты"
        here = {"pageId": made["id"]}
        assert (
            api.post(IMPORT, here | {"html": "<p>"})["page"]["description"] == (made["description"])
        )
        long = f"<meta name=description content='{'ж' * 600}'>"
        assert api.post(IMPORT, here | {"html": long})["page"]["description"] == "ж" * 500
        assert take(api, site, html="<p>")["page"]["description"] is None

    @pytest.mark.parametrize("html", ["", " \n\t", "\ufeff"])
    def test_an_empty_page_is_400(self, html: str, away: Server, api: Api, site: str) -> None:
        away.pages = {"/": page(html)}
        for source in ("html", "url"):
            given = {"projectId": site, source: html if source == "html" else AWAY}
            answer = api.refused("POST", IMPORT, given)
            assert answer.status == 400
            assert [error["field"] for error in answer.data["errors"]] == [source]

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"html": "<p>", "url": AWAY},
            {"html": "<p>", "pageId": "x"},
            {"html": "<p>", "projectId": None},
            {"html": "<p>", "projectId": None, "pageId": "x", "slug": "s"},
        ],
    )
    def test_exactly_one_source_and_one_target_are_required(
        self, more: dict[str, Any], api: Api, site: str
    ) -> None:
        given = {"projectId": site} | more
        body = {name: value for name, value in given.items() if value is not None}
        assert api.refused("POST", IMPORT, body).status == 400

    def test_an_unknown_target_is_404(self, api: Api) -> None:
        for place in ("projectId", "pageId"):
            assert api.refused("POST", IMPORT, {place: new_id(), "html": "<p>"}).status == 404

    @pytest.mark.parametrize("place", ["projectId", "pageId", "full"])
    def test_a_target_without_room_is_refused_before_anything_is_fetched(
        self, place: str, away: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        away.pages = {"/": page(images("a.png")), "/a.png": says(png())}
        if place == "full":
            monkeypatch.setattr(records, "MAX_PAGES", 1)
            take(api, site, html="<p>")
        where = {"projectId": site} if place == "full" else {place: new_id()}
        answer = api.refused("POST", IMPORT, where | {"url": AWAY})
        assert answer.status == (409 if place == "full" else 404)
        assert away.paths == []

    def test_html_and_images_share_one_fetch_limit(
        self, away: Server, api: Api, owner: Owner, site: str
    ) -> None:
        away.pages = {"/a.png": says(png())}
        made = take(api, site, html="<p>" + images(f"{AWAY}/a.png"))["page"]
        (file,) = rows_of(owner, "FILE")
        (row,) = rows_of(owner, "PAGE")
        assert int(row["html_bytes"]["N"]) == made["htmlBytes"]
        assert files.used_bytes(owner.workspace.id) == made["htmlBytes"] + int(file["size"]["N"])

    @pytest.mark.parametrize("source", ["html", "url"])
    def test_a_page_that_grows_over_a_mebibyte_is_413_before_its_images_are_fetched(
        self, source: str, away: Server, api: Api, site: str
    ) -> None:
        html = images("a.png") + "<a href=b>" * 60_000
        away.pages = {"/": page(html), "/a.png": says(png())}
        given = {"html": html, "baseUrl": AWAY} if source == "html" else {"url": AWAY}
        answer = api.refused("POST", IMPORT, {"projectId": site, **given})
        grown = len(images(f"{AWAY}/a.png") + f'<a href="{AWAY}/b">' * 60_000)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert f"{grown:,}" in answer.data["message"]
        assert answer.data["errors"][0]["field"] == source
        assert "/a.png" not in away.paths

    @pytest.mark.parametrize("times", [20_000, 65_000], ids=["a little", "beyond measure"])
    def test_a_page_that_image_urls_grow_over_a_mebibyte_is_413(
        self, times: int, net: Internet, api: Api, site: str
    ) -> None:
        net.serve("http://b.co", says(png()))
        before = kept()
        body = {"projectId": site, "html": "<style>" + "url(http://b.co)" * times}
        answer = api.refused("POST", IMPORT, body)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert "rehostImages" in answer.data["message"]
        assert len(net.connections) == 1
        assert kept() == before
        made = api.post(IMPORT, {**body, "rehostImages": False})["page"]
        assert made["htmlBytes"] == len(body["html"])

    def test_a_page_over_a_mebibyte_is_413(self, away: Server, api: Api, site: str) -> None:
        html = "<p>" + "x" * MIB
        away.pages = {"/": page(html)}
        for source in ({"html": html}, {"url": AWAY}):
            assert api.refused("POST", IMPORT, {"projectId": site, **source}).status == 413

    @pytest.mark.parametrize(
        ("body", "kind"),
        [(b"%PDF-1.7", "application/pdf"), (b"\x89PNG\r\n\x1a\n", "text/html"), (b"{}", "x/y")],
    )
    def test_content_that_is_not_a_web_page_is_415(
        self, body: bytes, kind: str, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {"/": says(body, content_type=kind)}
        answer = api.refused("POST", IMPORT, {"projectId": site, "url": AWAY})
        assert (answer.status, answer.data["code"]) == (415, "unsupported_media_type")

    def test_a_host_that_fails_is_502(self, away: Server, api: Api, site: str) -> None:
        for url in (f"{AWAY}/none", "http://nobody.example.com"):
            answer = api.refused("POST", IMPORT, {"projectId": site, "url": url})
            assert (answer.status, answer.data["code"]) == (502, "upstream_failed")

    @pytest.mark.parametrize("url", [url for url in HOSTILE[::7] if not url.startswith("http://")])
    def test_a_url_of_an_internal_address_is_400(
        self, url: str, net: Internet, api: Api, site: str
    ) -> None:
        net.names |= INSIDE
        answer = api.refused("POST", IMPORT, {"projectId": site, "url": url})
        assert answer.status == 400
        assert net.connections == []

    def test_a_redirect_to_an_internal_address_is_400(
        self, away: Server, net: Internet, api: Api, site: str
    ) -> None:
        away.pages = {"/": to("http://169.254.169.254/latest/")}
        assert api.refused("POST", IMPORT, {"projectId": site, "url": AWAY}).status == 400
        assert len(net.connections) == 1


class TestRelativeUrls:
    def test_relative_urls_stay_and_are_counted_if_no_base_is_known(
        self, api: Api, site: str
    ) -> None:
        html = '<a href="/menu"><a href="/menu"><img src="a.png"><a href="#x"><a href="mailto:a@b">'
        answer = take(api, site, html=html)
        assert html_of(api, answer) == html
        (warning,) = answer["warnings"]
        assert warning.startswith("2 relative URLs stay")
        assert "baseUrl" in warning

    def test_relative_urls_are_resolved_against_the_given_base_url(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {"/shop/a.png": says(png())}
        html = '<a href="/menu"><img src="a.png"><meta http-equiv=refresh content="5; url=next">'
        answer = take(api, site, html=html, baseUrl=f"{AWAY}/shop/index.html")
        shown = html_of(api, answer)
        assert f'<a href="{AWAY}/menu">' in shown
        assert f'content="5; url={AWAY}/shop/next"' in shown
        assert answer["imported"]["images"] == 1
        assert "warnings" not in answer

    def test_the_pages_own_base_takes_precedence(self, api: Api, site: str) -> None:
        html = '<base href="/sub/"><a href="x">'
        answer = take(api, site, html=html, baseUrl="http://localhost:3000")
        assert html_of(api, answer) == '<a href="http://localhost:3000/sub/x">'

    def test_urls_without_a_scheme_get_https(self, net: Internet, api: Api, site: str) -> None:
        cdn = net.serve("https://cdn.example.com", says(png()))
        answer = take(api, site, html='<img src="//cdn.example.com/a.png"><a href="//b.example/">')
        assert (cdn.paths, answer["imported"]["images"]) == (["/a.png"], 1)
        assert 'href="https://b.example/"' in html_of(api, answer)
        assert "warnings" not in answer


class TestDeadHosts:
    """A host that refuses connections is tried once, however many images it serves."""

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_a_dead_host_is_tried_once(
        self, scheme: str, away: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names["dead.example.com"] = ["8.8.8.8"]
        away.pages = {f"/{n}.png": says(png(n)) for n in range(5)}
        dead = [f"{scheme}://dead.example.com/{n}.png" for n in range(45)]
        gone = [f"http://gone.example.com/{n}.png" for n in range(5)]
        alive = [f"{AWAY}/{n}.png" for n in range(5)]
        answer = take(api, site, html=images(*dead[:40], *alive, *gone))
        assert answer["imported"]["images"] == 5
        assert list(reasons(answer)) == [*dead[:40], *gone]
        assert all("does not accept" in reasons(answer)[url] for url in dead[:40])
        port = 443 if scheme == "https" else 80
        assert net.connections.count(("8.8.8.8", port)) == 1
        assert net.lookups.count("gone.example.com") == 1

    def test_a_dead_host_is_remembered_when_redirects_lead_to_it(
        self, away: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names["dead.example.com"] = ["8.8.8.8"]
        away.pages = {f"/{n}.png": to("http://dead.example.com/") for n in range(20)}
        answer = take(api, site, html=images(*(f"{AWAY}/{n}.png" for n in range(20))))
        assert len(reasons(answer)) == 20
        assert net.connections.count(("8.8.8.8", 80)) == 1

    def test_a_host_with_failing_tls_is_tried_once(
        self, net: Internet, api: Api, site: str
    ) -> None:
        net.serve("https://bad.example.com", says(png()), certified="other.example.com")
        take(api, site, html=images(*(f"https://bad.example.com/{n}.png" for n in range(20))))
        assert len(net.connections) == 1

    def test_a_host_that_lacks_an_image_or_breaks_off_is_not_dead(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {"/cut.png": reset, "/good.png": says(png())}
        bad = [f"{AWAY}/none.png", f"{AWAY}/cut.png"]
        answer = take(api, site, html=images(*bad, f"{AWAY}/good.png"))
        assert answer["imported"]["images"] == 1
        assert list(reasons(answer)) == bad

    def test_a_dead_host_is_tried_again_by_the_next_import(
        self, net: Internet, api: Api, site: str
    ) -> None:
        net.names["late.example.com"] = ["8.8.8.8"]
        html = images("http://late.example.com/a.png")
        assert take(api, site, html=html)["imported"]["images"] == 0
        net.serve("http://late.example.com", says(png()), address="8.8.8.8")
        assert take(api, site, html=html)["imported"]["images"] == 1


class TestImages:
    def test_images_become_files_and_the_page_shows_them(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {f"/img/{n}.png": says(png(n)) for n in range(20)}
        away.pages["/"] = page(
            f"<title>Хлеб</title>{images(*(f'/img/{n}.png' for n in range(18)))}"
            '<div style="background:url(img/18.png)"></div><img srcset="img/19.png 2x">'
        )
        answer = take(api, site, url=f"{AWAY}/")
        assert answer["imported"] == {"images": 20, "failed": []}
        html = html_of(api, answer)
        assert AWAY not in html
        places = [f for f in listed(api)["folders"] if f["name"] == "pages"]
        assert [place["filesCount"] for place in places] == [20]
        made = listed(api, folderId=places[0]["id"], size=100)["files"]
        assert all(file["url"] in html for file in made)
        assert {(file["width"], file["mimeType"]) for file in made} == {
            (8 + n, "image/png") for n in range(20)
        }

    def test_images_are_imported_through_the_tool_too(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {f"/{n}.png": says(png(n)) for n in range(20)}
        away.pages["/"] = page(images(*(f"{n}.png" for n in range(20))))
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "svc_import_page_html",
                "arguments": {"projectId": site, "url": AWAY},
            },
        }
        answer = api.call("POST", "/api/mcp", call, {"Accept": "application/json"})
        result = json.loads(answer.body)["result"]
        assert result.get("isError", False) is False
        assert '"images":20' in result["content"][0]["text"].replace(" ", "")

    def test_at_most_fifty_images_are_imported_and_the_rest_listed(
        self, away: Server, api: Api, site: str
    ) -> None:
        away.pages = {f"/{n}.png": says(png(n)) for n in range(60)}
        away.pages["/"] = page(images(*(f"{n}.png" for n in range(60))))
        answer = take(api, site, url=AWAY)
        assert answer["imported"]["images"] == 50
        assert list(reasons(answer)) == [f"{AWAY}/{n}.png" for n in range(50, 60)]
        assert set(reasons(answer).values()) == {"only the first 50 images are taken"}
        assert all(f"{AWAY}/{n}.png" in html_of(api, answer) for n in range(50, 60))
        assert answer["warnings"] == ["10 images stay where they were; imported.failed says why."]

    def test_failed_images_keep_their_urls_and_are_listed_with_reasons(
        self, away: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names |= INSIDE
        away.pages = {
            "/good.png": says(png()),
            "/svg.png": says(b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
            "/cut.png": says(png()[:40]),
            "/page.png": page("<html>"),
        }
        bad = {
            f"{AWAY}/none.png": "status 404",
            f"{AWAY}/svg.png": "SVG",
            f"{AWAY}/cut.png": "damaged",
            f"{AWAY}/page.png": "web page",
            "http://nobody.example.com/x.png": "no host",
            "http://169.254.169.254/x.png": "public internet",
            "http://inside.example.com/x.png": "public internet",
        }
        html = images(f"{AWAY}/good.png", *bad)
        answer = take(api, site, html=html)
        assert answer["imported"]["images"] == 1
        told = reasons(answer)
        assert list(told) == list(bad)
        for url, words in bad.items():
            assert words in told[url], told[url]
            assert url in html_of(api, answer)

    def test_each_image_is_fetched_once(self, away: Server, api: Api, site: str) -> None:
        away.pages = {"/a.png": says(png())}
        answer = take(api, site, html=images(*[f"{AWAY}/a.png"] * 3, f"{AWAY}/a.png#x"))
        assert away.paths == ["/a.png"]
        assert answer["imported"]["images"] == 1
        assert AWAY not in html_of(api, answer)

    def test_image_import_can_be_switched_off(self, away: Server, api: Api, site: str) -> None:
        html = images(f"{AWAY}/a.png")
        answer = take(api, site, html=html, rehostImages=False)
        assert (html_of(api, answer), away.paths) == (html, [])

    def test_images_of_the_same_workspace_are_not_fetched(
        self, net: Internet, api: Api, site: str
    ) -> None:
        mine = upload(api, "a.png", png())["url"]
        before = kept()
        answer = take(api, site, html=images(mine))
        assert answer["imported"] == {"images": 1, "failed": []}
        assert mine in html_of(api, answer)
        assert net.connections == []
        assert len(kept() - before) == 1

    def test_images_of_another_workspace_are_fetched_like_any_other(
        self, net: Internet, new_owner: Callable[..., Owner], api: Api, site: str
    ) -> None:
        theirs = upload(new_owner().api(), "a.png", png())["url"]
        mine = upload(api, "a.png", png())["url"]
        changed = mine[: -len("/a.png") - 1] + ("A" if mine[-7] != "A" else "B") + "/a.png"
        answer = take(api, site, html=images(theirs, changed))
        assert answer["imported"]["images"] == 0
        assert set(reasons(answer)) == {theirs, changed}

    def test_images_are_imported_as_far_as_the_quota_allows(
        self, away: Server, api: Api, owner: Owner, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = kept()
        away.pages = {f"/{n}.png": says(png(n)) for n in range(8)}
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", MIB + 2500)
        answer = take(api, site, html=images(*(f"{AWAY}/{n}.png" for n in range(8))))
        count = answer["imported"]["images"]
        assert 0 < count < 8
        assert "plan" in next(iter(reasons(answer).values()))
        assert files.used_bytes(owner.workspace.id) <= MIB + 2500
        assert len(kept() - before) == 2 * count + 1

    def test_images_share_twenty_seconds_with_their_page(
        self, away: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rehosting, "SECONDS", 0.6)
        away.pages = {"/good.png": says(png()), "/slow.png": silence}
        answer = take(api, site, html=images(f"{AWAY}/slow.png", f"{AWAY}/good.png"))
        assert answer["imported"]["images"] == 1
        assert "too slow" in reasons(answer)[f"{AWAY}/slow.png"]

    def test_a_slow_page_leaves_no_time_for_images(
        self, away: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rehosting, "SECONDS", 0.0)
        away.pages = {"/": page(images("a.png")), "/a.png": says(png())}
        answer = take(api, site, url=AWAY)
        assert reasons(answer) == {f"{AWAY}/a.png": "the time for all images was over"}
        assert away.paths == ["/"]

    def test_images_that_cannot_be_stored_are_listed_and_the_page_is_created(
        self, away: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put, before = FolderStore.put, kept()

        def fail(self: FolderStore, key: str, *rest: Any) -> None:
            if "/thumbnail/bad" in key:
                raise UnavailableError
            put(self, key, *rest)

        monkeypatch.setattr(FolderStore, "put", fail)
        away.pages = {"/good.png": says(png()), "/bad.png": says(png(1))}
        answer = take(api, site, html=images(f"{AWAY}/bad.png", f"{AWAY}/good.png"))
        assert answer["imported"]["images"] == 1
        assert "stored" in reasons(answer)[f"{AWAY}/bad.png"]
        assert len(kept() - before) == 3


class TestFailures:
    def test_a_commit_that_fails_leaves_no_object(
        self, away: Server, api: Api, owner: Owner, site: str
    ) -> None:
        take(api, site, html="<p>", slug="taken")
        away.pages = {"/a.png": says(png())}
        before = kept()
        body = {"projectId": site, "html": images(f"{AWAY}/a.png"), "slug": "taken"}
        assert api.refused("POST", IMPORT, body).status == 409
        assert away.paths == ["/a.png"]
        assert kept() == before
        assert files.used_bytes(owner.workspace.id) == len("<p>")

    def test_a_retry_after_a_conflict_fetches_nothing_again(
        self, away: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        away.pages = {"/": page(images("a.png")), "/a.png": says(png())}
        commit, lost = UnitOfWork.commit, []
        before = kept()

        def lose_twice(self: UnitOfWork, *rest: Any) -> None:
            if len(lost) < 2:
                lost.append(self)
                raise ConcurrentUpdateError
            commit(self, *rest)

        monkeypatch.setattr(UnitOfWork, "commit", lose_twice)
        assert take(api, site, url=AWAY)["imported"]["images"] == 1
        assert away.paths == ["/", "/a.png"]
        assert len(kept() - before) == 3

    @pytest.mark.parametrize("room", [(9999, 0), (0, 9999), (9999, 0, 9999), (9999, 9999)])
    @pytest.mark.parametrize("again", [False, True], ids=["new page", "page there"])
    def test_the_answer_after_conflicts_matches_the_stored_page(
        self,
        again: bool,
        room: tuple[int, ...],
        away: Server,
        api: Api,
        site: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        place = {"projectId": site}
        if again:
            place = {"pageId": take(api, site, html="<p>before")["page"]["id"]}
        away.pages = {"/": page("<title>T</title>" + images("a.png")), "/a.png": says(png())}
        commit, left = UnitOfWork.commit, [MIB + size for size in room]
        before = kept()

        def lose_while_the_quota_changes(self: UnitOfWork, *rest: Any) -> None:
            if len(left) > 1:
                left.pop(0)
                monkeypatch.setitem(plans.STORAGE_BYTES, "business", left[0])
                raise ConcurrentUpdateError
            commit(self, *rest)

        monkeypatch.setitem(plans.STORAGE_BYTES, "business", left[0])
        monkeypatch.setattr(UnitOfWork, "commit", lose_while_the_quota_changes)
        answer = api.post(IMPORT, {**place, "url": AWAY})
        assert answer["imported"]["images"] == (room[-1] > 0)
        assert (f"{AWAY}/a.png" in html_of(api, answer)) == (room[-1] == 0)
        read = api.get(f"/api/pages/{answer['page']['id']}")["page"]
        assert read == answer["page"] | {"html": html_of(api, answer)}
        assert len(kept()) == len(before) + (not again) + 2 * answer["imported"]["images"]

    def test_a_large_answer_is_replayed_from_an_object_that_expires_after_a_day(
        self, time: Time, api: Api, owner: Owner, site: str
    ) -> None:
        made = take(api, site, html="<p>")["page"]
        body = {"id": made["id"], "html": "<p>" + "ё" * idempotency.MAX_INLINE_BYTES}
        headers = {"Idempotency-Key": "large"}
        first, again = (api.call("POST", SAVE, body, headers) for _ in range(2))
        assert first.body == again.body
        assert again.headers["Idempotency-Replayed"] == "true"
        replays = re.compile(rf"{owner.workspace.id}/answers/.+")
        assert len(list(filter(replays.match, kept()))) == 1
        other = api.refused("POST", SAVE, body | {"html": "<p>"}, **headers)
        assert other.data["code"] == "idempotency_mismatch"
        time.pass_by(hours=23)
        run_jobs()
        assert api.call("POST", SAVE, body, headers).body == first.body
        time.pass_by(hours=3)
        run_jobs()
        assert not list(filter(replays.match, kept()))
        assert api.post(SAVE, body, key="large")["page"]["version"] == 3

    def test_a_large_answer_whose_commit_fails_leaves_no_object(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = take(api, site, html="<p>")["page"]
        before = kept()
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 100_000)
        body = {"id": made["id"], "html": "x" * 200_000}
        assert api.refused("POST", SAVE, body, **{"Idempotency-Key": "k"}).status == 409
        assert kept() == before

    def test_all_external_calls_end_before_api_gateways_29_seconds(
        self, away: Server, api: Api, site: str
    ) -> None:
        assert rehosting.SECONDS + 5 <= 29
        assert fetch.TOTAL_SECONDS <= rehosting.SECONDS


def test_imports_count_as_heavy_calls_and_are_limited(
    api: Api, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=0))
    answer = api.refused("POST", IMPORT, {"projectId": site, "html": "<p>"})
    assert (answer.status, answer.data["code"]) == (429, "rate_limited")
    assert int(answer.headers["Retry-After"]) <= 60
