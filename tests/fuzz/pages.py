"""The public pages that take a query, with extreme values of each parameter.

``python -m tests.fuzz.pages FILE`` writes an OpenAPI document of the pages for Schemathesis. The
pages are those of the server at ``BASE_URL``, with a booking and links that it makes there.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGES: Mapping[str, tuple[str, ...]] = {
    "/": ("lang",),
    "/blog": ("page", "tag"),
    "/api/docs": ("q",),
    "/form/{form}": ("prepared", "order"),
    "/s/{site}": ("utm_source",),
    "/s/{site}/{page}": ("utm_source",),
    "/s/{site}/{products}/{feed}": ("page",),
    "/book/{workspace}": ("staff", "at", "prepared"),
    "/book/{workspace}/{service}": (
        *("staff", "at", "month", "day", "prepared", "then", "step"),
        *("price", "durationMin", "amountDue", "refundUntilMin"),
    ),
    "/booking/{manage}": ("step", "staff", "at", "resource", "month", "day"),
    "/pay/{pay}": ("back",),
    "/api/public/services/{service}/slots": (
        *("from", "to", "timezone", "resourceId", "limit", "andThen"),
    ),
    "/api/public/business": ("workspace",),
    "/api/public/services": ("workspace", "page", "size"),
    "/api/public/products": ("workspace", "page", "size"),
    "/api/public/agents/{agent}": ("apiKey",),
    "/api/blog/list": ("page", "size", "tag"),
}
"""Paths of pages and of visitors' reads, each with the parameters of its query."""
EXTREMES = (
    "9999-12-31T23:59:59+00:00",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2999-12-31T23:59:59-23:59",
    "1971-01-01T00:00:00+23:59",
    "9999-12-31",
    "0001-01-01",
    "2999-12-31",
    "9999-12",
    "0000-00",
    "2030-02-30",
    "-1",
    "0",
    "9223372036854775808",
    "1e400",
    "NaN",
    "9" * 400,
    "٣",
    "²",
    "\0",
    "😀" * 300,
    "<script>",
    "../..",
    "%",
    "true",
    "any",
    "99999999999999999999.a",
)
"""Values at and beyond the bounds of dates, numbers and texts."""
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "/api/public/business": ("workspace",),
    "/api/public/services": ("workspace",),
    "/api/public/products": ("workspace",),
}
"""Required parameters. Their values are those of the paths."""
STEPS: Mapping[str, Mapping[str, str]] = {
    "/book/{workspace}/{service}": {"staff": "any", "at": "2999-12-31T23:59:59+00:00"},
    "/booking/{manage}": {"step": "move"},
    "/pay/{pay}": {"back": "1"},
}
"""The rest of the query, with which a page shows more than its first step."""


def document(places: Mapping[str, str]) -> dict[str, Any]:
    """Return an OpenAPI document of the pages. ``places`` are the values of their paths."""

    def parameter(path: str, name: str) -> dict[str, Any]:
        """Any text, or one of the extremes. Other steps than the first need a fixed value."""
        is_required = name in REQUIRED.get(path, ())
        value = places[name] if is_required else STEPS.get(path, {}).get(name)
        texts = [*EXTREMES, *([value] if value else [])]
        schema = {"anyOf": [{"type": "string"}, {"enum": texts}]}
        return {"name": name, "in": "query", "required": is_required, "schema": schema}

    return {
        "openapi": "3.1.0",
        "info": {"title": "Public pages", "version": "1"},
        "paths": {
            path.format(**places): {
                "get": {
                    "parameters": [parameter(path, name) for name in names],
                    "responses": {"default": {"description": "A page, a redirect or a refusal."}},
                }
            }
            for path, names in PAGES.items()
        },
    }


def _made_on_server(base: str, key: str) -> dict[str, str]:
    """Return the values of the paths on a server with the demo, and make a booking that is held."""
    import httpx

    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {key}"}) as client:

        def call(method: str, path: str, **arguments: Any) -> Any:
            sent = {"params": arguments} if method == "GET" else {"json": arguments}
            data = client.request(method, f"/api{path}", **sent).json()["data"]
            assert data["status"], data
            return data

        services = call("GET", "/services/list", size=100)["services"]
        paid = next(each for each in services if each["requirePayment"])
        slots = call("GET", f"/public/services/{paid['id']}/slots", limit=1)["slots"]
        made = call(
            "POST",
            "/public/bookings",
            serviceId=paid["id"],
            startAt=slots[0]["startAt"],
            client={"name": "Fuzz", "email": "fuzz@example.com"},
        )
        site = call("GET", "/projects/list")["projects"][0]
        pages = call("GET", "/pages/list", projectId=site["id"])["pages"]
        return {
            "workspace": call("GET", "/workspaces/list")["workspaces"][0]["slug"],
            "service": paid["id"],
            "manage": made["manageUrl"].rpartition("/")[2],
            "pay": made["paymentUrl"].rpartition("/")[2],
            "site": site["slug"],
            "page": pages[0]["slug"],
            "products": "products",
            "feed": "feed.xml",
            "form": call("GET", "/forms/list")["forms"][0]["id"],
            "agent": call("GET", "/agents/list")["agents"][0]["id"],
        }


if __name__ == "__main__":
    (file,) = sys.argv[1:]
    places = _made_on_server(os.environ["BASE_URL"], os.environ["API_KEY"])
    Path(file).write_text(json.dumps(document(places)))
