"""Copy images that users give by URL, fetched safely (``gateways.fetch``), to their files."""

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from urllib.parse import unquote, urlsplit

from chalicelib.application.context import Context
from chalicelib.core import clock, plans
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.deadline import Deadline, map_in_threads
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.core.settings import settings
from chalicelib.domains.files.flows import publishing, storage
from chalicelib.domains.files.rules import data_urls, file_types, images, stored_files
from chalicelib.domains.files.store.files import (
    FILES,
    FOLDERS,
    FileRow,
    FolderRow,
    is_image,
    root_folder,
    used_bytes,
)
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import fetch, public_http
from chalicelib.gateways.object_store import delete_unused, object_store

SECONDS = 20.0  # For all fetches of a call. API Gateway ends a request after 29 seconds.
PARALLEL_FETCHES = 8
FILES_PATH = "/files/"
ID_LENGTH = 26  # An unguessable part follows the id in the file's URL.
ORPHAN = JobKind("file-orphan")
# A job then removes stored objects without a file. Their operation has ended by then.
ORPHAN_AFTER = timedelta(hours=1)
MAX_SHOWN = 200  # characters of a URL in a warning
REMOTE_IMAGES = "remote images"  # Name of the side effect that fetches a unit's images.
# Held while an image is re-encoded. The deadline is checked again after the wait for the lock.
_reencoding = Lock()


@dataclass(frozen=True, slots=True)
class ImportedImage:
    """An image that is a file of the workspace."""

    file_id: str
    url: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class RejectedImage:
    """An image that was not imported."""

    url: str
    reason: str
    late: bool = False  # The time limit is the only reason.


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Stored bytes that are to become a file."""

    file_id: str
    key: str
    thumbnail_key: str | None
    mime_type: str
    bytes: int
    size: int  # ``bytes`` plus the bytes of a thumbnail
    cleanup_job: JobRow  # removes the objects if they do not become a file
    width: int | None = None
    height: int | None = None


def rehost(ctx: Context, urls: Sequence[str], folder: str) -> list[ImportedImage | None]:
    """Import images as files in a folder at the root, which is created when first needed.

    An image that cannot be imported adds a warning, and its result is None. An operation calls this
    function once, with all its images, because a unit can change the storage row only once.
    """
    imports, size = import_images(ctx, urls, folder)
    storage.charge(ctx.unit, ctx.principal.plan, size, retry_if_full=True)
    for one in imports:
        if isinstance(one, RejectedImage):
            url = one.url[:MAX_SHOWN]
            ctx.warn(
                f"The image {url} was not imported: {one.reason}.",
                code=WarningCode.IMAGE_NOT_IMPORTED,
                url=url,
                reason=one.reason,
            )
    return [one if isinstance(one, ImportedImage) else None for one in imports]


def import_images(  # noqa: PLR0913  options of one import
    ctx: Context,
    urls: Sequence[str],
    folder: str,
    *,
    allow_http: bool = False,
    max_seconds: float | None = None,
    reserved: int = 0,
) -> tuple[list[ImportedImage | RejectedImage], int]:
    """Fetch, re-encode and store images, and stage their files.

    Returns the results in the order of the URLs, and the total size of the new files in bytes,
    which the caller charges to the quota. URLs of the workspace's own images are kept without a
    fetch. A file that does not fit the quota, of which ``reserved`` bytes are left free, is
    rejected.
    """
    seconds = SECONDS if max_seconds is None else max_seconds
    own_files = _own_files(ctx, urls)  # read in each attempt: a file may be deleted meanwhile
    remote = [url for url in dict.fromkeys(urls) if url not in own_files]
    outcomes = ctx.unit.run_side_effect_once(
        REMOTE_IMAGES, lambda: _store_all(ctx.workspace_id, remote, seconds, allow_http=allow_http)
    )
    objects = {url: one for url, one in outcomes.items() if isinstance(one, StoredObject)}
    # The objects have no file if the unit fails, so they would fill the bucket.
    ctx.unit.on_failure(lambda: remove_objects(objects.values()))
    files = _stage(ctx, objects, folder, reserved) if objects else {}
    results: list[ImportedImage | RejectedImage] = []
    for url in urls:
        file = own_files.get(url) or files.get(url)
        if file is not None:
            results.append(to_image(file))
            continue
        match outcomes.get(url):
            case RejectedImage() as rejected:
                results.append(rejected)
            case None:
                results.append(
                    RejectedImage(url, "no file of the workspace has this URL (any more)")
                )
            case _:
                reason = "the storage of the workspace's plan is full"
                results.append(RejectedImage(url, reason))
    return results, sum(int(file.size) for file in files.values())


def fetch_images(
    workspace_id: str, urls: Iterable[str], seconds: float
) -> dict[str, StoredObject | RejectedImage]:
    """Fetch, re-encode and store the images of several units, within ``seconds`` in all.

    Pass each unit its images with ``preload_images``; ``rehost`` then stages their files.
    """
    # ``rehost`` handles URLs of this service's own files.
    remote = [url for url in dict.fromkeys(urls) if not is_own_url(url)]
    return _store_all(workspace_id, remote, seconds, allow_http=False)


def copy_images(workspace_id: str, urls: Iterable[str]) -> dict[str, StoredObject | RejectedImage]:
    """Copy images of other workspaces, by the public URLs of their files, for the operator only."""
    # A call with an API key may use only its own workspace's images.
    own_urls = {url for url in urls if is_own_url(url)}
    ids = {url: own_file_id(url) for url in own_urls}
    known_ids = {file.id for file in FILES.fetch(workspace_id, ids.values())} if ids else set()
    objects: dict[str, StoredObject | RejectedImage] = {}
    for url in own_urls:
        key = url.removeprefix(settings().public_url + "/")
        # The key comes from a URL that a user wrote, and must not lead out of the folder of files.
        if ids[url] in known_ids or ".." in key.split("/"):
            continue
        if (body := object_store().get(key)) is None:
            continue
        try:
            objects[url] = stored_object(workspace_id, body, _file_name(url))
        except images.ImageError as error:
            objects[url] = RejectedImage(url, error.reason)
    return objects


def preload_images(unit: UnitOfWork, images: Mapping[str, StoredObject | RejectedImage]) -> None:
    """Provide a unit with its fetched images, so that the unit itself fetches nothing."""
    unit.run_side_effect_once(REMOTE_IMAGES, lambda: images)


def to_image(file: FileRow) -> ImportedImage:
    """Return the image that a file of the workspace holds."""
    return ImportedImage(file.id, public_url(file.key), int(file.width or 0), int(file.height or 0))


def is_own_url(url: str) -> bool:
    """Return whether a URL is of this service's files. Only other URLs must be fetched."""
    return url.startswith(settings().public_url + FILES_PATH)


