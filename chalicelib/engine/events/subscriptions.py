"""The events that a workspace wants, so that units of work store no events without a receiver.

One row per workspace has the wanted types. Each process reads it at most every ``KNOWN_FOR``, so a
new subscription takes that long to have an effect everywhere. If the row cannot be read, all events
count as wanted: the job that follows them then finds no receiver.
"""

import logging
from collections import OrderedDict
from collections.abc import Collection
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from pynamodb.attributes import ListAttribute
from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.tables import ControlRow

KNOWN_FOR = timedelta(seconds=10)
MAX_KNOWN = 10_000
"""Workspaces whose wishes a process remembers."""
SORT_KEY = "-"

log = logging.getLogger(__name__)


class SubscriptionsRow(ControlRow):
    """The types of events that the webhooks of a workspace want. Without a row they want none."""

    webhooks: ListAttribute[Any] = ListAttribute(default=list)


Change = tuple[SubscriptionsRow, list[Action], Condition]
"""The arguments of ``UnitOfWork.update``."""


class _Known(NamedTuple):
    types: frozenset[str]
    until: datetime


_known: OrderedDict[str, _Known] = OrderedDict()
_lock = Lock()


def wanted(workspace_id: str, types: Collection[str]) -> frozenset[str]:
    """Return those of these types that a workspace wants."""
    now = clock.now()
    with _lock:
        known = _known.get(workspace_id)
    if known is None or known.until <= now:
        try:
            row = SubscriptionsRow.find(_place(workspace_id), SORT_KEY)
        except (PynamoDBException, UnavailableError):
            log.warning("the wanted events could not be read", exc_info=True)
            return frozenset(types)
        known = _Known(frozenset(row.webhooks if row else ()), now + KNOWN_FOR)
        with _lock:
            _known[workspace_id] = known
            while len(_known) > MAX_KNOWN:
                _known.popitem(last=False)
    return known.types.intersection(types)


def change_of_webhooks(workspace_id: str, types: Collection[str]) -> Change:
    """Return the update for the types that the webhooks of a workspace want from now on.

    Its unit of work calls ``forget`` after the commit.
    """
    always = SubscriptionsRow.pk.exists() | SubscriptionsRow.pk.does_not_exist()
    action = SubscriptionsRow.webhooks.set(sorted(types))
    return SubscriptionsRow(_place(workspace_id), SORT_KEY), [action], always


def forget() -> None:
    """Forget what is known, so that the next unit of work reads it."""
    with _lock:
        _known.clear()


def _place(workspace_id: str) -> str:
    return f"W#{workspace_id}#EVENTS"
