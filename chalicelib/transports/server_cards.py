"""Describe the tool servers for programs that have not connected yet. Experimental.

The cards are MCP's (SEP-2127, https://github.com/modelcontextprotocol/experimental-ext-server-card,
``schema.ts`` and ``docs/discovery.md`` of 2026-07-24), in an AI Catalog. A card of a booking page
exists only while its tools do.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import to_json

from chalicelib import SERVICE, VERSION
from chalicelib.core.settings import settings
from chalicelib.core.text import one_line
from chalicelib.domains.assistants.flows import visits
from chalicelib.domains.assistants.flows.visits import PageRef
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.transports import mcp
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import discovery, sites

CARD_TYPE = "application/mcp-server-card+json"
CATALOG_TYPE = "application/ai-catalog+json"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
MAX_TITLE = 100
_NOT_IN_NAMES = re.compile("[^a-zA-Z0-9.-]")
_FOR_ALL = "assistants"


def for_all(_: HttpRequest) -> HttpResponse:
    """Return the card of the tools of all listed businesses."""
    card = _card(
        _platform_name(_FOR_ALL),
        f"{settings().public_url}/assistants/mcp",
        title=SERVICE,
        description="Find a business, see its free times, and prepare a booking.",
        website=settings().public_url,
    )
    return _document(card, CARD_TYPE)


def of_page(request: HttpRequest) -> HttpResponse:
    """Return the card of a booking page, or raise NoToolsError as its tools do."""
    page = PageRef(workspace=request.path["workspace"])
    workspace = _open(visits.workspace_of(page))
    url = visits.url_of(workspace)
    card = _business_card(_platform_name(workspace.slug), url, workspace)
    return _document(card, CARD_TYPE)


def of_site_file(file: str, site_url: str, workspace_id: str) -> HttpResponse:
    """Return the card or the catalogue of a site, or raise NoToolsError if the tools are off."""
    workspace = _open(workspace_id)
    parts = urlsplit(site_url)
    # Without a host of its own, the name of a site must differ from that of a booking page.
    name = f"{_reversed(parts.hostname)}/site{parts.path.replace('/', '.').removeprefix('.s')}"
    if file == sites.CARD:
        return _document(_business_card(name, site_url, workspace), CARD_TYPE)
    return _catalog([(name, f"{site_url}/{sites.CARD}")])


def catalog(_: HttpRequest) -> HttpResponse:
    """Return the AI Catalog of the service's own host."""
    home = settings().public_url
    return _catalog(
        [
            (_platform_name(_FOR_ALL), f"{home}/assistants/mcp/server-card"),
        ]
    )


def _open(workspace_id: str) -> WorkspaceRow:
    visit = visits.open_visit(workspace_id)
    workspace = workspaces.get(workspace_id, visit.rows)
    if workspace.halt is not None:
        raise visits.no_tools()
    return workspace


def _business_card(name: str, url: str, workspace: WorkspaceRow) -> dict[str, Any]:
    return _card(
        name,
        f"{url}/mcp",
        title=one_line(workspace.name, MAX_TITLE),
        description="Services, free times and products of a business, and bookings.",
        website=url,
    )


def _card(name: str, url: str, *, title: str, description: str, website: str) -> dict[str, Any]:
    versions = [*mcp.HANDSHAKE_VERSIONS, *mcp.MODERN_VERSIONS]
    return {
        "$schema": SCHEMA,
        "name": name,
        "version": VERSION,
        "description": description,
        **({"title": title} if title else {}),
        "websiteUrl": website,
        "remotes": [{"type": "streamable-http", "url": url, "supportedProtocolVersions": versions}],
    }


def _platform_name(suffix: str) -> str:
    return f"{_reversed(urlsplit(settings().public_url).hostname)}/{suffix}"


def _reversed(host: str | None) -> str:
    return ".".join(reversed(_NOT_IN_NAMES.sub("-", host or "localhost").split(".")))


def _catalog(cards: list[tuple[str, str]]) -> HttpResponse:
    entries = []
    for name, url in cards:
        namespace, _, suffix = name.partition("/")
        publisher = _reversed(namespace)
        entries.append(
            {"identifier": f"urn:air:{publisher}:mcp:{suffix}", "type": CARD_TYPE, "url": url}
        )
    return _document({"specVersion": "1.0", "entries": entries}, CATALOG_TYPE)


def _document(content: dict[str, Any], media_type: str) -> HttpResponse:
    return discovery.file(to_json(content).decode(), media_type=media_type)
