"""The HTML of the blog's Markdown, and markup that never appears in the HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.markup.markdown import reading_minutes, summary, to_html, to_text
from tests.factories.scripts import PAYLOADS, payload_markdown
from tests.support.sweep import sweep


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("# One\n\n###### Six", "<h2>One</h2>\n<h6>Six</h6>\n"),
        ("## Two\n\n> ### Three", "<h2>Two</h2>\n<blockquote>\n<h3>Three</h3>\n</blockquote>\n"),
        ("### Three\n\nx\n===", "<h3>Three</h3>\n<h2>x</h2>\n".replace("h3", "h4")),
        (
            "a **b** *c* ~~d~~ `e`",
            "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>\n",
        ),
        (
            "[x](https://a.example 'T')",
            '<p><a href="https://a.example" title="T" rel="nofollow ugc noopener">x</a></p>\n',
        ),
        ("[x](/blog/y)", '<p><a href="/blog/y" rel="nofollow ugc noopener">x</a></p>\n'),
        (
            "![a](https://a.example/b.png#640x480)",
            (
                '<p><img loading="lazy" decoding="async" src="https://a.example/b.png#640x480"'
                ' alt="a" width="640" height="480"></p>\n'
            ),
        ),
        (
            "```python\na < b\n```",
            '<pre tabindex="0"><code class="language-python">a &lt; b\n</code></pre>\n',
        ),
        ("<b onclick=x>raw</b>", "<p>&lt;b onclick=x&gt;raw&lt;/b&gt;</p>\n"),
        ("<table>", "<p>&lt;table&gt;</p>\n"),
        ("3. x", '<ol start="3">\n<li>x</li>\n</ol>\n'),
    ],
)
def test_markdown_is_rendered(markdown: str, html: str) -> None:
    assert to_html(markdown) == html


def test_a_table_scrolls_separately_and_its_cells_are_aligned_without_inline_style() -> None:
    html = to_html("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |")
    assert html.startswith('<div class="scroll" tabindex="0"><table>')
    assert '<th scope="col">a</th>' in html
    assert '<th scope="col" class="align-center">b</th>' in html
    assert '<td class="align-right">3</td>' in html
    assert "style" not in html


@pytest.mark.parametrize(
    "markdown",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#115;cript:alert(1))",
        "<javascript:alert(1)>",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "[x](vbscript:x)",
        "[x](data:text/html,x)",
        '![x"onerror=alert(1)](https://a.example/"onerror=alert)',
        '```x" onmouseover=alert(1)\ny\n```',
        "[x][y]\n\n[y]: javascript:alert(1)",
    ],
)
def test_no_active_content_is_produced(markdown: str) -> None:
    assert_harmless(to_html(markdown))


ALLOWED_TAG = re.compile(
    r"</?(?:a|blockquote|br|code|del|div|em|h[2-6]|hr|img|li|ol|p|pre|strong|table|tbody|td|th"
    r"|thead|tr|ul)(?: (?:href|title|rel|class|src|alt|width|height|start|scope|tabindex|loading"
    r'|decoding)="[^"<>]*")*>'
)


SCHEME = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
"""The scheme of a URL. Browsers skip control characters before the scheme."""


def assert_harmless(html: str) -> None:
    """Check that every tag and attribute is an allowed one, and that no URL is a script."""
    for tag in re.findall(r"<[^>]*>", html):
        assert ALLOWED_TAG.fullmatch(tag), tag
        for address in re.findall(r'(?:href|src)="([^"]*)"', tag):
            scheme = SCHEME.match(re.sub(r"[\t\r\n]", "", unescape(address)))
            assert scheme is None or scheme[1].lower() in {"http", "https", "mailto", "tel"}, tag
    assert "<" not in re.sub(r"<[^>]*>", "", html)


@sweep("payload", PAYLOADS)
def test_a_known_script_renders_harmlessly_in_every_place(payload: str) -> None:
    assert_harmless(to_html(payload_markdown(payload)))


@given(st.text(alphabet="<>[]()!`*_~|-#:\"'&;\\/ \njavscriptonedh=01", max_size=200))
def test_any_text_renders_harmlessly(markdown: str) -> None:
    assert_harmless(to_html(markdown))


def test_words_are_those_that_a_reader_sees() -> None:
    assert (
        to_text("# A *b*\n\nc [d](https://x) `e`\n\n```\ncode\n```\n\n- f\n- g") == "A b c d e f g"
    )
    assert reading_minutes("") == 1
    assert reading_minutes("слово " * 570) == 3


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("short", "short"),
        ("one two three", "one two…"),
        ("one two, three", "one two…"),
        ("onetwothreefour", "onetwothr…"),
    ],
)
def test_a_summary_ends_at_a_word(text: str, cut: str) -> None:
    assert summary(text, 10) == cut
