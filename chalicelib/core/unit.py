"""The unit of work as operations see it: stage now, commit once (the store implements it)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from chalicelib.core.errors import AppError, IdempotencyMismatchError, InProgressError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What the audit log keeps of one committed change; names of fields, never their values."""

    operation: str
    fields: tuple[str, ...]
    actor: str
    key_id: str
    client_ip: str
    request_id: str
    resource: str = ""
    """What changed, such as ``key:<id>``; empty for the first record that the unit wrote."""

    @classmethod
    def by_operator(cls, operation: str, resource: str = "") -> "AuditEvent":
        """Return the change that the platform's operator makes from the command line."""
        return cls(operation, (), "operator", "", "", "", resource)


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The result of a write under an idempotency key, kept for 24 hours."""

    key: str
    fingerprint: str
    body: bytes | None
    """The answer to replay; None while the first call is still running."""

    def answer(self, stored: "IdempotencyRecord | None") -> bytes:
        """Return what is stored under this key, for a call with the same arguments.

        Raises:
            IdempotencyMismatchError: the key was used with others.
            InProgressError: the first call is still running.
        """
        if stored is not None and stored.fingerprint != self.fingerprint:
            msg = (
                "This idempotency key was used with other arguments. Use a new key for a new call."
            )
            raise IdempotencyMismatchError(msg)
        if stored is None or stored.body is None:
            msg = (
                "A call with this idempotency key is still running. Repeat it later for the answer."
            )
            raise InProgressError(msg, headers={"Retry-After": "1"})
        return stored.body


class Objects(Protocol):
    """Where bytes go that are too large for a record."""

    def put(self, key: str, body: bytes, content_type: str) -> None:
        """Store an object."""

    def get(self, key: str) -> bytes | None:
        """Return an object, or None if there is none."""

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""


class Unit(Protocol):
    """The writes of one operation, in one workspace: all of them happen, or none.

    A condition that fails at commit raises the write's own ``otherwise`` error; without one it
    raises ``ConcurrentUpdateError``, after which ``invoke`` begins again with fresh reads.
    """

    workspace_id: str

    def begin(
        self, change: AuditEvent | None = None, replay: IdempotencyRecord | None = None
    ) -> None:
        """Forget what was staged; what ``once`` remembers stays.

        ``change`` and ``replay`` say for what the unit works: its steps are recorded as that.
        """

    def create(self, row: Any, *, on_conflict: AppError | None = None) -> None:  # noqa: ANN401  a store's row
        """Stage a new row, which must not exist yet."""

    def save(self, row: Any) -> None:  # noqa: ANN401
        """Stage the new state of a row that was read, which must still be at the version read."""

    def delete(self, row: Any, *, if_there: bool = False) -> None:  # noqa: ANN401
        """Stage the removal of a row that was read, which must still be at the version read.

        One without a version must still exist if ``if_there`` says so.
        """

    def update(
        self,
        row: Any,  # noqa: ANN401
        actions: list[Any],
        condition: Any = None,  # noqa: ANN401
        *,
        on_conflict: AppError | None = None,
    ) -> None:
        """Stage changes to single attributes of a row, which must exist or meet a condition."""

    def soft_delete(self, record: Any, *, until: datetime) -> None:  # noqa: ANN401
        """Stage a soft deletion: the record leaves its noun and is kept until a time."""

    def require(
        self,
        row: Any,  # noqa: ANN401
        condition: Any = None,  # noqa: ANN401
        *,
        on_conflict: AppError | None = None,
    ) -> None:
        """Demand that a row still exists, or still meets a condition, when the unit commits."""

    def run_side_effect_once(self, name: str, effect: Callable[[], T]) -> T:
        """Run an outside effect, such as storing bytes, once over all runs of the handler."""

    def commit_batch(self, name: str, stage: "Callable[[Unit], bytes]") -> bytes:
        """Commit a part of an operation that is too large for one transaction, by itself.

        ``stage`` stages the part on a unit of its own and returns its outcome. That is kept with
        what it did, under the operation's idempotency key if it has one: neither another run of
        the handler nor a repeated call does a committed step again; both get its outcome.

        Raises:
            AppError: the step's own failure; the steps before it stay done.
        """

    def after_commit(self, action: Callable[[], object]) -> None:
        """Run an action once the unit has committed; it may fail without failing the operation."""

    def on_failure(self, action: Callable[[], object]) -> None:
        """Run an action if the operation fails for good.

        The place to undo what ``once`` did outside.
        """

    def commit(self, change: AuditEvent, replay: IdempotencyRecord | None) -> None:
        """Write everything staged, the audit record and the stored result at once."""

    def fail(self) -> None:
        """Run the ``on_failure`` actions."""

    def find_idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Return what is kept under an idempotency key, unless it has expired."""

    def mark_in_progress(self, replay: IdempotencyRecord) -> bool:
        """Mark a key as in progress before slow outside effects.

        False if another call was first.
        """

    def clear_in_progress(self, key: str) -> None:
        """Drop the in-progress mark after a failure, so that the caller can try again."""
