"""The areas of the product, one row each.

Scopes, the reference, the console and the audit log read this table. An area with scopes is a
toolset of the tool server and a row in the console's form for a new key. Every area is a page of
the reference. The audit log divides some areas further: it lists categories separately from
products.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Area(NamedTuple):
    """An area with the title and the description of its part of the reference."""

    name: str
    title: str
    about: str
    scoped: bool = True
    """Whether it has the scopes ``<name>:read`` and ``<name>:write``."""
    admin_only: bool = False
    """Whether only keys of ADMIN accounts may have its scopes."""
    written_by_agents: bool = False
    """Whether the console suggests its write scope for AI clients."""
    example: str = ""
    """A path for a first call with a key that may read the area."""
    logged: Mapping[str, str] = {}
    """Names in the audit log. Keys are beginnings of routes after ``/api/``, modules or domains."""

    @property
    def text(self) -> str:
        """Key of the area's name in the console's catalogue."""
        return f"area_{self.name}"


WORKSPACE = Area(
    "workspace",
    "Workspace",
    "Operations that every key can call, whatever its scopes.",
    scoped=False,
    example="/api/workspaces/list",
    logged={
        "identity": "identity",
        "billing": "billing",
        "overview": "overview",
        "webhooks": "webhooks",
        "mails": "identity",
        "notifications": "identity",
        "oauth": "identity",
    },
)
CHAT = Area(
    "chat",
    "Bot chat",
    "Chat with a bot without an API key. The answer is a stream of events.",
    scoped=False,
    logged={"chat": "dialogs"},
)
PUBLIC = Area(
    "public",
    "Public endpoints",
    "Operations that pages call for their visitors, without a key.",
    scoped=False,
)
AREAS = (
    WORKSPACE,
    Area(
        "projects",
        "Sites",
        "Web sites: their titles, URLs, domains and statistics.",
        example="/api/projects/list",
        logged={"projects": "sites", "sites": "sites"},
    ),
    Area(
        "pages",
        "Pages",
        "The pages of a site, and their HTML.",
        written_by_agents=True,
        logged={"pages": "pages"},
    ),
    Area(
        "products",
        "Products",
        "The catalogue: products, stock, categories, and help with cards.",
        written_by_agents=True,
        example="/api/products/list",
        logged={"catalog": "products", "categories": "categories"},
    ),
    Area(
        "services",
        "Services",
        "Bookable services, their staff and equipment, and opening hours.",
        written_by_agents=True,
        example="/api/services/list",
        logged={"services": "services", "resources": "resources"},
    ),
    Area(
        "bookings",
        "Bookings",
        "Free slots, and the bookings that fill them.",
        written_by_agents=True,
        example="/api/bookings/list",
        logged={
            "bookings": "bookings",
            "schedule": "bookings",
            "booking_page": "bookings",
            "payments": "bookings",
            "assistants": "bookings",
        },
    ),
    Area(
        "crm",
        "Leads and clients",
        "Lead forms, submitted leads, and the clients behind them.",
        written_by_agents=True,
        example="/api/forms/collection-list",
        logged={
            "forms/collection": "leads",
            "forms": "forms",
            "public/forms": "forms",
            "leads": "leads",
            "clients": "clients",
            "client_profiles": "clients",
        },
    ),
    Area(
        "files",
        "Files",
        "Files and folders of the workspace.",
        written_by_agents=True,
        example="/api/file-folders",
        logged={"files": "files"},
    ),
    Area(
        "agents",
        "Bots",
        "Chat bots, their dialogs and statistics.",
        example="/api/agents/list",
        logged={"bots": "agents", "knowledge": "agents"},
    ),
    Area(
        "blog",
        "Blog",
        "The platform's blog, for keys of ADMIN accounts.",
        admin_only=True,
        logged={"blog": "blog"},
    ),
    CHAT,
    PUBLIC,
)
SCOPED = {area.name: area for area in AREAS if area.scoped}
_LOGGED = {beginning: name for area in AREAS for beginning, name in area.logged.items()}


def logged_as(module: str, *, path: str = "") -> str | None:
    """Return the audit log's name for the area of an operation or a job.

    The route of the operation decides. If no area has that route, the name of the module decides,
    then the domain. Returns None if no area matches.
    """
    _, _, inside = module.partition(".domains.")
    if not inside:
        return None
    domain, *_, noun = inside.split(".")
    route = path.removeprefix("/api/")
    by_route = (name for beginning, name in _LOGGED.items() if route.startswith(beginning))
    return next(by_route, None) or _LOGGED.get(noun) or _LOGGED.get(domain)