def own_file_id(url: str) -> str:
    """Return the file id in a URL of this service's files (``is_own_url``)."""
    return url.removeprefix(settings().public_url + FILES_PATH)[:ID_LENGTH]


def public_url(key: str) -> str:
    """Return the public URL of an object."""
    return f"{settings().public_url}/{key}"


def stored_object(
    workspace_id: str, body: bytes, name: str, file_id: str | None = None
) -> StoredObject:
    """Store the bytes of a new file under a URL that cannot be guessed.

    Photos are re-encoded. Other bytes are stored as they are, and served with headers that prevent
    browsers from running them. Raises ImageError if an image cannot be read, is too large, or has
    an unsupported format.
    """
    kind = file_types.file_type(body, name)
    images.check_storable(kind)
    if kind not in images.READ:
        return _put(workspace_id, body, kind, name=name, file_id=file_id)
    clean = images.sanitize(body)
    return _put(workspace_id, clean.body, clean.mime_type, name=name, clean=clean, file_id=file_id)


def remove_objects(objects: Iterable[StoredObject]) -> None:
    """Remove objects that will not become files, now or by a scheduled job."""
    # The job exists already, so a removal that fails now is repeated by the runner.
    for one in objects:
        jobs.attempt(one.cleanup_job, remove_orphan)


@job_handler(ORPHAN)
def remove_orphan(job: Job) -> None:
    """Remove objects without a file: their operation failed, or its process died."""
    file = FILES.find(job.workspace_id, record_id=job.payload["fileId"])
    if file is not None and file.content_key in job.payload["keys"]:
        # A process that was held up may have copied a former content last. None runs that long.
        file = publishing.publish(job.workspace_id, file.id, (file.key, file.thumbnail_key))
    # If two calls complete one upload at the same time, the objects that the file does not use are
    # removed.
    delete_unused(job.payload["keys"], {file.key, file.thumbnail_key} if file else ())


def file_row(
    workspace_id: str, stored_file: StoredObject, name: str, folder_id: str | None
) -> FileRow:
    """Return the row of a stored object's file, for the caller to stage."""
    return FileRow(
        FILES.partition(workspace_id),
        stored_file.file_id,
        name=name,
        key=stored_file.key,
        thumbnail_key=stored_file.thumbnail_key,
        mime_type=stored_file.mime_type,
        bytes=stored_file.bytes,
        size=stored_file.size,
        width=stored_file.width,
        height=stored_file.height,
        folder_id=folder_id,
    )


