"""Store keys that callers of private bots send. A key is checked in one read."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core.errors import NotFoundError
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import tokens

SORT_KEY = "key"


class BotKeyRow(IdentityRow):
    """A bot's key, stored under the SHA-256 hash of its token. ``masked`` may be displayed."""

    key_id = UnicodeAttribute()
    name = UnicodeAttribute()
    masked = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    agent_id = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()


class BotKeyLookupRow(IdentityRow):
    """Maps a bot and a key id to the row of the key."""

    record_pk = UnicodeAttribute()


def row(token: str, **attributes: Any) -> BotKeyRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new key, for the caller to stage."""
    masked = f"{tokens.BOT_PREFIX}…{token[-4:]}"
    return BotKeyRow(_key_partition(token), SORT_KEY, masked=masked, **attributes)


def lookup(key: BotKeyRow) -> BotKeyLookupRow:
    """Return the lookup row of a key."""
    partition = _lookup_partition(key.workspace_id, agent_id=key.agent_id)
    return BotKeyLookupRow(partition, key.key_id, record_pk=key.pk)


def lock_name(agent_id: str) -> str:
    """Return the name of the lock row (``engine.locks``) for changes of a bot's keys."""
    return f"bot-keys#{agent_id}"


def _key_partition(token: str) -> str:
    return f"BOTKEY#{tokens.digest(token)}"


def _lookup_partition(workspace_id: str, *, agent_id: str) -> str:
    return f"W#{workspace_id}#BOTKEY#{agent_id}"


def read_all(workspace_id: str, *, agent_id: str) -> list[BotKeyRow]:
    """Return a bot's keys, in the order of their creation."""
    lookups = BotKeyLookupRow.partition(_lookup_partition(workspace_id, agent_id=agent_id))
    rows = fetch_of(BotKeyRow, ((lookup.record_pk, SORT_KEY) for lookup in lookups))
    return sorted(rows, key=lambda row: row.key_id)


def get(workspace_id: str, *, agent_id: str, key_id: str) -> BotKeyRow:
    """Return a bot's key by its id, or raise NotFoundError."""
    lookup = BotKeyLookupRow.find(_lookup_partition(workspace_id, agent_id=agent_id), key_id)
    key = lookup and BotKeyRow.find(lookup.record_pk, SORT_KEY)
    if not key:
        # The id may be a token pasted by mistake. Therefore the message does not repeat it.
        raise NotFoundError(
            "The bot has no key with this id. List the bot's keys to find valid ids.", key="bot_key"
        )
    return key


def is_key_of(agent_id: str, *, token: str) -> bool:
    """Return whether a token is a key of a bot, in one strongly consistent read."""
    # A token with a wrong prefix, length or checksum needs no read.
    if not tokens.well_formed(token, prefix=tokens.BOT_PREFIX):
        return False
    key = BotKeyRow.find(_key_partition(token), SORT_KEY)
    # A key of another bot is refused like an unknown one.
    return key is not None and bool(key.agent_id == agent_id)
