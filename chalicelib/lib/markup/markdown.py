"""Conversion of the blog's Markdown to safe HTML and to plain text."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Reading speed of an adult, between Russian (about 184) and English (about 228). Source:
# Trauzettel-Klosinski and Dietz, Standardized Assessment of Reading Performance (2012).
WORDS_PER_MINUTE = 190
_WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")

# The renderer shows raw HTML as plain characters, and nh3, an HTML parser with a list of allowed
# tags, cleans its result. A fault in only the renderer therefore cannot publish a script.
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
# Size in pixels at the end of an image's URL. Browsers reserve the space, so text does not jump.
_SIZE = re.compile(r"#([1-9][0-9]{0,3})x([1-9][0-9]{0,3})$", re.ASCII)
_MAX_NESTING = 40


# A post is read far more often than it changes.
@lru_cache(maxsize=64)
def to_html(markdown: str) -> str:
    """Return the HTML of a Markdown document, with ``h2`` as its top heading."""
    tokens = _parser().parse(markdown)
    # The title is the ``h1``.
    highest = min((int(t.tag[1]) for t in tokens if t.type == "heading_open"), default=1)
    _adapt(tokens, 2 - highest)
    return _enriched(_clean(_parser().renderer.render(tokens, _parser().options, {})))


def to_text(markdown: str) -> str:
    """Return the words of a Markdown document, without its code blocks, on a single line."""
    return " ".join(" ".join(_words(_parser().parse(markdown))).split())


def reading_minutes(markdown: str) -> int:
    """Return the reading time in minutes, at least 1, including code."""
    return max(1, round(len(_WORD.findall(markdown)) / WORDS_PER_MINUTE))


def summary(text: str, limit: int) -> str:
    """Return a plain text, cut at the end of a word and marked "…" if it exceeds ``limit``."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    at_word = cut.rpartition(" ")[0] if " " in cut[limit // 2 :] else cut
    return at_word.rstrip(" ,;:.-\u2013\u2014") + "…"


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    options = {"html": False, "linkify": False, "maxNesting": _MAX_NESTING}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def _adapt(tokens: "Sequence[Token]", shift: int) -> None:
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + shift)}"
        elif token.tag == "s":
            token.tag = "del"
        elif token.type in {"th_open", "td_open"}:
            side = str(token.attrs.pop("style", "")).partition(":")[2]
            # The style would be removed by the cleaning, but a class on the list is kept.
            if side in {"center", "right"}:
                token.attrSet("class", f"align-{side}")
        elif token.type == "image" and (size := _SIZE.search(str(token.attrs.get("src", "")))):
            token.attrs.update(width=size[1], height=size[2])
        _adapt(token.children or (), shift)


def _clean(html: str) -> str:
    import nh3

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
    # Plain replacement is safe here: in cleaned HTML these tags occur as elements only.
    return _TAG.sub(lambda tag: _ADDITIONS[tag[0]], html)


_ADDITIONS = {
    "<img": '<img loading="lazy" decoding="async"',
    "<th": '<th scope="col"',
    # Elements that scroll sideways must be reachable with the keyboard.
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
