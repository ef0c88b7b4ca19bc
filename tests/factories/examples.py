"""A valid call of every operation, for the tests that run all operations of the registry."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest, HttpResponse
from tests.support.sweep import sweep


@dataclass(frozen=True)
class Things:
    """Ids of one record of every type that a workspace can have."""

    site: str
    deleted_site: str
    page: str
    version: str
    deleted_page: str
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
    source: str

    @classmethod
    def made_with(cls, api: Any) -> "Things":
        """Create one record of every type."""
        site = api.post("/api/projects/create", {"title": "Bakery", "description": "Rye bread"})[
            "project"
        ]
        home, page = (
            api.post("/api/pages/create", {"projectId": site["id"], "title": title})["page"]
            for title in ("Home", "About")
        )
        for html in ("<h1>About us</h1>", "<h1>About</h1>"):
            body = {"id": page["id"], "html": html}
            api.post("/api/pages/save-html", body)
        (version,) = api.get(f"/api/pages/{page['id']}/versions")["versions"]
        body = {"projectId": site["id"], "title": "Old"}
        deleted_page = api.post("/api/pages/create", body)["page"]
        api.post("/api/pages/delete", {"id": deleted_page["id"], "confirm": True})
        deleted_site = api.post("/api/projects/create", {"title": "Closed"})["project"]
        api.post("/api/projects/delete", {"id": deleted_site["id"]})
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
        post = create_post(title="How we bake", content="With *time*.")
        agent = api.post("/api/agents/create", AGENT)["agent"]["id"]
        workspace_id = AGENTS.workspace_of(agent)
        assert workspace_id
        top_up(workspaces.get(workspace_id).owner_id, 10_000)
        assert talk(agent, "Do you sell bread?").status == 200
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={agent}")["dialogs"]
        body = {"title": "Delivery", "text": "We deliver bread."}
        source = api.post(f"/api/agents/{agent}/knowledge", body)["source"]["id"]
        return cls(
            site=site["id"],
            deleted_site=deleted_site["id"],
            page=page["id"],
            version=version["id"],
            deleted_page=deleted_page["id"],
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
            source=source,
        )

    @property
    def placeholders(self) -> dict[str, str]:
        """Values for the placeholders of examples, which are words in capitals."""
        ids = {f"{name.upper()}_ID": value for name, value in vars(self).items()}
        return {**ids, "POST_SLUG": self.post_slug}

    @classmethod
    def unknown(cls) -> "Things":
        """Return ids that no record has."""
        return cls(**{field.name: new_id() for field in fields(cls)})


def _example_of(name: str, *fields: str) -> dict[str, Any]:
    """Return some fields of an operation's example."""
    operation_example = REGISTRY[name].example
    assert operation_example is not None
    return {field: operation_example[field] for field in fields}


HOURS = _example_of("set_availability", "rules")["rules"]
AGENT = _example_of("create_agent", "name", "systemPrompt", "model")
FORM = _example_of("create_form", "title", "fields")


def submit(
    form_id: str,
    /,
    visitor: str = "",
    idempotency_key: str | None = None,
    network: str = "",
    **values: Any,
) -> str:
    """Submit a form as a visitor, and return the lead's id. The default visitor is a new one."""
    reply = invoke(
        REGISTRY["submit_form"],
        VisitorPrincipal(visitor=visitor or new_id(), network=network),
        lambda: {"id": form_id, "values": values},
        request_id=new_id(),
        idempotency_key=idempotency_key,
    )
    lead: str = json.loads(reply.body)["data"]["id"]
    return lead


def create_post(**values: Any) -> dict[str, Any]:
    """Write a post of the platform's blog as an ADMIN account, and return it."""
    admin = ApiKeyPrincipal(
        key_id="blog", account_id="writer", plan="business", role="admin", scopes=frozenset(Scope)
    )
    operation = REGISTRY["create_blog_post"]
    reply = invoke(operation, admin, lambda: values, request_id=new_id())
    post: dict[str, Any] = json.loads(reply.body)["data"]["post"]
    return post


def top_up(account_id: str, kopecks: int) -> None:
    """Credit an account."""

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
    """Send a message to a bot, and return the whole response."""
    response = chat_route.serve(request_to(agent_id, message, **options), chat_stream.handle)
    return response._replace(body=response.whole_body())


def example(operation: Operation, things: Things) -> dict[str, Any]:
    """Return the arguments of a valid call: the declared example with ids of existing records."""
    filled: dict[str, Any] = fill(operation.example, things.placeholders)
    return filled


def fill(value: Any, placeholders: Mapping[str, str]) -> Any:
    """Return a JSON value in which placeholders are replaced."""
    match value:
        case str():
            return placeholders.get(value, value)
        case Mapping():
            return {name: fill(inner, placeholders) for name, inner in value.items()}
        case list():
            return [fill(inner, placeholders) for inner in value]
        case _:
            return value


def uses_ids(operation: Operation) -> bool:
    """Whether the operation's example contains an id."""
    one, other = (Things(**{field.name: letter for field in fields(Things)}) for letter in "ab")
    return example(operation, one) != example(operation, other)


OPERATIONS = REGISTRY.select(Audience.KEY)
TOOLS = [o for o in OPERATIONS if o.tool]
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
every_tool = pytest.mark.parametrize("operation", TOOLS, ids=lambda o: o.name)
sweep_of_operations = sweep("operation", OPERATIONS)
sweep_of_tools = sweep("operation", TOOLS)
sweep_of_documented_operations = sweep(
    "operation", [o for o in REGISTRY.select(Audience.KEY, Audience.PUBLIC) if o.path]
)
