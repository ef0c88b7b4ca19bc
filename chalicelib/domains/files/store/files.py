"""Files and folders of a workspace, pending uploads, the storage in use, and images of records."""

from collections.abc import Collection
from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from chalicelib.core.errors import AppError
from chalicelib.core.text import fold
from chalicelib.domains.files.rules import stored_files
from chalicelib.engine.file_uses import FILE, ShownFiles
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup, LookupRow
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import ContentRow, Record
from chalicelib.engine.unit import UnitOfWork

ROOT = "root"  # facet value of files without a folder
MAX_FILES_PER_TEXT = 100  # A page with more images may lose one without a warning.


class FileRow(Record):
    """A file."""

    name = UnicodeAttribute()
    key = UnicodeAttribute()  # of its object, and the path of its public URL
    thumbnail_key = UnicodeAttribute(null=True)
    # Objects whose bytes are copied to the two keys, since the file was replaced. They name the
    # latest content, and are removed after an hour.
    content_key = UnicodeAttribute(null=True)
    content_thumbnail_key = UnicodeAttribute(null=True)
    mime_type = UnicodeAttribute()
    bytes = NumberAttribute()
    size = NumberAttribute()  # counts against the quota, with the thumbnail
    width = NumberAttribute(null=True)
    height = NumberAttribute(null=True)
    folder_id = UnicodeAttribute(null=True)

    @property
    def object_keys(self) -> list[str | None]:
        return [self.key, self.thumbnail_key, self.content_key, self.content_thumbnail_key]

    @property
    def place(self) -> str:
        # The folder in the list engine, or ``ROOT``.
        return self.folder_id or ROOT


FILES = register_listing(
    Listing(
        row=FileRow,
        noun=FILE,
        listed_by="svc_list_files",
        text=lambda file: (file.name,),
        facets=("place",),
        counted=("place",),
        sorts={"createdAt": "id"},
        indexes=(SortIndex("createdAt", partition_by="place"),),
    )
)


def find_file_ids(unit: UnitOfWork, text: str, previous_ids: Collection[str]) -> list[str]:
    """Return the ids of the workspace's files whose URLs occur in a string.

    At most ``MAX_FILES_PER_TEXT`` are returned. The ``previous_ids`` of the record are not looked
    up again.
    """
    ids = stored_files.file_ids_in(text)[:MAX_FILES_PER_TEXT]
    known_ids = {*previous_ids, *unit.created_files}
    # Looking up only new ids saves a read for each change of a page.
    unknown = [file_id for file_id in ids if file_id not in known_ids]
    known_ids |= {file.id for file in FILES.fetch(unit.tenant, unknown)} if unknown else set()
    return [file_id for file_id in ids if file_id in known_ids]


class FolderRow(Record):
    """A folder, whose name is unique among its siblings."""

    name = UnicodeAttribute()
    parent_id = UnicodeAttribute(null=True)


FOLDERS = register_listing(
    Listing(
        row=FolderRow,
        noun="FOLDER",
        listed_by="svc_list_folders",
        text=lambda folder: (folder.name,),
        uncounted=True,
        sorts={"name": "t"},
        lookups=(
            Lookup("name", lambda f: f.name, unique=True, within=lambda f: f.parent_id or ROOT),
        ),
        inline_bytes=NAME_BYTES,
    )
)


def root_folder(workspace_id: str, *, name: str) -> str | None:
    """Return the id of the root folder with this name, or None."""
    rows = fetch([FOLDERS.value_key(workspace_id, lookup="name", value=name, group=ROOT)])
    return next((row.target for row in rows if isinstance(row, LookupRow)), None)


def folders(workspace_id: str) -> list[FolderRow]:
    """Return all folders of a workspace, by name."""
    rows = FolderRow.partition(FOLDERS.partition(workspace_id))
    return sorted(rows, key=lambda folder: (fold(folder.name), folder.id))


