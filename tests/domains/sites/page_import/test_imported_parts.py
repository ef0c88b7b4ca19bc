"""Counters, forms and images inside of the HTML of an imported page."""

import base64
from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.domains.sites.operations import imports
from tests.conftest import Api
from tests.domains.sites.page_import.helpers import (
    IMAGE_SERVER,
    IMPORT,
    MIB,
    html_of,
    import_page,
    page,
)
from tests.factories.images import drawn, saved
from tests.factories.products import png
from tests.fakes.internet import Server, http_response
from tests.support.warned import warned

COUNTERS = (
    (
        '<noscript><div><img src="https://mc.yandex.ru/watch/1" style="position:absolute; '
        'left:-9999px;" alt="" /></div></noscript>'
    ),
    (
        '<noscript><img height="1" width="1" style="display:none" '
        'src="https://www.facebook.com/tr?id=1&amp;ev=PageView&amp;noscript=1"/></noscript>'
    ),
    (
        '<noscript><img src="https://vk.com/rtrg?p=VK-1" style="position:fixed; left:-999px;"/>'
        "</noscript>"
    ),
    '<img src="https://counter.yadro.ru/logo?44.1" width="31" height="31" alt="">',
    '<img src="https://informer.yandex.ru/informer/1/3_1_FFFFFFFF_EFEFEFFF_0_pageviews">',
    '<img src="http://old.example.com/pixel.gif" width="1" height="1">',
    '<img src="http://old.example.com/dot.gif" style="width:1px;height:0">',
)
"""Counters of visits as their owners publish them, and pixels of an unknown service."""
ONE_PIXEL_GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def inline(body: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(body).decode()}"


def form_warnings(answer: Any) -> list[dict[str, Any]]:
    return [each for each in warned(answer) if each["code"] == "forms_send_elsewhere"]


