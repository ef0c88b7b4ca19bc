"""What a unit of work keeps beside its writes: an audit event, an answer to an idempotent call."""

from dataclasses import dataclass, replace
from typing import Self

from chalicelib.core.errors import IdempotencyMismatchError, InProgressError


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What the audit log keeps of one committed change; names of fields, never their values."""

    operation: str
    actor: str
    fields: tuple[str, ...] = ()
    key_id: str = ""
    client_ip: str = ""
    request_id: str = ""
    resources: tuple[str, ...] = ()
    """What changed beside the records that the unit writes, such as ``key:<id>``."""
    workspace_id: str = ""
    """Whose audit log keeps it, if not that of the tenant whose rows changed."""

    @classmethod
    def by_job(cls, kind: str) -> Self:
        """Return the change that a scheduled job makes."""
        return cls(kind, "job")


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The answer to a call under an idempotency key, kept for 24 hours.

    ``scope`` is the principal and the operation, to which the caller's ``key`` belongs.
    """

    scope: str
    key: str
    fingerprint: str
    body: bytes | None = None
    object_key: str | None = None
    """The answer, or the object that holds it; neither while the first call is still running."""

    @property
    def is_mark(self) -> bool:
        """Whether it only says that a call is still running, or has crashed."""
        return self.body is None and self.object_key is None

    def part(self, name: str) -> Self:
        """Return the record of a part of the call that is committed by itself."""
        return replace(self, scope=f"{self.scope}#{name}")

    def answered(self, stored: "IdempotencyRecord | None") -> "IdempotencyRecord":
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
        if stored is None or stored.is_mark:
            msg = (
                "A call with this idempotency key is still running. Repeat it later for the answer."
            )
            raise InProgressError(msg, headers={"Retry-After": "1"})
        return stored
