"""Keep pages' HTML in the object store, from before a record uses it until no record does."""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConcurrentUpdateError, FieldError, PayloadTooLargeError, call
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, JobKind, Postponed, job_handler
from chalicelib.core.settings import settings
from chalicelib.domains.files.flows import storage
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows.undoing import end_deletion
from chalicelib.domains.sites.rules import page_html, third_parties
from chalicelib.domains.sites.store import page_drafts, page_versions, pages
from chalicelib.domains.sites.store.page_versions import VersionRow
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.engine import jobs
from chalicelib.engine.transactions import MAX_ITEMS
from chalicelib.engine.unit import UnitOfWork, cascade_over
from chalicelib.gateways.object_store import delete_unused, object_store
from chalicelib.lib.markup.markup_urls import is_web, resolve
from chalicelib.lib.public_urls import MAX_LENGTH

MAX_HTML_BYTES = 2**20  # bytes of UTF-8
HTML_TYPE = "text/html; charset=utf-8"
PURGE = JobKind("page-purge")
UNUSED = JobKind("page-html-unused")
# HTML with an order to search engines contains this. Other HTML need not be parsed.
_ORDER = re.compile("canonical|robots|googlebot|bingbot|yandex", re.IGNORECASE)
MAX_NAMED = 5  # hosts in a warning
# Age at which stored objects are checked for use. An operation takes a minute at most.
UNUSED_AFTER = timedelta(hours=1)


@dataclass(slots=True)
class NewHtml:
    """An object of the store that no record uses yet."""

    key: str
    body: bytes | None = None  # the stored content, or None before the first write


def too_large(
    field: str, limit: int, *, size: int, size_label: str = "received"
) -> PayloadTooLargeError:
    """Return the error for a field with too many bytes. ``size_label`` introduces the size."""
    message = f"expected at most {limit:,} bytes of UTF-8, {size_label} {size:,}; shorten it"
    return PayloadTooLargeError(
        f"{field}: {message}", errors=[FieldError(field, message, "too_large")], key="field"
    )


def check_size(field: str, *, html: str, size_label: str = "received") -> None:
    """Raise PayloadTooLargeError if HTML of a field, or made from it, has more than 1 MiB."""
    if (size := len(html.encode())) > MAX_HTML_BYTES:
        raise too_large(field, MAX_HTML_BYTES, size=size, size_label=size_label)


def read_html(ctx: Context, page: PageRow) -> str:
    """Return a page's HTML. Raises ConcurrentUpdateError if other HTML was saved since."""
    if page.html_key is None:
        return ""
    body = object_store().get(page.html_key)
    if body is not None:
        return body.decode()
    # Other HTML was saved in the meantime, and its commit removed this object.
    if pages.find_html_key(ctx.workspace_id, page_id=page.id) != page.html_key:
        raise ConcurrentUpdateError
    msg = f"the HTML of page {page.id} is missing from the object store"
    raise RuntimeError(msg)


def stage_html(ctx: Context, page: PageRow, html: str, *, files_size: int = 0) -> str | None:
    """Store a page's HTML, set its record's key, and return the id of the version kept, or None.

    The caller has checked the size, and stages the record. The growth of the HTML counts against
    the quota, together with ``files_size`` bytes of files that the same unit stages.
    QuotaExceededError is raised at commit if the bytes do not fit.

    The new HTML is removed if the operation fails. If the process dies before, a job removes the
    unused object after an hour.
    """
    body, old = html.encode(), page.html_key
    size = len(body) - int(page.html_bytes) + files_size
    # The files leave room for HTML of any size.
    storage.charge(ctx.unit, ctx.principal.plan, size, retry_if_full=files_size > 0)
    page.noindex, page.canonical = _orders_to_search_engines(html)
    _warn_of_missing_host(ctx, page, html)
    digest = hash_of(html)
    # The same HTML needs neither a new object nor a version.
    if old is not None and page.html_hash == digest:
        return None
    new = store_object(ctx, page, html, replaced=old)
    version_id = None
    if old is not None and old != new.key:
        version_id = page_versions.keep(ctx.unit, page)
    page.html_key, page.html_bytes, page.html_hash = new.key, len(body), digest
    page.saved_by, page.saved_at = ctx.principal.rate_limit_key, clock.now()
    page.file_ids = files.find_file_ids(ctx.unit, html, page.file_ids)
    return version_id


def _orders_to_search_engines(html: str) -> tuple[bool | None, str | None]:
    if not _ORDER.search(html):
        return None, None
    metadata = page_html.find_metadata(html)
    url = resolve(metadata.canonical or "", base="")
    return metadata.noindex or None, url if is_web(url) and len(url) <= MAX_LENGTH else None


