"""Store actions that a bot proposes to a visitor, and the free times that the bot has named.

The newest proposal of a dialog replaces earlier ones. Nothing writes to a proposal that expires or
is replaced: both follow from the rows (``state_of``).
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Self, cast

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.chat.store.dialogs import RETENTION
from chalicelib.engine.reading import Cost, Key, Partition
from chalicelib.engine.tables import ConversationRow, JsonAttribute
from chalicelib.engine.unit import UnitOfWork

Kind = Literal["booking", "order"]
State = Literal["open", "awaiting_mail", "done", "cancelled", "failed", "expired", "replaced"]
Decided = Literal["awaiting_mail", "done", "cancelled", "failed"]
OPEN: Final = "open"
AWAITING: Final = "awaiting_mail"  # a confirmed booking whose link in an e-mail has not been opened
OFFERED_FOR = timedelta(hours=1)  # A bot can propose a free time that it has named for this long.
MAX_OFFERED = 50  # Free times of a dialog that a bot can propose. It has to find older times again.
# Proposals of a dialog whose states the model receives. Only the newest one can be open.
MAX_READ = 3

# The sort key of ``LatestRow``, after the keys of proposals, which begin with a digit.
_LATEST = "~"
# Always holds. An update without a condition requires that the row exists.
_UPSERT = ConversationRow.pk.exists() | ConversationRow.pk.does_not_exist()
_ID = re.compile(r"([0-9A-Z]{26})-([0-9A-Z]{26})-([0-9]{1,9})-([0-9])")


class ProposalId(NamedTuple):
    """Id of a proposal in a bot's dialog, with the answer's number and a number from 1."""

    agent_id: str
    dialog_id: str
    message: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _ID.fullmatch(text)
        return cls(match[1], match[2], int(match[3]), int(match[4])) if match else None

    def __str__(self) -> str:
        return f"{self.agent_id}-{self.dialog_id}-{self.message}-{self.number}"

    @property
    def sort_key(self) -> str:
        return f"{self.message:09d}-{self.number}"


class OfferedSlot(NamedTuple):
    """A free time that the bot has named, described to a model."""

    id: str
    service_id: str
    resource_id: str
    start: int  # epoch milliseconds
    service: str
    local: str
    staff: str


class ProposalRow(ConversationRow):
    """A proposal."""

    agent_id = UnicodeAttribute()
    kind = UnicodeAttribute()
    arguments: JsonAttribute = JsonAttribute()  # of its operation
    card: JsonAttribute = JsonAttribute()  # what the visitor sees
    state = UnicodeAttribute(default=OPEN)
    created_at = UTCDateTimeAttribute()
    ends_at = UTCDateTimeAttribute()
    result: JsonAttribute = JsonAttribute(null=True)  # of the confirmation, repeated to later ones

    @property
    def id(self) -> ProposalId:
        message, number = self.sk.split("-")
        return ProposalId(self.agent_id, self.pk.split("#")[3], int(message), int(number))


class LatestRow(ConversationRow):
    """The newest proposal of a dialog, and the free times that its bot has named."""

    proposal = UnicodeAttribute(null=True)
    offered: JsonAttribute = JsonAttribute(null=True)
    offered_at = UTCDateTimeAttribute(null=True)


class Actions(NamedTuple):
    """Free times and proposals of a dialog, as an answer needs them. The newest comes first."""

    offered_slots: tuple[OfferedSlot, ...] = ()
    proposals: tuple[ProposalRow, ...] = ()
    latest: str | None = None


def find_actions(workspace_id: str, *, dialog_id: str) -> Actions:
    """Return the offered times and the newest proposals of a dialog, in one request."""
    partition = Partition(_partition(workspace_id, dialog_id=dialog_id), Cost(), ProposalRow)
    slots: tuple[OfferedSlot, ...] = ()
    proposals, latest = [], None
    # One more row is read, because the newest row may be the one of the offered times.
    for item in partition.items(MAX_READ + 1, scan_index_forward=False, consistent_read=True):
        if item["sk"]["S"] == _LATEST:
            row = LatestRow.from_raw_data(item)
            slots, latest = offered_slots(row), row.proposal
        else:
            proposals.append(ProposalRow.from_raw_data(item))
    return Actions(slots, tuple(proposals[:MAX_READ]), latest)


def read_all(workspace_id: str, *, dialog_id: str) -> Iterator[tuple[ProposalRow, State]]:
    """Yield all proposals of a dialog, oldest first, with their states."""
    partition = Partition(_partition(workspace_id, dialog_id=dialog_id), Cost(), ProposalRow)
    items = list(partition.items(consistent_read=True))
    latest = None
    if items and items[-1]["sk"]["S"] == _LATEST:
        latest = LatestRow.from_raw_data(items.pop()).proposal
    for item in items:
        row = ProposalRow.from_raw_data(item)
        yield row, state_of(row, latest)


def offered_slots(row: LatestRow | None) -> tuple[OfferedSlot, ...]:
    """Return the free times in a row, unless they were named too long ago."""
    if row is None or row.offered_at is None or row.offered_at + OFFERED_FOR < clock.now():
        return ()
    return tuple(OfferedSlot(*slot) for slot in row.offered or ())


def state_of(row: ProposalRow, latest: str | None) -> State:
    """Return the state of a proposal. ``latest`` is the newest proposal of its dialog."""
    if row.state == AWAITING and row.result:
        ends_at = datetime.fromisoformat(row.result["expiresAt"])
        return AWAITING if clock.now() < ends_at else "expired"
    if row.state != OPEN:
        return cast("State", row.state)
    if latest != str(row.id):
        return "replaced"
    return "open" if clock.now() < row.ends_at else "expired"


def key(workspace_id: str, proposal: ProposalId) -> Key:
    """Return a proposal's key, for ``Rows``."""
    return Key(
        ProposalRow, _partition(workspace_id, dialog_id=proposal.dialog_id), proposal.sort_key
    )


