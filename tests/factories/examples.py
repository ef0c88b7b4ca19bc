"""A valid call of every operation, for the tests that run all operations of the registry."""

import json
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.webhooks.store import deliveries
from chalicelib.domains.webhooks.store.webhooks import WEBHOOKS
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports.api_docs import samples
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.demo.examples import Record, fill, words_in, words_of
from tests.factories.recipes import Ids, Recipes, example_of
from tests.support.sweep import sweep


class Things(Ids):
    """Ids of one record of each noun that examples for keys name, and of a site's home page."""

    @classmethod
    def made_with(cls, api: Any) -> Self:
        """Create one record of each noun."""
        return cls.of(KeyRecipes(partial(call, api)).values(WORDS))

    @classmethod
    def unknown(cls) -> Self:
        """Return ids that no record has."""
        return cls.unknown_of(WORDS)

    @property
    def placeholders(self) -> dict[str, str]:
        """Values for the words in capitals of examples."""
        return self.values_of(WORDS)


WORDS = (*words_of(Audience.KEY), "HOME_ID")


class KeyRecipes(Recipes):
    """Records that a key with all scopes makes."""

    # What lists search for, and names that the examples do not take again.
    differences: ClassVar = {
        "create_blog_post": {"title": "How we bake"},
        "create_category": {"name": "Bread"},
        "create_product": {"name": "Loaf", "price": 9900, "stock": 5, "barcode": "4006381333931"},
        "create_resource": {"name": "Anna"},
        "create_service": {
            "name": "Tasting",
            "durationMin": 30,
            **dict.fromkeys(("price", "siteId", "agentId")),
        },
        "create_site": {"title": "Bakery", "description": "Rye bread"},
        "create_time_off": {"startAt": "2027-01-01", "endAt": "2027-01-02"},
        "create_waiting_entry": {"client": {"name": "Ada", "email": "ada-waits@example.com"}},
        "create_webhook": {"events": ["bot.limit_reached"]},
        "create_upload": {"name": "b.txt", "size": 5, "folderId": None},
        "upload_file": {"folderId": None},
    }

    def make_booking(self) -> Record:
        client = {"name": "Eve", "email": f"{new_id()}@example.com"}
        return self.create("create_booking", startAt="2026-01-05T12:00", client=client)

    def make_folder(self) -> Record:
        return self.create("create_folder", name=f"Papers {new_id()}")

    def make_product(self) -> Record:
        return self.create("create_product", sku=new_id())

    def make_resource(self) -> Record:
        resource = self.create("create_resource")
        self.call("set_availability", resourceId=resource["id"], rules=HOURS)
        return resource

    def make_class(self) -> Record:
        """A service with dates, and its teacher."""
        teacher = self.create("create_resource", name="Teacher", capacity=8, serviceIds=[])["id"]
        self.call("set_availability", resourceId=teacher, rules=HOURS)
        of_class = {"name": "Class", "resourceIds": [teacher], "tags": [], "fixedStarts": True}
        service = self.create("create_service", **of_class)
        self.call("add_starts", serviceId=service["id"], startAt="2027-03-16T12:00", weeks=1)
        return service

    def make_home(self) -> Record:
        return self.create("create_page", title="Home")

    def make_page(self) -> Record:
        self.record("HOME")  # The first page of a site is its home page.
        return self.create("create_page", title="About")

    def make_version(self) -> Record:
        page = self.value("PAGE_ID")
        for html in ("<h1>About us</h1>", "<h1>About</h1>"):
            self.call("save_page_html", id=page, html=html)
        (version,) = self.call("list_page_versions", id=page)["versions"]
        return dict(version)

    def make_upload(self) -> Record:
        upload = self.create("create_upload")
        store = FolderStore(Path(settings().object_store.removeprefix("file://")))
        store.put_upload(upload["url"].rpartition("/")[2], b"hello")
        return upload

    def make_lead(self) -> Record:
        order = {"productId": self.value("PRODUCT_ID"), "quantity": 2}
        email = f"{new_id()}@example.com"
        return {"id": submit(self.value("FORM_ID"), name="Ada", email=email, items=[order])}

    def make_client(self) -> Record:
        return {"id": self.call("get_lead", id=self.value("LEAD_ID"))["lead"]["clientId"]}

    def make_delivery(self) -> Record:
        """Store a delivery that is done, so that no job sends it."""
        webhook = self.value("WEBHOOK_ID")
        workspace_id = WEBHOOKS.workspace_of(webhook)
        assert workspace_id
        delivery = deliveries.row(
            workspace_id,
            webhook_id=webhook,
            event_id=f"evt_{new_id()}_0",
            type="bot.limit_reached",
            record_id=self.value("AGENT_ID"),
            occurred_at=clock.now(),
        )
        delivery.state, delivery.o1 = deliveries.DELIVERED, None
        run_unit(workspace_id, None, lambda unit: unit.create(delivery))
        return {"id": delivery.id}

    def make_dialog(self) -> Record:
        agent = self.value("AGENT_ID")
        workspace_id = AGENTS.workspace_of(agent)
        assert workspace_id
        top_up(workspaces.get(workspace_id).owner_id, 10_000)
        assert talk(agent, "Do you sell bread?").status == 200
        (dialog,) = self.call("list_agent_dialogs", agentId=agent)["dialogs"]
        return dict(dialog)


def send(api: Any, operation: Operation, arguments: dict[str, Any]) -> Any:
    """Call an operation over REST, and return the response."""
    path, left = operation.path, dict(arguments)
    for name in operation.path_parameters:
        path = path.replace(f"{{{name}}}", left.pop(name))
    if operation.reads_query:
        query = {name: samples.query_text(value) for name, value in left.items()}
        return api.call(operation.method, f"{path}?{urlencode(query)}")
    return api.call(operation.method, path, left)


def call(api: Any, name: str, /, **arguments: Any) -> Any:
    """Call an operation with a key, or as an ADMIN account, and return the data of the response."""
    operation = REGISTRY[name]
    if operation.platform:
        return call_admin(name, **arguments)
    answer = send(api, operation, arguments)
    assert answer.status == 200, answer.body
    return answer.data


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
    post: dict[str, Any] = call_admin("create_blog_post", **values)["post"]
    return post


def call_admin(name: str, /, **arguments: Any) -> Any:
    """Call an operation as an ADMIN account, and return the data of the response."""
    admin = ApiKeyPrincipal(
        key_id="blog", account_id="writer", plan="business", role="admin", scopes=frozenset(Scope)
    )
    reply = invoke(REGISTRY[name], admin, lambda: arguments, request_id=new_id())
    return json.loads(reply.body)["data"]


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
    filled: dict[str, Any] = fill(example_of(operation), things.placeholders)
    return filled


def uses_ids(operation: Operation) -> bool:
    """Whether the operation's example contains an id."""
    return bool(words_in(operation.example))


OPERATIONS = REGISTRY.select(Audience.KEY)
TOOLS = [o for o in OPERATIONS if o.tool]
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
every_tool = pytest.mark.parametrize("operation", TOOLS, ids=lambda o: o.name)
sweep_of_operations = sweep("operation", OPERATIONS)
sweep_of_tools = sweep("operation", TOOLS)
sweep_of_documented_operations = sweep(
    "operation", [o for o in REGISTRY.select(Audience.KEY, Audience.PUBLIC) if o.path]
)
