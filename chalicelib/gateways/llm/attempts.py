"""What every provider's adapter does alike: it tries again, keeps its deadline, and is cancelled.

Failures before the first token are worth another attempt; later ones are not, because text is out
already.
"""

import random
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from threading import Timer

from chalicelib.core import retry
from chalicelib.core.deadline import Deadline
from chalicelib.gateways.llm import Event, ModelError
from chalicelib.gateways.llm.cancellation import Cancellation

PAUSES = (0.5, 1.5)
"""Seconds before the second and the third attempt, jittered by half."""
LONGEST_PAUSE = 5.0
"""A provider that asks to wait longer is not asked again."""

Stream = Generator[Event, None, None]


def stream(
    attempt: Callable[[Cancellation], Stream], deadline: Deadline, asked: Cancellation | None
) -> Stream:
    """Yield what an attempt says; one that fails before its first piece is made again.

    Raises:
        ModelError: as the last attempt did; ``cancelled`` once it is.
    """
    cancellation = asked or Cancellation()
    for pause in (*PAUSES, None):
        spoken = False
        try:
            _check(cancellation)
            with closing(attempt(cancellation)) as pieces:
                for piece in pieces:
                    spoken = True
                    yield piece
        except ModelError as error:
            if cancellation.cancelled:
                raise _cancelled(before_first_token=not spoken) from None
            error.before_first_token = not spoken
            wait = _pause(error, pause, deadline)
            if wait is None:
                raise
            (asked.pause if asked else retry.sleep)(wait)
        else:
            return
        finally:
            cancellation.release()


def _check(cancellation: Cancellation) -> None:
    if cancellation.cancelled:
        raise _cancelled(before_first_token=True)


def _cancelled(*, before_first_token: bool) -> ModelError:
    reason = "The stream was cancelled."
    return ModelError("cancelled", reason, before_first_token=before_first_token)


def _pause(error: ModelError, pause: float | None, deadline: Deadline) -> float | None:
    """Return how long to wait before asking again, or None if that is of no use."""
    if pause is None or not error.before_first_token:
        return None
    if error.kind not in {"unavailable", "rate_limited"}:
        return None
    wait = max(random.uniform(pause / 2, pause), error.retry_after or 0)  # noqa: S311  jitter is no secret
    return wait if wait <= LONGEST_PAUSE and wait < deadline.left() else None


@contextmanager
def until(deadline: Deadline, cancellation: Cancellation) -> Iterator[None]:
    """End all reading at the deadline, even one that waits for the next byte.

    A socket's timeout alone would start again with every byte.
    """
    timer = Timer(deadline.left(), cancellation.shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
