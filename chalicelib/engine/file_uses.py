"""The records that show each file, so that the deletion of a file finds them.

A record that begins to show a file raises the file's version. A concurrent deletion of the file
then conflicts and starts again, or, if the file is gone, the writer of the record does.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pynamodb.attributes import NumberAttribute
from pynamodb.expressions.update import Action

from chalicelib.engine.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

FILE = "FILE"

# Changed files by record, such as "PRODUCT#<id>": whether the record now shows each file.
Changes = Mapping[str, Mapping[str, bool]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShownFiles(Generic[R]):
    """The files that a noun's records show."""

    ids: Callable[[R], Iterable[str]]  # of a record's files
    # Takes a file out of a record when the file is deleted although it is shown. None does not
    # change the record: the HTML of a page, for example, belongs to its author.
    remove: Callable[[R, str], None] | None = None
    # Adapts a record to the new content of a file, whose row is the last argument. It may stage
    # jobs. None if a record holds nothing that depends on the content.
    adapt: Callable[[Any, R, Any], None] | None = None


class FileUseRow(ContentRow):
    """States that a record shows a file, in the file's partition. The sort key names the record."""


class FileVersionRow(ContentRow):
    """The version of a file, which the writer of a record raises."""

    version = NumberAttribute()


RAISE: list[Action] = [FileVersionRow.version.add(1)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileUseRows:
    put: list[FileUseRow]
    deleted: list[FileUseRow]
    raised: list[FileVersionRow]  # files whose version is raised

    def __len__(self) -> int:
        """Return the number of items that they take in a transaction."""
        return len(self.put) + len(self.deleted) + len(self.raised)


def files_partition(workspace_id: str) -> str:
    """Return the partition of a workspace's files."""
    return f"W#{workspace_id}#{FILE}"


def use_row(workspace_id: str, *, file_id: str, record: str) -> FileUseRow:
    """Return the row of a record that shows a file."""
    return FileUseRow(f"{files_partition(workspace_id)}#USE#{file_id}", record)


def records_showing(workspace_id: str, *, file_id: str) -> list[str]:
    """Return the records that show a file, such as ``PRODUCT#<id>``, by noun, oldest first."""
    return [
        row.sk for row in FileUseRow.partition(use_row(workspace_id, file_id=file_id, record="").pk)
    ]


def rows(workspace_id: str, changes: Changes, created: Iterable[str] = ()) -> FileUseRows:
    """Return the rows to write. Files ``created`` by the same unit need no higher version."""
    put: list[FileUseRow] = []
    deleted: list[FileUseRow] = []
    is_in_use = dict.fromkeys(created, False)
    for record, files in changes.items():
        for file_id, is_shown in files.items():
            (put if is_shown else deleted).append(
                use_row(workspace_id, file_id=file_id, record=record)
            )
            if is_shown:
                is_in_use.setdefault(file_id, True)
    pk = files_partition(workspace_id)
    raised = [FileVersionRow(pk, file_id) for file_id, there in is_in_use.items() if there]
    return FileUseRows(put, deleted, raised)


@dataclass(eq=False, repr=False)
class FileUseTracker:
    """The files that the written records of a unit of work showed before, and show now."""

    workspace_id: str
    created: set[str] = field(default_factory=set)
    _records: dict[str, tuple[set[str], Callable[[], Iterable[str]]]] = field(default_factory=dict)

    def note_creation(self, row: Row) -> None:
        if row.pk == files_partition(self.workspace_id):
            self.created.add(row.sk)

    def note(
        self,
        record: str,
        shown_files: ShownFiles[Any],
        old_record: Record | None,
        *,
        new_record: Record | None,
    ) -> None:
        """Register a written record. Its new files are read when the unit commits."""
        old = set(shown_files.ids(old_record)) if old_record is not None else set()
        self._records[record] = (
            old,
            lambda: shown_files.ids(new_record) if new_record is not None else (),
        )

    def changes(self) -> Changes:
        changes = {}
        for record, (old, ids) in self._records.items():
            new = set(ids())
            if file_ids := sorted(old ^ new):
                changes[record] = {file_id: file_id in new for file_id in file_ids}
        return changes
