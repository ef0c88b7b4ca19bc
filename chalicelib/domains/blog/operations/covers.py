"""Store a copy of each post's cover in the platform's workspace."""

from collections.abc import Mapping, Sequence

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.blog.rules.job_kinds import COVER_UNUSED
from chalicelib.domains.blog.store.posts import PostRow
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.flows.rehosting import RejectedImage, StoredObject
from chalicelib.domains.files.rules import images
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, ImageMap, is_image
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.object_store import delete_unused, object_store
from chalicelib.lib import public_urls

FOLDER = "Blog"


def weight(url: str | None) -> int:
    """Return the cost of a cover in heavy calls, which is 1 if it must be fetched, else 0."""
    return int(url is not None and not rehosting.is_own_url(url))


def import_cover(ctx: Context, url: str) -> tuple[ImageMap | None, str | None]:
    """Copy a cover to the platform's files; return the copy, or the URL to link to instead.

    The image may be on another server, in the caller's workspace, or already in the platform's
    files. A cover that cannot be copied adds a warning. The URL to link to is None if a page may
    not show an image from its server. An operation calls this function at most once.
    """
    if rehosting.is_own_url(url):
        copied = ctx.unit.run_side_effect_once("copy", lambda: _copy_own_image(ctx, url))
        if copied:
            rehosting.preload_images(ctx.unit, copied)
    (image,) = rehosting.rehost(ctx, [url], FOLDER)
    if image is None:
        link = _linkable_url(url)
        if link is not None:
            ctx.warn(
                "The cover was not copied, so the post links to the URL that you sent. To copy "
                "the cover, send the URL again.",
                code=WarningCode.COVER_LINKED,
                url=url,
            )
        return None, link
    cover = ImageMap(  # type: ignore[no-untyped-call]  # PynamoDB's __init__
        file_id=image.file_id, url=image.url, width=image.width, height=image.height
    )
    return cover, None


def _linkable_url(url: str) -> str | None:
    # A URL of this service's own files is rejected: copying it has failed, so the caller has no
    # image there.
    try:
        parsed = public_urls.parse(url)
    except ValueError:
        return None
    public = not parsed.is_ip_address or public_urls.is_public(parsed.host)
    return url.strip() if public and not rehosting.is_own_url(url) else None


def _copy_own_image(ctx: Context, url: str) -> Mapping[str, StoredObject | RejectedImage]:
    file = FILES.find(ctx.principal.workspace_id, record_id=rehosting.own_file_id(url))
    if file is None or not is_image(file) or rehosting.public_url(file.key) != url:
        return {}
    body = object_store().get(file.key)
    if body is None:
        return {}
    try:
        return {url: rehosting.stored_object(ctx.workspace_id, body, file.name)}
    except images.ImageError as error:
        return {url: RejectedImage(url, error.reason)}


def drop_cover(unit: UnitOfWork, post: PostRow) -> None:
    """Stage the removal of a post's cover, if it has one. The caller removes it from the post."""
    if post.cover is None:
        return
    unit.create_job(jobs.row(COVER_UNUSED, unit.tenant, {"fileId": post.cover.file_id}))


@job_handler(COVER_UNUSED)
def remove_unused_cover(job: Job) -> None:
    """Remove a cover's file unless a post shows it."""
    file_id = job.payload["fileId"]

    def stage(unit: UnitOfWork) -> Sequence[str | None]:
        file = FILES.find(unit.tenant, record_id=file_id)
        if file is None or file_uses.records_showing(unit.tenant, file_id=file_id):
            return ()
        unit.delete(file)
        files.release_bytes(unit, int(file.size))
        return file.object_keys

    delete_unused(run_job_unit(job, stage))
