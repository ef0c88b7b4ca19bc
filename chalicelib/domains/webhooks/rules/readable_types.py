"""The types of events that a key may name and see: those whose records its scopes may read."""

from collections.abc import Iterable

from chalicelib.core.errors import InsufficientScopeError
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import ApiKeyPrincipal, Principal
from chalicelib.core.scopes import Scope


def scope_of(event_type: str) -> Scope | None:
    """Return the scope that reads the records of a type. ``webhook.test`` has no record."""
    declared = EVENT_TYPES.get(event_type)
    return declared and REGISTRY.entry(declared.read_by).scope


def hidden_from(principal: Principal, types: Iterable[str]) -> list[str]:
    """Return those of the types that a key may not read, sorted. Other callers may read all."""
    if not isinstance(principal, ApiKeyPrincipal):
        return []
    return sorted(name for name in types if scope_of(name) not in {None, *principal.scopes})


def check(principal: Principal, types: Iterable[str], *, where: str) -> None:
    """Raise InsufficientScopeError for types that a key may not read. ``where`` begins the error.

    >>> from chalicelib.core.principals import OperatorPrincipal
    >>> check(OperatorPrincipal(), ["lead.created"], where="events")
    """
    if hidden := hidden_from(principal, types):
        scopes = sorted({str(scope_of(name)) for name in hidden})
        msg = (
            f"{where}: expected types of events whose records this key may read, received "
            f"{', '.join(hidden)}. A key with {', '.join(scopes)} may read them."
        )
        raise InsufficientScopeError(msg, details={"scopes": scopes})
