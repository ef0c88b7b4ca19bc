"""Files and folders of a workspace, pending uploads, and what is stored in all."""

from collections.abc import Collection
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from chalicelib.core.errors import AppError
from chalicelib.core.text import fold
from chalicelib.domains.files.rules import stored_files
from chalicelib.engine.file_uses import FILE
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup, LookupRow, unique_key
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.reading import fetch
from chalicelib.engine.tables import ContentRow, Record
from chalicelib.engine.unit import UnitOfWork

ROOT = "root"
"""Where files without a folder lie, as far as the list engine is concerned."""
MAX_NAMED = 100
"""Files that a text is known to show; a page with more images may lose one without a warning."""


class FileRow(Record):
    """A file. ``key`` is its object's, and the path of its public URL.

    ``size`` is what counts against the quota: its bytes and those of its thumbnail.
    """

    name = UnicodeAttribute()
    key = UnicodeAttribute()
    thumbnail_key = UnicodeAttribute(null=True)
    mime_type = UnicodeAttribute()
    bytes = NumberAttribute()
    size = NumberAttribute()
    width = NumberAttribute(null=True)
    height = NumberAttribute(null=True)
    folder_id = UnicodeAttribute(null=True)

    @property
    def place(self) -> str:
        """The folder, as the list engine knows it."""
        return self.folder_id or ROOT


FILES = listed(
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


def named_in(unit: UnitOfWork, text: str, known: Collection[str]) -> list[str]:
    """Return the ids of the workspace's files whose URLs stand in a text, at most ``MAX_NAMED``.

    Of the text that a record had before, they are ``known``, and not looked up again.
    """
    ids = stored_files.ids_in(text)[:MAX_NAMED]
    own = {*known, *unit.created_files}
    strange = [file_id for file_id in ids if file_id not in own]
    own |= {file.id for file in FILES.fetch(unit.tenant, strange)} if strange else set()
    return [file_id for file_id in ids if file_id in own]


class FolderRow(Record):
    """A folder; its name is unique beside its siblings."""

    name = UnicodeAttribute()
    parent_id = UnicodeAttribute(null=True)


FOLDERS = listed(
    Listing(
        row=FolderRow,
        noun="FOLDER",
        listed_by="svc_list_folders",
        text=lambda folder: (folder.name,),
        sorts={"name": "t"},
        lookups=(
            Lookup("name", lambda f: f.name, unique=True, within=lambda f: f.parent_id or ROOT),
        ),
        inline_bytes=NAME_BYTES,
    )
)


def root_folder(workspace_id: str, name: str) -> str | None:
    """Return the id of the folder of this name at the root, or None."""
    found = fetch([unique_key(workspace_id, FOLDERS.noun, "name", name, ROOT)])
    return next((row.target for row in found if isinstance(row, LookupRow)), None)


def folders(workspace_id: str) -> list[FolderRow]:
    """Return all folders of a workspace, by name."""
    found = FolderRow.partition(FOLDERS.partition(workspace_id))
    return sorted(found, key=lambda folder: (fold(folder.name), folder.id))


class UsageRow(ContentRow):
    """What the files of a workspace, pending uploads and pages' HTML take, in bytes."""

    used = NumberAttribute(default=0)


def usage_row(workspace_id: str, used: int | None = None) -> UsageRow:
    """Return the row of what a workspace stores, to be changed in place or written as a whole."""
    return UsageRow(f"W#{workspace_id}#USAGE", "files", used=used)


def used_bytes(workspace_id: str) -> int:
    """Return how many bytes the files and pages of a workspace take."""
    key = usage_row(workspace_id)
    row = UsageRow.find(key.pk, key.sk)
    return int(row.used) if row else 0


def take(unit: UnitOfWork, size: int, quota: int, *, on_conflict: AppError | None = None) -> None:
    """Stage the taking of bytes, which are at most the quota; beyond it the unit does not commit.

    Then ``on_conflict`` is raised; without it, the operation begins again.
    """
    free = UsageRow.used <= quota - size
    if size <= quota:
        free |= UsageRow.used.does_not_exist()
    row = usage_row(unit.workspace_id)
    unit.update(row, [UsageRow.used.add(size)], free, on_conflict=on_conflict)


def give_back(unit: UnitOfWork, size: int) -> None:
    """Stage the return of bytes, if any, that files or pages took."""
    if size:
        unit.update(usage_row(unit.workspace_id), [UsageRow.used.add(-size)])


class UploadRow(ContentRow):
    """A large file announced and on its way: its bytes are taken, its object may be there."""

    key = UnicodeAttribute()
    name = UnicodeAttribute()
    size = NumberAttribute()
    folder_id = UnicodeAttribute(null=True)

    @property
    def id(self) -> str:
        """Its id, which becomes the file's."""
        return self.sk


def upload(workspace_id: str, upload_id: str, **attributes: Any) -> UploadRow:  # noqa: ANN401  the row's attributes
    """Return the row of an announced upload."""
    return UploadRow(f"W#{workspace_id}#UPLOAD", upload_id, **attributes)


def find_upload(workspace_id: str, upload_id: str) -> UploadRow | None:
    """Return an announced upload, or None if it is done, lapsed or never was."""
    return UploadRow.find(f"W#{workspace_id}#UPLOAD", upload_id)
