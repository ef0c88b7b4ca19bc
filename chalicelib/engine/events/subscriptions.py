"""What every request may need of a workspace's row: wanted events, and whether it is open.

Units of work store no events without a receiver, and visitors see nothing of a workspace that is
suspended or closed.
"""

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import PynamoDBException
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.events import EVENT_TYPES, MESSAGE_KINDS, VISITOR_EVENTS
from chalicelib.core.settings import settings
from chalicelib.engine.tables import IdentityRow

# A process caches them, so a new subscription takes at most this long to have an effect.
KNOWN_FOR = timedelta(seconds=10)
MAX_KNOWN = 10_000  # workspaces
SORT_KEY = "workspace"

_OPT_IN = frozenset(name for name, kind in MESSAGE_KINDS.items() if kind.opt_in)

log = logging.getLogger(__name__)


class SubscriptionsRow(IdentityRow):
    """The part of a workspace's row with the events that it wants."""

    version = NumberAttribute()
    webhook_events: ListAttribute[Any] = ListAttribute(null=True)  # types of events
    # Kinds of messages that no member wants, so that a kind which the service adds later is wanted.
    # None while no member has made a choice: the owner then gets all kinds by mail that are not
    # opt-in.
    unwanted_messages: ListAttribute[Any] = ListAttribute(null=True)
    halt = UnicodeAttribute(null=True)  # ``core.plans.Halt``


Change = tuple[SubscriptionsRow, list[Action]]  # the arguments of UnitOfWork.update


class SubscribedTypes(NamedTuple):
    """Types of events for webhooks, for messages to members, and for e-mail to clients."""

    by_webhooks: frozenset[str]
    by_people: frozenset[str]
    by_visitors: frozenset[str]


class _Known(NamedTuple):
    types: SubscribedTypes
    until: datetime
    halt: str | None


_known: OrderedDict[str, _Known] = OrderedDict()
_lock = Lock()


def read_subscribed(workspace_id: str) -> SubscribedTypes:
    """Return the types of events to which a workspace subscribes."""
    subscription = _find_known(workspace_id)
    if subscription is not None:
        return subscription.types
    try:
        row = SubscriptionsRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY)
    except (PynamoDBException, UnavailableError):
        # All events count as subscribed. The job that follows finds whether there is a receiver.
        log.warning("the wanted events could not be read", exc_info=True)
        return SubscribedTypes(frozenset(EVENT_TYPES), _message_types(()), VISITOR_EVENTS)
    return _learn_row(workspace_id, row)


def halt_of(workspace_id: str) -> str | None:
    """Return why a workspace serves nobody, if it is so. It may be ten seconds old.

    Raises UnavailableError if it cannot be read.
    """
    known = _find_known(workspace_id)
    if known is None:
        _learn_row(workspace_id, SubscriptionsRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY))
        known = _known.get(workspace_id)
    return known.halt if known else None


def _find_known(workspace_id: str) -> _Known | None:
    with _lock:
        known = _known.get(workspace_id)
    return known if known is not None and clock.now() < known.until else None


def _learn_row(workspace_id: str, row: SubscriptionsRow | None) -> SubscribedTypes:
    if row is None:
        return learn(workspace_id, (), MESSAGE_KINDS)
    return learn(workspace_id, row.webhook_events, row.unwanted_messages, row.halt)


def learn(
    workspace_id: str,
    types: Iterable[str] | None,
    unwanted: Collection[str] | None,
    halt: str | None = None,
) -> SubscribedTypes:
    """Cache what is wanted of a workspace's row, which has just been read."""
    has_mail = settings().mail != "off"
    if unwanted is None:
        unwanted = _OPT_IN if has_mail else MESSAGE_KINDS
    wants = SubscribedTypes(
        frozenset(types or ()),
        _message_types(unwanted),
        VISITOR_EVENTS if settings().tells_clients else frozenset(),
    )
    with _lock:
        _known[workspace_id] = _Known(wants, clock.now() + KNOWN_FOR, halt)
        _known.move_to_end(workspace_id)
        while len(_known) > MAX_KNOWN:
            _known.popitem(last=False)
    return wants


def _message_types(unwanted: Collection[str]) -> frozenset[str]:
    return frozenset(kind.type for name, kind in MESSAGE_KINDS.items() if name not in unwanted)


def change_of_webhooks(workspace_id: str, types: Collection[str]) -> Change:
    """Return the update for the types of all webhooks. Call ``forget`` after the commit."""
    return _change(workspace_id, SubscriptionsRow.webhook_events.set(sorted(types)))


def change_of_people(workspace_id: str, unwanted: Collection[str]) -> Change:
    """Return the update for messages no member wants. Call ``forget`` after the commit."""
    return _change(workspace_id, SubscriptionsRow.unwanted_messages.set(sorted(unwanted)))


def _change(workspace_id: str, action: Action) -> Change:
    # A writer that has read the row, and saves all its fields, must conflict with this change.
    actions: list[Action] = [action, SubscriptionsRow.version.add(1)]
    return SubscriptionsRow(f"WORKSPACE#{workspace_id}", SORT_KEY), actions


def forget() -> None:
    """Forget what is known, so that the next unit of work reads it."""
    with _lock:
        _known.clear()
