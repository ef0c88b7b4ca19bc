"""A valid call of every operation, for the sweeps over the registry."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.flows.invoke import invoke
from chalicelib.gateways.object_store import FolderStore
from chalicelib.store import ledger, workspaces
from chalicelib.store.agents import workspace_of
from chalicelib.store.unit import UnitOfWork, run_unit
from chalicelib.transports import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest, HttpResponse


@dataclass(frozen=True)
class Things:
    """Ids of one of everything that a workspace can hold."""

    site: str
    page: str
    home: str
    folder: str
    file: str
    upload: str
    product: str
    category: str
    service: str
    resource: str
    time_off: str
    booking: str
    form: str
    lead: str
    client: str
    post: str
    post_slug: str
    agent: str
    dialog: str

    @classmethod
    def made_with(cls, api: Any) -> "Things":
        """Make one of everything."""
        site = api.post("/api/projects/create", {"title": "Bakery", "description": "d"})["project"]
        home, page = (
            api.post("/api/pages/create", {"projectId": site["id"], "title": title})["page"]
            for title in ("Home", "About")
        )
        folder = api.post("/api/file-folders", {"name": f"Papers {new_id()}"})["folder"]
        file = api.post("/api/files/upload", {"name": "a.txt", "content": "aGVsbG8="})["file"]
        upload = api.post("/api/files/uploads/create", {"name": "b.txt", "size": 5})["upload"]
        FolderStore(Path(settings().object_store.removeprefix("file://"))).put_upload(
            upload["url"].rpartition("/")[2], b"hello"
        )
        category = api.post("/api/categories/create", {"name": "Bread"})["category"]
        body = {
            "name": "Loaf",
            "price": 9900,
            "sku": new_id(),
            "stock": 5,
            "barcode": "4006381333931",
        }
        product = api.post("/api/products/create", body | {"categoryId": category["id"]})["product"]
        service = api.post("/api/services/create", {"name": "Tasting", "durationMin": 30})[
            "service"
        ]
        body = {"name": "Anna", "serviceIds": [service["id"]]}
        resource = api.post("/api/resources/create", body)["resource"]["id"]
        body = {"resourceId": resource, "rules": HOURS}
        api.post("/api/resources/set-availability", body)
        body = {"resourceId": resource, "startAt": "2027-01-01", "endAt": "2027-01-02"}
        time_off = api.post("/api/resources/create-time-off", body)["timeOff"]["id"]
        booked = api.post(
            "/api/bookings/create",
            {
                "serviceId": service["id"],
                "startAt": "2026-01-05T12:00",
                "client": {"name": "Eve", "email": f"{new_id()}@example.com"},
                "ignoreSchedule": True,
            },
        )["booking"]
        form = api.post("/api/forms/create", FORM | {"projectId": site["id"]})["form"]["id"]
        line = {"productId": product["id"], "quantity": 2}
        lead = submit(form, name="Ada", email=f"{new_id()}@example.com", items=[line])
        client = api.get(f"/api/forms/collection/{lead}")["lead"]["clientId"]
        post = written(title="How we bake", content="With *time*.")
        agent = api.post("/api/agents/create", AGENT)["agent"]["id"]
        workspace_id = workspace_of(agent)
        assert workspace_id
        top_up(workspaces.get(workspace_id).owner_id, 10_000)
        assert talk(agent, "Do you sell bread?").status == 200
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={agent}")["dialogs"]
        return cls(
            site=site["id"],
            page=page["id"],
            home=home["id"],
            folder=folder["id"],
            file=file["id"],
            upload=upload["id"],
            product=product["id"],
            category=category["id"],
            service=service["id"],
            resource=resource,
            time_off=time_off,
            booking=booked["id"],
            form=form,
            lead=lead,
            client=client,
            post=post["id"],
            post_slug=post["slug"],
            agent=agent,
            dialog=dialog["id"],
        )

    @classmethod
    def that_never_were(cls) -> "Things":
        """Return ids that nothing has."""
        return cls(**{field.name: new_id() for field in fields(cls)})


HOURS = [
    {"weekdays": ["mon", "tue"], "start": "09:00", "end": "18:00"},
    {"weekday": 0, "intervals": [{"start": "10:00", "end": "14:00"}]},
    {"date": "2027-03-08", "intervals": []},
]
AGENT = {"name": "Baker", "systemPrompt": "You sell bread.", "model": "demo"}
FORM = {
    "title": "Contact us",
    "fields": [
        {"name": "name", "label": "Name", "required": True},
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "phone", "label": "Phone", "type": "phone"},
        {"name": "message", "label": "Message", "type": "textarea"},
    ],
}


def submit(
    form_id: str, /, visitor: str = "", idempotency_key: str | None = None, **values: Any
) -> str:
    """Submit a form as a visitor, a new one unless it is named; return the lead's id."""
    reply = invoke(
        REGISTRY["submit_form"],
        VisitorPrincipal(visitor=visitor or new_id()),
        lambda: {"id": form_id, "values": values},
        request_id=new_id(),
        idempotency_key=idempotency_key,
    )
    lead: str = json.loads(reply.body)["data"]["id"]
    return lead


