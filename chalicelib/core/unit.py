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
    resources: tuple[str, ...] = ()
    """Changed resources beyond the records that the unit writes, such as ``key:<id>``."""
    workspace_id: str = ""
    """The workspace whose audit log gets the event. Default: the owner of the changed rows."""

    @classmethod
    def by_job(cls, kind: str) -> Self:
        """Return the event for changes by a scheduled job."""
        return cls(kind, "job")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IdempotencyRecord:
    """The response to a call under an idempotency key, kept for 24 hours.

    ``scope`` is the principal and the operation that the caller's ``key`` belongs to.
    ``fingerprint`` is a hash of the arguments. ``body`` and ``object_key`` are both None while the
    first call is running. ``status`` is the HTTP status of the response.
    """

    scope: str
    key: str
    fingerprint: str
    body: bytes | None = None
    object_key: str | None = None
    """The key of the object that holds the response, if it is too large for ``body``."""
    status: int = 200

    @property
    def is_pending(self) -> bool:
        """Whether the record has no response yet. The call is still running, or it crashed."""
        return self.body is None and self.object_key is None

    def for_part(self, name: str) -> Self:
        """Return the record for a part of the call that is committed separately."""
        return replace(self, scope=f"{self.scope}#{name}")

    def require_answer(self, stored_record: "IdempotencyRecord | None") -> "IdempotencyRecord":
        """Return the record stored under this key, if it has the response to this call.

        Raises:
            IdempotencyMismatchError: the key was used with other arguments.
            InProgressError: the first call is still running, or no record was found.
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
