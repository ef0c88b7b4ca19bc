"""Save a page's HTML, either in full or by edits that find and replace parts."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ValidationError, VersionConflictError, call
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import IF_VERSION, IfVersion, Wire, exactly_one, optional
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.sites.flows.page_objects import (
    MAX_HTML_BYTES,
    check_size,
    read_html,
    stage_html,
    too_large,
)
from chalicelib.domains.sites.flows.undoing import UNDO, how_to_undo_save
from chalicelib.domains.sites.operations.pages import (
    LONG_ANSWER_BYTES,
    PageOut,
    PageRecord,
    PageRef,
    existing_page,
)
from chalicelib.domains.sites.rules.sections import read_sections
from chalicelib.domains.sites.rules.text_edits import MismatchError, OversizeError, apply_edits

MAX_EDITS = 50  # in one call
# Bytes of HTML between two edits. Only the result must be within the limit of a page.
MAX_EDITED_BYTES = 4 * MAX_HTML_BYTES


class HtmlEdit(Wire):
    """A part of a page's HTML to replace."""

    find: str = Field(min_length=1, description="Exact text. It must occur once, or set all.")
    replace: str = Field(description="Replacement for find.")
    all: bool = Field(default=False, description="Replace every match.")


class PageSaveHtml(PageRef):
    """New HTML for a page, or changes to it."""

    EXACTLY_ONE_OF = (("html", "edits"),)

    html: str | None = optional("Up to 1 MiB; or give edits.")
    edits: Annotated[list[HtmlEdit], Field(min_length=1, max_length=MAX_EDITS)] | None = optional(
        "Replacements, in order."
    )
    if_version: IfVersion | None = IF_VERSION
    return_html: bool | None = optional("Return the HTML; default: true, in tools up to 60 KB.")

    @model_validator(mode="after")
    def _one_of_each(self) -> "PageSaveHtml":
        exactly_one(self)
        return self


class PageSaved(Wire):
    """A page whose HTML was saved."""

    page: PageOut | PageRecord = Field(description="The page; without HTML if returnHtml is false.")
    undo: str | None = UNDO


@operation(
    tool=True,
    rest="POST /api/pages/save-html",
    scope=Scope.PAGES_WRITE,
    title="Save a page's HTML",
    destructive=True,
    idempotent=True,
    accepts_idempotency_key=True,  # a repeated edit may match its own replacement
    example={"id": "PAGE_ID", "html": "<h1>About us</h1>"},
    errors=(QuotaExceededError, VersionConflictError),
    role=Role.MANAGER,
)
def save_page_html(ctx: Context, args: PageSaveHtml) -> PageSaved:
    """Replace a page's whole HTML, or apply edits to it, all or none. HTML is stored unchanged.

    For a large page send edits.
    """
    if args.html is not None:
        check_size("html", html=args.html)
        page, html = existing_page(ctx, args.id, args.if_version), args.html
    else:
        page = existing_page(ctx, args.id, args.if_version)
        html = _apply_edits(read_html(ctx, page), args.edits or ())
    ctx.unit.save(page)
    version_id = stage_html(ctx, page, html)
    size = len(html.encode())
    returns_html = args.return_html
    if returns_html is None:
        returns_html = not (ctx.is_tool_call and size > LONG_ANSWER_BYTES)
        if not returns_html:
            ctx.warn(
                f"The page was saved. The response does not contain its HTML ({size:,} bytes). "
                "To get the HTML, send returnHtml: true.",
                code=WarningCode.HTML_OMITTED,
                bytes=size,
            )
    return PageSaved(
        page=PageOut.from_record(page, html=html, sections=read_sections(html))
        if returns_html
        else PageRecord.from_record(page),
        undo=how_to_undo_save(page, version_id),
    )


def _apply_edits(html: str, edits: Sequence[HtmlEdit]) -> str:
    try:
        edited = apply_edits(html, edits, MAX_EDITED_BYTES)
    except MismatchError as error:
        expected = "at least once" if edits[error.index].all else "exactly once"
        copy = f"copy it from {call('svc_get_page')}"
        hint = "make find longer, or send all: true" if error.count else copy
        field = f"edits.{error.index}"
        message = (
            f"find matched {error.count} times, expected {expected}; {hint}. Nothing was saved"
        )
        key = "several_matches" if error.count else "no_match"
        raise ValidationError.of(field, message=message, key=key) from None
    except OversizeError as error:
        field = f"edits.{error.index}"
        raise too_large(
            field, MAX_EDITED_BYTES, size=error.size, size_label="it would make the HTML"
        ) from None
    check_size("edits", html=edited, size_label="they would make the HTML")
    return edited
