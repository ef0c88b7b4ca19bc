"""The kinds of callers. Only ``application.invoke`` decides what a caller may do."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from chalicelib.core.scopes import Scope

PLATFORM = "platform"  # the tenant of data that belongs to no workspace: accounts and the blog


class Role(StrEnum):
    """The roles of a member, in ascending order."""

    ACCOUNT = "account"  # any signed-in account, also outside a workspace
    # A member of the staff, who sees and changes the own bookings only: by operations that declare
    # a part for the staff (``core.own_part``), whatever role they require of others.
    STAFF = "staff"
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
    audience: ClassVar[Audience]
    limited: ClassVar[bool] = True  # The limits of operations apply.

    workspace_id: str = PLATFORM
    plan: str = ""  # whose quotas apply
    account_id: str = ""
    role: str = "user"  # of the account: user or admin
    client_ip: str = ""  # if the edge of this service confirms it

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
    audience: ClassVar[Audience] = Audience.KEY

    key_id: str
    scopes: frozenset[Scope] = field(default_factory=frozenset)
    calls_per_minute: int | None = None  # at most, if the owner has set a limit

    @property
    def rate_limit_key(self) -> str:
        return f"key:{self.key_id}"

    @property
    def audit_actor(self) -> str:
        # Who created the key.
        return self.account_id

    @property
    def log_fields(self) -> dict[str, str]:
        return {"workspaceId": self.workspace_id, "keyId": self.key_id}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OAuthPrincipal(ApiKeyPrincipal):
    """An AI client that a user connected to one workspace."""

    # The name that the client gave itself. ``key_id`` is the id of the connection, so limits,
    # idempotency keys and the audit log do not depend on the access token.
    client_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionPrincipal(Principal):
    audience: ClassVar[Audience] = Audience.SESSION

    membership: Role = Role.ACCOUNT  # ``ACCOUNT`` outside a workspace
    resource_id: str = ""  # the member of the staff that a manager has linked the account to
    session_id: str = ""  # not the session's token
    # What the user has typed into the form, to prove once more to be the owner of the account.
    code: str = ""
    password: str = ""

    @property
    def rate_limit_key(self) -> str:
        return f"account:{self.account_id}"

    @property
    def audit_actor(self) -> str:
        return self.account_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VisitorPrincipal(Principal):
    """A visitor of a public page, identified only by a hash of the client IP and the day."""

    audience: ClassVar[Audience] = Audience.PUBLIC

    visitor: str
    network: str = ""  # a hash of the IPv6 network of 48 bits
    page_url: str = ""

    @property
    def rate_limit_key(self) -> str:
        return f"visitor:{self.visitor}"

    @property
    def share_subjects(self) -> tuple[str, ...]:
        subjects = (self.rate_limit_key,)
        return (*subjects, f"network:{self.network}") if self.network else subjects

    @property
    def audit_actor(self) -> str:
        return f"visitor:{self.visitor}"

    @property
    def log_fields(self) -> dict[str, str]:
        # Only the operation finds out which workspace owns the page.
        return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OperatorPrincipal(Principal):
    """The platform's operator at the command line, who acts in a workspace with its plan."""

    audience: ClassVar[Audience] = Audience.OPERATOR
    limited: ClassVar[bool] = False

    @property
    def rate_limit_key(self) -> str:
        return "operator"  # of idempotency keys, since no rate limits apply

    @property
    def audit_actor(self) -> str:
        return "operator"
