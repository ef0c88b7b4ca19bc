"""Find pages that are composed of sections only, and put a header and a footer around them.

The stored HTML of such a page is the starter with sections in it. Its look is added when it is
served, so a page follows the brand of the workspace without being saved again. A page with HTML of
its author's keeps its own look.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from chalicelib.domains.sites.rules import page_html, sections

# What precedes the sections in a starter. A metadata element may stand before the style.
_BEFORE = re.compile(
    re.escape(page_html.STARTER_STYLE) + r"\n</head>\n<body>\n<main>\n(<h1>[^<]*</h1>)\n"
)
_AFTER = "\n</main>\n"
_OPENING = '<div class="svc-sections">\n'
# The style that stored sections bring to a page of any look.
_OWN_STYLE = re.compile(r"<style>[^<]*</style>\n")
_HERO_TITLE = re.compile(r'<h2 class="svc-title">([^<]*)</h2>')
# The end of the hero's words, and its photo without a description.
_HERO_PHOTO = re.compile(r'(</div>\n<img src="[^"<>]*" alt=")"')
_WORDS_END = "</div>\n"
_HOURS = "<!--section:hours-->"


class ComposedPage(NamedTuple):
    """The HTML of a composed page, in parts."""

    head: str  # through the elements of the head
    heading: str
    sections_html: str  # with the comments
    tail: str  # after the main element

    @property
    def has_hours(self) -> bool:
        return _HOURS in self.sections_html

    def in_frame(
        self, *, head: str, header: str, footer: str, photo_of: Callable[[str], str]
    ) -> str:
        """Return the page with elements of the head, a header and a footer.

        The title of a hero that comes first is the heading of the page. ``photo_of`` returns what
        its photo shows, by the title as HTML.
        """
        heading, body = f"{self.heading}\n", self.sections_html
        # The comment before the opening has no tag: the JSON escapes its signs.
        if body.partition(_OPENING)[2].startswith('<div class="svc-hero'):
            heading, body = "", _described(body, photo_of)
            body = _HERO_TITLE.sub(r'<h1 class="svc-title">\1</h1>', body, count=1)
        page = (
            f'{self.head}{head}\n</head>\n<body class="svc-page">\n{header}\n<main id="main">\n'
            f"{heading}{body}\n</main>\n{self.tail}"
        )
        return page_html.before_body_end(page, addition=f"{footer}\n")


def _described(body: str, photo_of: Callable[[str], str]) -> str:
    # A hero has a title (``sections.Section``), and its photo follows its words.
    end = body.index(_WORDS_END)
    photo, title = _HERO_PHOTO.match(body, end), _HERO_TITLE.search(body, 0, end)
    if photo is None or title is None:
        return body
    return f'{body[:end]}{photo[1]}{photo_of(title[1])}"{body[photo.end() :]}'


def find_composed(html: str) -> ComposedPage | None:
    """Return the parts of a page whose only content are sections, or None for another page."""
    block = sections.find_block(html)
    if block is None or not html.startswith(_AFTER, block.end):
        return None
    # The search is bounded: only the last starter before the sections can end at their start.
    start = html.rfind(page_html.STARTER_STYLE, 0, block.start)
    before = _BEFORE.fullmatch(html, start, block.start) if start >= 0 else None
    if before is None:
        return None
    content = html[block.start : block.end]
    opening = content.find(_OPENING)
    if opening >= 0:
        place = opening + len(_OPENING)
        content = content[:place] + _OWN_STYLE.sub("", content[place:], count=1)
    return ComposedPage(html[:start], before[1], content, html[block.end + len(_AFTER) :])
