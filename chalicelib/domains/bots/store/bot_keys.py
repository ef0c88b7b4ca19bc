"""Keys of private bots: whoever talks to one sends a key of its own, checked in one read."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core.errors import NotFoundError
from chalicelib.engine.connection import reaching
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import tokens

SORT_KEY = "key"


class BotKeyRow(IdentityRow):
    """A bot's key, under the SHA-256 of its token; ``masked`` is what may be displayed of it."""

    key_id = UnicodeAttribute()
    name = UnicodeAttribute()
    masked = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    agent_id = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()


class BotKeyLookupRow(IdentityRow):
    """Where a bot's key is, by the bot and the key's id."""

    record_pk = UnicodeAttribute()


def row(token: str, **attributes: Any) -> BotKeyRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new key, to be staged."""
    masked = f"{tokens.BOT_PREFIX}…{token[-4:]}"
    return BotKeyRow(_place(token), SORT_KEY, masked=masked, **attributes)


def lookup(key: BotKeyRow) -> BotKeyLookupRow:
    """Return the row that leads to a key from its bot."""
    place = _of_agent(key.workspace_id, key.agent_id)
    return BotKeyLookupRow(place, key.key_id, record_pk=key.pk)


def lock_name(agent_id: str) -> str:
    """Return the lock row (``engine.locks``) of changing which keys a bot has."""
    return f"bot-keys#{agent_id}"


def _place(token: str) -> str:
    return f"BOTKEY#{tokens.digest(token)}"


def _of_agent(workspace_id: str, agent_id: str) -> str:
    return f"W#{workspace_id}#BOTKEY#{agent_id}"


def of_agent(workspace_id: str, agent_id: str) -> list[BotKeyRow]:
    """Return a bot's keys, in the order of their creation."""
    places = BotKeyLookupRow.partition(_of_agent(workspace_id, agent_id))
    with reaching():
        rows = list(
            BotKeyRow.batch_get([(p.record_pk, SORT_KEY) for p in places], consistent_read=True)
        )
    return sorted(rows, key=lambda row: row.key_id)


def get(workspace_id: str, agent_id: str, key_id: str) -> BotKeyRow:
    """Return a bot's key by its id.

    Raises:
        NotFoundError: the bot has none of this id.
    """
    place = BotKeyLookupRow.find(_of_agent(workspace_id, agent_id), key_id)
    key = place and BotKeyRow.find(place.record_pk, SORT_KEY)
    if not key:
        # What was sent may be a token pasted by mistake: it is not repeated.
        raise NotFoundError("The bot has no key with this id. List the bot's keys for valid ids.")
    return key


def is_key_of(agent_id: str, token: str) -> bool:
    """Whether a token is a key of a bot, in one consistent read.

    One with a wrong prefix, length or checksum costs no read at all.
    """
    if not tokens.well_formed(token, tokens.BOT_PREFIX):
        return False
    key = BotKeyRow.find(_place(token), SORT_KEY)
    return key is not None and bool(key.agent_id == agent_id)