def written(**values: Any) -> dict[str, Any]:
    """Write a post of the platform's blog as an ADMIN account does; return it."""
    admin = ApiKeyPrincipal(
        key_id="blog", account_id="writer", plan="business", role="admin", scopes=frozenset(Scope)
    )
    operation = REGISTRY["create_blog_post"]
    reply = invoke(operation, admin, lambda: values, request_id=new_id())
    post: dict[str, Any] = json.loads(reply.body)["data"]["post"]
    return post


def top_up(account_id: str, kopecks: int) -> None:
    """Give an account money."""

    def stage(unit: UnitOfWork) -> None:
        ledger.post(unit, ledger.wallet(account_id), ledger.TOPUP, amount=kopecks)

    run_unit(account_id, None, stage)


def request_to(
    agent_id: str, message: str, *, ip: str = "203.0.113.7", key: str | None = None, **fields: Any
) -> HttpRequest:
    """Return a visitor's request to a bot."""
    headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
    body = json.dumps({"agentId": agent_id, "message": message, **fields}).encode()
    return HttpRequest("POST", chat_route.PATH, headers, body=body, client_ip=ip)


def talk(agent_id: str, message: str, **options: Any) -> HttpResponse:
    """Send a message to a bot; return the answer, read to its end."""
    response = chat_route.serve(request_to(agent_id, message, **options), chat_stream.handle)
    return response._replace(body=response.whole_body())


