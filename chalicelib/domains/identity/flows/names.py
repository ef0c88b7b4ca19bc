"""Find the names of records, keys, apps and actors by their ids.

Names of what the audit log refers to: records, accounts, keys and connected apps.

A reference is a kind and an id, such as ``lead:<id>`` or ``key:<id>``.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, Self, get_args

from pydantic import Field

from chalicelib.core.text import one_line
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.identity.store import api_keys, connections
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine.listing.registry import LISTINGS, NOUNS, listing_of
from chalicelib.engine.reading import BATCH_GET_KEYS, Key, fetch
from chalicelib.engine.tables import Record
from chalicelib.lib import tokens

MAX_NAME = 300
"""Longest name in characters."""
MAX_RECORDS = BATCH_GET_KEYS
"""Maximum number of records whose names are read, in one request.

Each record costs about one read unit.
"""
_NAMES = (
    *("name", "title", "client_name", "email", "client_email", "phone", "client_phone"),
    *("url", "words"),
)
"""Attributes of rows that may name a record, the best one first."""
_WITHIN = ("project_id", "agent_id")
"""Attributes with the id of the record that a record is a part of."""


class RecordName(NamedTuple):
    """The name of a record that exists. It is None if nothing names the record.

    ``parent_id`` is the id of the site or bot that the record belongs to.
    """

    name: str | None
    parent_id: str | None


class KeyName(NamedTuple):
    """The name of an API key or of a connected app.

    ``masked`` is its token for display.
    """

    name: str
    masked: str
    is_app: bool


def read_record_names(workspace_id: str, references: Iterable[str]) -> dict[str, RecordName]:
    """Return the names of records that exist, by reference. Other kinds are left out.

    It names the first ``MAX_RECORDS`` records, in one request.
    """
    keys: dict[str, Key] = {}
    for reference in references:
        kind, _, record_id = reference.partition(":")
        if kind.upper() in NOUNS and len(keys) < MAX_RECORDS:
            listing = listing_of(kind.upper())
            keys[reference] = Key(listing.row, listing.partition(workspace_id), record_id)
    return {
        f"{LISTINGS[type(row)].noun.lower()}:{row.id}": RecordName(_name(row), _parent_id(row))
        for row in fetch(keys.values())
        if isinstance(row, Record)
    }


def read_key_names(workspace_id: str, ids: Iterable[str]) -> dict[str, KeyName]:
    """Return the names of the workspace's keys and connected apps with these ids, by id."""
    key_ids = set(ids)
    keys = api_keys.read_by_id(workspace_id, key_ids)
    apps = connections.read_by_id(workspace_id, key_ids - keys.keys())
    masked = f"{tokens.ACCESS_PREFIX}…"
    return {
        **{n: KeyName(key.name, key.masked, is_app=False) for n, key in keys.items()},
        **{n: KeyName(app.client_name, masked, is_app=True) for n, app in apps.items()},
    }


def _name(row: Record) -> str | None:
    values = (getattr(row, attribute, None) for attribute in _NAMES)
    name = next((value for value in values if value), None)
    return one_line(name, MAX_NAME) if name else None


def _parent_id(row: Record) -> str | None:
    return next(filter(None, (getattr(row, attribute, None) for attribute in _WITHIN)), None)


ActorKind = Literal["account", "operator", "visitor", "job"]
KINDS: tuple[ActorKind, ...] = get_args(ActorKind)


class Actor(Wire):
    """Actor of a change."""

    kind: ActorKind = Field(description="account, operator, visitor or job.")
    id: str | None = Field(description="Account id, or null.")
    name: str | None = Field(description="The account's name, or null.")
    email: str | None = Field(description="The account's e-mail address, or null.")

    @classmethod
    def from_reference(cls, actor: str, people: Mapping[str, AccountRow]) -> Self:
        """Return the wire form of an actor.

        ``people`` are accounts by id.
        """
        kind, person = actor_kind(actor), people.get(actor)
        return cls(
            kind=kind,
            id=actor if kind == "account" else None,
            name=person.name if person else None,
            email=person.email if person else None,
        )


def actor_kind(actor: str) -> ActorKind:
    """Return the kind of an actor.

    An account is stored as its id without a prefix.
    """
    name = actor.partition(":")[0]
    return next((kind for kind in KINDS if kind == name), "account")