def latest_key(workspace_id: str, *, dialog_id: str) -> Key:
    """Return the key of a dialog's ``LatestRow``, for ``Rows``."""
    return Key(LatestRow, _partition(workspace_id, dialog_id=dialog_id), _LATEST)


def keep_offered(workspace_id: str, *, dialog_id: str, slots: tuple[OfferedSlot, ...]) -> None:
    """Store the free times that a bot has named, with a new expiry time.

    Raises UnavailableError if the database is unavailable.
    """
    now, unit = clock.now(), UnitOfWork(workspace_id)
    unit.update(
        LatestRow(_partition(workspace_id, dialog_id=dialog_id), _LATEST),
        [
            LatestRow.offered.set([list(slot) for slot in slots]),
            LatestRow.offered_at.set(now),
            LatestRow.expires.set(now + RETENTION),
        ],
        _UPSERT,
    )
    unit.commit()


def stage_new(  # noqa: PLR0913  the fields of a proposal
    unit: UnitOfWork,
    proposal: ProposalId,
    kind: Kind,
    *,
    arguments: dict[str, Any],
    card: dict[str, Any],
    ends_at: datetime,
) -> ProposalRow:
    """Stage a proposal that replaces the open one of its dialog, if there is one."""
    now = clock.now()
    row = ProposalRow(
        _partition(unit.tenant, dialog_id=proposal.dialog_id),
        proposal.sort_key,
        agent_id=proposal.agent_id,
        kind=kind,
        arguments=arguments,
        card=card,
        created_at=now,
        ends_at=ends_at,
        expires=now + RETENTION,
    )
    unit.create(row)
    unit.update(
        LatestRow(row.pk, _LATEST),
        [LatestRow.proposal.set(str(proposal)), LatestRow.expires.set(now + RETENTION)],
        _UPSERT,
    )
    return row


def stage_decision(
    unit: UnitOfWork,
    row: ProposalRow,
    state: Decided,
    result: dict[str, Any] | None = None,
    *,
    was: State = OPEN,
) -> None:
    """Stage the end of a proposal. An open one must still be the newest one of its dialog."""
    actions: list[Action] = [ProposalRow.state.set(state)]
    if result is not None:
        actions.append(ProposalRow.result.set(result))
    # Of several decisions at the same time one commits. The others run again and find its result.
    conflict_error = ConcurrentUpdateError()
    unit.update(row, actions, ProposalRow.state == was, on_conflict=conflict_error)
    if was == OPEN:
        newest = LatestRow.proposal == str(row.id)
        # A newer proposal may have replaced this one since it was read.
        unit.require(LatestRow(row.pk, _LATEST), newest, on_conflict=conflict_error)


def keys(workspace_id: str, *, dialog_id: str) -> list[ConversationRow]:
    """Return the rows of a dialog with keys only, for a unit of work to delete."""
    pk = _partition(workspace_id, dialog_id=dialog_id)
    items = Partition(pk, Cost(), ProposalRow).items(attributes_to_get=["sk"], consistent_read=True)
    return [
        LatestRow(pk, _LATEST) if item["sk"]["S"] == _LATEST else ProposalRow(pk, item["sk"]["S"])
        for item in items
    ]


def _partition(workspace_id: str, *, dialog_id: str) -> str:
    return f"W#{workspace_id}#DIALOG#{dialog_id}#ACTIONS"
