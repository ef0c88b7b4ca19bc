"""Answers of outside services, kept for a while so that nobody asks for the same thing twice.

One cache for the whole platform, not one per workspace: it is for public data only. What belongs to
a workspace, or was made for it, is never put here.
"""

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
from chalicelib.engine.tables import MAX_ITEM_BYTES, ControlRow

MAX_BYTES = MAX_ITEM_BYTES - 1_000
"""Larger answers are not kept. The rest of a row is for its key and attribute names."""
SORT_KEY = "-"

J = TypeVar("J")
"""JSON: what ``json.loads`` returns. Anything else would come back as something else."""

_FAILURES = (PynamoDBException, UnavailableError)

log = logging.getLogger(__name__)


class CacheRow(ControlRow):
    """An answer, as JSON text."""

    body = UnicodeAttribute()


def cached(
    kind: str,
    key: str,
    ttl: timedelta,
    produce: Callable[[], J],
    *,
    ttl_of_none: timedelta | None = None,
) -> J:
    """Return what is kept, else what ``produce`` returns, which is kept from then on.

    A cache that fails costs a look-up, never the call. What ``produce`` raises is passed on.

    Args:
        kind: what is looked up and in which shape: a shape that changes is another kind.
        key: what the answer depends on, of any length.
        ttl: how long it is kept.
        produce: looks it up.
        ttl_of_none: how long None is kept, if not as long; look-ups that find nothing return it.
    """
    place = f"CACHE#{kind}#{hashlib.sha256(key.encode()).hexdigest()}"
    kept = _read(place)
    if kept is not None:
        return cast("J", json.loads(kept))
    value = produce()
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(body.encode()) <= MAX_BYTES:
        _write(place, body, ttl if value is not None or ttl_of_none is None else ttl_of_none)
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


def _write(place: str, body: str, ttl: timedelta) -> None:
    try:
        CacheRow(place, SORT_KEY, body=body, expires=clock.now() + ttl).save()
    except _FAILURES:
        log.warning("the cache could not be written", exc_info=True)
