"""List the failed calls of a key or of a connected app."""

from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError, ValidationError
from chalicelib.core.ids import is_id
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience, Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.identity.flows.names import read_key_names
from chalicelib.domains.identity.operations.audit_log import KeyUsed
from chalicelib.domains.identity.store import api_keys, connections, key_errors
from chalicelib.domains.identity.store.key_errors import KeyErrorRow


class KeyErrorQuery(Wire):
    """Position in the failed calls of a key."""

    limit: int = Field(default=50, ge=1, le=100, description="Calls per page, up to 100.")
    before: Id | None = optional("Value of next on the previous page, for older calls.")


class KeyErrorQueryById(KeyErrorQuery):
    """Key whose failed calls are listed."""

    id: Id = Field(description="Id of the key or of the connection of an app.")


class FailedCallOut(Wire):
    """A failed call, without anything that the caller has sent."""

    id: Id = Field(description="Id of the entry.")
    at: Timestamp = Field(description="When it failed.")
    route: str = Field(description="Method and path, such as GET /api/products/{id}.")
    operation: str | None = Field(
        description="Name of the operation; null if the tool server refused the whole request."
    )
    tool: str | None = Field(description="Tool that was called, or null.")
    status: int = Field(description="HTTP status; for a tool, its httpStatus.")
    code: str = Field(description="Code of the error, such as validation_error.")
    key: str | None = Field(
        description="Key of the error or of its first invalid field, such as required, or null."
    )
    request_id: str = Field(description="Request id, as in the answer.")

    @classmethod
    def from_record(cls, row: KeyErrorRow) -> Self:
        values = row.attribute_values
        return cls.from_row(values, id=row.error_id, operation=row.operation or None)


class KeyErrorList(Wire):
    """Failed calls of a key, newest first."""

    key: KeyUsed = Field(description="The key or the app.")
    errors: list[FailedCallOut] = Field(description="Failed calls, newest first.")
    next: Id | None = Field(description="Value to send as before for older calls, or null.")
    most_per_hour: int = Field(
        description="Failed calls that are kept of an hour. Later ones of that hour are not."
    )


@operation(
    title="List the key's failed calls",
    rest="GET /api/key-errors",
    audience=(Audience.KEY,),
    example={},
)
def list_key_errors(ctx: Context, args: KeyErrorQuery) -> KeyErrorList:
    """List calls of this key that failed with a 4xx or 5xx in the last 7 days, newest first.

    At most 60 are kept of an hour. Calls of unknown paths are not kept.
    """
    if not isinstance(ctx.principal, ApiKeyPrincipal):  # The audience has no other callers.
        raise TypeError(type(ctx.principal))
    return _page(ctx, ctx.principal.key_id, args)


@operation(
    title="List a key's failed calls",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: _workspace_of(args.id),
    example={"id": "KEY_ID", "limit": 5},
)
def list_errors_of_key(ctx: Context, args: KeyErrorQueryById) -> KeyErrorList:
    """List calls of a key or of a connected app that failed in the last 7 days, newest first.

    At most 60 are kept of an hour. Calls with a revoked or expired key are kept, too; calls without
    a known key, and calls of unknown paths, are not.
    """
    return _page(ctx, args.id, args)


def _workspace_of(key_id: str) -> str:
    connection = connections.find(key_id)
    return connection.workspace_id if connection else api_keys.require(key_id).workspace_id


def _page(ctx: Context, key_id: str, args: KeyErrorQuery) -> KeyErrorList:
    if args.before is not None and not is_id(args.before):
        message = "expected the value of next on the previous page"
        raise ValidationError.of("before", message=message, key="unknown_position")
    key = KeyUsed.from_key_id(key_id, read_key_names(ctx.workspace_id, {key_id}))
    if key is None:
        # The id may be a token, pasted by mistake, so the error does not repeat it.
        raise NotFoundError(
            "The workspace has no key and no connected app with this id.", key="key"
        )
    page = key_errors.page(ctx.workspace_id, key_id=key_id, limit=args.limit, before=args.before)
    return KeyErrorList(
        key=key,
        errors=[FailedCallOut.from_record(row) for row in page.rows],
        next=page.before,
        most_per_hour=key_errors.MAX_PER_HOUR,
    )
