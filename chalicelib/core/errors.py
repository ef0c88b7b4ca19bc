"""Every failure that a client can see. Handlers raise these; ``envelope`` serializes them.

A message states what was expected, what was received and what to do. It never contains a secret, a
stack trace or the URL of a library. Codes and keys are stable, so clients may branch on them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from pydantic_core import to_json

MAX_CAUSES = 8  # of a chain of causes that the log names


# Stands before the name of an operation in a message, and before no name in data: it is a
# noncharacter (Unicode, 23.7), which no text needs.
CALL_MARK = "\ufdd0"


def call(word: str) -> str:
    """Return the placeholder of an operation in a message, which ``core.call_names`` replaces.

    ``word`` is the operation's tool, or its name if it has no tool.
    """
    return CALL_MARK + word


# What a caller does to clear a field: ``null`` over REST, ``clear`` for tools.
HOW_TO_CLEAR = CALL_MARK + "how_to_clear"
# What else a tool can change, after the names of an update's fields.
OR_CLEAR = CALL_MARK + "or_clear"


class FieldError(NamedTuple):
    """One invalid field. It has the wire path, such as ``rules.2.start``, and the fault.

    ``key`` is the kind of the fault, such as ``required``. Keys are stable, sentences are not.
    """

    field: str
    message: str
    key: str = "invalid"


class AppError(Exception):
    """Base of all failures with an HTTP status and a stable code.

    ``key`` is the reason, if several share the code: each raise has a literal one, and
    ``tests/snapshots/codes.txt`` lists them. ``details`` are further fields of ``data``, which the
    class's docstring names, because the reference publishes it. ``headers`` are sent with the HTTP
    response only.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        key: str = "",
        errors: Sequence[FieldError] = (),
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.key = key
        self.errors = tuple(errors)
        self.details = dict(details or {})
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        """Return the message for readers other than a caller, such as a bot's model."""
        return self.message.replace(CALL_MARK, "")

    @property
    def first_key(self) -> str | None:
        """The error's key, or that of its first invalid field, or None."""
        return self.key or next((error.key for error in self.errors), None)

    def reword(self, rewrite: Callable[[str], str]) -> None:
        """Rewrite the error's messages, for example to use the caller's names for operations."""
        self.message = rewrite(self.message)
        self.errors = tuple(error._replace(message=rewrite(error.message)) for error in self.errors)


class InternalError(AppError):
    """The service failed unexpectedly. The log has the cause under the request id."""

    def __init__(self) -> None:
        super().__init__(
            "An internal error occurred. Repeating the call will not help. Report the requestId."
        )


class ValidationError(AppError):
    """One or more arguments are invalid."""

    status = 400
    code = "validation_error"

    @classmethod
    def of(cls, field: str, *, message: str, key: str = "invalid") -> Self:
        """Return the error for a single field.

        >>> ValidationError.of("name", message="expected 1 to 80 characters, received 0").message
        'name: expected 1 to 80 characters, received 0'
        """
        return cls(f"{field}: {message}", errors=[FieldError(field, message, key)])


class CycleError(ValidationError):
    """A record would become its own descendant."""

    code = "cycle"


class ConfirmationRequiredError(AppError):
    """A destructive call lacks its confirmation. ``page`` or ``count`` is what it would delete."""

    status = 400
    code = "confirmation_required"


class UnauthorizedError(AppError):
    """The API key or the token is missing, malformed, unknown, revoked or expired."""

    status = 401
    code = "unauthorized"

    def __init__(self, message: str, *, key: str) -> None:
        # A 401 response must name the authentication scheme (RFC 9110, 15.5.2).
        super().__init__(message, key=key, headers={"WWW-Authenticate": "Bearer"})


class ForbiddenError(AppError):
    """The caller is not allowed to do this, whatever its scopes.

    With the key ``role_required``, ``role`` is the lowest role that is allowed.
    """

    status = 403
    code = "forbidden"


class InsufficientScopeError(ForbiddenError):
    """The API key lacks the scope ``scope``, or one of the scopes ``scopes``."""

    code = "insufficient_scope"


class PlanRequiredError(ForbiddenError):
    """The workspace's plan does not include the API."""

    code = "plan_required"


class AdminRequiredError(ForbiddenError):
    """Blog scopes work only for keys of ADMIN accounts."""

    code = "admin_required"


class NotFoundError(AppError):
    """The workspace has no such record, or the path does not exist. ``key`` says what is missing.

    The answer is the same for a record of another workspace. A path that has a word in the place of
    an id is answered with ``operations``, those of its noun.
    """

    status = 404
    code = "not_found"

    @classmethod
    def of(cls, label: str, *, key: str, plural: str, listed_by: str) -> "NotFoundError":
        """Return the error for an unknown id. ``listed_by`` is the word of the list operation."""
        msg = (
            f"No {label} has this id in the workspace. List {plural} ({call(listed_by)}) to "
            "find valid ids."
        )
        return cls(msg, key=key)


class MethodNotAllowedError(AppError):
    """The path does not support this method. The ``Allow`` header lists the supported ones."""

    status = 405
    code = "method_not_allowed"


