"""Files and folders of a workspace, pending uploads, and what the files take in all."""

from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from chalicelib.core.errors import AppError
from chalicelib.core.text import fold
from chalicelib.core.unit import Unit
from chalicelib.store.claims import LocalClaimRow, local_claim, local_claim_key, name_hash
from chalicelib.store.listing import Listing, SortIndex
from chalicelib.store.reading import fetch
from chalicelib.store.tables import ContentRow, Record
from chalicelib.store.unit import listed

ROOT = "root"
"""Where files without a folder lie, as far as the list engine is concerned."""


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
        FileRow,
        "FILE",
        text=lambda file: (file.name,),
        facets=("place",),
        counted=("place",),
        sorts={"createdAt": "id"},
        orders=(SortIndex("createdAt", partition_by="place"),),
    )
)


class FolderRow(Record):
    """A folder; its name is unique beside its siblings."""

    name = UnicodeAttribute()
    parent_id = UnicodeAttribute(null=True)


FOLDERS = listed(
    Listing(FolderRow, "FOLDER", text=lambda folder: (folder.name,), sorts={"name": "t"})
)


def folder_claim(folder: FolderRow, workspace_id: str) -> LocalClaimRow:
    """Return the claim on a folder's name beside its siblings."""
    siblings = _siblings(folder.parent_id)
    return local_claim(workspace_id, siblings, name_hash(folder.name), folder.id)


def root_folder(workspace_id: str, name: str) -> str | None:
    """Return the id of the folder of this name at the root, or None."""
    found = fetch([local_claim_key(workspace_id, _siblings(None), name_hash(name))])
    return next((row.target for row in found if isinstance(row, LocalClaimRow)), None)


def _siblings(parent_id: str | None) -> str:
    return f"folder-name#{parent_id or ROOT}"


def folders(workspace_id: str) -> list[FolderRow]:
    """Return all folders of a workspace, by name."""
    found = FolderRow.partition(FOLDERS.partition(workspace_id))
    return sorted(found, key=lambda folder: (fold(folder.name), folder.id))


class UsageRow(ContentRow):
    """What the files of a workspace take, pending uploads included, in bytes."""

    used = NumberAttribute(default=0)


def _usage(workspace_id: str) -> UsageRow:
    return UsageRow(f"W#{workspace_id}#USAGE", "files")


def used_bytes(workspace_id: str) -> int:
    """Return how many bytes the files of a workspace take."""
    key = _usage(workspace_id)
    row = UsageRow.find(key.pk, key.sk)
    return int(row.used) if row else 0


def take(unit: Unit, size: int, quota: int, *, on_conflict: AppError | None = None) -> None:
    """Stage the taking of bytes, which are at most the quota; beyond it the unit does not commit.

    Then ``otherwise`` is raised; without it, the operation begins again.
    """
    free = UsageRow.used <= quota - size
    if size <= quota:
        free |= UsageRow.used.does_not_exist()
    unit.update(_usage(unit.workspace_id), [UsageRow.used.add(size)], free, on_conflict=on_conflict)


def give_back(unit: Unit, size: int) -> None:
    """Stage the return of bytes that files took."""
    unit.update(_usage(unit.workspace_id), [UsageRow.used.add(-size)])


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
