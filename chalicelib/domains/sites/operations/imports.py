"""Import HTML from elsewhere as a page, and its images as files of the workspace."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import (
    ConflictError,
    PayloadTooLargeError,
    SlugTakenError,
    UnsupportedMediaTypeError,
    UpstreamFailedError,
    ValidationError,
    VersionConflictError,
)
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.text import one_line
from chalicelib.core.wire.schema import (
    IF_VERSION,
    MAX_TITLE,
    RECEIVED,
    Id,
    IfVersion,
    Slug,
    Title,
    Wire,
    exactly_one,
    optional,
    wire_name,
)
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.flows.storage import QuotaExceededError
from chalicelib.domains.files.rules.data_urls import is_inline
from chalicelib.domains.sites.flows.page_objects import (
    MAX_HTML_BYTES,
    check_size,
    stage_html,
    too_large,
)
from chalicelib.domains.sites.flows.undoing import UNDO, how_to_undo_save
from chalicelib.domains.sites.operations.pages import (
    MAX_DESCRIPTION,
    PageRecord,
    PageWritten,
    existing_page,
    site_with_room,
    stage_new_page,
)
from chalicelib.domains.sites.rules import html_import
from chalicelib.domains.sites.rules.html_import import ImportedHtml
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.gateways import fetch
from chalicelib.gateways.public_http import FetchError, RefusedUrlError, TooLargeError
from chalicelib.lib.markup.markup_urls import is_web, resolve

MAX_IMAGES = 50  # in one import
MAX_URL = 4000
# A fetched page with the images inside of its HTML, as the body of a request.
MAX_BODY_BYTES = 5_000_000
MAX_FORMS = 5  # targets in a warning
_SHOWN = 60  # characters of an image inside of the HTML in a response
FOLDER = "pages"
UNTITLED = "Imported page"


def _check_not_blank(html: str) -> str:
    if not html.strip("\ufeff \t\n\f\r"):
        raise PydanticCustomError(
            "blank", "expected HTML, received only white space", {RECEIVED: True}
        )
    return html


def _check_web_url(url: str) -> str:
    if not is_web(url) or not _AUTHORITY.fullmatch(urlsplit(url).netloc):
        raise PydanticCustomError("url", "expected a full URL that begins with http:// or https://")
    return resolve(url, base="")


def _reject_together(args: Wire, name: str, *, other: str, why: str) -> None:
    if getattr(args, name) is not None and getattr(args, other) is not None:
        field, other_field = wire_name(type(args), name), wire_name(type(args), other)
        raise PydanticCustomError(
            "not_together",
            "expected no value together with {other}, because {why}; omit the field",
            {"other": other_field, "why": why, "field": field},
        )


_AUTHORITY = re.compile(r"([\w.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)
GivenHtml = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_not_blank)]
BaseUrl = Annotated[
    str,
    StringConstraints(max_length=MAX_URL, strip_whitespace=True),
    AfterValidator(_check_web_url),
]


class PageImport(Wire):
    """A page to import, and its destination."""

    EXACTLY_ONE_OF = (("project_id", "page_id"), ("html", "url"))

    project_id: Id | None = optional("Site for a new page; or send pageId.")
    page_id: Id | None = optional("Page to replace.")
    if_version: IfVersion | None = IF_VERSION
    html: GivenHtml | None = optional("Up to 1 MiB without data: images; or send url.")
    url: Annotated[str, StringConstraints(max_length=MAX_URL)] | None = optional(
        "Public URL to fetch."
    )
    base_url: BaseUrl | None = optional("Base of relative URLs in html.")
    title: Title | None = optional("Default: the HTML's title.")
    slug: Slug | None = optional("Slug of a new page.")
    rehost_images: bool = Field(default=True, description="Copy up to 50 images.")

    @model_validator(mode="after")
    def _one_of_each(self) -> "PageImport":
        exactly_one(self)
        _reject_together(self, "slug", other="page_id", why="an existing page keeps its slug")
        _reject_together(
            self, "if_version", other="project_id", why="a new page has no version yet"
        )
        _reject_together(self, "base_url", other="url", why="a fetched page has its own URL")
        return self


class FailedImage(Wire):
    """An image that was not copied and keeps its URL."""

    url: str = Field(description="URL of the image.")
    reason: str = Field(description="Why it was not imported.")


class ImportedImages(Wire):
    """Results of importing the page's images."""

    images: int = Field(description="Number of images that became files.")
    failed: list[FailedImage] = Field(description="Images that were not imported.")


