"""Re-hosting: images that users name by URL become files of their workspace.

Each is fetched through the safe fetcher, made safe, and stored with a thumbnail (spec, Service).
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from urllib.parse import unquote, urlsplit

from chalicelib.application.context import Context
from chalicelib.core import clock, plans
from chalicelib.core.deadline import Deadline, map_in_threads
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.settings import settings
from chalicelib.domains.files.flows import storage
from chalicelib.domains.files.rules import file_types, images, stored_files
from chalicelib.domains.files.store.files import (
    FILES,
    FOLDERS,
    FileRow,
    FolderRow,
    root_folder,
    used_bytes,
)
from chalicelib.domains.files.store.images import is_image
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import fetch
from chalicelib.gateways.object_store import object_store

SECONDS = 20.0
"""For all that a call gets from elsewhere; it has 29 in all (API Gateway)."""
AT_ONCE = 8
ADDRESS = "/files/"
ID_LENGTH = 26
"""Of a file's id, with which the unguessable part of its URL begins."""
ORPHAN = "file-orphan"
ORPHAN_AFTER = timedelta(hours=1)
"""Objects are looked at again then; an operation has a minute at most."""
STRANGE_IMAGES = "strange images"
"""The side effect of fetching a unit's images (``UnitOfWork.run_side_effect_once``)."""
_cleaning = Lock()
"""``files.rules.images`` cleans images one at a time. Here the time left is checked."""


@dataclass(frozen=True, slots=True)
class ImportedImage:
    """An image that is a file of the workspace."""

    file_id: str
    url: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class RejectedImage:
    """An image that could not be taken, and why; ``late`` if only time was too short."""

    url: str
    reason: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Bytes in the object store that are to become a file; sizes in bytes and pixels.

    ``watch`` is the job that removes them if they do not.
    """

    file_id: str
    key: str
    thumbnail_key: str | None
    mime_type: str
    bytes: int
    size: int
    watch: JobRow
    width: int | None = None
    height: int | None = None


def rehost(ctx: Context, urls: Sequence[str], folder: str) -> list[ImportedImage | None]:
    """Make files of images, in a folder at the root that is made when first needed.

    An image that cannot be taken is a warning, and None at its place: it never fails the call.
    An operation calls this once, with all its images: it stages what may be staged only once.
    """
    found, size = import_images(ctx, urls, folder)
    storage.charge(ctx.unit, ctx.principal.plan, size, begin_again=True)
    for one in found:
        if isinstance(one, RejectedImage):
            ctx.warn(f"The image {one.url[:200]} was not taken: {one.reason}.")
    return [one if isinstance(one, ImportedImage) else None for one in found]


def import_images(  # noqa: PLR0913  what may be known of the images
    ctx: Context,
    urls: Sequence[str],
    folder: str,
    *,
    http_too: bool = False,
    within: float | None = None,
    reserved: int = 0,
) -> tuple[list[ImportedImage | RejectedImage], int]:
    """Fetch, clean and store images, and stage their files; return them in the order of the URLs.

    With the bytes of those files, which the caller takes of the quota. URLs of the workspace's own
    images are kept without being fetched. What was fetched ``within`` seconds (``SECONDS`` by
    default) counts; files beyond the quota, of which some bytes may be ``reserved``, are refused
    one by one.
    """
    seconds = SECONDS if within is None else within
    own = _own_files(ctx, urls)  # in every run of the handler: one may be deleted meanwhile
    strange = [url for url in dict.fromkeys(urls) if url not in own]
    stored = ctx.unit.run_side_effect_once(
        STRANGE_IMAGES, lambda: _all_stored(ctx.workspace_id, strange, seconds, http_too=http_too)
    )
    objects = {url: one for url, one in stored.items() if isinstance(one, StoredObject)}
    ctx.unit.on_failure(lambda: remove_objects(objects.values()))
    taken = _stage(ctx, objects, folder, reserved) if objects else {}
    answer: list[ImportedImage | RejectedImage] = []
    for url in urls:
        file = own.get(url) or taken.get(url)
        if file is not None:
            answer.append(as_image(file))
            continue
        match stored.get(url):
            case RejectedImage() as refusal:
                answer.append(refusal)
            case None:
                answer.append(
                    RejectedImage(url, "no file of the workspace has this URL (any more)")
                )
            case _:
                reason = "the workspace's files take all that its plan allows"
                answer.append(RejectedImage(url, reason))
    return answer, sum(int(file.size) for file in taken.values())


def fetch_images(
    workspace_id: str, urls: Iterable[str], seconds: float
) -> dict[str, StoredObject | RejectedImage]:
    """Fetch, clean and store the images of several units, within so many seconds in all.

    Each unit is then given its own (``provide``), and stages their files by ``rehost``. URLs of the
    service's own files are left to it.
    """
    strange = [url for url in dict.fromkeys(urls) if not is_own_url(url)]
    return _all_stored(workspace_id, strange, seconds, http_too=False)


def copy_images(workspace_id: str, urls: Iterable[str]) -> dict[str, StoredObject | RejectedImage]:
    """Copy images of other workspaces, by the public URLs of their files.

    Only for an operator's calls: a workspace's own keys copy what they may read.
    """
    own = {url for url in urls if is_own_url(url)}
    ids = {url: own_file_id(url) for url in own}
    held = {file.id for file in FILES.fetch(workspace_id, ids.values())} if ids else set()
    found: dict[str, StoredObject | RejectedImage] = {}
    for url in own:
        key = url.removeprefix(settings().public_url + "/")
        if ids[url] in held or ".." in key.split("/"):
            continue
        if (body := object_store().get(key)) is None:
            continue
        try:
            found[url] = stored_object(workspace_id, body, _name(url))
        except images.ImageError as error:
            found[url] = RejectedImage(url, error.reason)
    return found


def provide(unit: UnitOfWork, images: Mapping[str, StoredObject | RejectedImage]) -> None:
    """Give a unit the images that were fetched for it, so that it fetches none itself."""
    unit.run_side_effect_once(STRANGE_IMAGES, lambda: images)


def as_image(file: FileRow) -> ImportedImage:
    """Return a file of the workspace as the image that it is."""
    return ImportedImage(file.id, public_url(file.key), int(file.width or 0), int(file.height or 0))


def is_own_url(url: str) -> bool:
    """Whether a URL is one that files of this service have; only others are heavy to take."""
    return url.startswith(settings().public_url + ADDRESS)


def own_file_id(url: str) -> str:
    """Return the id of the file that a URL of this service's files (``is_own_url``) names."""
    return url.removeprefix(settings().public_url + ADDRESS)[:ID_LENGTH]