class UsageRow(ContentRow):
    """Bytes that a workspace uses for files, pending uploads and the HTML of pages."""

    used = NumberAttribute(default=0)


def usage_row(workspace_id: str, used: int | None = None) -> UsageRow:
    """Return the row of a workspace's storage in use, for an update or for a complete write."""
    return UsageRow(f"W#{workspace_id}#USAGE", "files", used=used)


def used_bytes(workspace_id: str) -> int:
    """Return the bytes in use by a workspace's files and pages."""
    key = usage_row(workspace_id)
    row = UsageRow.find(key.pk, key.sk)
    return int(row.used) if row else 0


def reserve_bytes(
    unit: UnitOfWork, size: int, *, quota: int, on_conflict: AppError | None = None
) -> None:
    """Stage the use of bytes.

    Above the quota, the commit raises ``on_conflict``, or without it the operation is retried.
    """
    has_room = UsageRow.used <= quota - size
    # The first file of a workspace finds no row to compare with.
    if size <= quota:
        has_room |= UsageRow.used.does_not_exist()
    row = usage_row(unit.workspace_id)
    unit.update(row, [UsageRow.used.add(size)], has_room, on_conflict=on_conflict)


def release_bytes(unit: UnitOfWork, size: int) -> None:
    """Stage the release of bytes that files or pages used. A size of 0 changes nothing."""
    if size:
        unit.update(usage_row(unit.workspace_id), [UsageRow.used.add(-size)])


class UploadRow(ContentRow):
    """An announced large upload. Its bytes are charged, but its object may not exist yet."""

    key = UnicodeAttribute()
    name = UnicodeAttribute()
    size = NumberAttribute()
    folder_id = UnicodeAttribute(null=True)

    @property
    def id(self) -> str:
        # The id of the upload becomes the file's id.
        return self.sk


def upload(workspace_id: str, *, upload_id: str, **attributes: Any) -> UploadRow:  # noqa: ANN401  the row's attributes
    """Return the row of an announced upload."""
    return UploadRow(f"W#{workspace_id}#UPLOAD", upload_id, **attributes)


def find_upload(workspace_id: str, *, upload_id: str) -> UploadRow | None:
    """Return an announced upload, or None if it is completed, expired or unknown."""
    return UploadRow.find(f"W#{workspace_id}#UPLOAD", upload_id)


def file_or_upload(workspace_id: str, *, record_id: str) -> FileRow | UploadRow:
    """Return a file, or an announced upload, which has no public URL. Raises NotFoundError."""
    key = upload(workspace_id, upload_id=record_id)
    keys = [FILES.key(workspace_id, record_id=record_id), Key(UploadRow, key.pk, key.sk)]
    rows = [row for row in fetch(keys) if isinstance(row, FileRow | UploadRow)]
    if not rows:
        raise FILES.not_found()
    # A completion between the two reads leaves both.
    return next((row for row in rows if isinstance(row, FileRow)), rows[0])


class ImageMap(MapAttribute[str, Any]):
    """File, public URL and size in pixels of an image that a record shows."""

    file_id = UnicodeAttribute()
    url = UnicodeAttribute()
    width = NumberAttribute()
    height = NumberAttribute()


def _remove_image(record: Any, file_id: str) -> None:  # noqa: ANN401  a record of any noun with images
    record.images = [image for image in record.images if image.file_id != file_id]


def _set_size(_: UnitOfWork, record: Any, file: FileRow) -> None:  # noqa: ANN401  as above
    for image in record.images:
        if image.file_id == file.id:
            image.width, image.height = file.width, file.height


# Access to the files of a record with a list of ``images``, for its noun's listing.
SHOWN_IMAGES: ShownFiles[Any] = ShownFiles(
    lambda r: [image.file_id for image in r.images], _remove_image, _set_size
)


def is_image(file: FileRow) -> bool:
    """Return whether a record can show a file. Only a re-encoded image has a known size."""
    return bool(file.width)
