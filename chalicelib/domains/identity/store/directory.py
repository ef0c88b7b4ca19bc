"""The directory of businesses that any visitor's assistant finds, by words (ADR 146).

A business has an entry for the beginning of each of its words, under a partition of that beginning.
A search reads the partitions of its own words, so it costs the same however many businesses there
are. Its results are read again, so an entry that is a moment old shows nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

from pynamodb.attributes import ListAttribute, VersionAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core import deadline
from chalicelib.core.text import cut_bytes, search_words
from chalicelib.domains.identity.rules.job_kinds import DIRECTORY
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import jobs
from chalicelib.engine.reading import Cost, Key, Partition, Rows, fetch
from chalicelib.engine.tables import ContentRow, IdentityRow, Row
from chalicelib.engine.unit import UnitOfWork

MAX_FOUND = 10  # businesses of one search
MAX_READ = 200  # entries of a beginning that one search reads
MAX_BEGINNINGS = 4  # that one search reads, those of its longest words
MAX_ENTRIES = 32  # of one business
SORT_KEY = "-"
_BEGINNING = 3  # characters
_NAME_BYTES, _PLACE_BYTES, _TRADE_BYTES = 120, 160, 300


class Words(NamedTuple):
    """What is searched: words as ``search_words`` returns them."""

    name: str
    place: str
    trade: str

    @classmethod
    def of_business(cls, workspace: WorkspaceRow, services: Iterable[str]) -> Self:
        """Return the words of a business, whose trade is what its services are called."""
        return cls(
            cut_bytes(search_words(workspace.name), _NAME_BYTES),
            cut_bytes(search_words(workspace.address or ""), _PLACE_BYTES),
            cut_bytes(search_words(" ".join(services)), _TRADE_BYTES),
        )

    @classmethod
    def of_search(cls, *, name: str, town: str, trade: str) -> Self:
        """Return the words to search for. Single letters, as of "g. Kazan", say nothing."""
        return cls(*(" ".join(_telling(search_words(text))) for text in (name, town, trade)))

    def beginnings(self) -> dict[str, str]:
        """Return the word of each beginning, without numbers, which houses have."""
        found: dict[str, str] = {}
        for word in " ".join(self).split():
            if any(map(str.isalpha, word)):
                found.setdefault(word[:_BEGINNING], word)
        return found

    def match(self, found: "Words") -> bool:
        """Whether a business has a word that begins with each of these."""
        return (
            _begin(self.name, [found.name])
            and _begin(self.place, [found.place])
            # A name may say the trade: "Barber Ivan".
            and _begin(self.trade, [found.trade, found.name])
        )


def _telling(text: str) -> list[str]:
    words = [word.strip(".") for word in text.split()]
    return [word for word in words if len(word) > 1]


def _begin(searched: str, lines: Iterable[str]) -> bool:
    words = [word for line in lines for word in line.split()]
    return all(any(word.startswith(part) for word in words) for part in searched.split())


class ListedBusinessRow(ContentRow):
    """What the directory has of a workspace. It exists while the business is listed."""

    version = VersionAttribute()
    services: ListAttribute[str] = ListAttribute(default=list)  # names that results show
    # The words of its entries, or None while it has none: suspended, closed, or not yet looked at.
    words: ListAttribute[str] = ListAttribute(null=True)

    @classmethod
    def read(cls, workspace_id: str, rows: Rows) -> Self:
        at = key(workspace_id)
        row: Self | None = rows.find(cls, at)
        return row or cls(at.pk, at.sk)

    @property
    def workspace_id(self) -> str:
        return self.pk.split("#")[1]

    @property
    def is_stored(self) -> bool:
        return self.version is not None

    @property
    def found_by(self) -> Words | None:
        """The words of its entries."""
        return None if self.words is None else Words(*self.words)


class BusinessEntryRow(IdentityRow):
    """An entry of a business under the beginning of one of its words."""

    words: ListAttribute[str] = ListAttribute()


def is_shown(workspace: WorkspaceRow) -> bool:
    """Whether a listed business has entries: visitors see it, and an operator has let it in."""
    return workspace.halt is None and not workspace.awaits_review


def key(workspace_id: str) -> Key:
    """Return the key of a workspace's row in the directory."""
    return Key(ListedBusinessRow, f"W#{workspace_id}#DIRECTORY", SORT_KEY)