def public_url(key: str) -> str:
    """Return the public URL of an object."""
    return f"{settings().public_url}/{key}"


def stored_object(
    workspace_id: str, body: bytes, name: str, file_id: str | None = None
) -> StoredObject:
    """Store bytes for a new file, of this id if one is given, under a URL that cannot be guessed.

    Photos are cleaned; other bytes are stored as they came, and served so that they cannot run.

    Raises:
        images.ImageError: an image that cannot be read, is too large, or of another kind.
    """
    kind = file_types.file_type(body, name)
    images.check_storable(kind)
    if kind not in images.READ:
        return _put(workspace_id, body, kind, name, file_id=file_id)
    clean = images.sanitize(body)
    return _put(workspace_id, clean.body, clean.mime_type, name, clean=clean, file_id=file_id)


def remove_objects(stored: Iterable[StoredObject]) -> None:
    """Remove objects that will not become files; what cannot be removed now is removed by a job."""
    for one in stored:
        jobs.attempt(one.watch, remove_orphan)


def delete_objects(*keys: str | None) -> None:
    """Remove the objects of a file; None stands for a thumbnail that there is not."""
    for key in keys:
        if key is not None:
            object_store().delete(key)


@job_handler(ORPHAN)
def remove_orphan(job: Job) -> None:
    """Remove the objects of a file that never was: its operation failed, or its process died.

    Of two that complete one upload at once, one's objects are the file's, and the other's are not.
    """
    file = FILES.find(job.workspace_id, job.payload["fileId"])
    used = {file.key, file.thumbnail_key} if file else set()
    delete_objects(*(key for key in job.payload["keys"] if key not in used))


def file_row(workspace_id: str, stored: StoredObject, name: str, folder_id: str | None) -> FileRow:
    """Return the row of a stored object's file, to be staged."""
    return FileRow(
        FILES.partition(workspace_id),
        stored.file_id,
        name=name,
        key=stored.key,
        thumbnail_key=stored.thumbnail_key,
        mime_type=stored.mime_type,
        bytes=stored.bytes,
        size=stored.size,
        width=stored.width,
        height=stored.height,
        folder_id=folder_id,
    )


