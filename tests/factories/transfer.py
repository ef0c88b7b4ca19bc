"""A workspace with records of every type, and the data by which workspaces are compared."""

import json
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import ApiKeyPrincipal, Audience
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.imports.rules.job_kinds import IMPORT
from chalicelib.domains.waiting.flows import lines
from chalicelib.domains.waiting.store.waiting_lines import LinePlace
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.reading import Item
from tests.conftest import Answer, Api, Owner, all_rows, call_operator
from tests.factories.examples import FORM, Things, example, submit, talk
from tests.factories.salon import Salon

OUTSIDE = {"lookup_barcode", "search_card_images", "ai_fill_product", "ai_fill_service"}
READS = [
    operation
    for operation in REGISTRY.select(Audience.KEY)
    if operation.read_only
    and not operation.platform
    and operation.name not in {*OUTSIDE, "list_workspaces", "get_available_slots"}
    # Exports, imports, deliveries, calls and the audit log are not exported.
    # Webhooks are imported paused.
    and operation.name
    not in {
        *("get_export", "get_import", "get_usage", "list_audit_log", "list_key_errors"),
        *("list_webhook_deliveries", "list_webhooks"),
    }
]
"""Read operations that show a key data of its own workspace."""
PHOTO = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
ID = re.compile(r"(?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Z]{25}")
BEHIND = (
    "EXPORT",
    "IMPORT",
    "MEMBER",
    "APIKEY",
    "BOTKEY",
    "UPLOAD",
    "LOCK",
    "SEEN",
    "VISIT",
    "IDEMPOTENCY",
    "LEAD#SUBMITTED",
)
"""Partitions that are not exported, or contain ids of accounts. So does the audit log."""


@dataclass(frozen=True)
class Furnished:
    """A workspace, and ids of its records."""

    workspace: str
    owner_email: str
    things: Things
    salon_service: str
    held_booking: str
    answers: dict[str, Any]
    """The responses of all read operations at the time of the export."""

    @property
    def reads(self) -> dict[str, Any]:
        """The responses of all read operations."""
        return reads(self.workspace, self.things, self.salon_service)


def call_with_key(workspace: str, operation: str, /, **arguments: Any) -> Any:
    """Run an operation as a key with every scope would."""
    principal = ApiKeyPrincipal(
        workspace_id=workspace, key_id="k", plan="business", scopes=frozenset(Scope)
    )
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]


def reads(workspace: str, things: Things, service: str) -> dict[str, Any]:
    """Return the responses of all read operations about a workspace's records."""
    reads = {
        operation.name: call_with_key(workspace, operation.name, **example(operation, things))
        for operation in READS
    }
    for noun in ("products", "leads", "clients", "bookings", "sites", "files", "services"):
        reads[f"all {noun}"] = call_with_key(workspace, f"list_{noun}")
    # These are not exported.
    del reads["get_agent"]["keys"], reads["get_calendar_links"], reads["get_busy_calendars"]
    versions = reads["list_page_versions"]  # as above
    versions.update(versions=[], total=0, pagination={})
    slots = {"serviceId": service, "from": "2027-02-01", "to": "2027-02-03"}
    reads["slots"] = call_with_key(workspace, "get_available_slots", **slots)
    days = {"from": "2027-01-01", "to": "2027-01-31"}
    reads["stats"] = call_with_key(workspace, "crm_stats", **days)
    return reads


def public(path: str, body: Any) -> Answer:
    """Send a request as a visitor's page does."""
    headers = {"Content-Type": "text/plain", "User-Agent": "Mozilla/5.0 Firefox/150.0"}
    answer = Api(None).call("POST", path, json.dumps(body).encode(), headers)
    assert answer.status in {200, 202}, answer.body
    return answer


