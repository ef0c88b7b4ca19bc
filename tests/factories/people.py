"""Members of a workspace with their roles, and invited users."""

import json
import re
from dataclasses import dataclass
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import PLATFORM, Role, SessionPrincipal, VisitorPrincipal
from chalicelib.domains.identity.store import workspaces
from tests.conftest import PASSWORD, all_rows, call_console, call_operator
from tests.support import aws_calls


@dataclass(frozen=True)
class Account:
    """An account, which signs in without HTTP."""

    id: str
    email: str

    @classmethod
    def create(cls, name: str) -> "Account":
        """Create an account with a name and an address at example.com."""
        email = f"{name}@example.com"
        account_id = call_operator(
            "create_account", email=email, password=PASSWORD, name=name.title()
        )
        return cls(account_id["accountId"], email)

    def joins(self, workspace_id: str, role: str, resource_id: str | None = None) -> None:
        """Become a member with a role, or change the role. The staff have a resource."""
        link = {"resourceId": resource_id} if resource_id else {}
        call_operator("add_member", workspaceId=workspace_id, email=self.email, role=role, **link)

    def is_removed_from(self, workspace_id: str) -> None:
        """Stop being a member."""
        call_operator("remove_member", workspaceId=workspace_id, email=self.email)

    def role_in(self, workspace_id: str) -> str | None:
        """Return the role in a workspace, or None."""
        membership = workspaces.membership(self.id, workspace_id=workspace_id)
        return membership.role if membership else None

    def call(
        self, workspace_id: str, operation: str, authorized: str = "", /, **arguments: Any
    ) -> Any:
        """Call an operation in a workspace. ``authorized`` is the role when the call begins."""
        row = workspaces.membership(self.id, workspace_id=workspace_id)
        who = {
            "account_id": self.id,
            "membership": authorized or (row.role if row else "account"),
            "own_resource": (row.resource_id if row else None) or "",
        }
        return call_console(workspace_id, operation, **who, **arguments)

    def accept(self, token: str) -> Any:
        """Accept an invitation, signed in outside its workspace."""
        person = SessionPrincipal(
            account_id=self.id, workspace_id=PLATFORM, membership=Role.ACCOUNT
        )
        return _call("accept_invitation", person, {"token": token})


def request_reset(email: str) -> Any:
    """Request a new password as a visitor."""
    return _call("request_password_reset", VisitorPrincipal(visitor="v"), {"email": email})


def ask_to_sign_up(email: str) -> Any:
    """Ask to sign up as a visitor."""
    return _call("request_sign_up", VisitorPrincipal(visitor="v"), {"email": email})


def invite(account: Account, workspace_id: str, email: str, role: str = "member") -> str:
    """Invite a user, and return the token of the link."""
    invitation = account.call(workspace_id, "invite_member", email=email, role=role)
    url: str = invitation["url"]
    return url.rpartition("/")[2]


def accept_as_new(token: str, name: str = "Ivy", password: str = PASSWORD) -> Any:
    """Accept an invitation with a new account."""
    arguments = {"token": token, "name": name, "password": password}
    return _call("create_invited_account", VisitorPrincipal(visitor="v"), arguments)


def look_at(token: str) -> Any:
    """Return an invitation as a visitor with its link sees it."""
    return _call("get_invitation", VisitorPrincipal(visitor="v"), {"token": token})


def read_rows() -> dict[str, Any]:
    """Return the stored rows, except counters and salts of rate limits."""
    return {key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#", key)}


def _call(operation: str, principal: Any, arguments: dict[str, Any]) -> Any:
    with aws_calls.entered(aws_calls.API):
        reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]