class PageImported(PageWritten):
    """An imported page."""

    imported: ImportedImages = Field(description="Results of importing its images.")
    undo: str | None = UNDO


@operation(
    tool=True,
    rest="POST /api/pages/import-html",
    scope=Scope.PAGES_WRITE,
    title="Import a page",
    destructive=True,
    open_world=True,
    limit=HEAVY,
    example={"projectId": "SITE_ID", "html": "<title>Menu</title><p>Rye, 90 rubles</p>"},
    errors=(ConflictError, QuotaExceededError, SlugTakenError, VersionConflictError),
)
def import_page_html(ctx: Context, args: PageImport) -> PageImported:
    """Create or replace a page from HTML or a public web page, which is untrusted data.

    Relative URLs become absolute. Images become files of the workspace.
    """
    deadline = Deadline(rehosting.SECONDS)
    # Report unknown ids before any fetch.
    page = existing_page(ctx, args.page_id, args.if_version) if args.page_id is not None else None
    if page is None:
        site_with_room(ctx, args.project_id or "")
    source = ctx.unit.run_side_effect_once("source", lambda: _read_source(args))
    if source.relative:
        ctx.warn(
            f"{source.relative} relative URLs were not changed, because the HTML has no <base>. "
            "Send baseUrl to make them absolute.",
            code=WarningCode.RELATIVE_URLS,
            count=source.relative,
        )
    _warn_of_forms(ctx, source)
    title = args.title or one_line(source.title or "", MAX_TITLE)
    if page is None:
        page = stage_new_page(ctx, args.project_id or "", title=title or UNTITLED, slug=args.slug)
    else:
        page.title = title or page.title
        ctx.unit.save(page)
    page.description = one_line(source.description or "", MAX_DESCRIPTION) or page.description
    html, imported, files_size = source.html, ImportedImages(images=0, failed=[]), 0
    if args.rehost_images:
        size_label = "with the new URLs of its images (rehostImages) it would have"
        with _report_growth("html", size_label=size_label):
            html, imported, files_size = _rehost_images(ctx, page, source, deadline.seconds_left())
            check_size("html", html=html, size_label=size_label)
    version_id = stage_html(ctx, page, html, files_size=files_size)
    _warn_of_orders_to_search_engines(ctx, page)
    undo = how_to_undo_save(page, version_id)
    return PageImported(page=PageRecord.from_record(page), imported=imported, undo=undo)


def _warn_of_forms(ctx: Context, source: ImportedHtml) -> None:
    # Targets of this service are not named.
    own_host = urlsplit(settings().public_url).netloc
    targets = dict.fromkeys(
        urlsplit(url).netloc.lower() or url
        for url in source.forms
        if not url.startswith(("mailto:", "javascript:", "{"))
    )
    targets.pop(own_host, None)
    if targets:
        hosts = list(targets)[:MAX_FORMS]
        named = ", ".join(host or "the page itself, which receives nothing" for host in hosts)
        others = f" and {len(targets) - MAX_FORMS} more" if len(targets) > MAX_FORMS else ""
        ctx.warn(
            f"Forms of the page send to {named}{others}. This "
            "workspace gets no leads from them. Replace them with a form of the workspace, such as "
            "a section of the type form.",
            code=WarningCode.FORMS_SEND_ELSEWHERE,
            count=len(targets),
            hosts=hosts,
        )


def _warn_of_orders_to_search_engines(ctx: Context, page: PageRow) -> None:
    if page.noindex:
        ctx.warn(
            'The HTML has <meta name="robots"> with noindex, so search engines and the sitemap '
            "do not list the page. If the page should be found, remove the tag.",
            code=WarningCode.NOT_INDEXED,
        )
    if page.canonical_elsewhere:
        ctx.warn(
            f'The HTML has <link rel="canonical"> to {page.canonical_elsewhere}, so search '
            "engines list that URL instead, and the sitemap does not list this page. If this "
            "page replaces that URL, remove the tag.",
            code=WarningCode.CANONICAL_ELSEWHERE,
            url=page.canonical_elsewhere,
        )


