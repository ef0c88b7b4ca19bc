"""``server.json``: the entry of a deployed tool server in the registry of MCP servers.

Source: the registry's schema of 2025-12-11. An operator publishes the entry with the registry's own
tool, under a name that begins with the operator's domain.
"""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import click

from chalicelib import SERVICE, VERSION

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
NAME = re.compile(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
MAX_NAME = 200
DESCRIPTION = "Sites, leads, bookings, products, files and chat bots of a workspace."


def entry(url: str, name: str | None = None) -> dict[str, Any]:
    """Return the entry of the tool server at a base URL.

    ``name`` is by default the domain in reverse order with ``/workspace-automation``. Clients sign
    users in by OAuth, or send a key if one is configured.

    Raises:
        ValueError: the URL is not public, or the name does not match the registry's pattern.
    """
    from chalicelib.transports.mcp import ICON_PATH, ICON_TYPE  # noqa: PLC0415  slow to import

    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or "." not in parts.hostname or parts.path:
        msg = f"expected a base URL such as https://api.example.com, received {url}"
        raise ValueError(msg)
    name = name or f"{'.'.join(reversed(parts.hostname.split('.')))}/workspace-automation"
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        msg = f"expected a name such as com.example/workspace, received {name}"
        raise ValueError(msg)
    key = {
        "name": "Authorization",
        "description": "Bearer and an API key of the workspace, for clients without sign-in.",
        "isRequired": False,
        "isSecret": True,
    }
    return {
        "$schema": SCHEMA,
        "name": name,
        "title": SERVICE,
        "description": DESCRIPTION,
        "version": VERSION,
        "websiteUrl": f"{url}/api/docs/tool-server",
        "icons": [{"src": url + ICON_PATH, "mimeType": ICON_TYPE, "sizes": ["any"]}],
        "remotes": [{"type": "streamable-http", "url": f"{url}/api/mcp", "headers": [key]}],
    }


@click.command("server-json")
@click.option("--url", required=True, help="Base URL of the deployed stage.")
@click.option("--name", help="Name in the registry; by default from the domain.")
def server_json(url: str, name: str | None) -> None:
    """Print the entry of the tool server for the registry of MCP servers."""
    try:
        click.echo(json.dumps(entry(url.rstrip("/"), name), indent=2, ensure_ascii=False))
    except ValueError as error:
        msg = f"{str(error)[0].upper()}{str(error)[1:]}."
        raise click.ClickException(msg) from None
