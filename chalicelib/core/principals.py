"""The kinds of callers.

Every transport creates a principal for each call. Only ``application.invoke`` decides what a
principal may do, by the audience that the operation declares.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from chalicelib.core.scopes import Scope

PLATFORM = "platform"
"""The tenant of data that belongs to no workspace: accounts and the blog."""


class Role(StrEnum):
    """The roles of a member in a workspace, from the lowest to the highest.

    ``ACCOUNT`` is any signed-in account, also outside a workspace.
    """

    ACCOUNT = "account"
    MEMBER = "member"
    MANAGER = "manager"
    OWNER = "owner"

    def includes(self, other: "Role") -> bool:
        """Whether a member with this role may do what the other role may.

        >>> Role.OWNER.includes(Role.MEMBER), Role.MEMBER.includes(Role.OWNER)
        (True, False)
        """
        return _ASCENDING.index(self) >= _ASCENDING.index(other)


_ASCENDING = list(Role)


class Audience(StrEnum):
    """The kinds of callers that an operation serves. Keys and the tools of bots share ``KEY``."""

    KEY = "key"
    SESSION = "session"
    PUBLIC = "public"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Principal(ABC):
    """A caller.

    ``workspace_id`` is the workspace of its calls, and ``plan`` the plan whose quotas apply.
    ``role`` is the role of the account: user or admin. ``client_ip`` is the caller's IP address if
    the edge of this service confirms it.
    """

    audience: ClassVar[Audience]
    limited: ClassVar[bool] = True
    """Whether the limits of operations apply."""

    workspace_id: str = PLATFORM
    plan: str = ""
    account_id: str = ""
    role: str = "user"
    client_ip: str = ""

    @property
    @abstractmethod
    def rate_limit_key(self) -> str:
        """The subject of rate limits and the owner of idempotency keys."""

    @property
    def share_subjects(self) -> tuple[str, ...]:
        """The subjects of what each may use of what visitors share, the caller first."""
        return (self.rate_limit_key,)

    @property
    @abstractmethod
    def audit_actor(self) -> str:
        """The actor in the audit log, an account id or its equivalent."""

    @property
    def log_fields(self) -> dict[str, str]:
        """Fields about the caller for the request's log line, without personal data."""
        return {"workspaceId": self.workspace_id}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ApiKeyPrincipal(Principal):
    """A program or an AI client with a key of one workspace."""

    audience: ClassVar[Audience] = Audience.KEY

    key_id: str
    scopes: frozenset[Scope] = field(default_factory=frozenset)

    @property
    def rate_limit_key(self) -> str:
        """The id of the key."""
        return f"key:{self.key_id}"

    @property
    def audit_actor(self) -> str:
        """The account that created the key."""
        return self.account_id

    @property
    def log_fields(self) -> dict[str, str]:
        """The workspace and the key."""
        return {"workspaceId": self.workspace_id, "keyId": self.key_id}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OAuthPrincipal(ApiKeyPrincipal):
    """An AI client that a user connected to one workspace.

    ``key_id`` is the id of the connection, so limits, idempotency keys and the audit log do not
    depend on the access token. ``client_name`` is the name that the client gave itself.
    """

    client_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionPrincipal(Principal):
    """A signed-in user in the console.

    ``membership`` is the role in the workspace, or ``ACCOUNT`` outside a workspace. ``session_id``
    is the id of the session, not its token. ``code`` and ``password`` are what the user has typed
    into the form, to prove once more to be the owner of the account.
    """

    audience: ClassVar[Audience] = Audience.SESSION

    membership: Role = Role.ACCOUNT
    session_id: str = ""
    code: str = ""
    password: str = ""

    @property
    def rate_limit_key(self) -> str:
        """The id of the account."""
        return f"account:{self.account_id}"

    @property
    def audit_actor(self) -> str:
        """The id of the account."""
        return self.account_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VisitorPrincipal(Principal):
    """A visitor of a public page, identified only by a hash of the client IP and the day.

    ``network`` is a hash of the IPv6 network of 48 bits, or empty.
    """

    audience: ClassVar[Audience] = Audience.PUBLIC

    visitor: str
    network: str = ""
    page_url: str = ""

    @property
    def rate_limit_key(self) -> str:
        """The visitor's hash."""
        return f"visitor:{self.visitor}"

    @property
    def share_subjects(self) -> tuple[str, ...]:
        """The visitor, and the visitor's network if there is one."""
        subjects = (self.rate_limit_key,)
        return (*subjects, f"network:{self.network}") if self.network else subjects

    @property
    def audit_actor(self) -> str:
        """The visitor's hash."""
        return f"visitor:{self.visitor}"

    @property
    def log_fields(self) -> dict[str, str]:
        """Return no fields, because only the operation finds out which workspace owns the page."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OperatorPrincipal(Principal):
    """The platform's operator at the command line.

    For an operation that keys may also call, the operator acts in a workspace with its plan.
    """

    audience: ClassVar[Audience] = Audience.OPERATOR
    limited: ClassVar[bool] = False

    @property
    def rate_limit_key(self) -> str:
        """The subject of the operator's idempotency keys, without rate limits."""
        return "operator"

    @property
    def audit_actor(self) -> str:
        """The operator."""
        return "operator"