EXAMPLES: dict[str, Callable[[Things], dict[str, Any]]] = {
    "list_workspaces": lambda _: {},
    "search_card_images": lambda _: {"query": "bread", "page": 2, "size": 5},
    "list_sites": lambda _: {"search": "bak", "size": 5},
    "create_site": lambda _: {"title": "New site"},
    "update_site": lambda t: {"id": t.site, "title": "Renamed"},
    "delete_site": lambda t: {"id": t.site},
    "set_site_domain": lambda t: {"id": t.site, "domain": "www.example.com"},
    "toggle_site_stats": lambda t: {"id": t.site, "enabled": False},
    "get_site_stats": lambda t: {"id": t.site, "from": "2027-01-01", "to": "2027-02-01"},
    "list_pages": lambda t: {"projectId": t.site},
    "get_page": lambda t: {"id": t.page},
    "create_page": lambda t: {"projectId": t.site, "title": "New page"},
    "save_page_html": lambda t: {"id": t.page, "html": "<p>Hi</p>"},
    "update_page": lambda t: {"id": t.page, "title": "Renamed"},
    "delete_page": lambda t: {"id": t.page, "confirm": True},
    "import_page_html": lambda t: {"projectId": t.site, "html": "<title>T</title><p>Hi</p>"},
    "list_files": lambda t: {"folderId": t.folder},
    "list_folders": lambda _: {},
    "upload_file": lambda t: {"name": "c.txt", "content": "aGk=", "folderId": t.folder},
    "create_upload": lambda t: {"name": "d.txt", "size": 2, "folderId": t.folder},
    "complete_upload": lambda t: {"id": t.upload},
    "update_file": lambda t: {"id": t.file, "name": "b.txt", "folderId": t.folder},
    "delete_file": lambda t: {"id": t.file},
    "create_folder": lambda t: {"name": "More", "parentId": t.folder},
    "update_folder": lambda t: {"id": t.folder, "name": "Renamed"},
    "delete_folder": lambda t: {"id": t.folder, "moveTo": None},
    "list_products": lambda _: {"q": "loa", "sort": "price", "status": "active"},
    "get_product": lambda t: {"id": t.product},
    "create_product": lambda t: {"name": "Roll", "price": 4500, "categoryId": t.category},
    "update_product": lambda t: {"id": t.product, "price": 10_500, "stockDelta": -2},
    "delete_product": lambda t: {"id": t.product},
    "duplicate_product": lambda t: {"id": t.product},
    "reorder_products": lambda t: {"ids": [t.product], "categoryId": t.category},
    "upsert_products": lambda t: {
        "items": [{"sku": "R-1", "name": "Rye", "price": 7000, "categoryId": t.category}]
    },
    "bulk_products": lambda t: {"ids": [t.product], "action": "setPrice", "value": 100},
    "lookup_barcode": lambda _: {"barcode": "4006381333931"},
    "ai_fill_product": lambda _: {"name": "Rye bread", "prompt": "Baked daily", "language": "en"},
    "list_categories": lambda _: {"kind": "product"},
    "create_category": lambda t: {"name": "Rolls", "parentId": t.category},
    "update_category": lambda t: {"id": t.category, "name": "Loaves"},
    "delete_category": lambda t: {"id": t.category},
    "list_services": lambda _: {"q": "tas", "sort": "price", "maxPrice": 10_000},
    "get_service": lambda t: {"id": t.service},
    "create_service": lambda t: {
        "name": "Master class",
        "durationMin": 120,
        "price": 350_000,
        "siteId": t.site,
        "resourceIds": [t.resource],
        "tags": ["children"],
    },
    "update_service": lambda t: {"id": t.service, "bufferAfterMin": 10, "slotStepMin": None},
    "delete_service": lambda t: {"id": t.service},
    "ai_fill_service": lambda _: {"name": "Tasting, 45 min", "language": "en"},
    "list_resources": lambda _: {"q": "ann", "status": "active"},
    "get_resource": lambda t: {"id": t.resource},
    "create_resource": lambda t: {"name": "Oven", "type": "equipment", "serviceIds": [t.service]},
    "update_resource": lambda t: {"id": t.resource, "capacity": 2},
    "delete_resource": lambda t: {"id": t.resource},
    "list_availability": lambda t: {"resourceId": t.resource},
    "set_availability": lambda t: {"resourceId": t.resource, "rules": HOURS},
    "list_time_off": lambda _: {"from": "2027-01-01"},
    "create_time_off": lambda t: {
        "resourceId": t.resource,
        "startAt": "2027-05-01",
        "endAt": "2027-05-09",
        "reason": "Holidays",
    },
    "delete_time_off": lambda t: {"id": t.time_off},
    "list_bookings": lambda _: {"from": "2026-01-05", "status": "all", "q": "eve"},
    "get_booking": lambda t: {"id": t.booking},
    "get_available_slots": lambda t: {"serviceId": t.service, "timezone": "Asia/Kolkata"},
    "create_booking": lambda t: {
        "serviceId": t.service,
        "startAt": "2027-03-02T12:00:00+03:00",
        "client": {"name": "Ada", "phone": "8 495 123-45-67"},
        "notes": "Decaf, please",
        "ignoreSchedule": True,
    },
    "set_booking_status": lambda t: {"id": t.booking, "status": "completed", "reason": "Came"},
    "reschedule_booking": lambda t: {
        "id": t.booking,
        "startAt": "2027-03-02T15:00",
        "ignoreSchedule": True,
    },
    "list_forms": lambda _: {"size": 5},
    "create_form": lambda t: FORM | {"projectId": t.site},
    "delete_form": lambda t: {"id": t.form},
    "list_leads": lambda _: {"status": "new", "from": "2026-01-01", "search": "ada"},
    "get_lead": lambda t: {"id": t.lead},
    "find_lead": lambda _: {"email": "ada@example.com", "phone": "8 495 123-45-67"},
    "lead_orders": lambda t: {"id": t.lead},
    "crm_stats": lambda _: {"from": "2027-01-01", "to": "2027-01-31"},
    "set_lead_status": lambda t: {"id": t.lead, "status": "in_progress"},
    "update_lead": lambda t: {"id": t.lead, "notes": "Call back", "data": {"message": "Hi"}},
    "list_agents": lambda _: {},
    "get_agent": lambda t: {"id": t.agent},
    "create_agent": lambda _: AGENT | {"allowedOrigins": ["https://bakery.example"]},
    "update_agent": lambda t: {"id": t.agent, "name": "Miller", "welcomeMessage": None},
    "list_agent_dialogs": lambda t: {"agentId": t.agent, "from": "2026-01-01", "search": "bread"},
    "get_agent_dialog": lambda t: {"id": t.dialog, "agentId": t.agent, "limit": 10},
    "agent_stats": lambda t: {"agentId": t.agent, "from": "2027-01-01", "to": "2027-01-31"},
    "agent_widget_stats": lambda t: {"agentId": t.agent, "to": "2027-01-31"},
    "list_clients": lambda _: {"search": "ada", "sort": "lastActivityDesc"},
    "get_client": lambda t: {"id": t.client},
    "update_client": lambda t: {"id": t.client, "tags": ["regular"], "notes": "Likes rye"},
    "list_blog_posts": lambda _: {"status": "draft", "size": 5},
    "get_blog_post": lambda t: {"slug": t.post_slug},
    "create_blog_post": lambda _: {"title": "News", "content": "# Hi", "tags": ["news"]},
    "update_blog_post": lambda t: {"id": t.post, "title": "Renamed", "status": "published"},
    "delete_blog_post": lambda t: {"id": t.post},
}


def example(operation: Operation, things: Things) -> dict[str, Any]:
    """Return the arguments of a valid call."""
    return EXAMPLES[operation.name](things)


def names_things(operation: Operation) -> bool:
    """Whether the operation's example refers to something by id."""
    one, other = (Things(**{field.name: letter for field in fields(Things)}) for letter in "ab")
    return example(operation, one) != example(operation, other)


every_operation = pytest.mark.parametrize(
    "operation", REGISTRY.of(Audience.KEY), ids=lambda o: o.name
)
every_tool = pytest.mark.parametrize(
    "operation", [o for o in REGISTRY.of(Audience.KEY) if o.tool], ids=lambda o: o.name
)