def unchanged(row: Any) -> Condition:  # noqa: ANN401  any row with a version
    """Return the condition that a row is as it was read, or still does not exist."""
    kind = type(row)
    return Row.pk.does_not_exist() if row.version is None else kind.version == row.version


def stage(unit: UnitOfWork, row: ListedBusinessRow, words: Words | None) -> None:
    """Stage the row of a listed business, with entries for its ``words``, or without entries."""
    former = row.found_by
    if words != former:
        _stage_entries(unit, row, former, words)
    row.words = None if words is None else list(words)
    unit.save(row)


def stage_end(unit: UnitOfWork, row: ListedBusinessRow) -> None:
    """Stage that a business is not listed, also if it is not."""
    if row.is_stored:
        _stage_entries(unit, row, row.found_by, None)
        unit.delete(row)
    else:
        # Else somebody could list it at this moment, by what this change ends.
        unit.require(row, unchanged(row))


def _stage_entries(
    unit: UnitOfWork, row: ListedBusinessRow, former: Words | None, words: Words | None
) -> None:
    old, new = ([*_entries_of(row, some)] if some else [] for some in (former, words))
    kept = {entry.pk for entry in new}
    for entry in old:
        if entry.pk not in kept:
            unit.delete(entry)
    for entry in new:
        unit.save(entry)


def _entries_of(row: ListedBusinessRow, words: Words) -> Iterator[BusinessEntryRow]:
    for beginning in list(words.beginnings())[:MAX_ENTRIES]:
        yield BusinessEntryRow(_partition(beginning), row.workspace_id, words=list(words))


def _partition(beginning: str) -> str:
    return f"DIRECTORY#{beginning}"


def follow_workspace(unit: UnitOfWork) -> None:
    """Stage that the directory follows a change of the workspace's row."""
    row = ListedBusinessRow.read(unit.workspace_id, unit.rows)
    if row.is_stored:
        # A transaction that ends keys has no room for the entries.
        unit.save(row)
        unit.create_job(jobs.row(DIRECTORY, unit.workspace_id, {}))
    else:
        unit.require(row, unchanged(row))


def follow_service(unit: UnitOfWork) -> None:
    """Stage that the directory follows a change of a service, once for all of a unit of work."""
    if ListedBusinessRow.read(unit.workspace_id, unit.rows).is_stored:
        unit.stage_once(
            DIRECTORY,
            lambda unit: unit.save(jobs.for_changes(DIRECTORY, unit.workspace_id)),
        )


class Found(NamedTuple):
    """A business that was found."""

    workspace: WorkspaceRow
    services: list[str]


def find(search: Words) -> tuple[list[Found], bool]:
    """Return businesses that match, the oldest first, and whether there may be more."""
    beginnings = search.beginnings()
    # A part of a beginning has entries of words that are as short, and no others.
    parts = [part for part in beginnings if len(part) == _BEGINNING] or [*beginnings]
    chosen = sorted(parts, key=lambda part: -len(beginnings[part]))[:MAX_BEGINNINGS]
    reads = deadline.map_in_threads(_read, chosen, MAX_BEGINNINGS)
    # A beginning that was read to its end has all that match.
    whole = [entries for entries, ended in reads if ended]
    entries = min(whole, key=len) if whole else {k: v for some, _ in reads for k, v in some.items()}
    ids = sorted(found for found, words in entries.items() if search.match(words))
    keys = [at for found in ids[:MAX_FOUND] for at in (key(found), workspaces.key(found))]
    rows = fetch(keys, consistent=False)
    listed = {row.workspace_id: row for row in rows if isinstance(row, ListedBusinessRow)}
    results = [
        Found(row, list(listed[row.id].services))
        for row in rows
        if isinstance(row, WorkspaceRow) and row.id in listed and is_shown(row)
    ]
    return results, not whole or len(ids) > MAX_FOUND


def _read(beginning: str) -> tuple[dict[str, Words], bool]:
    partition = Partition(_partition(beginning), Cost(), BusinessEntryRow)
    items, following = partition.first(MAX_READ)
    return {
        item["sk"]["S"]: Words(*(word["S"] for word in item["words"]["L"])) for item in items
    }, following is None