def _put(  # noqa: PLR0913  what there is to say of a file
    workspace_id: str,
    body: bytes,
    mime_type: str,
    name: str,
    *,
    clean: images.CleanImage | None = None,
    file_id: str | None = None,
) -> StoredObject:
    file_id = file_id or new_id()
    place = f"files/{file_id}{secrets.token_urlsafe(16)}"
    key, small = f"{place}/{stored_files.address_name(name, mime_type)}", None
    objects = {key: (body, mime_type)}
    if clean is not None:
        small = f"{place}/thumbnail/{stored_files.address_name(name, clean.thumbnail_type)}"
        objects[small] = (clean.thumbnail, clean.thumbnail_type)
    orphan = {"fileId": file_id, "keys": list(objects)}
    watch = jobs.row(ORPHAN, workspace_id, orphan, clock.now() + ORPHAN_AFTER)
    jobs.schedule(watch)
    try:
        for each, (content, kind) in objects.items():
            headers = stored_files.headers_of(content, each.rpartition("/")[2])
            object_store().put(each, content, kind, headers)
    except UnavailableError:
        jobs.attempt(watch, remove_orphan)
        raise
    size = sum(len(content) for content, _ in objects.values())
    width, height = (clean.width, clean.height) if clean else (None, None)
    return StoredObject(file_id, key, small, mime_type, len(body), size, watch, width, height)


def _own_files(ctx: Context, urls: Iterable[str]) -> dict[str, FileRow]:
    """Return the workspace's own images that some of the URLs are of, by those."""
    ids = {url: own_file_id(url) for url in urls if is_own_url(url)}
    found = {file.id: file for file in FILES.fetch(ctx.workspace_id, ids.values())} if ids else {}
    return {
        url: found[file_id]
        for url, file_id in ids.items()
        if file_id in found and is_image(found[file_id]) and public_url(found[file_id].key) == url
    }


def _all_stored(
    workspace_id: str, urls: Sequence[str], seconds: float, *, http_too: bool
) -> dict[str, StoredObject | RejectedImage]:
    """Fetch, clean and store images, eight at a time; each is stored or refused.

    The hosts take turns, so that one that does not answer holds up no other.
    """
    deadline, hosts, turns = Deadline(seconds), fetch.Hosts(), Counter[str]()

    def turn(url: str) -> int:
        host = url.partition("://")[2].partition("/")[0]
        turns[host] += 1
        return turns[host]

    ordered = sorted(urls, key=turn)
    done = map_in_threads(
        lambda url: _one_stored(workspace_id, url, deadline, hosts, http_too=http_too),
        ordered,
        AT_ONCE,
    )
    return dict(zip(ordered, done, strict=True))


def _one_stored(
    workspace_id: str, url: str, deadline: Deadline, hosts: fetch.Hosts, *, http_too: bool
) -> StoredObject | RejectedImage:
    late = RejectedImage(url, "the time for all images was over", late=True)
    try:
        if deadline.passed:
            return late
        fetched = fetch.fetch(
            url,
            http_too=http_too,
            within=deadline.left(fetch.TOTAL_SECONDS),
            accept="image/*",
            hosts=hosts,
        )
        with _cleaning:
            if deadline.passed:
                return late
            clean = images.sanitize(fetched.body)
        return _put(workspace_id, clean.body, clean.mime_type, _name(fetched.url), clean=clean)
    except (fetch.FetchError, images.ImageError) as error:
        return RejectedImage(url, error.reason)
    except UnavailableError:
        return RejectedImage(url, "it could not be stored; try again later")


def _name(url: str) -> str:
    """Return the name that a URL gives a file."""
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return "".join(filter(str.isprintable, name)).strip()[:100] or "image"


def _stage(
    ctx: Context, objects: dict[str, StoredObject], folder: str, reserved: int
) -> dict[str, FileRow]:
    """Stage the files of stored objects, as far as the quota goes; return them by URL."""
    quota = plans.STORAGE_BYTES[ctx.principal.plan]
    free = quota - used_bytes(ctx.workspace_id) - reserved
    fitting: dict[str, StoredObject] = {}
    for url, stored in objects.items():
        if stored.size <= free:
            fitting[url] = stored
            free -= stored.size
    left_out = [stored for url, stored in objects.items() if url not in fitting]
    ctx.unit.after_commit(lambda: remove_objects(left_out))
    if not fitting:
        return {}
    folder_id = folder_at_root(ctx.unit, folder)
    files = {
        url: file_row(ctx.workspace_id, stored, _name(url), folder_id)
        for url, stored in fitting.items()
    }
    for file in files.values():
        ctx.unit.create(file)
    return files


def folder_at_root(unit: UnitOfWork, name: str) -> str:
    """Return the id of the folder of this name at the root; its making is staged if need be."""
    there = root_folder(unit.workspace_id, name)
    if there is not None:
        unit.require(FolderRow(FOLDERS.partition(unit.workspace_id), there))
        return there
    folder = FOLDERS.new(unit.workspace_id, name=name)
    unit.create(folder)
    return folder.id
