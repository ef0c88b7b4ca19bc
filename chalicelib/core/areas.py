"""The areas of the product: scopes, toolsets, pages of the reference, names in the audit log."""

from collections.abc import Mapping
from typing import NamedTuple


class Area(NamedTuple):
    name: str
    title: str
    about: str
    scoped: bool = True  # has the scopes ``<name>:read`` and ``<name>:write``
    admin_only: bool = False  # Only keys of ADMIN accounts may have its scopes.
    # Its scopes are for keys only, and are granted by name: ``*:read``, ``*:write`` and the
    # console's presets leave them out, and OAuth clients cannot ask for them.
    by_name: bool = False
    written_by_agents: bool = False  # The console suggests its write scope for AI clients.
    example: str = ""  # a path for a first call with a key that may read the area
    # Names in the audit log, which divides some areas further. Keys are beginnings of routes after
    # ``/api/``, modules or domains.
    logged: Mapping[str, str] = {}

    @property
    def text(self) -> str:
        return f"area_{self.name}"

    def meaning(self, right: str) -> str:
        """Return the catalogue key of what a scope, ``read`` or ``write``, lets a key do."""
        return f"scope_{self.name}_{right}"


WORKSPACE = Area(
    "workspace",
    "Workspace",
    "Operations that every key can call, whatever its scopes.",
    scoped=False,
    example="/api/workspaces/list",
    logged={
        "identity": "identity",
        "billing": "billing",
        "exports": "identity",
        "imports": "identity",
        "overview": "overview",
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
            "waiting": "bookings",
            "reports": "bookings",
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
    Area(
        "webhooks",
        "Webhooks",
        "The URLs that receive events, and what was sent to them.",
        by_name=True,
        example="/api/webhooks/list",
        logged={"webhooks": "webhooks"},
    ),
    Area(
        "settings",
        "Settings",
        "Settings of the workspace and of its booking page, the audit log, and usage.",
        by_name=True,
        example="/api/workspace",
    ),
    CHAT,
    PUBLIC,
)
SCOPED = {area.name: area for area in AREAS if area.scoped}
_LOGGED = {beginning: name for area in AREAS for beginning, name in area.logged.items()}


def logged_as(module: str, *, path: str = "") -> str | None:
    """Return the audit log's name for the area of an operation or a job, or None."""
    _, _, inside = module.partition(".domains.")
    if not inside:
        return None
    domain, *_, noun = inside.split(".")
    route = path.removeprefix("/api/")
    # The route decides; without a match the name of the module, then the domain.
    by_route = (name for beginning, name in _LOGGED.items() if route.startswith(beginning))
    return next(by_route, None) or _LOGGED.get(noun) or _LOGGED.get(domain)
