"""Images, title, description and encoding of imported HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.sites.rules.html_import import (
    read,
)
from tests.domains.sites.html_import.helpers import page


class TestImages:
    def test_images_are_listed_once_in_order_without_fragments(self) -> None:
        imported = page(
            "<link rel='shortcut icon' href=/icon.png><link rel=icon href=/favicon.ico>"
            "<link href=no.png><link rel=preload as=image href=preloaded.png>"
            "<link rel=stylesheet href=s.css><meta property='og:image' content='/og.jpg'>"
            "<style>@import 'i.css'; @font-face{src:url(f.woff2?x)} a{b:url(1.png)}</style>"
            "<img src=2.png#x><img src=1.png srcset='3.png 2x'><a href=no.png></a>"
            "<image><source srcset=4.webp></image><video src=no.mp4 poster=5.png></video>"
            "<input type=IMAGE src=6.png><input src=no.png><img src=data:image/png,AA>"
            "<div style='background:url(7.png)'></div><img data-src=8.png src=2.png>"
            "<script src=no.js></script><img src='//cdn.example/9.png'><noscript><img src=10.png>"
            "</noscript><svg><image href=11.png /></svg><table background=12.png></table>"
            "<img data-src=/lazy><input type=image formaction=no.png>"
            "<meta name=twitter:image content=/card><meta itemprop=image content=/item>"
        )
        assert [image.rpartition("/")[2] for image in imported.images] == [
            "icon.png",
            "preloaded.png",
            "og.jpg",
            *[f"{number}.png" for number in (1, 2, 3)],
            "4.webp",
            *[f"{number}.png" for number in (5, 6)],
            "png,AA",
            *[f"{number}.png" for number in range(7, 13)],
            *("lazy", "card", "item"),
        ]
        assert "https://cdn.example/9.png" in imported.images

    def test_images_are_replaced_wherever_they_occur(self) -> None:
        imported = page(
            "<img src=a.png srcset='a.png 1x, b.png 2x'><a href=a.png#top>big</a>"
            "<i style='background:url(a.png)'></i><style>b{c:url(a.png)}</style>"
            "<img src='https://EXAMPLE.com/shop/a.png'><img src=https://example.com/shop/aa.png>"
        )
        out = imported.replaced({"https://example.com/shop/a.png": "https://files.example/1?a&b"})
        assert "shop/a.png" not in out
        assert out.count("https://files.example/1?a") == 6
        assert "/1?a&amp;b#top" in out
        assert "shop/b.png 2x" in out
        assert "shop/aa.png" in out

    def test_the_page_is_unchanged_if_no_image_is_replaced(self) -> None:
        imported = page("<IMG src=a.png><P Class=x>&nbsp;")
        assert imported.replaced({}) == imported.html
        assert imported.replaced({"https://other.example/a.png": "b"}) == imported.html


class TestTitle:
    @pytest.mark.parametrize(
        ("source", "title"),
        [
            ("<title>\n  Пекарня \t «Ёлочка»&nbsp;&amp; Ко </title>", "Пекарня «Ёлочка» & Ко"),
            ("<TITLE lang=ru>a <b>x</b></TITLE><title>b</title>", "a <b>x</b>"),
            ("<svg><title>icon</title></svg><title>page</title>", "page"),
            ("<svg/><title>page</title>", "page"),
            ("</svg><title>page</title>", "page"),
            ("<svg><g></g><title>icon</title></svg><title>page</title>", "page"),
            ("<title></title><title>second</title>", "second"),
            ("<title>never closed", "never closed"),
            ("<title> \n </title>", None),
            ("<h1>none</h1>", None),
            ("<!-- <title>no</title> --><noscript><title>no</title></noscript>", None),
        ],
    )
    def test_title_is_reduced_to_one_line(self, source: str, title: str | None) -> None:
        assert page(source).title == title


RUSSIAN = "<title>Пекарня «Ёлочка»</title><p>Свежий хлеб каждый день"


class TestDescription:
    @pytest.mark.parametrize(
        ("source", "description"),
        [
            ("<meta name=description content=' Bread &amp; cake '>", "Bread & cake"),
            ("<META CONTENT=Bread NAME=Description>", "Bread"),
            ("<meta name=description content=''><meta name=description content=b>", "b"),
            ("<meta name=description content=a><meta name=description content=b>", "a"),
            ("<meta property=og:description content=a>", None),
            ("<meta name=description>", None),
            ("<iframe srcdoc='<meta name=description content=a>'>", None),
            ("<!-- <meta name=description content=a> -->", None),
        ],
    )
    def test_description_comes_from_the_meta_tag(
        self, source: str, description: str | None
    ) -> None:
        assert page(source).description == description


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "utf-8", "iso8859-5", "cp866"])
    def test_the_servers_declared_encoding_is_used(self, encoding: str) -> None:
        charset = {"cp1251": "windows-1251", "iso8859-5": "ISO-8859-5", "cp866": "ibm866"}
        source = RUSSIAN.replace("«", "").replace("»", "")
        imported = page(source.encode(encoding), charset=charset.get(encoding, encoding))
        assert imported.html == source
        assert page(b"\xc0", charset=" KOI8-R ").html == "ю"

    @pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r"])
    @pytest.mark.parametrize(
        "meta",
        [
            "<meta charset={}>",
            "<META HTTP-EQUIV='Content-Type' CONTENT='text/html; charset={}'>",
        ],
    )
    def test_the_pages_declared_encoding_is_used_and_rewritten(
        self, encoding: str, meta: str
    ) -> None:
        source = meta.format(encoding) + RUSSIAN.replace("«", "").replace("»", "")
        imported = page(source.encode(encoding))
        assert imported.title == "Пекарня Ёлочка"
        assert encoding not in imported.html
        assert "utf-8" in imported.html

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_a_byte_order_mark_takes_precedence(self, encoding: str) -> None:
        source = "<meta charset=utf-8>" + RUSSIAN
        assert read("\ufeff\ufeff" + source).html == source
        assert page(source.encode(encoding), charset="windows-1251").html == source

    @pytest.mark.parametrize("charset", [None, "", "x-unknown", "utf-7", "rot13", "a" * 10_000])
    def test_an_unknown_encoding_is_guessed_from_the_text(self, charset: str | None) -> None:
        assert page(RUSSIAN.encode(), charset=charset).html == RUSSIAN
        assert page(RUSSIAN.encode("cp1251"), charset=charset).html == RUSSIAN

    @pytest.mark.parametrize(
        ("meta", "charset"), [("", "windows-1251"), ("<meta charset=windows-1251>", None)]
    )
    def test_queries_are_encoded_as_in_browsers(self, meta: str, charset: str | None) -> None:
        imported = page(f"{meta}<a href='хлеб?q=я'>".encode("cp1251"), charset=charset)
        assert imported.html.endswith('shop/%D1%85%D0%BB%D0%B5%D0%B1?q=%FF">')

    def test_queries_are_utf_8_for_other_encodings(self) -> None:
        imported = page("<a href='?q=я'>".encode("utf-16"))
        assert imported.html.endswith('?q=%D1%8F">')
        imported = page(b"<a href='?q=\xff'>", charset="x-user-defined")
        assert imported.html.endswith('?q=%EF%9F%BF">')

    @given(st.binary(max_size=200), st.sampled_from([None, "windows-1251", "utf-16", "big5"]))
    def test_decoded_text_can_always_be_encoded(self, body: bytes, charset: str | None) -> None:
        page(body, charset=charset).html.encode()

    def test_line_ends_become_newlines(self) -> None:
        assert read("a\r\nb\rc\n\nd").html == "a\nb\nc\n\nd"

    def test_unpaired_surrogates_are_replaced(self) -> None:
        imported = page("<a href='\ud800'>\udfff\ufeff")
        imported.html.encode()
        assert imported.html.count("\ufffd") >= 1
