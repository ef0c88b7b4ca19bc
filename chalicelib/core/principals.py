"""Who calls: every door makes one of these, and ``application.invoke`` decides what each may do.

An operation declares its audience; nothing else asks whether there is a key.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from chalicelib.core.scopes import Scope

PLATFORM = "platform"
"""The tenant of what belongs to no workspace: accounts, the blog."""

MANAGING = frozenset({"owner", "manager"})
"""Places in a workspace that may change it; a plain member looks."""


class Audience(StrEnum):
    """For whom an operation is. A bot's own tools are the key audience's."""

    KEY = "key"
    SESSION = "session"
    PUBLIC = "public"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal(ABC):
    """A caller.

    ``workspace_id`` is where its calls work, ``plan`` that workspace's, whose quotas apply;
    ``role`` is that of the account, user or admin; ``client_ip`` is its IP address, as far as our
    own edge vouches for it.
    """

    audience: ClassVar[Audience]
    limited: ClassVar[bool] = True
    """Whether an operation's limit holds for it."""

    workspace_id: str = PLATFORM
    plan: str = ""
    account_id: str = ""
    role: str = "user"
    client_ip: str = ""

    @property
    @abstractmethod
    def rate_limit_key(self) -> str:
        """Whose calls are counted, and whose idempotency keys are kept, together."""

    @property
    @abstractmethod
    def audit_actor(self) -> str:
        """Who the audit log says it was: an account id, or what stands for one."""

    @property
    def log_fields(self) -> dict[str, str]:
        """What the request's log line says of the caller; no personal data."""
        return {"workspaceId": self.workspace_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyPrincipal(Principal):
    """A program, or an AI client, with a key of one workspace."""

    audience: ClassVar[Audience] = Audience.KEY

    key_id: str
    scopes: frozenset[Scope] = field(default_factory=frozenset)

    @property
    def rate_limit_key(self) -> str:
        """The key."""
        return f"key:{self.key_id}"

    @property
    def audit_actor(self) -> str:
        """The account that made the key."""
        return self.account_id

    @property
    def log_fields(self) -> dict[str, str]:
        """The workspace and the key."""
        return {"workspaceId": self.workspace_id, "keyId": self.key_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPrincipal(Principal):
    """A person in the console.

    ``membership`` is the place in the workspace: owner, manager or member; "" outside of one.
    ``session_id`` is the session's, not its token.
    """

    audience: ClassVar[Audience] = Audience.SESSION

    membership: str = ""
    session_id: str = ""

    @property
    def rate_limit_key(self) -> str:
        """The account."""
        return f"account:{self.account_id}"

    @property
    def audit_actor(self) -> str:
        """The account."""
        return self.account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorPrincipal(Principal):
    """Anybody on a public page, known by a hash of client IP and day only (security.md)."""

    audience: ClassVar[Audience] = Audience.PUBLIC

    visitor: str
    page_url: str = ""

    @property
    def rate_limit_key(self) -> str:
        """The visitor's hash."""
        return f"visitor:{self.visitor}"

    @property
    def audit_actor(self) -> str:
        """The visitor's hash."""
        return f"visitor:{self.visitor}"

    @property
    def log_fields(self) -> dict[str, str]:
        """Nothing: whose page it is, only the operation finds out."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPrincipal(Principal):
    """The platform's operator at the command line.

    In a workspace's place, with its plan, where an operation is for keys as well.
    """

    audience: ClassVar[Audience] = Audience.OPERATOR
    limited: ClassVar[bool] = False

    @property
    def rate_limit_key(self) -> str:
        """The operator, whose idempotency keys are kept."""
        return "operator"

    @property
    def audit_actor(self) -> str:
        """The operator."""
        return "operator"