def furnish(api: Api, owner: Owner, things: Things, txt_records: dict[str, Any]) -> Furnished:
    """Add data that is stored in other ways than as records."""
    workspace, t = owner.workspace.id, things
    file = api.post("/api/files/upload", {"name": "ёлка.png", "content": PHOTO})["file"]
    html = (
        f'<img src="{file["url"]}"><a href="/s/bakery/about">About</a>'
        f'<form action="http://127.0.0.1:8000/api/public/forms/{t.form}/submit">'
        "<i>01ARZ3NDEKTSV4RRFFQ69G5FAV</i>"
    )
    api.post("/api/pages/save-html", {"id": t.page, "html": html})
    api.post("/api/pages/update", {"id": t.page, "designSystem": {"a": "x" * 5000}})
    body = {"name": "Ёлочный", "price": 100, "images": [{"url": file["url"]}], "sku": "Ё-1"}
    body |= {"externalId": "erp-1", "metadata": {"shelf": "A7"}}
    api.post("/api/products/create", body | {"categoryId": t.category})
    submit(t.form, name="Long", email="long@example.com", message="ж" * 4900)
    call_with_key(workspace, "set_lead_status", id=t.lead, status="in_progress")
    call_with_key(workspace, "update_lead", id=t.lead, notes="Call")
    marks = {"externalId": "erp-1", "metadata": {"shelf": "A7"}}
    gone = api.post("/api/projects/create", {"title": "Gone", **marks})["project"]["id"]
    page = api.post("/api/pages/create", {"projectId": gone, "title": "Gone", **marks})
    page = page["page"]["id"]
    api.post("/api/pages/save-html", {"id": page, "html": "<p>Gone</p>"})
    api.post("/api/forms/create", FORM | {"projectId": gone, **marks})
    api.post("/api/projects/delete", {"id": gone})
    for noun, record in (("projects", t.site), ("pages", t.page), ("forms", t.form)):
        api.post(f"/api/{noun}/update", {"id": record, **marks})
    binding = api.post("/api/projects/set-domain", {"id": t.site, "domain": "www.example.com"})
    for record in binding["domain"]["records"]:
        txt_records[record["host"]] = {record["value"]}
    later = clock.now() + timedelta(minutes=6)
    with clock.using(lambda: later):
        response = api.post("/api/projects/set-domain", {"id": t.site, "domain": "www.example.com"})
    assert response["domain"]["status"] == "verified"
    body = {"startAt": "2027-05-01T10:00:00Z", "endAt": "2027-05-01T12:00:00Z", "reason": "Все"}
    api.post("/api/resources/create-time-off", body)
    salon = Salon.opened(api, [{}, {}])
    salon.book("2027-02-02T10:00", "Zoe Ray", ignoreSchedule=True)
    cancelled = salon.book("2027-02-02T12:00", "Zoe Ray", ignoreSchedule=True)
    salon.set_status(cancelled["id"], "cancelled", reason="Ill")
    own = {"resourceId": salon.resources[1], "price": 170_000, "durationMin": 60}
    with_bot = {"id": salon.service, "requirePayment": True, "agentId": t.agent}
    with_bot["resourceOverrides"] = [own]
    api.post("/api/services/update", with_bot)
    booking = salon.book("2027-02-03T12:00", "Kim", ignoreSchedule=True)
    call_operator("create_account", email="mate@example.com", password="long enough")
    call_operator("add_member", workspaceId=workspace, email="mate@example.com", role="manager")
    call_operator("set_bot_limits", agentId=t.agent, daily=5000)
    call_operator("create_bot_key", agentId=t.agent, name="k")
    talk(t.agent, "And rolls? Write to bob@example.com")
    event = {"agentId": t.agent, "visitId": "V" * 20, "stage": "opened", "projectId": t.site}
    public("/api/public/widget-event", event | {"pageUrl": "https://a.example/x"})
    public("/api/public/hit", {"projectId": t.site, "pageId": t.page})
    # Otherwise the job of the export's run would attend to the line, and write it again.
    for entry in api.get("/api/bookings/waiting")["waiting"]:
        place = LinePlace(date.fromisoformat(entry["day"]), entry["serviceId"])
        lines.attend(workspace, place)
    # The table would arrive before or after the rows are read, as the order of jobs decides.
    for job in JobRow.scan(JobRow.kind == IMPORT):
        job.delete()
    email = accounts.get(owner.workspace.owner_id).email
    return Furnished(workspace, email, t, salon.service, booking["id"], {})


def rows_of(workspace: str) -> dict[str, Item]:
    """Return the rows of all tables in a workspace's partitions."""
    mark = f"/W#{workspace}#"
    return {key: item for key, item in all_rows().items() if mark in key}


def is_behind(key: str, workspace: str) -> bool:
    """Return whether an export leaves a row out."""
    at = key.partition(f"W#{workspace}#")[2]
    return at.startswith((*BEHIND, "AUDIT"))


def comparable(rows: dict[str, Any], workspace: str) -> dict[str, Any]:
    """Return rows without the values that an import changes although their meaning is the same."""
    comparable_rows = {}
    for key, item in rows.items():
        # Webhooks are imported paused. Links of calendars are not exported.
        skipped = ("#COUNT#", "/files", "#PAGE#VERSION/", "#WEBHOOK#TRASH/")
        skipped += ("#CALENDAR_LINK/", "#BUSY_CALENDAR/", "#REPORT")
        if is_behind(key, workspace) or any(part in key for part in skipped):
            continue
        if "#CALENDAR#" in key:
            lines = item.get("entries", {"S": ""})["S"].splitlines()
            if lines:
                comparable_rows[key] = sorted(lines)
            continue
        left_out = ["saved_by", "kept_for", "token_secret", "visitor_shares", "check_at"]
        if "#WAITING_LINE/" in key:
            left_out.append("version")
        comparable_rows[key] = {name: value for name, value in item.items() if name not in left_out}
    return comparable_rows
