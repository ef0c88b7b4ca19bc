"""Imported HTML: absolute URLs, replaced images, and everything else unchanged."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.sites.rules.html_import import (
    MAX_GROWTH,
    ImportedHtml,
    PageTooLargeError,
    looks_like_html,
    read,
)
from tests.support.effort import examples, slow_but_for

HERE = "https://example.com/shop/page.html"
"""URL that the pages of these tests come from."""


def page(html: str | bytes, **options: Any) -> ImportedHtml:
    return read(html, base_url=HERE, **options)


class TestUrls:
    @pytest.mark.parametrize(
        ("written", "absolute"),
        [
            ("a.png", "https://example.com/shop/a.png"),
            ("/a.png", "https://example.com/a.png"),
            ("../a.png", "https://example.com/a.png"),
            ("../../../a.png", "https://example.com/a.png"),
            ("./b/../a.png", "https://example.com/shop/a.png"),
            ("//cdn.example/a.png", "https://cdn.example/a.png"),
            ("?page=2", "https://example.com/shop/page.html?page=2"),
            ("  a.png\n", "https://example.com/shop/a.png"),
            ("a\n b.png", "https://example.com/shop/a%20b.png"),
            ("a b.png", "https://example.com/shop/a%20b.png"),
            ("a%20b.png", "https://example.com/shop/a%20b.png"),
            ("хлеб.png?цена=1", "/%D1%85%D0%BB%D0%B5%D0%B1.png?%D1%86%D0%B5%D0%BD%D0%B0=1"),
            ("\\img\\a.png", "https://example.com/img/a.png"),
            ("a.png?x=1&amp;y=2#z", "https://example.com/shop/a.png?x=1&amp;y=2#z"),
        ],
    )
    def test_relative_urls_are_made_absolute_as_browsers_do(
        self, written: str, absolute: str
    ) -> None:
        made = page(f'<a href="{written}">').html
        assert made.startswith('<a href="http')
        assert made.endswith(f'{absolute}">')

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "#place",
            "data:image/gif;base64,R0lGOD",
            "javascript:go('a b')",
            "JavaScript:void(0)",
            "mailto:a@example.com",
            "tel:+74951234567",
            "tg://resolve?domain=x",
            "about:blank",
            "http://[bad",
            "//[bad",
            "http:///a",
            "https:a.png",
            "HTTPS://Example.com/A b?c=д",
        ],
    )
    def test_absolute_urls_and_anchors_stay_as_written(self, address: str) -> None:
        source = f"<a  HREF='{address}' >x</a>"
        assert page(source).html == source

    @pytest.mark.parametrize(
        "source",
        [
            "<a href=@>",
            "<AREA HREF='@'>",
            "<img alt=x src='@'>",
            "<IMG SRC=@>",
            "<script src=@></script>",
            "<link rel=stylesheet href=@>",
            "<form action=@>",
            "<button formaction=@>",
            "<video poster=@ src=@>",
            "<source src=@>",
            "<source srcset='@ 2x'>",
            "<iframe src=@></iframe>",
            "<object data=@>",
            "<embed src=@>",
            "<blockquote cite=@>",
            "<svg><use href=@ /><image xlink:href=@ /></svg>",
            "<td background=@>",
            "<img data-src=@ data-original=@>",
            "<div data-content-cover-bg=@>",
            "<div style='background:url(@)'>",
            "<div style=\"background:url('@')\">",
            "<style>@import '@';</style>",
            "<style>@import url(@);</style>",
            "<style>a{background:URL( @ )}</style>",
            "<meta property=og:image content=@>",
            "<link rel=preload as=image imagesrcset='@ 2x'>",
            "<noscript><img src=@></noscript>",
            "<iframe srcdoc='<img src=@>'></iframe>",
            "<template><img src=@></template>",
            "<p><b><a href=@",
        ],
    )
    def test_urls_are_found_in_every_attribute_and_style(self, source: str) -> None:
        relative = source.replace("@", "q.png").replace("q.pngimport", "@import")
        made = page(relative).html
        if source.endswith("@"):
            assert made == relative  # Browsers drop a tag that never ends.
        else:
            assert made.count("https://example.com/shop/q.png") == source.count("@") - source.count(
                "@import"
            )

    @pytest.mark.parametrize(
        "source",
        [
            "<!doctype html>\n<HTML Lang=ru><P CLASS = x>A &amp; B&nbsp;&copy 2<br/>\0 <b><i></b>",
            '<script>var a = \'<img src="a.png">\' && "</a href=b>"</script>',
            "<!-- <img src=a.png> --><textarea><img src=a.png></textarea><xmp><img src=a></xmp>",
            "<style>/* url(a.png) */ b{content:'url(a.png)'} c{fill:url(#d)}</style>",
            "<svg viewBox='0 0 1 1'><clipPath/></svg><math><mi>x</mi></math>",
            "<?php echo 1 ?><![CDATA[ x ]]></ x><a<b c",
            "<table><div><tr><td>x</table>",
            "plain text",
            "",
        ],
    )
    def test_everything_else_stays_unchanged(self, source: str) -> None:
        assert page(source).html == source

    def test_a_changed_tag_is_rewritten_with_the_same_meaning(self) -> None:
        source = "<IMG alt='a \"b\" &amp; c' hidden SRC=a.png SRC=b.png =x=1 />"
        assert page(source).html == (
            '<img alt="a &quot;b&quot; &amp; c" hidden="" src="https://example.com/shop/a.png"'
            ' =x="1" />'
        )

    def test_a_url_in_a_style_sheet_is_escaped(self) -> None:
        source = "<style>a{b:url('a\\'\\20 b(1).png')}</style>"
        made = page(source)
        assert made.html == '<style>a{b:url("https://example.com/shop/a\'%20b(1).png")}</style>'
        out = made.replaced({made.images[0]: 'x"</style><script>\\'})
        assert "</style><script>" not in out

    def test_urls_in_a_srcset_may_contain_commas(self) -> None:
        source = (
            "<img srcset='a,b.png, data:image/png;base64,AA== 2x,c.png 3x , d.png (a,b) 4x,,e'>"
        )
        made = page(source)
        assert made.html == (
            '<img srcset="https://example.com/shop/a,b.png, data:image/png;base64,AA== 2x,'
            "https://example.com/shop/c.png 3x , https://example.com/shop/d.png (a,b) 4x,,"
            'https://example.com/shop/e">'
        )
        assert [image.rpartition("/")[2] for image in made.images] == [
            "a,b.png",
            "c.png",
            "d.png",
            "e",
        ]

    def test_urls_are_resolved_against_the_pages_base_which_is_removed(self) -> None:
        source = "<a href=a><base target=_top href='/x/'><base href=/y/><img src=b.png>"
        made = page(source)
        assert made.html == (
            '<a href="https://example.com/x/a"><base target="_top">'
            '<img src="https://example.com/x/b.png">'
        )
        assert read("<base href=https://a.example/b/><a href=c>").html == (
            '<a href="https://a.example/b/c">'
        )

    @pytest.mark.parametrize(
        ("base", "link", "absolute"),
        [
            ("/a/b/../c/./d", "x", "/a/c/x"),
            ("/a/b/../c/./d", "?q", "/a/c/d?q"),
            ("/a/..", "x", "/x"),
            ("/a;b/c:d", "?q", "/a;b/c:d?q"),
            ("/../a/b/", "../x", "/a/x"),
            ("?q", "x", "/shop/x"),
            ("/a/" + "b/" * 1500, "../" * 1500 + "x", "/a/x"),
        ],
    )
    def test_a_base_in_any_form_is_used(self, base: str, link: str, absolute: str) -> None:
        made = page(f"<base href='{base}'><a href='{link}'>")
        assert made.html == f'<a href="https://example.com{absolute}">'

    def test_malformed_image_urls_are_ignored(self) -> None:
        assert page("<img src='http://[a.png'><img src='http:///a.png'>").images == ()

    @pytest.mark.parametrize(
        "base",
        ["javascript:1", "data:,x", "http://[", "mailto:a@b.c"]
        + [
            f"{start}/{'я' * length}/"
            for start in ("", "https://a.example")
            for length in (700, 5000)
        ],
    )
    def test_a_base_that_is_too_long_or_not_a_web_url_is_ignored(self, base: str) -> None:
        assert page(f"<base href='{base}'><a href=a>").html == (
            '<a href="https://example.com/shop/a">'
        )

    def test_relative_urls_stay_if_the_pages_url_is_unknown(self) -> None:
        source = "<base href='sub/'><a href=a><img src=../b.png srcset='c.png 2x'>"
        made = read(source)
        assert (made.html, made.images, made.relative) == (source, (), 3)

    def test_urls_without_a_scheme_get_https_if_the_pages_url_is_unknown(self) -> None:
        made = read("<img src=//cdn.example/a.png><a href='\\\\b.example\\c'><a href=///x>")
        assert made.images == ("https://cdn.example/a.png",)
        assert '<a href="https://b.example/c">' in made.html
        assert made.html.endswith("<a href=///x>")
        assert made.relative == 1

    @pytest.mark.parametrize(
        ("written", "absolute"),
        [
            ("5; url=next", "5; url=https://example.com/shop/next"),
            ("0;URL='/next'", "0;URL=https://example.com/next"),
            (' 1.5 , url = "a b" tail', " 1.5 , url = https://example.com/shop/a%20b"),
            ("0 /next", "0 https://example.com/next"),
            ("0;//b.example/", "0;https://b.example/"),
            ("0; url=o'brien", "0; url=https://example.com/shop/o'brien"),
            ("0; url=https://b.example", None),
            ("5", None),
            ("5;", None),
            ("5; url=", None),
            ("url=next", None),
            ("5next", None),
            ("", None),
        ],
    )
    def test_the_url_of_a_refresh_is_made_absolute(
        self, written: str, absolute: str | None
    ) -> None:
        quote = "'" if '"' in written else '"'
        source = f"<meta http-equiv=Refresh content={quote}{written}{quote}>"
        expected = (
            source if absolute is None else (f'<meta http-equiv="Refresh" content="{absolute}">')
        )
        assert page(source).html == expected


class TestImages:
    def test_images_are_listed_once_in_order_without_fragments(self) -> None:
        made = page(
            "<link rel='shortcut icon' href=/icon.png><link rel=icon href=/favicon.ico>"
            "<link rel=stylesheet href=s.css><meta property='og:image' content='/og.jpg'>"
            "<style>@import 'i.css'; @font-face{src:url(f.woff2?x)} a{b:url(1.png)}</style>"
            "<img src=2.png#x><img src=1.png srcset='3.png 2x'><a href=no.png></a>"
            "<image><source srcset=4.webp></image><video src=no.mp4 poster=5.png></video>"
            "<input type=IMAGE src=6.png><input src=no.png><img src=data:image/png,AA>"
            "<div style='background:url(7.png)'></div><img data-src=8.png src=2.png>"
            "<script src=no.js></script><img src='//cdn.example/9.png'><noscript><img src=10.png>"
        )
        assert [image.rpartition("/")[2] for image in made.images] == [
            "icon.png",
            "og.jpg",
            *[f"{number}.png" for number in (1, 2, 3)],
            "4.webp",
            *[f"{number}.png" for number in range(5, 11)],
        ]
        assert made.images[-2] == "https://cdn.example/9.png"

    def test_images_are_replaced_wherever_they_occur(self) -> None:
        made = page(
            "<img src=a.png srcset='a.png 1x, b.png 2x'><a href=a.png#top>big</a>"
            "<i style='background:url(a.png)'></i><style>b{c:url(a.png)}</style>"
            "<img src='https://EXAMPLE.com/shop/a.png'><img src=https://example.com/shop/aa.png>"
        )
        out = made.replaced({"https://example.com/shop/a.png": "https://files.example/1?a&b"})
        assert "shop/a.png" not in out
        assert out.count("https://files.example/1?a") == 6
        assert "/1?a&amp;b#top" in out
        assert "shop/b.png 2x" in out
        assert "shop/aa.png" in out

    def test_the_page_is_unchanged_if_no_image_is_replaced(self) -> None:
        made = page("<IMG src=a.png><P Class=x>&nbsp;")
        assert made.replaced({}) == made.html
        assert made.replaced({"https://other.example/a.png": "b"}) == made.html


class TestTitle:
    @pytest.mark.parametrize(
        ("source", "title"),
        [
            ("<title>\n  Пекарня \t «Ёлочка»&nbsp;&amp; Ко </title>", "Пекарня «Ёлочка» & Ко"),
            ("<TITLE lang=ru>a <b>x</b></TITLE><title>b</title>", "a <b>x</b>"),
            ("<svg><title>icon</title></svg><title>page</title>", "page"),
            ("<svg/><title>page</title>", "page"),
            ("<title></title><title>second</title>", "second"),
            ("<title>never closed", "never closed"),
            ("<title> \n </title>", None),
            ("<h1>none</h1>", None),
            ("<!-- <title>no</title> --><noscript><title>no</title></noscript>", None),
        ],
    )
    def test_the_title_is_the_pages_own_on_one_line(self, source: str, title: str | None) -> None:
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
    def test_the_description_is_that_of_the_meta_tag(
        self, source: str, description: str | None
    ) -> None:
        assert page(source).description == description


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "utf-8", "iso8859-5", "cp866"])
    def test_the_servers_declared_encoding_is_used(self, encoding: str) -> None:
        charset = {"cp1251": "windows-1251", "iso8859-5": "ISO-8859-5", "cp866": "ibm866"}
        source = RUSSIAN.replace("«", "").replace("»", "")
        made = page(source.encode(encoding), charset=charset.get(encoding, encoding))
        assert made.html == source

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
        made = page(source.encode(encoding))
        assert made.title == "Пекарня Ёлочка"
        assert encoding not in made.html
        assert "utf-8" in made.html

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_a_byte_order_mark_takes_precedence(self, encoding: str) -> None:
        source = "<meta charset=utf-8>" + RUSSIAN
        assert read("\ufeff\ufeff" + source).html == source
        assert page(source.encode(encoding), charset="windows-1251").html == source

    @pytest.mark.parametrize("charset", [None, "", "x-unknown", "utf-7", "rot13", "a" * 10_000])
    def test_an_unknown_encoding_is_guessed_from_the_text(self, charset: str | None) -> None:
        assert page(RUSSIAN.encode(), charset=charset).html == RUSSIAN
        assert page(RUSSIAN.encode("cp1251"), charset=charset).html == RUSSIAN

    def test_queries_are_encoded_as_in_browsers(self) -> None:
        made = page("<a href='хлеб?q=я'>".encode("cp1251"), charset="windows-1251")
        assert made.html.endswith('shop/%D1%85%D0%BB%D0%B5%D0%B1?q=%FF">')

    @given(st.binary(max_size=200), st.sampled_from([None, "windows-1251", "utf-16", "big5"]))
    def test_decoded_text_can_always_be_encoded(self, body: bytes, charset: str | None) -> None:
        page(body, charset=charset).html.encode()

    def test_unpaired_surrogates_are_replaced(self) -> None:
        made = page("<a href='\ud800'>\udfff\ufeff")
        made.html.encode()
        assert made.html.count("\ufffd") >= 1


PIECES = """
a < > </ href= src= srcset= style= ' " url( ) , # ? & &amp; &lt; = / \\ <a <!-- --> <base <style>
</style> <title> </title> <svg> </svg> <noscript> </noscript> <script> </script> <img <meta
charset=koi8-r content= property=og:image a.png //b.example/c http: https://[ data: @import
<template> <![CDATA[ ]]> <textarea> <plaintext> srcdoc= <iframe 2x я 𝔸
"""
htmlish = st.lists(
    st.sampled_from([*PIECES.split(), *" \n\r\t\f\0\ud800\u2028"]) | st.text(max_size=3),
    max_size=40,
).map("".join)
tags = st.lists(
    st.builds(
        "<{} {}={}{}{}>".format,
        st.sampled_from(["a", "img", "base", "link", "source", "video", "meta", "style", "iframe"]),
        st.sampled_from(["href", "src", "srcset", "style", "content", "srcdoc", "data-src", "=x"]),
        st.sampled_from(["'", ""]),
        htmlish.map(lambda text: text.replace("'", "")),
        st.sampled_from(["'", ""]),
    ),
    max_size=6,
).map("".join)


class TestAnyText:
    @examples(400)
    @given(htmlish | tags, st.sampled_from([HERE, None]))
    def test_any_text_can_be_read_and_reads_the_same_again(
        self, source: str, base: str | None
    ) -> None:
        first = read(source, base_url=base)
        first.html.encode()
        assert first.replaced({}) == first.html
        again = read(first.html, base_url=base)
        assert (again.title, again.images) == (first.title, first.images)
        assert again.html == first.html

    @examples(200)
    @given(htmlish | tags)
    def test_all_images_of_any_text_can_be_replaced(self, source: str) -> None:
        made = page(source)
        assert all(image.startswith(("http://", "https://")) for image in made.images)
        out = made.replaced(dict.fromkeys(made.images, "https://files.example/new.png"))
        assert set(read(out).images) <= {"https://files.example/new.png"}

    @examples(200)
    @given(htmlish.filter(lambda text: not set("\r\ud800\ufeff") & set(text)))
    def test_any_text_without_a_base_and_encodings_is_unchanged(self, source: str) -> None:
        if "<base" not in source and "<meta" not in source:
            assert read(source).html == source


def filled(piece: str, size: int = 1 << 19) -> str:
    return piece * (size // len(piece))


def linked(path: str, size: int, link: str = "<a href={:x}>") -> str:
    """Return a page of 20,000 different links, with a base of this many characters."""
    base = f"<base href='https://e.example/{filled(path, size)}'>"
    return base + "".join(map(link.format, range(20_000)))


HOSTILE = {
    "nested": filled("<div>"),
    "brackets": filled("<"),
    "never closed where opened": "<b>" * 90_000 + "</i>" * 70_000,
    "open comments": filled("<!--"),
    "open titles": filled("<title>"),
    "lines": filled("\n<b>"),
    "references": f"<a href='{filled('&a')}'>",
    "attributes": "<a " + " ".join(f"a{number}=1" for number in range(50_000)) + " href=x>",
    "long attribute": f"<a href='{filled('a')}'>",
    "steps up": f"<a href='{filled('../')}'>",
    "candidates": f"<img srcset='{filled('a.png 1x, ')}'>",
    "commas": f"<img srcset='{filled(',')}'>",
    "brackets of descriptors": f"<img srcset='a {filled('(')}'>",
    "style addresses": "<style>" + filled("url(abcdefgh.png)"),
    "open style addresses": "<style>" + filled("url("),
    "open quotes": "<style>" + filled('"\\'),
    "open quotes of addresses": "<style>" + filled('url("\\'),
    "open style comments": "<style>" + filled("/*"),
    "spaces of imports": "<style>" + filled("@import" + " " * 1000),
    "spaces of addresses": "<style>" + filled("url(" + " " * 1000),
    "bases": filled("<base href=x>"),
    "a base of slashes": linked("/", 4000),
    "a base of dots": linked("./", 4000),
    "a base of steps": linked("a/../", 4000),
    "a base of one step": linked("x", 4000, "<a href=../{:x}>"),
    "a long base of slashes": linked("/", 1 << 17),
    "a long base of dots": linked("./", 1 << 17),
    "a long query of a base": linked("?", 1 << 17),
    "pages in pages": '<iframe srcdoc="' + filled("<iframe srcdoc='") + '">',
    "noscripts": filled("<noscript></noscript>"),
    "zeros": filled("\0"),
    "refreshes": "<meta http-equiv=refresh content='" + filled("0; url ") + "'>",
    "delays": "<meta http-equiv=refresh content='" + filled("1") + "'>",
}
HEAVY = {name for name in HOSTILE if " base" in name or name.startswith("a base")}
"""These take up to a second each. The others are quick; `bases` covers bases there."""


class TestHostilePages:
    @pytest.mark.parametrize("name", slow_but_for(HOSTILE.keys() - HEAVY, HOSTILE))
    def test_the_time_grows_linearly_with_the_size(self, name: str) -> None:
        began = time.thread_time()
        made = page(HOSTILE[name])
        made.replaced(dict.fromkeys(made.images[:50], "/f"))
        assert time.thread_time() - began < 20  # CPU seconds of this thread; 0.7 at most

    @pytest.mark.parametrize(
        "source",
        [
            f"<base href='https://example.com/{'x' * 4000}/'>" + "<a href=y>" * 1100,
            "<img srcset='" + "a ," * 300_000 + "'>",
            "<style>" + "url(a)" * 1_000_000,
        ],
    )
    def test_pages_that_would_grow_too_much_are_refused(self, source: str) -> None:
        with pytest.raises(PageTooLargeError) as caught:
            page(source)
        assert len(source) + MAX_GROWTH < caught.value.size < len(source) + 2 * MAX_GROWTH


class TestLooksLikeHtml:
    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            (b"<!doctype html><p>x", "text/html; charset=windows-1251"),
            (b"\xcf\xf0\xe8\xe2\xe5\xf2", "Text/HTML"),
            (b"<my-app></my-app>", "text/html"),
            (b"<?xml version='1.0'?><html/>", "application/xhtml+xml"),
            (b"<html></html>", None),
            (b"<html></html>", "text/plain"),
        ],
    )
    def test_pages_are_recognised(self, body: bytes, content_type: str | None) -> None:
        assert looks_like_html(body, content_type)

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            (b"\x89PNG\r\n\x1a\n", "text/html"),
            (b"%PDF-1.7", "text/html"),
            (b"\0\1\2\3", "text/html"),
            (b"<svg></svg>", "text/html"),
            (b"", "text/html"),
            (b"<html></html>", "application/json"),
            (b"<html></html>", "image/png"),
            (b'{"a": 1}', "application/json"),
            (b"just words", "text/plain"),
            (b"just words", None),
        ],
    )
    def test_other_content_is_refused(self, body: bytes, content_type: str | None) -> None:
        assert not looks_like_html(body, content_type)
