"""Pages that AI clients show beside the results of tools (MCP Apps, SEP-1865, 2026-01-26).

A tool names its page in ``_meta.ui.resourceUri``. The client reads the page by ``resources/read``,
shows it in a frame without a network, and sends it the result of the tool. ``mcp_app_pages`` writes
the pages.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from chalicelib.core.operations import REGISTRY
from chalicelib.core.settings import settings

EXTENSION: Final = "io.modelcontextprotocol/ui"
MEDIA_TYPE: Final = "text/html;profile=mcp-app"


class App(NamedTuple):
    """A page, and the tools that name it."""

    name: str
    title: str
    description: str
    tools: tuple[str, ...]
    shows_images: bool = False

    @property
    def uri(self) -> str:
        return f"ui://workspace-automation/{self.name}"

    @property
    def tool_meta(self) -> dict[str, Any]:
        """``_meta`` of a tool that names the page."""
        return {"ui": {"resourceUri": self.uri}}

    @property
    def _meta(self) -> dict[str, Any]:
        # Nothing is loaded but pictures of products, which the service itself serves.
        own = urlsplit(settings().public_url)
        images = [f"{own.scheme}://{own.netloc}"] if self.shows_images else []
        csp = {
            "connectDomains": [],
            "resourceDomains": images,
            "frameDomains": [],
            "baseUriDomains": [],
        }
        return {"ui": {"csp": csp, "prefersBorder": True}}

    @property
    def definition(self) -> dict[str, Any]:
        """The page in ``resources/list``."""
        return {
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": MEDIA_TYPE,
            "_meta": self._meta,
        }

    def contents(self, html: str) -> dict[str, Any]:
        """Return the page with its HTML, as in ``resources/read``."""
        return {"uri": self.uri, "mimeType": MEDIA_TYPE, "text": html, "_meta": self._meta}


TIMES = App(
    "times",
    "Free times",
    "Shows the free times of a service. A tap prepares the booking of a time, and opens its page.",
    ("find_free_times",),
)
PRODUCTS = App(
    "products",
    "Products",
    "Shows products with photos and prices. The chosen ones become a prepared order.",
    ("search_catalog", "lookup_catalog", "get_product"),
    shows_images=True,
)
DAY = App(
    "day",
    "Bookings",
    "Shows bookings by day and by member of the staff.",
    ("svc_list_bookings",),
)
REPORT = App(
    "report",
    "Report",
    "Shows leads by day and source, and what was booked by week, service and member of the staff.",
    ("svc_crm_stats",),
)
FOR_VISITORS = (TIMES, PRODUCTS)
FOR_MEMBERS = (DAY, REPORT)


@cache
def by_tool(apps: tuple[App, ...]) -> Mapping[str, App]:
    """Return the page of each tool that has one."""
    return {tool: app for app in apps for tool in app.tools}


def declares(capabilities: object) -> bool:
    """Whether capabilities of a client name the extension."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and EXTENSION in extensions


class Record(NamedTuple):
    """A resource with the JSON of an operation, whose query parameters are the arguments."""

    uri: str
    title: str
    operation: str

    @property
    def definition(self) -> dict[str, Any]:
        """The record in ``resources/list``."""
        entry = REGISTRY.entry(self.operation)
        return {
            "uri": self.uri,
            "name": self.operation,
            "title": self.title,
            "description": entry.title,
            "mimeType": "application/json",
        }


BOOKINGS = Record(
    "report://workspace-automation/bookings",
    "Report of the bookings of the last 30 days",
    "get_report",
)
