"""One release of the service in a process of its own, driven by lines of JSON.

``infra/proof/upgrade.py`` starts it in the folder of each release, with the address of one database
and one folder of objects for both. A release that has no such file gets a copy of this one. A line
on stdin is a command with its arguments, and a line on stdout is the result.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))

import tests.conftest as harness  # sets the environment of tests, before settings are read
from chalicelib.application.invoke import invoke
from chalicelib.core import clock, deadline
from chalicelib.core.errors import AppError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Queue
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.engine import connection, jobs, metrics, tables, visitors
from chalicelib.engine.events import subscriptions
from chalicelib.gateways import dns, photos
from chalicelib.transports import scheduled_functions
from tests.contract.conftest import IMAGES, World, _more
from tests.contract.test_access import send
from tests.contract.test_events import MEMBER, OTHER_EXAMPLES
from tests.factories import session_examples
from tests.factories.console import Person
from tests.factories.examples import Things, fill, talk
from tests.factories.session_examples import SESSION_EXAMPLES, WorkspaceIds
from tests.fakes.openverse import answer_with

Json = Any
BUSY_SECONDS = 120
"""Seconds to wait for a response of the database. A busy machine must not look like a failure."""
PAYMENTS = {
    *("check_merchant", "get_merchant", "get_payment_terms", "set_payment_terms", "start_top_up"),
}
"""Operations that need an account at a payment provider."""
BOOKING_PAGE = {"find_move_times", "find_page_times", "get_managed_booking", "open_booking_page"}
"""Operations of visitors whose arguments come from responses of the booking page."""


def prepare(endpoint: str, folder: str) -> None:
    """Connect this release to the database and the objects, and replace external services."""
    os.environ |= {
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "OBJECT_STORE": f"file://{folder}/objects",
        "MAIL": "file",
        "MAIL_FOLDER": f"{folder}/mail",
    }
    connection.READ_SECONDS = deadline.REQUEST_SECONDS = BUSY_SECONDS
    for read in (harness.settings, harness.object_store, harness.master_key._source):
        read.cache_clear()
    photos.get_json = lambda _service, query, **_: answer_with(
        IMAGES, query["page"], query["page_size"]
    )[1]
    photos.services = lambda _: {"openverse": "http://openverse"}
    dns.lookup_txt = lambda _: frozenset()
    load_all()
    tables.ensure_tables()


class RefusedError(Exception):
    """The API refused a call."""


def describe() -> Json:
    """Return the operations of the release: who may call them, and what they do."""
    return {
        operation.name: {
            "reads": bool(operation.read_only),
            "destroys": bool(operation.destructive),
            "audience": sorted(map(str, operation.audience)),
            "takes_key": bool(
                operation.accepts_idempotency_key and operation.path and not operation.secret
            ),
        }
        for operation in REGISTRY
    }


def make() -> Json:
    """Create a workspace with one record of every type, and return its ids."""
    email = f"owner-{new_id().lower()}@example.com"
    harness.call_operator("create_account", email=email, password=harness.PASSWORD, role="admin")
    workspace = harness.call_operator(
        "create_workspace", owner=email, name="Bakery", plan="business"
    )
    owner = harness.Owner(harness.workspaces.get(workspace["workspaceId"]))
    token = owner.token()
    things = Things.made_with(harness.Api(token))
    world = World(owner.workspace.id, token, things)
    more = _more(world)
    ids = WorkspaceIds.collect(owner.workspace.id, things)
    harness.call_operator("create_account", email=MEMBER, password=harness.PASSWORD)
    return {
        "token": token,
        "cookie": owner.start_session(),
        "things": vars(things),
        "held": {name: value for name, value in vars(ids).items() if name != "things"},
        "placeholders": things.placeholders | more,
    }


def arguments(operation: str, world: Json) -> Json:
    """Return the arguments of a valid call.

    ``lacks`` is true if a record is needed that the release of the world cannot make, or that is
    gone.
    """
    ids, unknown = _record_ids(world)
    try:
        call_arguments = _call_arguments(operation, ids, world)
    except AppError:
        return {"sent": None, "lacks": True}
    needed = json.dumps([call_arguments, _caller(operation, ids)])
    return {"sent": call_arguments, "lacks": any(missing in needed for missing in unknown)}


def _call_arguments(operation: str, ids: WorkspaceIds, world: Json) -> Json:
    makers: dict[str, Callable[[WorkspaceIds], Json]] = {**SESSION_EXAMPLES, **OTHER_EXAMPLES}
    if operation in PAYMENTS:
        # The last release has no such module.
        import_module("tests.factories.payments").take_payments(ids.workspace_id)
    if operation in OTHER_STEPS:
        return {"agent": ids.things.agent}
    if operation in makers:
        return makers[operation](ids)
    if operation in BOOKING_PAGE:
        return _booking_page_arguments(operation, ids)
    return fill(REGISTRY[operation].example, world["placeholders"])


def _caller(operation: str, ids: WorkspaceIds) -> str:
    """Return the account that calls an operation of the console."""
    caller_of = getattr(session_examples, "caller_of", None)
    is_caller_known = caller_of is not None and operation in REGISTRY
    return str(caller_of(REGISTRY[operation], ids) if is_caller_known else ids.account_id)


def _booking_page_arguments(operation: str, ids: WorkspaceIds) -> Json:
    """Open the booking page, and return the arguments of a visitor's call there."""
    on_page = OTHER_EXAMPLES["book_on_page"](ids)
    if operation in {"get_managed_booking", "find_move_times"}:
        return {"token": OTHER_EXAMPLES["move_public_booking"](ids)["token"]}
    names = ("workspace", "serviceId") if operation == "find_page_times" else ("workspace",)
    return {name: on_page[name] for name in names}


