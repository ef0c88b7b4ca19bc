"""The rights of a key."""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Literal, get_args

from chalicelib.core.areas import SCOPED

Role = Literal["user", "admin"]


class Scope(StrEnum):
    """One right of a key, ``<area>:read`` or ``<area>:write``. Write does not imply read."""

    PROJECTS_READ = "projects:read"
    PROJECTS_WRITE = "projects:write"
    PAGES_READ = "pages:read"
    PAGES_WRITE = "pages:write"
    PRODUCTS_READ = "products:read"
    PRODUCTS_WRITE = "products:write"
    SERVICES_READ = "services:read"
    SERVICES_WRITE = "services:write"
    BOOKINGS_READ = "bookings:read"
    BOOKINGS_WRITE = "bookings:write"
    CRM_READ = "crm:read"
    CRM_WRITE = "crm:write"
    FILES_READ = "files:read"
    FILES_WRITE = "files:write"
    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    BLOG_READ = "blog:read"
    BLOG_WRITE = "blog:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    SETTINGS_READ = "settings:read"
    SETTINGS_WRITE = "settings:write"

    @property
    def area(self) -> str:
        """The part before the colon.

        >>> Scope("crm:read").area
        'crm'
        """
        return self.value.partition(":")[0]

    @property
    def admin_only(self) -> bool:
        return SCOPED[self.area].admin_only

    @property
    def by_name(self) -> bool:
        return SCOPED[self.area].by_name


PATTERNS = ("*:read", "*:write")


@lru_cache(maxsize=1024)
def expand(grants: tuple[str, ...]) -> frozenset[Scope]:
    """Return the scopes that stored grants include.

    ``*:read`` and ``*:write`` include all areas except those that are granted by name.
    """
    scopes: set[Scope] = set()
    for grant in grants:
        if grant in PATTERNS:
            right = grant.removeprefix("*")
            scopes.update(scope for scope in Scope if scope.endswith(right) and not scope.by_name)
        else:
            scopes.add(Scope(grant))
    return frozenset(scopes)


def parse_grants(grants: Iterable[str]) -> list[str]:
    """Return the grants once each, in a fixed order; raise ValueError for none or unknown ones."""
    valid_grants = [*PATTERNS, *(scope.value for scope in Scope)]
    requested_grants = {grant.strip() for grant in grants} - {""}
    if unknown := sorted(requested_grants - set(valid_grants)):
        msg = f"unknown scope {', '.join(unknown)}; expected scopes from {', '.join(valid_grants)}"
        raise ValueError(msg)
    if not requested_grants:
        msg = f"no scope received; expected scopes from {', '.join(valid_grants)}"
        raise ValueError(msg)
    return [grant for grant in valid_grants if grant in requested_grants]


ROLES: tuple[Role, ...] = get_args(Role)
