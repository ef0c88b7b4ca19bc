"""Model the sections of a page, and the HTML that shows the sections (ADR 82).

The sections are in a comment before the generated HTML. So restoring a version of the page restores
its sections.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError, from_json, to_json

from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.sites.rules import page_html
from chalicelib.lib import maps
from chalicelib.lib.localized import language_of
from chalicelib.lib.markup import markdown

MAX_SECTIONS = 50
SectionType = Literal[
    "hero", "heading", "text", "columns", "photo", "prices", "booking", "form", "map", "hours"
]
# The field that a section of a type cannot do without.
_REQUIRED = {
    "hero": "title",
    "columns": "text",
    "heading": "text",
    "text": "text",
    "map": "text",
    "photo": "file_id",
    "form": "form_id",
}
_BESIDE_PHOTO = frozenset({"hero", "columns"})
_NAMES = {"title": "title", "text": "text", "file_id": "fileId", "form_id": "formId"}
BEGIN = "<!--sections "  # of the comment with the sections
END = "<!--/sections-->"
_PLACE = re.compile("<!--section:([a-z]+)(?: ([0-9A-Z]{26}))?-->([^<]*+)<!--/section-->")
# The author's HTML may repeat a tag without its end, so the search in a tag is limited.
_LANGUAGE = re.compile(r"""<html\b[^<>]{0,500}?\blang=["']?(ru|en)\b""", re.IGNORECASE)
_STYLE = (
    ".svc-sections{display:grid;gap:1.25rem}.svc-sections>*{margin:0}"
    ".svc-sections img{display:block;max-width:100%;height:auto;border-radius:.5rem}"
    ".svc-sections table{width:100%;border-collapse:collapse}"
    ".svc-sections :is(th,td){padding:.5rem 0;border-bottom:1px solid #8884;text-align:start;"
    "font-weight:inherit}.svc-sections td{text-align:end}"
    ".svc-pair{display:grid;gap:1.25rem;align-items:center;"
    "grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr))}"
    ".svc-button{display:inline-block;padding:.7rem 1.4rem;border-radius:.5rem;background:#3f3fbf;"
    "color:#fff;font-weight:600;text-decoration:none}"
)


class Section(Wire):
    """A section of a page, such as a heading, a photo, a map or a form."""

    type: SectionType = Field(
        description="hero: title, text, photo and booking link; columns: text beside a photo; "
        "prices: of active services; booking: link to the booking page; hours: of the staff."
    )
    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)] | None = (
        optional("Title of a hero or of columns.")
    )
    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)] | None = (
        optional(
            "Heading; Markdown of a text, hero or columns; description of a photo; address of a "
            "map; label of the booking link."
        )
    )
    file_id: Id | None = optional("Image of a photo, hero or columns.")
    form_id: Id | None = optional("Form of a form.")
    url: str | None = optional("URL of a photo. Only in responses.")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        name = _REQUIRED.get(self.type)
        if name and not getattr(self, name):
            field = _NAMES[name]
            message = f"expected a value in a section of type {self.type}, received none"
            raise PydanticCustomError(
                "missing_content", "{message}", {"message": message, "field": field}
            )
        return self


class SectionList(Wire):
    """Sections of a page, in order."""

    sections: Annotated[list[Section], Field(max_length=MAX_SECTIONS)] = Field(
        description="In order."
    )


class Block(NamedTuple):
    """The sections in a page's HTML, from ``start`` to ``end``."""

    start: int
    end: int
    sections_json: str
    html: str  # without the comments


class Photo(NamedTuple):
    url: str
    width: int
    height: int


def find_block(html: str) -> Block | None:
    """Return the sections in a page's HTML, or None if it has none."""
    # The time is linear in the length, because the HTML is the author's. A regular expression would
    # try each comment with each end.
    start = html.find(BEGIN)
    comment_end = html.find("-->", start)
    content_end = html.find(END, comment_end)
    if min(start, comment_end, content_end) < 0:
        return None
    return Block(
        start,
        content_end + len(END),
        html[start + len(BEGIN) : comment_end],
        html[comment_end + len("-->") : content_end],
    )


