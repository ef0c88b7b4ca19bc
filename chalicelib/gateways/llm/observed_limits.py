"""Limits of models that their servers have reported in the last ten minutes (ADR 68).

They expire, because a server may be updated, and because one odd response must not take a feature
from all bots of a model for ever.
"""

import logging
from datetime import datetime, timedelta
from threading import Lock

from chalicelib.core import clock

# Parts of a request that a server may refuse; ``max_tokens`` then gets its newer name.
OPTIONAL_PARTS = (
    "response_format",
    "stream_options",
    "max_tokens",
    "tool_choice",
    "tools",
    "stream",
)
MEMORY = timedelta(minutes=10)
MAX_ENTRIES = 1_000
# The limit whose value is the model's context in tokens. Others are refused parts of requests.
CONTEXT = "context"

_lock = Lock()
_limits: dict[tuple[str, str], tuple[datetime, int]] = {}

log = logging.getLogger(__name__)


def refused_parts(model: str) -> frozenset[str]:
    """Return the parts of requests that the server of a model refuses."""
    return frozenset(part for part in OPTIONAL_PARTS if _current(model, limit=part) is not None)


def context_tokens(model: str) -> int | None:
    """Return the context of a model as its server has reported it, in tokens."""
    return _current(model, limit=CONTEXT)


def _current(model: str, *, limit: str) -> int | None:
    with _lock:
        observed = _limits.get((model, limit))
    return observed[1] if observed and observed[0] > clock.now() else None


def remember_refused(model: str, *, part: str) -> None:
    """Leave a part out of the requests to a model."""
    _remember(model, limit=part, value=0)


def remember_context(model: str, tokens: int) -> None:
    """Send no more than this many tokens to a model, with the answer."""
    _remember(model, limit=CONTEXT, value=tokens)


def _remember(model: str, *, limit: str, value: int) -> None:
    now = clock.now()
    with _lock:
        for key in [key for key, (until, _) in _limits.items() if until <= now]:
            del _limits[key]
        # A caller could name any number of models, so the oldest limits are removed.
        if len(_limits) >= MAX_ENTRIES:
            _limits.pop(next(iter(_limits)))
        _limits[model, limit] = now + MEMORY, value
    log.warning(
        "a model's limit was observed", extra={"model": model, "limit": limit, "value": value}
    )


def forget() -> None:
    """Forget all limits."""
    with _lock:
        _limits.clear()
