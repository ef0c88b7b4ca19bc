"""Which records show which files: a row for each file and record, in the file's own partition.

The unit of work that writes a record keeps its rows in step (``engine.unit``), so a file knows what
shows it when it is to be deleted. A record that begins to show a file raises the file's version: a
deletion that has not seen it begins again, and a file that is gone makes the record's writer do so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pynamodb.attributes import NumberAttribute
from pynamodb.expressions.update import Action

from chalicelib.engine.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

FILE = "FILE"
"""The noun of files."""

Changes = Mapping[str, Mapping[str, bool]]
"""Of records, named as ``PRODUCT#<id>``, the files whose showing changes: whether they do now."""


@dataclass(frozen=True, slots=True)
class ShownFiles(Generic[R]):
    """Which files a noun's records show.

    ``ids`` gives their ids; ``remove`` takes one out of a record when the file is deleted all the
    same. Without it the record stays as it is, as a page does, whose HTML is its author's.
    """

    ids: Callable[[R], Iterable[str]]
    remove: Callable[[R, str], None] | None = None


class FileUseRow(ContentRow):
    """Says that a record, which its sort key names, shows a file."""


class FileVersionRow(ContentRow):
    """A file, as the record's writer raises its version."""

    version = NumberAttribute()


RAISE: list[Action] = [FileVersionRow.version.add(1)]
"""What a record that begins to show a file does to it."""


@dataclass(frozen=True, slots=True)
class FileUseRows:
    """What changes of the rows; ``shown`` are the files whose version is raised."""

    put: list[FileUseRow]
    deleted: list[FileUseRow]
    shown: list[FileVersionRow]

    def __len__(self) -> int:
        """Return how many items of a transaction they take."""
        return len(self.put) + len(self.deleted) + len(self.shown)


def files_partition(workspace_id: str) -> str:
    """Return the partition of a workspace's files."""
    return f"W#{workspace_id}#{FILE}"


def use_row(workspace_id: str, file_id: str, record: str) -> FileUseRow:
    """Return the row of a record that shows a file."""
    return FileUseRow(f"{files_partition(workspace_id)}#USE#{file_id}", record)


def records_showing(workspace_id: str, file_id: str) -> list[str]:
    """Return the records that show a file, such as ``PRODUCT#<id>``, by noun, oldest first."""
    return [row.sk for row in FileUseRow.partition(use_row(workspace_id, file_id, "").pk)]


def rows(workspace_id: str, changes: Changes, created: Iterable[str] = ()) -> FileUseRows:
    """Return what to write of changes; files that the same unit has ``created`` have no rivals."""
    put: list[FileUseRow] = []
    deleted: list[FileUseRow] = []
    shown = dict.fromkeys(created, False)
    for record, files in changes.items():
        for file_id, is_shown in files.items():
            (put if is_shown else deleted).append(use_row(workspace_id, file_id, record))
            if is_shown:
                shown.setdefault(file_id, True)
    pk = files_partition(workspace_id)
    raised = [FileVersionRow(pk, file_id) for file_id, there in shown.items() if there]
    return FileUseRows(put, deleted, raised)


@dataclass
class FileUseTracker:
    """What the records that a unit of work writes showed before, and show now."""

    workspace_id: str
    created: set[str] = field(default_factory=set)
    """The files that the unit creates."""
    _records: dict[str, tuple[set[str], Callable[[], Iterable[str]]]] = field(default_factory=dict)

    def note_creation(self, row: Row) -> None:
        """Note a row that is created, which may be a file."""
        if row.pk == files_partition(self.workspace_id):
            self.created.add(row.sk)

    def note(
        self, record: str, shown: ShownFiles[Any], before: Record | None, after: Record | None
    ) -> None:
        """Note a record that is written; what it shows then is asked when the unit commits."""
        old = set(shown.ids(before)) if before is not None else set()
        self._records[record] = (old, lambda: shown.ids(after) if after is not None else ())

    def changes(self) -> Changes:
        """Return what the unit changes."""
        found = {}
        for record, (old, ids) in self._records.items():
            new = set(ids())
            if changed := sorted(old ^ new):
                found[record] = {file_id: file_id in new for file_id in changed}
        return found
