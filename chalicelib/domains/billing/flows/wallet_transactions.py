"""Change a wallet exactly once, whatever becomes of the responses of the database (ADR 23)."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import NamedTuple, TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import AppError, UnavailableError
from chalicelib.core.retry import RetryPolicy, backoff
from chalicelib.domains.billing.store.ledger import HoldClosedError, HoldTakenError
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork, run_unit

SECONDS = 15.0  # A step that takes longer, with its retries, ends with a 503.
# Writers contend for one wallet, so retries continue, with jitter, until the deadline.
RETRY_POLICY = RetryPolicy(attempts=None, longest_pause=1.5)

T = TypeVar("T")


class Payer(NamedTuple):
    """The workspace of a unit of work, and the account whose wallet it changes, if any."""

    workspace_id: str
    account_id: str | None


def carry_out(
    payer: Payer, staged: Callable[[UnitOfWork], T], find: Callable[[], T | None], seconds: float
) -> T:
    """Run a unit of work that changes a wallet, exactly once, and return its result.

    ``find`` returns the result if the unit of work was carried out, from a row that it has written.
    It is asked after a lost response, ``HoldTakenError`` and ``HoldClosedError``.

    Raises:
        UnavailableError: the wallet was too busy, or the database failed.
        OutcomeUnknownError: the unit of work may have been carried out.
    """
    # A transaction whose response was lost may still be carried out later. The conditions on the
    # hold and the wallet ensure that only one attempt succeeds.
    lost = False
    with deadline.within(deadline.remaining(seconds)), _alone_with_wallet(payer):
        for number in count():
            try:
                return _attempt(payer, staged, find, lost=lost)
            except UnavailableError as error:
                # Once a response was lost, a later refusal no longer proves that nothing was
                # written.
                lost = lost or isinstance(error, OutcomeUnknownError)
                if deadline.passed():
                    if lost:
                        raise OutcomeUnknownError from error
                    raise
            backoff(number, RETRY_POLICY.longest_pause)
    raise AssertionError("unreachable")


def _attempt(
    payer: Payer, staged: Callable[[UnitOfWork], T], find: Callable[[], T | None], *, lost: bool
) -> T:
    problem: AppError
    try:
        return run_unit(payer.workspace_id, None, staged, retry_policy=RETRY_POLICY)
    except (HoldTakenError, HoldClosedError):
        # The request id is unique, so an earlier attempt of this request must have done it.
        problem = OutcomeUnknownError()
    except AppError as error:
        if not lost and not isinstance(error, OutcomeUnknownError):
            raise
        problem = error
    try:
        # After a lost response, any error of the next attempt may result from the write of the lost
        # one.
        record = find()
    except UnavailableError as error:
        raise OutcomeUnknownError from error
    if record is None:
        raise problem
    return record


_LOCKS = [RLock() for _ in range(64)]


@contextmanager
def _alone_with_wallet(payer: Payer) -> Iterator[None]:
    # Within this process, a wallet's changes wait for each other, to avoid needless conflicts.
    if payer.account_id is None:
        yield
        return
    # A fixed number of locks cannot fill the memory, and a collision only makes a request wait.
    lock = _LOCKS[zlib.crc32(payer.account_id.encode()) % len(_LOCKS)]
    while not lock.acquire(timeout=deadline.remaining(SECONDS)):
        if deadline.passed():
            raise UnavailableError
    try:
        yield
    finally:
        lock.release()
