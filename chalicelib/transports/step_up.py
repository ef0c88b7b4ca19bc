"""Ask the user of a connected app for a further scope (MCP 2025-11-25, scope challenge handling).

A call without its scope is refused with HTTP 403 and a challenge, to which the app responds with
another authorization. Some hosts do not do that. Their calls get a result with the same challenge,
and with a link on which the user allows the scope.
"""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import InsufficientScopeError
from chalicelib.core.principals import OAuthPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.oauth.rules import resources

# Beginnings of the names of apps that ignore a challenge with HTTP 403, with the source of that.
# The app chooses its name. Another name changes only how the app is told.
HOSTS_WITHOUT_STEP_UP: Mapping[str, str] = {
    # It connects again with the scopes of its first connection only.
    "claude": "https://github.com/anthropics/claude-ai-mcp/issues/931",
    # It drops the challenge of a tool call.
    "claude code": "https://github.com/anthropics/claude-code/issues/73712",
    # It reads the challenge of a result only.
    "chatgpt": "https://developers.openai.com/apps-sdk/build/auth",
}
# Field of a result's ``_meta`` from which ChatGPT reads challenges.
CHALLENGES = "mcp/www_authenticate"


class StepUpError(InsufficientScopeError):
    """The app lacks ``scope``, which its user can allow, and is challenged to ask for it."""


def may_be_granted(scope: Scope, principal: OAuthPrincipal) -> bool:
    """Whether the user who connected the app could allow a scope."""
    return principal.role == "admin" or not scope.admin_only


def challenge(scope: Scope, principal: OAuthPrincipal, authority: str) -> str:
    """Return the challenge for a scope, which also has the scopes that the app must not lose."""
    wanted = [known for known in Scope if known in principal.scopes or known == scope]
    return resources.scope_challenge(authority, wanted)


def handles_challenges(principal: OAuthPrincipal) -> bool:
    """Whether the app responds to a challenge with HTTP 403."""
    return not principal.client_name.casefold().startswith(tuple(HOSTS_WITHOUT_STEP_UP))


def message(scope: Scope, principal: OAuthPrincipal) -> str:
    """Return what a model tells the user, with the link of the page that allows the scope."""
    slug = workspaces.get(principal.workspace_id).slug
    page = f"{settings().public_url}/console/w/{slug}/apps/{principal.key_id}/allow?scope={scope}"
    return (
        f"This connection does not have the scope {scope}. Ask the user to open {page} and to "
        "allow it there, and then call again."
    )


def meta(header: str) -> dict[str, Any]:
    """Return the ``_meta`` of a result with a challenge."""
    return {CHALLENGES: [header]}
