"""The scopes that a key needs for an export: those by which it can read all that the file has."""

from chalicelib.core.errors import InsufficientScopeError
from chalicelib.core.principals import ApiKeyPrincipal, Principal
from chalicelib.core.scopes import Scope

# The blog is the platform's own, so no export has it.
NEEDED = tuple(scope for scope in Scope if scope.endswith(":read") and not scope.admin_only)


def check(principal: Principal) -> None:
    """Raise InsufficientScopeError for a key that may not read all that an export contains."""
    if not isinstance(principal, ApiKeyPrincipal):
        return
    missing = [str(scope) for scope in NEEDED if scope not in principal.scopes]
    if missing:
        msg = (
            f"An export has records of every noun, so a key needs {', '.join(NEEDED)}. This key "
            f"lacks {', '.join(missing)}. Use a key with these scopes."
        )
        raise InsufficientScopeError(msg, details={"scopes": missing})