class ConflictError(AppError):
    """The request conflicts with the current state.

    With a key that begins with ``too_many_``, ``maximum`` is the largest possible number. With
    ``too_many_resources``, ``id`` is the service. With ``deleted_with_site``, ``projectId`` is the
    site.
    """

    status = 409
    code = "conflict"
    holder: str | None = None  # the id of the record that has a value that must be unique


class ExternalIdTakenError(ConflictError):
    """Another record of the kind already has this ``externalId``. ``recordId`` is its id."""

    code = "external_id_taken"

    def __init__(self, record_id: str) -> None:
        msg = (
            f"externalId: the record {record_id} already has this externalId. Change that record, "
            "or send another externalId."
        )
        super().__init__(msg, details={"recordId": record_id})
        self.holder = record_id


class VersionConflictError(ConflictError):
    """The record is not at the version ``ifVersion``. ``version`` is its current version."""

    code = "version_conflict"

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message, details={"version": version})


class SlugTakenError(ConflictError):
    """Another record already has this slug."""

    code = "slug_taken"


class IdempotencyMismatchError(ConflictError):
    """The idempotency key was already used with other arguments."""

    code = "idempotency_mismatch"


class AlreadyCreatedError(ConflictError):
    """The idempotency key was already used to create a secret, which is shown only once.

    ``keyId`` is the id of the created key, and ``scopes`` are its scopes. ``webhook`` is the
    created webhook, or the one whose secret was replaced. An invitation has ``id``, ``email``,
    ``role``, ``expiresAt``, ``isMailed`` and ``mail``; an account made with one has
    ``accountId``, ``workspaceId``, ``slug`` and ``role``.
    """

    code = "already_created"


class InProgressError(ConflictError):
    """A request with this idempotency key is still running."""

    code = "in_progress"


class StorageLimitError(ConflictError):
    """The workspace has as much data of one kind as can be stored (10 GB). Delete some first."""

    code = "storage_limit"

    def __init__(self) -> None:
        super().__init__(
            "The workspace has reached the maximum of 10 GB for records of one type. Nothing "
            "was changed. Delete records of this type, or contact the operator of the service. "
            "Repeating the call will not help."
        )


class InTestWorkspaceError(ConflictError):
    """A test workspace does not do this, or has ``maximum`` records of one kind."""

    code = "test_workspace"


class PayloadTooLargeError(AppError):
    """The body, one of its fields, or the answer exceeds a size limit. ``key`` says which."""

    status = 413
    code = "payload_too_large"


class UnsupportedMediaTypeError(AppError):
    """The operation does not accept the content type of the body or file."""

    status = 415
    code = "unsupported_media_type"


class RateLimitedError(AppError):
    """Too many requests. ``Retry-After`` is the number of seconds to wait. ``key`` is the limit."""

    status = 429
    code = "rate_limited"


class UnavailableError(AppError):
    """The database is unavailable or overloaded. Changes are all or nothing; a retry is safe."""

    status = 503
    code = "unavailable"

    def __init__(self) -> None:
        super().__init__(
            "The service is briefly overloaded. Try again in a few seconds.",
            headers={"Retry-After": "2"},
        )


class UpstreamFailedError(AppError):
    """An external service failed or sent an invalid answer. A later retry may succeed.

    ``key`` is the service.
    """

    status = 502
    code = "upstream_failed"


class NotConfiguredError(AppError):
    """The operator has not configured, or has switched off, what the operation needs (``key``)."""

    status = 503
    code = "not_configured"


class ConcurrentUpdateError(Exception):
    """A concurrent writer committed first. ``invoke`` retries, so callers never see this error."""


class IdempotencyKeyExistsError(Exception):
    """An idempotency key has a result or a call in progress. Callers never see this error."""

    # Before other failed conditions, because the first call made the changes that now conflict.
    precedence = 0


def log_fields(error: AppError) -> dict[str, Any]:
    """Return the log's fields for a failure: its code and, for a server error, its causes."""
    if error.status < 500:  # noqa: PLR2004  the caller's mistake
        return {"code": error.code}
    # Classes and AWS codes only: messages may contain data that callers sent.
    return {"code": error.code, "cause": " < ".join(_causes(error))}


def _causes(error: BaseException | None) -> Iterator[str]:
    seen: set[int] = set()
    # A chain of causes can be circular.
    while error is not None and id(error) not in seen and len(seen) < MAX_CAUSES:
        seen.add(id(error))
        response = getattr(error, "response", None)
        code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
        yield f"{type(error).__name__} ({code})" if code else type(error).__name__
        # PynamoDB keeps botocore's exception in ``cause``.
        error = error.__cause__ or getattr(error, "cause", None)


def failure_fields(error: AppError, request_id: str) -> dict[str, Any]:
    """Return the fields of ``data`` for a failure, such as the code and the request id."""
    error.reword(lambda message: message.replace(CALL_MARK, ""))  # if no caller is known
    fields: dict[str, Any] = {
        "status": False,
        "message": error.message,
        "code": error.code,
    }
    if error.key:
        fields["key"] = error.key
    fields |= error.details
    if error.errors:
        fields["errors"] = [field_error._asdict() for field_error in error.errors]
    fields["requestId"] = request_id
    return fields


def envelope(error: AppError, request_id: str) -> bytes:
    """Return the failure envelope as UTF-8 JSON."""
    return to_json({"data": failure_fields(error, request_id)})
