"""Retries and the deadline of a model's stream, shared by the adapters of all providers."""

import random
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from threading import Timer
from typing import TypeVar

from chalicelib.core import retry
from chalicelib.core.deadline import Deadline
from chalicelib.gateways.llm import Event, ModelError, Reasoning
from chalicelib.gateways.llm.answers import Answer
from chalicelib.gateways.llm.cancellation import Cancellation

# Seconds before the second and the third attempt. The shortest pauses are half.
LONGEST_PAUSES = (0.5, 1.5)
MAX_RETRY_AFTER = 5.0  # seconds that a provider may request to wait before another attempt

READ_SECONDS = 60.0  # the longest silence between two events of an answer
USAGE_SECONDS = 5.0  # the longest wait for the usage after the answer's end

Stream = Generator[Event, None, None]
T = TypeVar("T")


def stream(
    attempt: Callable[[Cancellation], Stream],
    deadline: Deadline,
    callers_cancellation: Cancellation | None,
) -> Stream:
    """Yield the events of an attempt. Retry an attempt that fails before its first text or call.

    Raises the ModelError of the last attempt, or one of kind ``cancelled``.
    """
    cancellation = callers_cancellation or Cancellation()
    for pause in (*LONGEST_PAUSES, None):
        started = False
        try:
            _raise_if_cancelled(cancellation)
            with closing(attempt(cancellation)) as events:
                for event in events:
                    # Reasoning is not shown to the visitor, so an answer that has only begun to
                    # reason is retried.
                    started = started or not isinstance(event, Reasoning)
                    yield event
        except ModelError as error:
            if cancellation.cancelled:
                raise _cancelled(before_first_token=not started) from None
            # A later failure is not retried, because the caller has already received text.
            error.before_first_token = not started
            wait = _retry_delay(error, pause, deadline)
            if wait is None:
                raise
            # The caller's own cancellation can end the pause early.
            (callers_cancellation.pause if callers_cancellation else retry.sleep)(wait)
        else:
            return
        finally:
            # The connection returns to the pool and may serve another request, which must not be
            # cancelled.
            cancellation.release()


def _raise_if_cancelled(cancellation: Cancellation) -> None:
    if cancellation.cancelled:
        raise _cancelled(before_first_token=True)


def _cancelled(*, before_first_token: bool) -> ModelError:
    reason = "The stream was cancelled."
    return ModelError("cancelled", reason, before_first_token=before_first_token)


def _retry_delay(error: ModelError, pause: float | None, deadline: Deadline) -> float | None:
    if pause is None or not error.before_first_token:
        return None
    if error.kind not in {"unavailable", "rate_limited"}:
        return None
    # A random pause keeps many bots from sending their retries in the same moment.
    wait = max(random.uniform(pause / 2, pause), error.retry_after or 0)  # noqa: S311  jitter needs no secure randomness
    return wait if wait <= MAX_RETRY_AFTER and wait < deadline.seconds_left() else None


@contextmanager
def enforce_deadline(deadline: Deadline, cancellation: Cancellation) -> Iterator[None]:
    """Close the connections at the deadline, even while a read waits for data."""
    # A socket's timeout is not enough, because it starts again whenever data arrives.
    timer = Timer(deadline.seconds_left(), cancellation.shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def paced(
    events: Iterable[T], answer: Answer, cancellation: Cancellation, read_seconds: float
) -> Iterator[T]:
    """Yield the events of an answer, and limit the silence between them."""
    has_ended = False
    with ExitStack() as stack:
        for event in events:
            yield event
            if not answer.reason:
                # Until the first event only the deadline counts, because a reasoning model may be
                # silent for minutes.
                cancellation.limit_reads(read_seconds)
            elif not has_ended:
                # After the answer's end, no more than the usage is expected.
                has_ended = True
                stack.enter_context(enforce_deadline(Deadline(USAGE_SECONDS), cancellation))