def _put(  # noqa: PLR0913  attributes of a file
    workspace_id: str,
    body: bytes,
    mime_type: str,
    *,
    name: str,
    clean: images.CleanImage | None = None,
    file_id: str | None = None,
) -> StoredObject:
    file_id = file_id or new_id()
    # The random part keeps anyone from guessing the URLs of other files.
    folder = f"files/{file_id}{secrets.token_urlsafe(16)}"
    key, thumbnail_key = f"{folder}/{stored_files.url_name(name, mime_type=mime_type)}", None
    objects = {key: body}
    if clean is not None:
        thumbnail_key = (
            f"{folder}/thumbnail/{stored_files.url_name(name, mime_type=clean.thumbnail_type)}"
        )
        objects[thumbnail_key] = clean.thumbnail
    orphan = {"fileId": file_id, "keys": list(objects)}
    cleanup_job = jobs.row(ORPHAN, workspace_id, orphan, clock.now() + ORPHAN_AFTER)
    # The job is written before the objects, so that a process that dies leaves none behind.
    jobs.schedule(cleanup_job)
    try:
        for object_key, content in objects.items():
            publishing.put_public(object_key, content)
    except UnavailableError:
        jobs.attempt(cleanup_job, remove_orphan)
        raise
    size = sum(len(content) for content in objects.values())
    width, height = (clean.width, clean.height) if clean else (None, None)
    return StoredObject(
        file_id, key, thumbnail_key, mime_type, len(body), size, cleanup_job, width, height
    )


def _own_files(ctx: Context, urls: Iterable[str]) -> dict[str, FileRow]:
    ids = {url: own_file_id(url) for url in urls if is_own_url(url)}
    files_by_id = (
        {file.id: file for file in FILES.fetch(ctx.workspace_id, ids.values())} if ids else {}
    )
    return {
        url: files_by_id[file_id]
        for url, file_id in ids.items()
        if file_id in files_by_id
        and is_image(files_by_id[file_id])
        # The id in the URL can be right while the rest is not, and such a URL shows nothing.
        and public_url(files_by_id[file_id].key) == url
    }


def _store_all(
    workspace_id: str, urls: Sequence[str], seconds: float, *, allow_http: bool
) -> dict[str, StoredObject | RejectedImage]:
    # The hosts alternate, so that a slow host does not delay the images of the others.
    deadline, hosts, seen_per_host = Deadline(seconds), public_http.Hosts(), Counter[str]()

    def position_in_host(url: str) -> int:
        host = url.partition("://")[2].partition("/")[0]
        seen_per_host[host] += 1
        return seen_per_host[host]

    # The first image of each host comes first, then the second ones.
    ordered = sorted(urls, key=position_in_host)
    results = map_in_threads(
        lambda url: _store_one(
            workspace_id, url=url, deadline=deadline, hosts=hosts, allow_http=allow_http
        ),
        ordered,
        PARALLEL_FETCHES,
    )
    return dict(zip(ordered, results, strict=True))


def _store_one(
    workspace_id: str, *, url: str, deadline: Deadline, hosts: public_http.Hosts, allow_http: bool
) -> StoredObject | RejectedImage:
    late = RejectedImage(url, "the time limit for all images was reached", late=True)
    try:
        if deadline.passed:
            return late
        if data_urls.is_inline(url):
            name, body = "image", data_urls.decode(url) or b""
        else:
            fetched = fetch.fetch(
                url,
                allow_http=allow_http,
                timeout_seconds=deadline.seconds_left(fetch.TOTAL_SECONDS),
                accept="image/*",
                hosts=hosts,
            )
            name, body = _file_name(fetched.url), fetched.body
        # Re-encoding takes much memory, so a function does it for one image at a time.
        with _reencoding:
            if deadline.passed:
                return late
            clean = images.sanitize(body)
        return _put(workspace_id, clean.body, clean.mime_type, name=name, clean=clean)
    except (public_http.FetchError, images.ImageError) as error:
        return RejectedImage(url, error.reason)
    except UnavailableError:
        return RejectedImage(url, "it could not be stored; try again later")


def _file_name(url: str) -> str:
    if data_urls.is_inline(url):
        return "image"
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return "".join(filter(str.isprintable, name)).strip()[:100] or "image"


def _stage(
    ctx: Context, objects: dict[str, StoredObject], folder: str, reserved: int
) -> dict[str, FileRow]:
    # As far as the quota allows. Returns the files by URL.
    quota = plans.STORAGE_BYTES[ctx.principal.plan]
    free_bytes = quota - used_bytes(ctx.workspace_id) - reserved
    accepted: dict[str, StoredObject] = {}
    for url, image in objects.items():
        if image.size <= free_bytes:
            accepted[url] = image
            free_bytes -= image.size
    left_out = [image for url, image in objects.items() if url not in accepted]
    # Before the commit, another attempt could still accept an image that was left out.
    ctx.unit.after_commit(lambda: remove_objects(left_out))
    if not accepted:
        return {}
    folder_id = folder_at_root(ctx.unit, folder)
    files = {
        url: file_row(ctx.workspace_id, image, _file_name(url), folder_id)
        for url, image in accepted.items()
    }
    for file in files.values():
        ctx.unit.create(file)
    return files


def folder_at_root(unit: UnitOfWork, name: str) -> str:
    """Return the id of the root folder with this name. A missing folder is staged for creation."""
    existing = root_folder(unit.workspace_id, name=name)
    if existing is not None:
        # The folder may be deleted until the commit, and its files would be lost.
        unit.require(FolderRow(FOLDERS.partition(unit.workspace_id), existing))
        return existing
    folder = FOLDERS.new(unit.workspace_id, name=name)
    unit.create(folder)
    return folder.id
