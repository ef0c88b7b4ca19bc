"""The menu of a workspace's pages, in groups. A member sees the pages that their role may open."""

from collections.abc import Callable
from typing import NamedTuple

from chalicelib.transports.console.routes import ROUTES, WORKSPACE


class Link(NamedTuple):
    """A link of the menu, with a path within the workspace, an icon, and a catalogue key."""

    path: str
    icon: str
    text: str

    @property
    def operation(self) -> str:
        return ROUTES[WORKSPACE + self.path].shows


# Pages of every day. Phones show them without opening the menu.
DAILY = (
    Link("", "layout-dashboard", "overview"),
    Link("/leads", "inbox", "leads"),
    Link("/bookings", "calendar-check", "bookings"),
    Link("/clients", "users", "clients"),
    Link("/dialogs", "messages-square", "dialogs"),
)
# Pages of what visitors see.
ONLINE = (
    Link("/services", "concierge-bell", "services"),
    Link("/staff", "contact", "staff"),
    Link("/booking-page", "calendar-check", "booking_page"),
    Link("/forms", "clipboard-list", "forms"),
    Link("/products", "package", "products"),
    Link("/files", "image", "files"),
    Link("/bots", "bot", "bots"),
    Link("/sites", "globe", "sites"),
)
# Pages of settings and money.
SETTINGS = (
    Link("/settings", "settings", "workspace_settings"),
    Link("/members", "users-round", "members"),
    Link("/payments", "credit-card", "payments"),
    Link("/balance", "wallet", "balance"),
    Link("/notifications", "bell", "notifications"),
    Link("/audit", "scroll-text", "audit_log"),
)
# Pages in the words of programmers. The menu shows them closed.
PROGRAMS = (
    Link("/keys", "key-round", "api_keys"),
    Link("/apps", "plug", "connected_apps"),
    Link("/webhooks", "webhook", "webhooks"),
)
# The links of each group, by the key of its heading. The first group has none.
GROUPS = {
    "": DAILY,
    "online_pages": ONLINE,
    "settings_pages": SETTINGS,
    "for_programs": PROGRAMS,
}


class Group(NamedTuple):
    heading: str
    links: list[Link]

    @property
    def is_closed(self) -> bool:
        return self.heading == "for_programs"


def menu(may: Callable[[str], bool]) -> list[Group]:
    """Return the groups of links to pages that the member may open, without empty groups."""
    groups = [
        Group(heading, [link for link in links if may(link.operation)])
        for heading, links in GROUPS.items()
    ]
    return [group for group in groups if group.links]
