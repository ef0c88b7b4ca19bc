"""Store the failed calls of keys and connected apps, which their owners read in the console.

A call without a valid key is not stored, unless the key is one of a workspace that is revoked or
expired.
"""

from chalicelib.core.errors import AppError, InternalError
from chalicelib.core.principals import ApiKeyPrincipal, Principal
from chalicelib.domains.identity.store import key_errors
from chalicelib.domains.identity.store.key_errors import FailedCall
from chalicelib.transports.auth import EndedKeyError


def store(  # noqa: PLR0913  the parts of a failed call
    error: Exception,
    principal: Principal | None,
    *,
    request_id: str,
    route: str,
    operation: str,
    tool: str | None = None,
) -> None:
    """Store a failed call, unless its caller has no key. It never raises an error."""
    caller = error if isinstance(error, EndedKeyError) else principal
    if not isinstance(caller, ApiKeyPrincipal | EndedKeyError):
        return
    # A crash is answered with this error.
    failure = error if isinstance(error, AppError) else InternalError()
    call = FailedCall(
        operation, route, tool, failure.status, failure.code, failure.first_key, request_id
    )
    key_errors.add(caller.workspace_id, key_id=caller.key_id, call=call)
