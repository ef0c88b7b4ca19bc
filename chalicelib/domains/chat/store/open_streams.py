"""Count the open streams of a visitor in one row per visitor."""

from datetime import datetime, timedelta

from pynamodb.attributes import VersionAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError, RateLimitedError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.settings import settings
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.tables import ControlRow, JsonAttribute

MAX_OPEN = 10
# The timeout of the chat function, and so the maximum duration of a stream.
LONGEST = timedelta(minutes=6)
SORT_KEY = "-"


class OpenStreamsRow(ControlRow):
    """Open streams of a visitor. ``ends`` maps each request id to its latest end."""

    version = VersionAttribute()
    ends: JsonAttribute = JsonAttribute()


def find(visitor: str) -> OpenStreamsRow:
    """Return the open streams of a visitor, for ``begin``, or raise UnavailableError."""
    place = f"OPEN-STREAMS#{visitor}"
    row = OpenStreamsRow.find(place, SORT_KEY) or OpenStreamsRow(place, SORT_KEY, ends={})
    now = clock.now()
    # A function that crashes does not remove its stream, so an old one is dropped here.
    row.ends = {k: v for k, v in row.ends.items() if datetime.fromisoformat(v) > now}
    return row


def begin(visitor: str, *, request_id: str, open_streams: OpenStreamsRow | None = None) -> None:
    """Count a new stream, with the row ``open_streams`` if it was read shortly before.

    Raises RateLimitedError if the visitor has the maximum number of open streams, or
    UnavailableError.
    """
    max_open = round(MAX_OPEN * settings().rate_limit_scale)
    unused = [open_streams] if open_streams is not None else []

    def attempt() -> None:
        row, now = unused.pop() if unused else find(visitor), clock.now()
        if len(row.ends) >= max_open:
            msg = (
                f"Too many answers at the same time: the maximum is {max_open:,}. Wait until an "
                "answer is complete."
            )
            raise RateLimitedError(msg, headers={"Retry-After": "5"}, key="open_answers")
        row.ends[request_id] = (now + LONGEST).isoformat()
        _save(row)

    retry_on_conflict(attempt)


def end(visitor: str, *, request_id: str) -> None:
    """Remove a stream from the count, or raise UnavailableError."""

    def attempt() -> None:
        row = find(visitor)
        if row.ends.pop(request_id, None) is not None:
            _save(row)

    retry_on_conflict(attempt)


def _save(row: OpenStreamsRow) -> None:
    row.expires = clock.now() + LONGEST
    try:
        row.save()
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            raise ConcurrentUpdateError from None
        raise_failure(error)
