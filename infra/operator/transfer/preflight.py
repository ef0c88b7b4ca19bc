"""Check that a file is complete before its import, and collect its claims."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import click

from chalicelib.core.plans import PLANS
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.rules.archive import Line, StoredObject
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.domains.sites.store import sites
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import LookupRow
from chalicelib.engine.reading import Key, fetch
from infra.operator.transfer import rewriting
from infra.operator.transfer.file_format import read
from infra.operator.transfer.lines import FileError

FILES = "files/"
"""Key prefix of served objects; other keys begin with the workspace's id."""
_NAMED_BY_PEOPLE = {sites.SLUG_CLAIM: "site slug", sites.DOMAIN_CLAIM: "domain"}


class Claim(NamedTuple):
    """A name that is unique on the platform, with its holder."""

    kind: str
    name: str
    target: str

    def __str__(self) -> str:
        """Return the claim for a message to the operator."""
        return f'{_NAMED_BY_PEOPLE.get(self.kind, self.kind.replace("-", " "))} "{self.name}"'

    def row(self, workspace_id: str) -> ClaimRow:
        """Return the row of the claim."""
        return claim(self.kind, name=self.name, target=self.target, workspace_id=workspace_id)


@dataclass
class ExportFile:
    """The contents of an export file, as collected by ``check_file``.

    Memory use is about 100 bytes for each id, claim and unique value.
    """

    path: Path
    with_ids: bool
    header: Line = field(default_factory=dict)
    workspace: Line = field(default_factory=dict)
    trailer: Line = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    """Slugs of the live sites."""
    domains: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    payments: set[str] = field(default_factory=set)
    """Ids of the payments of bookings."""
    _unique: dict[bytes, str] = field(default_factory=dict)

    @property
    def workspace_id(self) -> str:
        """The workspace's id in the file."""
        return str(self.header["workspaceId"])

    def add_line(self, line: Line) -> None:
        """Check and record a line.

        Raises:
            FileError: this version does not write such a line, or it conflicts with an earlier one.
        """
        match line:
            case {"at": str(at), "item": item}:
                self._note_ids(line)
                if listing := contents.noun_at(at):
                    record = listing.row.from_raw_data({"pk": {"S": "-"}, **item})
                    listing.set_index_keys(record)  # as the import will do
                    if not at.endswith(contents.TRASH):
                        self._add_record(listing, record, line)
                else:
                    kind = contents.kind_at(at)
                    if kind is not None and kind.row is PaymentRow:
                        self.payments.add(item["sk"]["S"])
                    is_known = kind is not None
                    _require(is_known, f"this version knows no rows at {at!r}")
            case {"job": {"kind": str()}}:
                self._note_ids(line)
            case {"workspace": {"plan": {"S": plan}, "name": {"S": str(name)}}}:
                self.workspace = line
                _require(
                    plan in PLANS and name.strip(), f"no workspace is called {name!r} on {plan!r}"
                )
            case {"format": _, "workspaceId": str(workspace_id)}:
                self.header = line
                self.ids.add(workspace_id)
                _require(rewriting.is_id(workspace_id), f"{workspace_id!r} is no workspace's id")
            case {"trailer": trailer}:
                self.trailer = trailer
            case _:
                raise FileError("The file is damaged: it has lines that are none of an export.")

    def add_object(self, stored_object: StoredObject) -> None:
        """Check and record an object.

        Raises:
            FileError: it is not an object of the workspace.
        """
        is_own_file = stored_object.key.startswith((FILES, f"{self.workspace_id}/"))
        _require(is_own_file, f"the object {stored_object.key!r} is not the workspace's")

    def _note_ids(self, line: Line) -> None:
        if not self.with_ids:
            return
        self.ids.update(rewriting.ids_in(line))
        if contents.noun_at(line.get("at", "")) and line["item"]["sk"]["S"] not in self.ids:
            msg = (
                f"{line['item']['sk']['S']!r} is no id that this service makes, as made-up records "
                "have: no new one can take its place. Import the file with --ids keep."
            )
            raise FileError(msg)

    def _add_record(self, listing: Listing[Any], record: Any, line: Line) -> None:  # noqa: ANN401  a record of any noun
        for lookup in listing.lookups:
            if lookup.platform_wide or lookup.unique:
                for side in lookups.rows(
                    lookup, self.workspace_id, noun=listing.noun, record=record
                ):
                    if isinstance(side.row, LookupRow):
                        self._note_unique(listing, lookup.name, side.row, record.id)
                    else:
                        (value,) = lookup.values(record)
                        self.claims.append(Claim(lookup.name, value, record.id))
        if listing.row is sites.SiteRow:
            self.sites.append(record.slug)
            if record.domain is not None:
                self.domains.append(record.domain.name)
        if domain := line.get("domain"):
            self.claims.append(Claim(sites.DOMAIN_CLAIM, domain, record.id))

    def _note_unique(self, listing: Listing[Any], name: str, row: LookupRow, record: str) -> None:
        # The whole key, because records of two nouns may have one value. Short, for large files.
        key = sha256(row.pk.encode()).digest()[:12]
        if (other := self._unique.setdefault(key, record)) != record:
            msg = (
                f"The {listing.noun.lower()}s {other} and {record} have the same {name}: it moved "
                "from one to the other during the export. Export again when it is quiet."
            )
            raise FileError(msg)


def _require(condition: object, problem: str) -> None:
    if not condition:
        msg = f"The file is damaged: {problem}."
        raise FileError(msg)


def check_file(path: Path, *, with_ids: bool) -> ExportFile:
    """Read a file from end to end, and return its contents. Nothing is written.

    Ids are recorded only with ``with_ids``.

    Raises:
        FileError: it is not a complete export that this version can read.
    """
    export_file = ExportFile(path, with_ids)
    with progress(path, "checking") as advance:
        try:
            for line in read(path, advance):
                if isinstance(line, StoredObject):
                    export_file.add_object(line)
                else:
                    export_file.add_line(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"The file is damaged: {type(error).__name__} in a line."
            raise FileError(msg) from error
    if not export_file.workspace or not export_file.header:
        raise FileError("The file is damaged: it does not say what workspace it holds.")
    return export_file


@contextmanager
def progress(path: Path, label: str) -> Iterator[Any]:
    """Show a progress bar for a file, and yield the function that advances the bar."""
    length = path.stat().st_size if path.is_file() else 0
    with click.progressbar(length=length, label=f"{label} {path.name}", file=sys.stderr) as bar:
        yield bar.update


def claimed_elsewhere(claims: Iterable[Claim], workspace_id: str) -> list[Claim]:
    """Return the claims that another workspace holds here."""
    wanted_claims = {(row := claim.row(workspace_id)).pk: (claim, row.sk) for claim in claims}
    stored_claims = fetch(Key(ClaimRow, pk, sk) for pk, (_, sk) in wanted_claims.items())
    return [
        wanted_claims[row.pk][0]
        for row in stored_claims
        if isinstance(row, ClaimRow) and row.workspace_id != workspace_id
    ]
