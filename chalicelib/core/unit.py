"""Records that a unit of work stores with its writes."""

from dataclasses import dataclass, replace
from typing import Self

from chalicelib.core.errors import IdempotencyMismatchError, InProgressError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AuditEvent:
    """The audit log's record of one committed change. It names fields, but never their values."""

    operation: str
    actor: str
    fields: tuple[str, ...] = ()
    key_id: str = ""
    client_ip: str = ""
    request_id: str = ""
    resources: tuple[str, ...] = ()  # beyond the records that the unit writes, such as ``key:<id>``
    # The workspace whose audit log gets the event. Default: the owner of the changed rows.
    workspace_id: str = ""

    @classmethod
    def by_job(cls, kind: str) -> Self:
        return cls(kind, "job")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IdempotencyRecord:
    """The response to a call under an idempotency key, kept for 24 hours."""

    scope: str  # the principal and the operation that the caller's ``key`` belongs to
    key: str
    fingerprint: str  # a hash of the arguments
    # None while the first call is running, if ``object_key`` is None, too.
    body: bytes | None = None
    # The key of the object that holds the response, if it is too large for ``body``.
    object_key: str | None = None
    status: int = 200  # HTTP

    @property
    def is_pending(self) -> bool:
        """Whether the record has no response yet. The call is still running, or it crashed."""
        return self.body is None and self.object_key is None

    def for_part(self, name: str) -> Self:
        """Return the record for a part of the call that is committed separately."""
        return replace(self, scope=f"{self.scope}#{name}")

    def require_answer(self, stored_record: "IdempotencyRecord | None") -> "IdempotencyRecord":
        """Return the stored record, if it has the response to this call.

        Raises IdempotencyMismatchError if the key was used with other arguments, InProgressError if
        the first call is still running or no record was found.
        """
        if stored_record is not None and stored_record.fingerprint != self.fingerprint:
            msg = (
                "This idempotency key was used before with other arguments. Use a new key "
                "for a new call."
            )
            raise IdempotencyMismatchError(msg)
        if stored_record is None or stored_record.is_pending:
            msg = (
                "A call with this idempotency key is still running. Repeat the call later "
                "to get its response."
            )
            raise InProgressError(msg, headers={"Retry-After": "1"})
        return stored_record
