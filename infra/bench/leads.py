"""Cost of operations on 10,000 and 20,000 leads, without the look-up of the key."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.core.principals import ApiKeyPrincipal, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.connection import connection
from chalicelib.engine.reading import Cost, Partition
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import DatabaseUsage, metering
from infra.local.seed import FIRST_MADE_AT, FIRST_PHONE, SITE, form_id

COUNTS = (10_000, 20_000)
ABOUT = [
    "## Leads, on DynamoDB Local",
    "",
    "Whole operations, without the unit and the round trip for the key. A lead takes about 1 KB.",
    "A list shows 20 leads.",
    "",
    "| call | leads | matches | units | round trips |",
    "|---|---|---|---|---|",
]


def section() -> str:
    """Measure and return this section of the page."""
    load_all()
    with database.seeded({"leads": COUNTS}, in_memory=True):
        table = [line for count in COUNTS for line in _lines(count)]
        submission = list(_submission())
    return "\n".join([*ABOUT, *table, "", *submission, ""])


def _calls(count: int) -> dict[str, tuple[str, dict[str, Any]]]:
    month = FIRST_MADE_AT + timedelta(days=31)
    dates = {"from": f"{month:%Y-%m-%d}", "to": f"{month + timedelta(days=27):%Y-%m-%d}"}
    last = FIRST_MADE_AT + count * timedelta(minutes=10)
    year = {"from": f"{last - timedelta(days=365):%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
    days = {"from": f"{last - timedelta(days=29):%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
    text = "list_leads"
    return {
        "newest": (text, {}),
        "page 100": (text, {"page": 100}),
        "newest 500": (text, {"size": 500}),
        "one status": (text, {"status": "rejected"}),
        "one form": (text, {"formId": form_id(3)}),
        "one site": (text, {"projectId": SITE}),
        "a month": (text, dates),
        "one status of a month": (text, {**dates, "status": "rejected"}),
        "one form of a month": (text, {**dates, "formId": form_id(3)}),
        "search, one match": (text, {"search": "no. 04242"}),
        "search in a month": (text, {**dates, "search": "ёлка"}),
        "find by phone": ("find_lead", {"phone": f"8 {FIRST_PHONE % 10**10 + 7}"}),
        "find by e-mail": ("find_lead", {"email": "client7@example.com"}),
        "statistics of 30 days": ("crm_stats", days),
        "statistics of 366 days": ("crm_stats", year),
        "statistics of 366 days of a form": ("crm_stats", {**year, "formId": form_id(3)}),
        "clients by activity": ("list_clients", {"sort": "lastActivityDesc"}),
        "clients, search": ("list_clients", {"search": "client 000007"}),
    }


def _lines(count: int) -> Iterator[str]:
    workspace = database.workspace(count)
    make_workspace(workspace)
    for label, (operation, arguments) in _calls(count).items():
        with metering() as usage:
            data = call(workspace, operation, arguments)
        found = data.get("total", data.get("created"))
        yield f"| {label} | {count:,} | {found:,} | {usage.units:,.0f} | {usage.round_trips} |"
    whole = Cost()
    list(Partition(LEADS.partition(workspace), whole).items())
    yield f"| reading all leads naively | {count:,} | {count:,} | {whole.units:,.0f} | |"


def make_workspace(workspace_id: str) -> None:
    """Write the row of a workspace for the measurement."""
    workspaces.row(
        workspace_id,
        name="Bench",
        slug=workspace_id,
        owner_id="bench",
        plan="enterprise",
        timezone="Europe/Moscow",
        created_at=clock.now(),
    ).save()


def call(workspace: str, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run an operation with a key that has every scope. Return ``data`` of the envelope."""
    principal = ApiKeyPrincipal(
        workspace_id=workspace, plan="enterprise", key_id=new_id(), scopes=frozenset(Scope)
    )
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id=new_id())
    data: dict[str, Any] = json.loads(reply.body)["data"]
    return data


@contextmanager
def transactions() -> Iterator[list[int]]:
    """Yield a list that receives the item count of each transaction sent in the ``with`` block."""
    sizes: list[int] = []

    def record_size(params: dict[str, Any], **_: object) -> None:
        sizes.append(len(params["TransactItems"]))

    events, name = connection().client.meta.events, "provide-client-params.dynamodb"
    events.register(f"{name}.TransactWriteItems", record_size)
    try:
        yield sizes
    finally:
        events.unregister(f"{name}.TransactWriteItems", record_size)


def _submission() -> Iterator[str]:
    """Submit a form three times: a new person, the same person, and the same values again."""
    workspace = f"bench-submission-{new_id()}"
    make_workspace(workspace)
    fields = [
        {"name": "name"},
        {"name": "email", "type": "email"},
        {"name": "phone", "type": "phone"},
    ]
    form = call(workspace, "create_form", {"title": "Bench", "fields": fields})["form"]["id"]
    ada = {"name": "Ada", "email": "ada@example.com", "phone": "8 916 123-45-67"}
    yield "| submission | units | round trips | items of the transaction |"
    yield "|---|---|---|---|"
    # The first submission of a day costs more, so it is not measured.
    _submit(form, {**ada, "email": "first@example.com", "phone": ""})
    for label, values in {
        "a new person": ada,
        "the same person": {**ada, "name": "Ada L."},
        "the same values again": ada,
    }.items():
        with transactions() as sizes:
            usage = _submit(form, values)
        units, trips = usage.units, usage.round_trips
        yield f"| {label} | {units:,.0f} | {trips} | {sum(sizes)} |"


def _submit(form: str, values: dict[str, str]) -> DatabaseUsage:
    arguments = {"id": form, "values": values}
    with metering() as usage:
        invoke(
            REGISTRY["submit_form"],
            VisitorPrincipal(visitor="bench"),
            lambda: arguments,
            request_id=new_id(),
        )
    return usage
