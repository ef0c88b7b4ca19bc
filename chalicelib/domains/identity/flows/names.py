"""Find the names of records, keys and connected apps by references such as ``lead:<id>``."""

from collections.abc import Iterable
from typing import NamedTuple

from chalicelib.core.text import one_line
from chalicelib.domains.identity.store import api_keys, connections
from chalicelib.engine.listing.registry import LISTINGS, NOUNS, listing_of
from chalicelib.engine.reading import BATCH_GET_KEYS, Key, fetch
from chalicelib.engine.tables import Record
from chalicelib.lib import tokens

MAX_NAME = 300  # characters
# Records whose names are read in one request. Each costs about one read unit.
MAX_RECORDS = BATCH_GET_KEYS
# Attributes of rows that may name a record, the best one first.
_NAMES = (
    *("name", "title", "client_name", "email", "client_email", "phone", "client_phone"),
    *("url", "words"),
)
# Attributes with the id of the record that a record is a part of.
_WITHIN = ("project_id", "agent_id")


class RecordName(NamedTuple):
    """The name of a record that exists."""

    name: str | None  # None if nothing names the record
    parent_id: str | None  # the site or bot that the record belongs to


class KeyName(NamedTuple):
    """The name of an API key or of a connected app."""

    name: str
    masked: str  # its token for display
    is_app: bool


def read_record_names(workspace_id: str, references: Iterable[str]) -> dict[str, RecordName]:
    """Return the names of the first ``MAX_RECORDS`` records that exist, by reference."""
    keys: dict[str, Key] = {}
    for reference in references:
        kind, _, record_id = reference.partition(":")
        # References of other kinds are left out.
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