class TestCounters:
    @pytest.mark.parametrize("counter", COUNTERS)
    def test_a_counter_stays_as_it_is(
        self, counter: str, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = dict.fromkeys(("/pixel.gif", "/dot.gif"), http_response(png()))
        answer = import_page(api, site, html=f"<p>Rye</p>{counter}", baseUrl=IMAGE_SERVER)
        assert html_of(api, answer) == f"<p>Rye</p>{counter}"
        assert answer["imported"] == {"images": 0, "failed": []}
        assert image_server.paths == []

    def test_a_photo_for_readers_without_scripts_becomes_a_file(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/1.png": http_response(png())}
        html = f'<noscript><img src="{IMAGE_SERVER}/1.png" width="100"></noscript>'
        answer = import_page(api, site, html=html)
        assert answer["imported"]["images"] == 1
        assert "/files/" in html_of(api, answer)


class TestForms:
    @pytest.mark.parametrize(
        ("form", "target"),
        [
            ('<form action="/send.php">', "old.example.com"),
            ('<form action="https://Forms.example/a" method="post">', "forms.example"),
            ('<form method="POST">', ""),
            ('<form action="#" method="post">', ""),
            ('<form action="#"><button formaction="/go">', "old.example.com"),
        ],
    )
    def test_a_form_is_named_with_the_host_that_it_sends_to(
        self, form: str, target: str, api: Api, site: str
    ) -> None:
        answer = import_page(api, site, html=f"{form}<input></form>", baseUrl=IMAGE_SERVER)
        (warning,) = form_warnings(answer)
        assert (warning["count"], warning["hosts"]) == (1, [target])

    def test_forms_that_the_warning_does_not_name_are_counted(self, api: Api, site: str) -> None:
        html = "".join(f'<form action="https://f{number}.example/a"></form>' for number in range(7))
        answer = import_page(api, site, html=html, baseUrl=IMAGE_SERVER)
        (warning,) = form_warnings(answer)
        assert warning["count"] == len(warning["hosts"]) + 2 == 7
        assert "f4.example and 2 more." in answer["warnings"][0]

    def test_a_form_without_a_base_is_named_with_its_path(self, api: Api, site: str) -> None:
        answer = import_page(api, site, html='<form action="/send.php">')
        (warning,) = form_warnings(answer)
        assert warning["hosts"] == ["/send.php"]

    @pytest.mark.parametrize(
        "form",
        [
            '<form action="http://127.0.0.1:8000/api/public/leads" method="post">',
            '<form action="mailto:a@example.com">',
            '<form onsubmit="send()">',
            '<form action="#">',
        ],
    )
    def test_other_forms_are_not_named(self, form: str, api: Api, site: str) -> None:
        answer = import_page(api, site, html=form, baseUrl=IMAGE_SERVER)
        assert form_warnings(answer) == []


class TestInlineImages:
    @pytest.mark.parametrize(
        ("url", "name"),
        [
            (inline(png()), "image.png"),
            (inline(saved(drawn(), "JPEG"), "jpeg"), "image.jpg"),
            (inline(saved(drawn(), "WEBP"), "webp"), "image.webp"),
            (inline(saved(drawn(), "GIF"), "gif"), "image.png"),
            (f"data:image/png,{quote(png())}", "image.png"),
            (f"DATA:IMAGE/PNG;BASE64,{base64.b64encode(png()).decode()}", "image.png"),
        ],
    )
    def test_an_image_inside_of_the_html_becomes_a_file(
        self, url: str, name: str, api: Api, site: str
    ) -> None:
        sources = f'<img src="{url}"><p style="background: url({url})">'
        answer = import_page(api, site, html=sources)
        assert answer["imported"] == {"images": 1, "failed": []}
        html = html_of(api, answer)
        assert html.count(f"/{name}") == 2
        assert "base64" not in html.lower()
        folder = api.get("/api/files/list")["folders"][0]["id"]
        (file,) = api.get(f"/api/files/list?folderId={folder}")["files"]
        assert file["width"] in {8, 60}

    def test_a_page_is_within_the_limit_without_its_images(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        large = saved(drawn(size=(900, 700)), "BMP")
        html = f'<p>Rye<img src="{inline(large, "bmp")}">'
        assert len(html) > 2 * MIB
        image_server.pages = {"/": page(html)}
        for source in ({"html": html}, {"url": IMAGE_SERVER}):
            assert import_page(api, site, **source)["page"]["htmlBytes"] < 1_000
        refused = {"projectId": site, "html": html, "rehostImages": False}
        assert api.call_refused("POST", IMPORT, refused).status == 413

    def test_an_image_that_stays_counts_and_is_named_briefly(self, api: Api, site: str) -> None:
        damaged = inline(b"\x89PNG\r\n\x1a\n" + b"x" * 300)
        answer = import_page(api, site, html=f'<img src="{damaged}">')
        assert html_of(api, answer) == f'<img src="{damaged}">'
        (failed,) = answer["imported"]["failed"]
        assert failed["url"] == f"{damaged[:60]}…"
        body = {"projectId": site, "html": f'<img src="{inline(b"x" * MIB)}">'}
        assert api.call_refused("POST", IMPORT, body).status == 413

    @pytest.mark.parametrize(
        "url",
        [
            f"data:image/gif;base64,{ONE_PIXEL_GIF}",
            "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E",
            "data:font/woff2;base64,AAAA",
        ],
    )
    def test_a_placeholder_or_drawing_stays_in_the_page(
        self, url: str, api: Api, site: str
    ) -> None:
        html = f'<img src="{url}">'
        answer = import_page(api, site, html=html)
        assert answer["imported"] == {"images": 0, "failed": []}
        assert html_of(api, answer) == html

    def test_the_fifty_first_image_stays_in_the_page(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(imports, "MAX_IMAGES", 2)
        urls = [inline(png(n)) for n in range(3)]
        answer = import_page(api, site, html="".join(f'<img src="{url}">' for url in urls))
        assert answer["imported"]["images"] == 2
        assert urls[2] in html_of(api, answer)