def _record_ids(world: Json) -> tuple[WorkspaceIds, list[str]]:
    """Return the ids of a world, and unknown ids in place of records that it cannot have."""
    unknown = WorkspaceIds.unknown()
    things = {**vars(unknown.things), **world["things"]}
    values = {**vars(unknown), **world["held"]}
    values["things"] = Things(**{field.name: things[field.name] for field in fields(Things)})
    missing = [value for name, value in values.items() if value == vars(unknown).get(name)]
    missing += [value for name, value in things.items() if name not in world["things"]]
    return WorkspaceIds(
        **{field.name: values[field.name] for field in fields(WorkspaceIds)}
    ), missing


# Sessions of older releases are called with the same names, so ``sent`` is not renamed.
def call(operation: str, sent: Json, world: Json, key: str | None = None) -> Json:
    """Run an operation or another step. Return its response, its refusal or its crash."""
    metrics.clear_value_cache()
    subscriptions.forget()
    visitors.forget()
    try:
        return {"answer": _answer(operation, sent, world, key)}
    except (AppError, RefusedError) as error:
        return {"refusal": str(error)}
    except Exception:
        return {"crash": traceback.format_exc()}


def _answer(name: str, arguments: Json, world: Json, key: str | None) -> Json:
    if name in OTHER_STEPS:
        return OTHER_STEPS[name](arguments, world, key)
    operation = REGISTRY[name]
    if Audience.KEY in operation.audience:
        return _over_rest(operation, arguments, world["token"], key)
    if Audience.SESSION in operation.audience:
        ids, _ = _record_ids(world)
        who = {"account_id": _caller(name, ids), "key": key}
        return harness.call_console(ids.workspace_id, name, **who, **arguments)
    if Audience.PUBLIC in operation.audience:
        visitor = VisitorPrincipal(visitor="v")
        reply = invoke(
            operation, visitor, lambda: arguments, request_id=new_id(), idempotency_key=key
        )
        return json.loads(reply.body)
    return harness.call_operator(name, **arguments)


def _chat(arguments: Json, _world: Json, key: str | None) -> Json:
    text = talk(arguments["agent"], "Do you sell bread?", key=key).body.decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def _run_jobs(*_: Json) -> Json:
    """Run the jobs, and return whether any job is left."""
    scheduled_functions.run_jobs()
    scheduled_functions.run_event_jobs()
    return {queue: str(jobs.oldest_due(queue)) for queue in Queue}


def _open_console(_sent: Json, world: Json, _key: str | None) -> Json:
    return Person(world["held"]["email"], world["cookie"]).get("/console").status


OTHER_STEPS: dict[str, Callable[..., Json]] = {
    "chat": _chat,
    "jobs": _run_jobs,
    "console": _open_console,
}
"""Steps other than operations: a visitor's message, the jobs that are due, and a page of an owner
who has signed in before."""


def _over_rest(operation: Operation, arguments: Json, token: str, key: str | None) -> Json:
    api = harness.Api(token)
    if key is None:
        answer = send(api, operation, arguments)
    else:
        answer = api.call(operation.method, operation.path, arguments, {"Idempotency-Key": key})
    data = json.loads(answer.body)["data"]
    if answer.status >= 500:
        raise RuntimeError(data)
    if answer.status != 200:
        raise RefusedError(data["message"])
    return data


COMMANDS: dict[str, Callable[..., Json]] = {
    command.__name__: command for command in (prepare, describe, make, arguments, call)
}


def main() -> None:
    """Run commands until the end of stdin. What else is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        command = json.loads(line)
        now = datetime.fromisoformat(command.pop("now"))
        with clock.using(lambda now=now: now):
            result = COMMANDS[command.pop("do")](**command)
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
