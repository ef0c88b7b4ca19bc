"""Imported pages: HTML from elsewhere becomes a page, its images files of the workspace."""

from email.message import Message
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import (
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
    UpstreamFailedError,
    ValidationError,
)
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.schema import MAX_TITLE, Id, Slug, Title, Wire, optional
from chalicelib.core.scopes import Scope
from chalicelib.core.text import one_line
from chalicelib.domains.pages.html import MAX_HTML_BYTES, check_html, stage_html
from chalicelib.domains.pages.records import (
    PageResult,
    existing_page,
    page_result,
    site_with_room,
    stage_new_page,
)
from chalicelib.flows import rehosting
from chalicelib.flows.invoke import Context
from chalicelib.gateways import fetch
from chalicelib.rules import html_import
from chalicelib.rules.html_import import ImportedHtml
from chalicelib.store.pages import PageRow

MAX_IMAGES = 50
"""Images re-hosted in one import (tools.md, row 16)."""
FOLDER = "pages"
UNTITLED = "Imported page"


class PageImport(Wire):
    """A page to import, and where to."""

    project_id: Id | None = optional("Site to make a new page in; or give pageId.")
    page_id: Id | None = optional("Page to replace the HTML of.")
    html: str | None = optional("The HTML, up to 1 MiB; or give url.")
    url: Annotated[str, StringConstraints(max_length=4000)] | None = optional(
        "Public http or https URL of the page."
    )
    title: Title | None = optional("Title; by default that of the HTML.")
    slug: Slug | None = optional("Slug of a new page; made from the title by default.")
    rehost_images: bool = Field(default=True, description="Copy up to 50 images to the files.")

    @model_validator(mode="after")
    def _one_of_each(self) -> "PageImport":
        for one, other in (("projectId", "pageId"), ("html", "url")):
            names = ("project_id", "page_id") if one == "projectId" else ("html", "url")
            if sum(getattr(self, name) is not None for name in names) != 1:
                raise PydanticCustomError(
                    "exactly_one",
                    "expected exactly one of {one} and {other}",
                    {"one": one, "other": other},
                )
        if self.page_id is not None and self.slug is not None:
            raise PydanticCustomError("slug", "slug is for new pages; leave it out with pageId")
        return self


class FailedImage(Wire):
    """An image that stays where it was."""

    url: str = Field(description="Its URL.")
    reason: str = Field(description="Why it was not taken.")


class Imported(Wire):
    """What became of the page's images."""

    images: int = Field(description="Images that are files now.")
    failed: list[FailedImage] = Field(description="Images that were not taken.")


class PageImported(PageResult):
    """An imported page."""

    imported: Imported = Field(description="What became of its images.")


@operation(
    tool="svc_import_page_html",
    rest="POST /api/pages/import-html",
    scope=Scope.PAGES_WRITE,
    title="Import a page",
    destructive=True,
    open_world=True,
    limit=HEAVY,
)
def import_page_html(ctx: Context, args: PageImport) -> PageImported:
    """Make a page of given HTML or of a public web page, or replace a page's HTML with it.

    Relative URLs become absolute, and images are copied to the workspace's files. The HTML
    is untrusted data.
    """
    deadline = Deadline(rehosting.SECONDS)
    # Unknown ids are told before anything is fetched.
    page = existing_page(ctx, args.page_id) if args.page_id is not None else None
    if page is None:
        site_with_room(ctx, args.project_id or "")
    source = ctx.unit.run_side_effect_once("source", lambda: _source(args))
    if page is None:
        title = args.title or one_line(source.title or "", MAX_TITLE) or UNTITLED
        page = stage_new_page(ctx, args.project_id or "", title, args.slug)
    else:
        page.title = args.title or page.title
        ctx.unit.save(page)
    html, imported, files_size = source.html, Imported(images=0, failed=[]), 0
    if args.rehost_images:
        html, imported, files_size = _with_own_images(ctx, page, source, deadline.left())
    stage_html(ctx, page, html, files_size=files_size)
    return PageImported(page=page_result(page, html).page, imported=imported)


def _source(args: PageImport) -> ImportedHtml:
    """Return the page to import, its URLs absolute."""
    try:
        if args.html is not None:
            check_html(args.html)
            return html_import.read(args.html)
        fetched = fetch.fetch(
            args.url or "", http_too=True, max_bytes=MAX_HTML_BYTES, accept="text/html"
        )
        if not html_import.looks_like_html(fetched.body, fetched.content_type):
            kind = fetched.content_type[:80] or "something else"
            msg = f"The URL gives no web page but {kind}. Give the URL of a page."
            raise UnsupportedMediaTypeError(msg)
        charset = _charset(fetched.content_type)
        return html_import.read(fetched.body, base_url=fetched.url, charset=charset)
    except fetch.RefusedUrlError as error:
        raise ValidationError.of("url", error.reason) from None
    except (fetch.TooLargeError, html_import.PageTooLargeError) as error:
        msg = f"The page is too large: {error.reason}."
        raise PayloadTooLargeError(msg) from None
    except fetch.FetchError as error:
        msg = f"The page could not be fetched: {error.reason}."
        raise UpstreamFailedError(msg) from None


def _charset(content_type: str) -> str | None:
    message = Message()
    message["Content-Type"] = content_type
    return message.get_content_charset()


def _with_own_images(
    ctx: Context, page: PageRow, source: ImportedHtml, within: float
) -> tuple[str, Imported, int]:
    """Re-host the page's images, the first fifty, and put their new URLs in.

    The last of the answer is how many bytes their files take, which the caller takes of the quota;
    they leave room for any HTML.
    """
    wanted = source.images[:MAX_IMAGES]
    room = MAX_HTML_BYTES - int(page.html_bytes)
    taken, size = rehosting.import_images(
        ctx, wanted, FOLDER, http_too=True, within=within, reserved=room
    )
    hosted = {
        url: one.url
        for url, one in zip(wanted, taken, strict=True)
        if isinstance(one, rehosting.ImportedImage)
    }
    failed = [
        FailedImage(url=one.url, reason=one.reason)
        for one in taken
        if isinstance(one, rehosting.RejectedImage)
    ]
    failed += [
        FailedImage(url=url, reason=f"only the first {MAX_IMAGES} images are taken")
        for url in source.images[MAX_IMAGES : MAX_IMAGES * 4]
    ]
    if left := len(source.images) - len(hosted):
        ctx.warn(f"{left} images stay where they were; imported.failed says why.")
    return source.replaced(hosted), Imported(images=len(hosted), failed=failed), size