def _warn_of_missing_host(ctx: Context, page: PageRow, html: str) -> None:
    if hosts := parts_without_host(page.url, html):
        others = f" and {len(hosts) - MAX_NAMED} more" if len(hosts) > MAX_NAMED else ""
        ctx.warn(
            f"The page has frames or counters of {', '.join(hosts[:MAX_NAMED])}{others}. At "
            f"{page.url} pages have no cookies and no origin, so these may not work or may count "
            f"wrongly. Connect a domain to the site by {call('svc_set_site_domain')}.",
            code=WarningCode.PARTS_NEED_DOMAIN,
            count=len(hosts),
            hosts=hosts[:MAX_NAMED],
            url=page.url,
        )


def parts_without_host(page_url: str, html: str) -> list[str]:
    """Return the hosts of frames and counters that need a host of the site's own and have none."""
    own_url = settings().public_url
    if not page_url.startswith(f"{own_url}/s/"):
        return []
    return third_parties.needing_own_host(html, own_url=own_url)


def hash_of(html: str) -> str:
    """Return the SHA-256 of a page's HTML, by which equal HTML is known."""
    return sha256(html.encode()).hexdigest()


def store_object(ctx: Context, page: PageRow, html: str, *, replaced: str | None) -> NewHtml:
    """Store HTML as an object that a record of the page will use instead of the ``replaced`` one.

    The object is removed if the operation fails. If the process dies before, a job removes it.
    """
    body = html.encode()
    new = ctx.unit.run_side_effect_once("html", lambda: _new_object(ctx, page, replaced))
    # A retry after a conflict may have to store other HTML under the same key.
    if new.body != body:
        object_store().put(new.key, body, HTML_TYPE)
        new.body = body
    return new


def _new_object(ctx: Context, page: PageRow, replaced: str | None) -> NewHtml:
    # One job covers the new object and the old one. The page's records decide which object is
    # unused.
    folder = pages.html_folder(ctx.workspace_id, site_id=page.project_id, page_id=page.id)
    key = f"{folder}{new_id()}.html"
    payload = {"pageId": page.id, "keys": [key, replaced]}
    job = jobs.row(UNUSED, ctx.workspace_id, payload, clock.now() + UNUSED_AFTER)
    # The job is written before the object, so that a process that dies leaves none behind.
    jobs.schedule(job)
    ctx.unit.on_failure(lambda: jobs.attempt(job, remove_unused_html))
    return NewHtml(key)


@job_handler(UNUSED)
def remove_unused_html(job: Job) -> None:
    """Remove the objects of a save that neither the page, its draft nor a version uses.

    Versions beyond the limits of the page are removed, too, each with its object.
    """
    # The order matters: an object leaves the page in the transaction that makes it a version.
    page_id = job.payload["pageId"]
    used = pages.find_html_key(job.workspace_id, page_id=page_id)
    versions = page_versions.read_all(job.workspace_id, page_id=page_id)
    draft = page_drafts.find(job.workspace_id, page_id=page_id)
    kept_keys = {used, draft.html_key if draft else None}
    delete_unused(job.payload["keys"], kept_keys | {version.html_key for version in versions})
    kept = page_versions.within_limits(versions, clock.now())
    surplus = [version for version in versions if version not in kept]
    cascade_over(job, surplus, MAX_ITEMS // 2, partial(_remove_versions, page_id))
    # Fewer versions are kept a day later, so the job of the last save runs again.
    due_at = page_versions.thinned_at(kept) if used == job.payload["keys"][0] else None
    if due_at is not None:
        raise Postponed(due_at)


def _remove_versions(page_id: str, unit: UnitOfWork, versions: list[VersionRow]) -> None:
    # A job removes the objects of the versions.
    for version in versions:
        unit.delete(version)
    keys = [version.html_key for version in versions]
    unit.create_job(jobs.row(UNUSED, unit.tenant, {"pageId": page_id, "keys": keys}))


@job_handler(PURGE)
def purge_page(job: Job) -> None:
    """Remove the HTML, versions, draft and design system of a page deleted a month ago."""
    page_id, workspace_id = job.payload["pageId"], job.workspace_id
    if not end_deletion(PAGES, job, page_id, clock.now()):
        return
    page_versions.purge_of_page(workspace_id, page_id=page_id)
    page_drafts.purge_of_page(workspace_id, page_id=page_id)
    pages.purge_design(workspace_id, page_id=page_id)
    object_store().delete_under(job.payload["folder"])
