"""Imports of random and hostile HTML lose no content and take little time."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.sites.rules.html_import import (
    MAX_GROWTH,
    PageTooLargeError,
    looks_like_html,
    read,
)
from tests.domains.sites.html_import.helpers import HERE, page
from tests.support.effort import examples, slow_but_for

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
    def test_second_import_changes_nothing(self, source: str, base: str | None) -> None:
        first = read(source, base_url=base)
        first.html.encode()
        assert first.replaced({}) == first.html
        second = read(first.html, base_url=base)
        assert (second.title, second.images) == (first.title, first.images)
        assert second.html == first.html

    @examples(200)
    @given(htmlish | tags)
    def test_all_images_of_any_text_can_be_replaced(self, source: str) -> None:
        imported = page(source)
        assert all(image.startswith(("http://", "https://")) for image in imported.images)
        out = imported.replaced(dict.fromkeys(imported.images, "https://files.example/new.png"))
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


HOSTILE: dict[str, Callable[[], str]] = {
    "nested": lambda: filled("<div>"),
    "brackets": lambda: filled("<"),
    "never closed where opened": lambda: "<b>" * 90_000 + "</i>" * 70_000,
    "open comments": lambda: filled("<!--"),
    "open titles": lambda: filled("<title>"),
    "lines": lambda: filled("\n<b>"),
    "references": lambda: f"<a href='{filled('&a')}'>",
    "attributes": lambda: "<a " + " ".join(f"a{number}=1" for number in range(50_000)) + " href=x>",
    "long attribute": lambda: f"<a href='{filled('a')}'>",
    "steps up": lambda: f"<a href='{filled('../')}'>",
    "candidates": lambda: f"<img srcset='{filled('a.png 1x, ')}'>",
    "commas": lambda: f"<img srcset='{filled(',')}'>",
    "brackets of descriptors": lambda: f"<img srcset='a {filled('(')}'>",
    "style addresses": lambda: "<style>" + filled("url(abcdefgh.png)"),
    "open style addresses": lambda: "<style>" + filled("url("),
    "open quotes": lambda: "<style>" + filled('"\\'),
    "open quotes of addresses": lambda: "<style>" + filled('url("\\'),
    "open style comments": lambda: "<style>" + filled("/*"),
    "spaces of imports": lambda: "<style>" + filled("@import" + " " * 1000),
    "spaces of addresses": lambda: "<style>" + filled("url(" + " " * 1000),
    "bases": lambda: filled("<base href=x>"),
    "a base of slashes": lambda: linked("/", 4000),
    "a base of dots": lambda: linked("./", 4000),
    "a base of steps": lambda: linked("a/../", 4000),
    "a base of one step": lambda: linked("x", 4000, "<a href=../{:x}>"),
    "a long base of slashes": lambda: linked("/", 1 << 17),
    "a long base of dots": lambda: linked("./", 1 << 17),
    "a long query of a base": lambda: linked("?", 1 << 17),
    "pages in pages": lambda: '<iframe srcdoc="' + filled("<iframe srcdoc='") + '">',
    "noscripts": lambda: filled("<noscript></noscript>"),
    "zeros": lambda: filled("\0"),
    "refreshes": lambda: "<meta http-equiv=refresh content='" + filled("0; url ") + "'>",
    "delays": lambda: "<meta http-equiv=refresh content='" + filled("1") + "'>",
}
HEAVY = {name for name in HOSTILE if " base" in name or name.startswith("a base")}
"""These take up to a second each. The others are quick; `bases` covers bases there."""


class TestHostilePages:
    @pytest.mark.parametrize("name", slow_but_for(HOSTILE.keys() - HEAVY, HOSTILE))
    def test_the_time_grows_linearly_with_the_size(self, name: str) -> None:
        began = time.thread_time()
        imported = page(HOSTILE[name]())
        imported.replaced(dict.fromkeys(imported.images[:50], "/f"))
        assert time.thread_time() - began < 20  # CPU seconds of this thread; 0.7 at most

    @pytest.mark.parametrize(
        ("start", "repeated", "times", "end"),
        [
            (f"<base href='https://example.com/{'x' * 4000}/'>", "<a href=y>", 1100, ""),
            ("<img srcset='", "a ,", 300_000, "'>"),
            ("<style>", "url(a)", 1_000_000, ""),
        ],
    )
    def test_pages_that_would_grow_too_much_are_refused(
        self, start: str, repeated: str, times: int, end: str
    ) -> None:
        source = start + repeated * times + end
        with pytest.raises(PageTooLargeError) as caught:
            page(source)
        assert len(source) + MAX_GROWTH < caught.value.size < len(source) + 2 * MAX_GROWTH

    def test_a_page_may_grow_up_to_the_limit(self) -> None:
        base = f"https://a.example/{'x' * 4077}/"
        source = f"<base href={base}>" + "<a href=y>" * (MAX_GROWTH // len(base))
        assert page(source).html.count(f"{base}y") == MAX_GROWTH // len(base)
        with pytest.raises(PageTooLargeError) as caught:
            page(f"{source}<a href=y>")
        assert caught.value.size == len(source) + len("<a href=y>") + MAX_GROWTH + len(base)


class TestLooksLikeHtml:
    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            (b"<!doctype html><p>x", "text/html; charset=windows-1251"),
            (b"\xcf\xf0\xe8\xe2\xe5\xf2", "Text/HTML"),
            (b"<my-app></my-app>", "text/html"),
            (b"<?xml version='1.0'?><html/>", "application/xhtml+xml"),
            (b"<?xml version='1.0'?><page/>", "text/html"),
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
