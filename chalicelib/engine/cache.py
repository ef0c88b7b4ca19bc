"""A cache of responses from outside services, shared by all workspaces: public data only."""

import hashlib
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar, cast

from pynamodb.attributes import UnicodeAttribute
from pynamodb.exceptions import PynamoDBException

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.item_sizes import MAX_ITEM_BYTES
from chalicelib.engine.tables import ControlRow

MAX_BYTES = MAX_ITEM_BYTES - 1_000  # The rest of a row is for its key and names.
SORT_KEY = "-"

J = TypeVar("J")  # JSON, as json.loads returns it. Other types would change in the cache.

_FAILURES = (PynamoDBException, UnavailableError)

log = logging.getLogger(__name__)


class CacheRow(ControlRow):
    body = UnicodeAttribute()


def cached(
    kind: str,
    *,
    key: str,
    ttl: timedelta | Callable[[J], timedelta],
    produce: Callable[[], J],
    ttl_of_none: timedelta | None = None,
) -> J:
    """Return the cached response, or the result of ``produce``, also if the cache fails.

    ``kind`` names the response and its shape: use another one when the shape changes. ``key`` is
    what the response depends on, of any length. ``ttl_of_none`` is for None, the result of an
    empty search.
    """
    place = f"CACHE#{kind}#{hashlib.sha256(key.encode()).hexdigest()}"
    stored_json = _read(place)
    if stored_json is not None:
        return cast("J", json.loads(stored_json))
    value = produce()
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(body.encode()) <= MAX_BYTES:
        life = ttl if value is not None or ttl_of_none is None else ttl_of_none
        _write(place, body=body, ttl=life if isinstance(life, timedelta) else life(value))
    return value


def _read(place: str) -> str | None:
    try:
        row = CacheRow.get(place, SORT_KEY)
    except CacheRow.DoesNotExist:
        return None
    except _FAILURES:
        log.warning("the cache could not be read", exc_info=True)
        return None
    # DynamoDB deletes expired rows up to two days late.
    return row.body if row.expires is not None and row.expires > clock.now() else None


def _write(place: str, *, body: str, ttl: timedelta) -> None:
    try:
        CacheRow(place, SORT_KEY, body=body, expires=clock.now() + ttl).save()
    except _FAILURES:
        log.warning("the cache could not be written", exc_info=True)
