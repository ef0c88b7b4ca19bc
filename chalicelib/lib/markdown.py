"""Markdown of the blog as HTML that cannot run, and as plain words.

Raw HTML in it is text. What the renderer makes is cleaned once more by an HTML parser with a list
of allowed tags (nh3), so that a fault of the one is caught by the other (security.md).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

WORDS_A_MINUTE = 190
"""What an adult reads silently, between Russian (about 184) and English (about 228): Trauzettel-
Klosinski and Dietz, Standardized Assessment of Reading Performance (2012)."""
_WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")

_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "hr", "img", "li", "ol", "p", "pre", "strong"}
    | {"h2", "h3", "h4", "h5", "h6", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"class"},
    "th": {"class"},
}
_CLASSES = {
    "code": re.compile(r"language-[\w+#.-]{1,40}", re.ASCII),
    "td": re.compile(r"align-(?:center|right)"),
    "th": re.compile(r"align-(?:center|right)"),
}
_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_LINK_REL = "nofollow ugc noopener"
_SIZE = re.compile(r"#([1-9][0-9]{0,3})x([1-9][0-9]{0,3})$", re.ASCII)
"""The end of an image's URL that says its size in pixels, so that the text does not jump."""
_MAX_NESTING = 40


@lru_cache(maxsize=64)
def to_html(markdown: str) -> str:
    """Return the HTML of a text; its highest headings are ``h2``, below the page's own."""
    tokens = _parser().parse(markdown)
    highest = min((int(t.tag[1]) for t in tokens if t.type == "heading_open"), default=1)
    _adapt(tokens, 2 - highest)
    return _enriched(_clean(_parser().renderer.render(tokens, _parser().options, {})))


def to_text(markdown: str) -> str:
    """Return the words of a text without its code blocks, as a single line."""
    return " ".join(" ".join(_words(_parser().parse(markdown))).split())


def minutes(markdown: str) -> int:
    """Return how long it takes to read, at least a minute; code counts as words."""
    return max(1, round(len(_WORD.findall(markdown)) / WORDS_A_MINUTE))


def summary(text: str, limit: int) -> str:
    """Return the beginning of a text of words, ended at a word if it is longer than ``limit``."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    at_word = cut.rpartition(" ")[0] if " " in cut[limit // 2 :] else cut
    return at_word.rstrip(" ,;:.-\u2013\u2014") + "…"


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415  40 ms that only the blog needs

    options = {"html": False, "linkify": False, "maxNesting": _MAX_NESTING}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def _adapt(tokens: "Sequence[Token]", shift: int) -> None:
    """Shift the headings' levels, give images their size, and cells a class for a style."""
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + shift)}"
        elif token.tag == "s":
            token.tag = "del"
        elif token.type in {"th_open", "td_open"}:
            side = str(token.attrs.pop("style", "")).partition(":")[2]
            if side in {"center", "right"}:
                token.attrSet("class", f"align-{side}")
        elif token.type == "image" and (size := _SIZE.search(str(token.attrs.get("src", "")))):
            token.attrs.update(width=size[1], height=size[2])
        _adapt(token.children or (), shift)


def _clean(html: str) -> str:
    import nh3  # noqa: PLC0415  as above

    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes=set(_SCHEMES),
        link_rel=_LINK_REL,
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    if name == "class":
        return value if _CLASSES[tag].fullmatch(value) else None
    return value


def _enriched(html: str) -> str:
    """Add what the cleaner has no say in: its output holds these tags as elements only."""
    return _TAG.sub(lambda tag: _ADDITIONS[tag[0]], html)


_ADDITIONS = {
    "<img": '<img loading="lazy" decoding="async"',
    "<th": '<th scope="col"',
    # What scrolls sideways can be reached with the keyboard.
    "<pre": '<pre tabindex="0"',
    "<table": '<div class="scroll" tabindex="0"><table',
    "</table>": "</table></div>",
}
_TAG = re.compile(r"<(?:img|th|pre|table)(?=[ >])|</table>")


def _words(tokens: "Sequence[Token]") -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline"}:
            yield token.content
        elif token.type == "inline":
            yield "".join(_inline(token.children or ()))


def _inline(tokens: "Sequence[Any]") -> Iterator[str]:
    for token in tokens:
        if token.type in {"text", "code_inline"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
