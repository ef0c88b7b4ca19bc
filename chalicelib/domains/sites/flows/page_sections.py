"""Convert the sections of a page to HTML."""

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.application.context import Context
from chalicelib.core.errors import ValidationError
from chalicelib.core.wire import parsing
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.store.files import FILES, is_image
from chalicelib.domains.sites.flows.page_objects import check_size
from chalicelib.domains.sites.rules.sections import (
    Photo,
    Section,
    SectionList,
    replace_sections,
)
from chalicelib.domains.sites.store.pages import PageRow


def set_sections(
    ctx: Context, page: PageRow, values: Sequence[Mapping[str, Any]], html: str
) -> str:
    """Return HTML of a page with other sections instead of its own.

    Raises:
        ValidationError: a section is invalid, or its file is not an image of the workspace.
        PayloadTooLargeError: the HTML would be too large.
    """
    sections = parsing.parse(SectionList, {"sections": list(values)}).sections
    html = replace_sections(
        html, title=page.title, sections=sections, photos=_photos(ctx, sections)
    )
    check_size("sections", html=html, size_label="they would make the HTML")
    return html


def _photos(ctx: Context, sections: Sequence[Section]) -> dict[str, Photo]:
    ids = {section.file_id for section in sections if section.file_id}
    files = {file.id: file for file in FILES.fetch(ctx.workspace_id, ids)} if ids else {}
    photos = {}
    for number, section in enumerate(sections):
        if section.file_id is None:
            continue
        file = files.get(section.file_id)
        if file is None or not is_image(file):
            message = "expected the id of an image of the workspace"
            field = f"sections.{number}.fileId"
            raise ValidationError.of(field, message=message, key="no_image")
        image = rehosting.to_image(file)
        photos[section.file_id] = Photo(image.url, image.width, image.height)
    return photos
