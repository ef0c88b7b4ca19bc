"""The events that a workspace wants, so that units of work store no events without a receiver.

They are attributes of the workspace's row. A process remembers them from each time that it reads
the row, and reads it again if the last time is ``KNOWN_FOR`` ago. So a new subscription takes at
most that long to have an effect everywhere. If the row cannot be read, all events count as wanted:
the job that follows them then finds no receiver.
"""

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from pynamodb.attributes import ListAttribute, NumberAttribute
from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.tables import IdentityRow

KNOWN_FOR = timedelta(seconds=10)
MAX_KNOWN = 10_000
"""Workspaces that a process remembers."""
SORT_KEY = "workspace"
"""The sort key of a workspace's row."""

log = logging.getLogger(__name__)


class SubscriptionsRow(IdentityRow):
    """The part of a workspace's row with the types of events that it wants."""

    version = NumberAttribute()
    webhook_events: ListAttribute[Any] = ListAttribute(null=True)


Change = tuple[SubscriptionsRow, list[Action]]
"""The arguments of ``UnitOfWork.update``."""


class _Known(NamedTuple):
    types: frozenset[str]
    until: datetime


_known: OrderedDict[str, _Known] = OrderedDict()
_lock = Lock()


def wanted(workspace_id: str, types: Collection[str]) -> frozenset[str]:
    """Return those of these types that a workspace wants."""
    with _lock:
        known = _known.get(workspace_id)
    if known is not None and clock.now() < known.until:
        return known.types.intersection(types)
    try:
        row = SubscriptionsRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY)
    except (PynamoDBException, UnavailableError):
        log.warning("the wanted events could not be read", exc_info=True)
        return frozenset(types)
    every = row.webhook_events or () if row else ()
    learn(workspace_id, every)
    return frozenset(every).intersection(types)


def learn(workspace_id: str, types: Iterable[str]) -> None:
    """Remember the types that a workspace wants, as its row has just been read."""
    known = _Known(frozenset(types), clock.now() + KNOWN_FOR)
    with _lock:
        _known[workspace_id] = known
        _known.move_to_end(workspace_id)
        while len(_known) > MAX_KNOWN:
            _known.popitem(last=False)


def change_of_webhooks(workspace_id: str, types: Collection[str]) -> Change:
    """Return the update for the types that the webhooks of a workspace want from now on.

    Its unit of work calls ``forget`` after the commit.
    """
    actions: list[Action] = [
        SubscriptionsRow.webhook_events.set(sorted(types)),
        SubscriptionsRow.version.add(1),
    ]
    return SubscriptionsRow(f"WORKSPACE#{workspace_id}", SORT_KEY), actions


def forget() -> None:
    """Forget what is known, so that the next unit of work reads it."""
    with _lock:
        _known.clear()
