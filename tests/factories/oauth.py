"""Functions that connect an app with consent, exchange its code and refresh its tokens."""

import json
from dataclasses import dataclass
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.lib import tokens
from tests.conftest import Api, call_console
from tests.support import aws_calls

CLIENT_ID = "https://client.example/oauth/metadata.json"
REDIRECT_URI = "https://client.example/callback"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
"""The verifier of RFC 7636, Appendix B."""
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
GRANT: dict[str, Any] = {
    "clientId": CLIENT_ID,
    "clientName": "Claude",
    "clientHost": "client.example",
    "redirectUri": REDIRECT_URI,
    "codeChallenge": CHALLENGE,
    "scopes": ["projects:read", "crm:read", "crm:write"],
}


def call(operation: str, /, **arguments: Any) -> Any:
    """Run an operation for visitors, and return the data inside the envelope."""
    with aws_calls.entered(aws_calls.API):
        reply = invoke(
            REGISTRY[operation],
            VisitorPrincipal(visitor="client"),
            lambda: arguments,
            request_id="r",
        )
    return json.loads(reply.body)["data"]


def refusal(operation: str, /, **arguments: Any) -> str:
    """Run an operation that must fail, and return the code of its error."""
    try:
        call(operation, **arguments)
    except OAuthError as error:
        return error.error
    msg = f"{operation} was not refused"
    raise AssertionError(msg)


def grant(workspace: WorkspaceRow, account_id: str = "", **changes: Any) -> Any:
    """Give consent as an account, by default the workspace's owner."""
    who = account_id or str(workspace.owner_id)
    return call_console(workspace.id, "grant_access", account_id=who, **{**GRANT, **changes})


def exchange(code: str, **changes: Any) -> Any:
    """Exchange a code for tokens."""
    return call("exchange_code", **exchange_arguments(code, **changes))


def exchange_arguments(code: str, **changes: Any) -> dict[str, Any]:
    """Return the arguments of the exchange of a code."""
    return {
        "code": code,
        "clientId": CLIENT_ID,
        "redirectUri": REDIRECT_URI,
        "codeVerifier": VERIFIER,
        **changes,
    }


@dataclass
class ConnectedApp:
    """A connection and its tokens."""

    id: str
    code: str
    access: str
    refresh: str

    @property
    def works(self) -> bool:
        """Whether the access token is accepted."""
        return works(self.access)

    def refreshed(self, **changes: Any) -> "ConnectedApp":
        """Return the connection with the tokens of a refresh."""
        arguments = {"refreshToken": self.refresh, "clientId": CLIENT_ID, **changes}
        tokens = call("refresh_tokens", **arguments)
        return ConnectedApp(self.id, self.code, tokens["accessToken"], tokens["refreshToken"])

    def refresh_refusal(self, **changes: Any) -> str:
        """Refresh the tokens, which must fail. Return the code of the error."""
        arguments = {"refreshToken": self.refresh, "clientId": CLIENT_ID, **changes}
        return refusal("refresh_tokens", **arguments)


def connect(workspace: WorkspaceRow, account_id: str = "", **changes: Any) -> ConnectedApp:
    """Connect an app to a workspace: consent, then the exchange of the code."""
    grant_result = grant(workspace, account_id, **changes)
    proof = {name: changes[name] for name in ("clientId", "redirectUri") if name in changes}
    tokens = exchange(grant_result["code"], **proof)
    return ConnectedApp(
        grant_result["connectionId"],
        grant_result["code"],
        tokens["accessToken"],
        tokens["refreshToken"],
    )


def works(token: str) -> bool:
    """Whether the tool server accepts a token."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = Api(token).call("POST", "/api/mcp", message)
    assert answer.status in {200, 401}, answer.body
    return answer.status == 200


def attempt(operation: str, /, **arguments: Any) -> Any:
    """Run an operation for visitors; return its data, or None if it is refused."""
    try:
        return call(operation, **arguments)
    except AppError:
        return None


def malformed(token: str) -> str:
    """Return a token with another last character, so that its checksum is wrong."""
    return token[:-1] + ("A" if token[-1] != "A" else "B")


def forged(connection_id: str, prefix: str) -> str:
    """Return a well-formed token of a connection that was never issued."""
    return tokens.generate_for(connection_id, prefix=prefix)