def read_sections(html: str) -> list[Section] | None:
    """Return the sections of a page's HTML, or None if the page has none."""
    block = find_block(html)
    if block is None:
        return None
    try:
        return [Section.model_validate(section) for section in from_json(block.sections_json)]
    except ValueError:  # Somebody has edited the comment.
        return None


def replace_sections(
    html: str, *, title: str, sections: Sequence[Section], photos: Mapping[str, Photo]
) -> str:
    """Return a page's HTML with other sections, or without any if ``sections`` is empty.

    Sections stand where the former ones stood, otherwise at the end of the content. The rest of the
    HTML does not change. A page without HTML gets a heading and a layout. ``photos`` are the images
    of photo sections, by file.
    """
    block = _block(sections, photos, language(html, title=title)) if sections else ""
    if former := find_block(html):
        return html[: former.start] + block + html[former.end :]
    if not html.strip():
        html = page_html.starter(title, language=language_of(title))
    return page_html.add_to_content(html, addition=f"{block}\n") if block else html


def language(html: str, *, title: str) -> Literal["ru", "en"]:
    """Return the language of a page's HTML element, or else of its title."""
    declared = _LANGUAGE.search(html)
    if declared:
        return "ru" if declared[1].lower() == "ru" else "en"
    return language_of(title)


def fill_places(html: str, content: Callable[[str, str, str], str]) -> str:
    """Return a page's HTML for a visitor, without the comment with the sections.

    ``content`` returns the present HTML of a section, such as a table of prices, by its type, the
    id of its form and its text as HTML.
    """
    block = find_block(html)
    if block is None:
        return html
    content_html = _PLACE.sub(lambda place: content(place[1], place[2] or "", place[3]), block.html)
    return html[: block.start] + content_html + html[block.end :]


def _block(
    sections: Sequence[Section], photos: Mapping[str, Photo], language: Literal["ru", "en"]
) -> str:
    values: list[dict[str, Any]] = []
    parts: list[str] = []
    for section in sections:
        photo = photos.get(section.file_id or "")
        copy = section.model_copy(update={"url": photo.url if photo else None})
        values.append(copy.model_dump(by_alias=True, exclude_none=True))
        parts.append(
            _beside_photo(section, photo)
            if section.type in _BESIDE_PHOTO
            else _section_html(section, photo, language)
        )
    # The comment must not end early: JSON allows any character of a string to be escaped.
    sections_json = to_json(values).decode()
    for sign in "-<>":
        sections_json = sections_json.replace(sign, f"\\u{ord(sign):04x}")
    body = "\n".join(filter(None, parts))
    return (
        f'{BEGIN}{sections_json}-->\n<div class="svc-sections">\n<style>{_STYLE}</style>\n{body}\n'
        f"</div>\n{END}"
    )


def _section_html(section: Section, photo: Photo | None, language: Literal["ru", "en"]) -> str:
    text = section.text or ""
    match section.type:
        case "heading":
            return f"<h2>{escape(text)}</h2>"
        case "text":
            return f"<div>{markdown.to_html(text)}</div>"
        case "photo":
            if photo is None:
                return ""
            return (
                f'<img src="{escape(photo.url)}" alt="{escape(text)}" width="{photo.width}"'
                f' height="{photo.height}" loading="lazy">'
            )
        case "map":
            # What is known here is the language of the page, and not the country of the address.
            url = maps.search_url(text, "RU" if language == "ru" else "")
            return f'<address><a href="{escape(url)}">{escape(text)}</a></address>'
        case _:
            name = f"{section.type} {section.form_id}" if section.form_id else section.type
            return f"<!--section:{name}-->{escape(text)}<!--/section-->"


def _beside_photo(section: Section, photo: Photo | None) -> str:
    # The words and the photo are side by side if there is room. A hero has the booking link.
    title = f'<h2 class="svc-title">{escape(section.title)}</h2>' if section.title else ""
    text = markdown.to_html(section.text) if section.text else ""
    link = "<!--section:booking--><!--/section-->" if section.type == "hero" else ""
    image = photo and (
        f'<img src="{escape(photo.url)}" alt="" width="{photo.width}" height="{photo.height}">'
    )
    name = f"svc-{section.type}" + (" svc-pair" if image else "")
    return f'<div class="{name}">\n<div>{title}{text}{link}</div>\n{image or ""}</div>'
