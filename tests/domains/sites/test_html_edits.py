"""Additions to a site's page when it is served. All other HTML is unchanged."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.sites.rules.page_html import add_beacon, add_snippet, complete, starter

ADDED = '<title>T &amp; t</title><meta name="description" content="d &quot;q&quot;">'


def completed(html: str) -> str:
    return complete(html, title="T & t", description='d "q"')


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", "<p>Hi</p>"),
        ("<!doctype html>\n", "<p>Hi</p>"),
        (
            "\ufeff<!-- <head> --><!DOCTYPE HTML><HTML lang='a>b'>\n<HEAD data-x='>'>",
            "<meta charset=x>",
        ),
        ("<html><head>", "</head><body><title>no</title>"),
        ("<head>", "<svg><title>s</title></svg><!-- <title>x</title> --></head>"),
        ("<head>", "</title></head><title>no</title>"),
        ("<head>", "<body><title>no</title>"),
        ("<head>", "<svg><g></g><title>s</title></svg>"),
        ("<head>", "<a name=description></head>"),
        ("", "<header><h1>x</h1></header>"),
    ],
)
def test_missing_title_is_added_at_the_start_of_the_head(prefix: str, suffix: str) -> None:
    assert completed(prefix + suffix) == prefix + ADDED + suffix


@pytest.mark.parametrize(
    "html",
    [
        '<html><head><title>Own</title><meta name="description" content="x"></head>',
        "<TITLE>Own</TITLE><META content=x NAME=Description>",
        "<meta content='a > b' name='description'><title lang=ru>x</title>",
        "</svg><svg/><meta name=Description><title>x</title>",
        "<svg></svg><meta charset=utf-8><meta name=description><title>x</title>",
    ],
)
def test_own_title_and_description_are_kept(html: str) -> None:
    assert completed(html) == html


def test_a_description_is_added_only_if_there_is_one() -> None:
    assert complete("<p>", title="T", description=None) == "<title>T</title><p>"
    assert complete("<title>Own</title>", title="T", description="d") == (
        '<meta name="description" content="d"><title>Own</title>'
    )


@pytest.mark.parametrize(
    ("link", "canonical", "added_link"),
    [
        ("", "https://a.example/?a&b", '<link rel="canonical" href="https://a.example/?a&amp;b">'),
        ("<link href=x><a rel=canonical>", "u", '<link rel="canonical" href="u">'),
        ("<link rel='me Canonical' href=/x>", "u", ""),
        ("<link rel=canonical href=/x><link rel=icon href=y>", "u", ""),
        ("", None, ""),
    ],
)
def test_a_canonical_link_is_added_if_the_page_has_none(
    link: str, canonical: str | None, added_link: str
) -> None:
    html = f"<title>Own</title>{link}"
    assert complete(html, title="T", description=None, canonical=canonical) == added_link + html


@given(st.text(alphabet="<>!-/ \n\"'abdehilmnoty=T", max_size=80))
def test_the_rest_of_a_page_is_unchanged(html: str) -> None:
    assert (
        completed(html)
        .replace("<title>T &amp; t</title>", "", 1)
        .replace('<meta name="description" content="d &quot;q&quot;">', "", 1)
        == html
    )


def test_the_beacon_is_one_line_before_the_end() -> None:
    html = add_beacon(
        "<body>x</BODY></html>",
        hit_url="https://a.example/hit",
        project_id="s",
        page_id="p</script>",
    )
    line = (
        '<script>navigator.sendBeacon("https://a.example/hit",JSON.stringify({projectId:"s",'
        'pageId:"p\\u003c/script>",referrer:document.referrer}))</script>\n'
    )
    assert html == f"<body>x{line}</BODY></html>"
    assert add_beacon("<p>x", hit_url="u", project_id="s", page_id="p").startswith("<p>x<script>")


def test_a_snippet_is_added_at_the_end_and_replaced_where_it_is() -> None:
    first = add_snippet("<p>x</body>", snippet="[a]", begins="[", ends="]")
    assert first == "<p>x[a]\n</body>"
    assert add_snippet(first, snippet="[b]", begins="[", ends="]") == "<p>x[b]\n</body>"
    assert add_snippet("[a]<p>x", snippet="[b]", begins="[", ends="]") == "[b]<p>x"
    assert add_snippet("]<p>[x", snippet="[b]", begins="[", ends="]") == "]<p>[x[b]\n"


def test_a_new_page_has_its_title_as_heading_and_the_language() -> None:
    html = starter("Bread & cake", language="ru")
    assert html.startswith('<!doctype html>\n<html lang="ru">')
    assert html.count("Bread &amp; cake</") == 2


@pytest.mark.parametrize(
    "unit", ["<!--", "<html ", "<head a='", "<svg", "<meta name", "<", "</body"]
)
def test_malformed_pages_take_little_time(unit: str) -> None:
    html = unit * (2**20 // len(unit))
    began = time.thread_time()
    add_beacon(completed(html), hit_url="u", project_id="s", page_id="p")
    assert time.thread_time() - began < 5  # CPU seconds of this thread; 0.04 at most
