"""Covers of posts: copies that the platform keeps, whichever workspace's key names them."""

from collections.abc import Mapping

from chalicelib.application.context import Context
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.blog.store.posts import PostRow
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.flows.rehosting import RejectedImage, StoredObject
from chalicelib.domains.files.rules import images
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.files.store.images import ImageMap, is_image
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.object_store import object_store
from chalicelib.lib import public_urls

FOLDER = "Blog"
UNUSED = "blog-cover-unused"
"""The scheduled job of removing a cover that no post shows any more."""


def weight(url: str | None) -> int:
    """Return how many heavy calls it is to take a cover: one if it is elsewhere."""
    return int(url is not None and not rehosting.is_own_url(url))


def take_cover(ctx: Context, url: str) -> tuple[ImageMap | None, str | None]:
    """Return the copy of a cover, a file of the platform; without one, the URL to link to.

    The image may be elsewhere, a file of the caller's workspace, which is copied, or a cover that
    the platform has already. One that is not copied is a warning; there is no link either where
    the URL cannot be a cover's. An operation calls this once.
    """
    if rehosting.is_own_url(url):
        copied = ctx.unit.run_side_effect_once("copy", lambda: _copied(ctx, url))
        if copied:
            rehosting.provide(ctx.unit, copied)
    (image,) = rehosting.rehost(ctx, [url], FOLDER)
    if image is None:
        link = _link(url)
        if link is not None:
            ctx.warn("The post links to the cover's URL as it was sent. Send it again to copy it.")
        return None, link
    cover = ImageMap(  # type: ignore[no-untyped-call]  # PynamoDB's __init__
        file_id=image.file_id, url=image.url, width=image.width, height=image.height
    )
    return cover, None


def _link(url: str) -> str | None:
    """Return a URL that a page may show an image from: https, on the public internet.

    A URL of this service's own files that could not be copied names no image of the caller.
    """
    try:
        parsed = public_urls.parse(url)
    except ValueError:
        return None
    public = not parsed.is_address or public_urls.is_public(parsed.host)
    return url.strip() if public and not rehosting.is_own_url(url) else None


def _copied(ctx: Context, url: str) -> Mapping[str, StoredObject | RejectedImage]:
    """Return a copy of an image of the caller's workspace, by its URL; nothing if it has none."""
    file = FILES.find(ctx.principal.workspace_id, rehosting.own_file_id(url))
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
    """Stage the removal of a post's cover, whose record the caller stages without it, if any."""
    if post.cover is None:
        return
    job = jobs.row(UNUSED, unit.tenant, {"fileId": post.cover.file_id})
    unit.create(job)
    unit.after_commit(lambda: jobs.attempt(job, remove_unused_cover))


@job_handler(UNUSED)
def remove_unused_cover(job: Job) -> None:
    """Remove a cover's file, unless a post shows it."""
    file_id = job.payload["fileId"]

    def stage(unit: UnitOfWork) -> tuple[str | None, ...]:
        file = FILES.find(unit.tenant, file_id)
        if file is None or file_uses.records_showing(unit.tenant, file_id):
            return ()
        unit.delete(file)
        files.give_back(unit, int(file.size))
        return (file.key, file.thumbnail_key)

    rehosting.delete_objects(*run_unit(job.workspace_id, AuditEvent.by_job(UNUSED), stage))