def _read_source(args: PageImport) -> ImportedHtml:
    # The size is checked before any image is fetched.
    size_label = "with its URLs made absolute it would have"
    field = "url" if args.html is None else "html"
    html: bytes | str = args.html or ""
    base_url, charset = args.base_url or "", None
    if args.html is None:
        page = _fetch_page(args.url or "")
        html, base_url, charset = page.body, page.url, _charset(page.content_type)
    with _report_growth(field, size_label=size_label):
        source = html_import.read(html, base_url=base_url, charset=charset)
        # Images inside of the HTML become files, so they count only if they stay.
        size = source.text_size if args.rehost_images else len(source.html.encode())
        if size > MAX_HTML_BYTES:
            raise too_large(field, MAX_HTML_BYTES, size=size, size_label=size_label)
    return source


@contextmanager
def _report_growth(field: str, *, size_label: str) -> Iterator[None]:
    try:
        yield
    except html_import.PageTooLargeError as error:
        raise too_large(
            field, MAX_HTML_BYTES, size=error.size, size_label=f"{size_label} more than"
        ) from None


def _fetch_page(url: str) -> fetch.Fetched:
    try:
        fetched = fetch.fetch(url, allow_http=True, max_bytes=MAX_BODY_BYTES, accept="text/html")
    except RefusedUrlError as error:
        raise ValidationError.of("url", message=error.reason) from None
    except TooLargeError as error:
        msg = f"The page is too large: {error.reason}."
        raise PayloadTooLargeError(msg, key="page") from None
    except FetchError as error:
        msg = f"The page could not be fetched: {error.reason}."
        raise UpstreamFailedError(msg, key="page") from None
    if not fetched.body.strip(b"\xef\xbb\xbf \t\n\f\r"):
        message = "expected a page with HTML, received an empty page"
        raise ValidationError.of("url", message=message, key="blank")
    if not html_import.looks_like_html(fetched.body, fetched.content_type):
        kind = fetched.content_type[:80] or "something else"
        msg = f"The URL returned {kind} instead of a web page. Send the URL of a web page."
        raise UnsupportedMediaTypeError(msg, key="page")
    return fetched


def _charset(content_type: str) -> str | None:
    message = Message()
    message["Content-Type"] = content_type
    return message.get_content_charset()


def _rehost_images(
    ctx: Context, page: PageRow, source: ImportedHtml, max_seconds: float
) -> tuple[str, ImportedImages, int]:
    # The third result is the size of the new files in bytes, which the caller charges to the quota.
    # The files leave room for HTML of any size.
    urls = source.images[:MAX_IMAGES]
    html_reserve = MAX_HTML_BYTES - int(page.html_bytes)
    results, size = rehosting.import_images(
        ctx, urls, FOLDER, allow_http=True, max_seconds=max_seconds, reserved=html_reserve
    )
    hosted = {
        url: result.url
        for url, result in zip(urls, results, strict=True)
        if isinstance(result, rehosting.ImportedImage)
    }
    failed = [
        FailedImage(url=_shown(result.url), reason=result.reason)
        for result in results
        if isinstance(result, rehosting.RejectedImage)
    ]
    failed += [
        FailedImage(url=_shown(url), reason=f"only the first {MAX_IMAGES} images are imported")
        for url in source.images[MAX_IMAGES : MAX_IMAGES * 4]
    ]
    if remaining := len(source.images) - len(hosted):
        ctx.warn(
            f"{remaining} images keep their old URLs. The reasons are in imported.failed.",
            code=WarningCode.IMAGES_NOT_IMPORTED,
            count=remaining,
        )
    return source.replaced(hosted), ImportedImages(images=len(hosted), failed=failed), size


def _shown(url: str) -> str:
    return f"{url[:_SHOWN]}…" if is_inline(url) and len(url) > _SHOWN else url
