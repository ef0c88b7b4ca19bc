"""First pages of sites by trade, made of what the workspace has already.

The words are the console's texts, in its language. Services, photos, hours and the address appear
only if there are any, so no page has an empty section.
"""

from typing import Any, Literal, get_args

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.lazy import Lazy

Trade = Literal["salon", "cafe", "clinic", "workshop"]
TRADES = get_args(Trade)
MAX_SERVICES = 20
"""The first services, whose photos a starting page may show. Its owner can choose others."""
_HOURS: Lazy[[str], list[Any]] = Lazy("chalicelib.transports.web.page_sections:weekly_hours")


def first_sections(request: ConsoleRequest, trade: str) -> list[dict[str, Any]]:
    """Return the sections of the first page of a trade: up to six parts, each with its heading."""
    services = request.call("list_services", status="active", size=MAX_SERVICES)["services"]
    photos = [image["fileId"] for each in services for image in each["images"] if image["fileId"]]
    address = request.call("get_workspace")["workspace"]["address"]

    def words(part: str) -> str:
        return request.translate(f"trade_{trade}_{part}")

    def heading(part: str) -> dict[str, Any]:
        return {"type": "heading", "text": request.translate(f"trade_{part}")}

    hero = {"type": "hero", "title": words("title"), "text": words("lead")}
    about = {"type": "columns", "title": words("about"), "text": words("about_text")}
    for section, photo in zip((hero, about), photos, strict=False):
        section["fileId"] = photo
    sections = [hero, about, heading("steps"), {"type": "text", "text": words("steps")}]
    if services:
        sections += [heading("prices"), {"type": "prices"}]
    if _HOURS(request.current_membership.workspace.id):
        sections += [heading("hours"), {"type": "hours"}]
    if address:
        sections += [heading("map"), {"type": "map", "text": address}]
    return sections
