"""The ids of demo records that the reference of ``make dev`` shows in its examples."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infra.local.demo.caller import Caller


def example_ids(call: "Caller") -> dict[str, str]:
    """Return the id for each placeholder in capitals, such as ``PRODUCT_ID``."""
    site = _first(call("list_sites"), "projects")
    product = _first(call("list_products"), "products")
    agent = _first(call("list_agents"), "agents")
    found_ids = {
        "SITE_ID": site,
        "PAGE_ID": _last(call("list_pages", projectId=site["id"]), "pages") if site else None,
        "FORM_ID": _last(call("list_forms"), "forms"),
        "LEAD_ID": _first(call("list_leads"), "collections"),
        "CLIENT_ID": _first(call("list_clients"), "clients"),
        "PRODUCT_ID": product,
        "CATEGORY_ID": product and {"id": product["categoryId"]},
        "SERVICE_ID": _first(call("list_services"), "services"),
        "RESOURCE_ID": _first(call("list_resources"), "resources"),
        "TIME_OFF_ID": _first(call("list_time_off"), "timeOff"),
        "BOOKING_ID": _first(call("list_bookings"), "bookings"),
        "FOLDER_ID": _first(call("list_files"), "folders"),
        "FILE_ID": _first(call("list_files"), "files"),
        "AGENT_ID": agent,
        "POST_ID": _first(call("list_blog_posts"), "posts") if call.is_admin else None,
    }
    if agent:
        found_ids["DIALOG_ID"] = _first(call("list_agent_dialogs", agentId=agent["id"]), "dialogs")
        found_ids["SOURCE_ID"] = _first(call("list_knowledge", id=agent["id"]), "sources")
    ids: dict[str, str] = {
        name: record["id"] for name, record in found_ids.items() if record and record["id"]
    }
    if post := found_ids["POST_ID"]:
        ids["POST_SLUG"] = post["slug"]
    return ids


def _first(answer: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next(iter(answer[name]), None)


def _last(answer: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next(reversed(answer[name]), None)
