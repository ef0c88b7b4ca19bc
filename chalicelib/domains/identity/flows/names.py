"""Find the names of records, keys and connected apps by their ids.

A reference is a kind and an id, such as ``lead:<id>`` or ``key:<id>``.
"""

from collections.abc import Iterable
from typing import NamedTuple

from chalicelib.core.text import one_line
from chalicelib.domains.identity.store import api_keys, connections
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
    """The name of an API key or of a connected app. ``masked`` is its token for display."""

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
