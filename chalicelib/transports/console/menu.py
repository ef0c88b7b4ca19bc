"""The menu of a workspace's pages, in groups. A member sees the pages that their role may open."""

from collections.abc import Callable
from typing import NamedTuple

from chalicelib.transports.console.routes import ROUTES, WORKSPACE


class Link(NamedTuple):
    """A link of the menu, with a path within the workspace, an icon or "", and a catalogue key.

    Links of closed groups have no icon, of which each page would carry 0.3 KB.
    """

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
# Pages of what the business sells, and what it is paid.
BUSINESS = (
    Link("/services", "concierge-bell", "services"),
    Link("/staff", "contact", "staff"),
    Link("/products", "package", "products"),
    Link("/payments", "credit-card", "payments"),
    Link("/reports", "chart-column", "reports"),
)
# Pages of what visitors see.
ONLINE = (
    Link("/booking-page", "calendar-check", "booking_page"),
    Link("/sites", "globe", "sites"),
    Link("/forms", "clipboard-list", "forms"),
    Link("/bots", "bot", "bots"),
    Link("/files", "image", "files"),
)
# Pages that an owner opens now and then.
SETTINGS = (
    Link("/settings", "", "workspace_settings"),
    Link("/members", "", "members"),
    Link("/notifications", "", "notifications"),
    Link("/balance", "", "balance"),
    Link("/audit", "", "audit_log"),
)
# Pages in the words of programmers.
PROGRAMS = (
    Link("/keys", "", "api_keys"),
    Link("/apps", "", "connected_apps"),
    Link("/webhooks", "", "webhooks"),
)
# The links of each group, by the key of its heading. The first group has none.
GROUPS = {
    "": DAILY,
    "business_pages": BUSINESS,
    "online_pages": ONLINE,
    "settings_pages": SETTINGS,
    "for_programs": PROGRAMS,
}
# The menu shows these groups closed, unless one of their pages is open.
CLOSED = ("settings_pages", "for_programs")


class Group(NamedTuple):
    """A group of links, and the catalogue key of its heading."""

    heading: str
    links: list[Link]

    @property
    def is_closed(self) -> bool:
        return self.heading in CLOSED

    def has(self, text: str) -> bool:
        """Whether one of the links has a catalogue key, such as the present page's."""
        return any(link.text == text for link in self.links)


def menu(may: Callable[[str], bool]) -> list[Group]:
    """Return the groups of links to pages that the member may open, without empty groups."""
    groups = [
        Group(heading, [link for link in links if may(link.operation)])
        for heading, links in GROUPS.items()
    ]
    return [group for group in groups if group.links]
