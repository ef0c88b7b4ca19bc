"""Valid requests of every kind, from operations to pages.

They use the examples of the reference, the forms of the console and one workspace of each.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from chalicelib.core.operations import REGISTRY
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.gateways import max_messenger, telegram
from chalicelib.transports.api_docs import failures, samples
from chalicelib.transports.api_docs.model import OperationDoc
from chalicelib.transports.routes import MAX_PATH, MCP_PATH, TELEGRAM_PATH
from infra.local.demo.examples import fill
from tests.conftest import Answer, Api
from tests.contract.conftest import EACH, ExampleRunner
from tests.factories.chat import ask, read_events
from tests.factories.console import FORM, Person, World
from tests.factories.console_forms import FORMS, OPEN, prepare
from tests.fakes.max_messenger import started
from tests.fakes.telegram import update
from tests.proof.observers import BrokenPromiseError

GATEWAY_SECONDS = 29.0
"""API Gateway ends a request after this time."""
STREAM_SECONDS = 300.0
"""The timeout of the functions that stream chats and run jobs."""
KEY = "proof-1"


@dataclass(frozen=True)
class ServiceRequest:
    """A request: how it is sent, and how its end is checked.

    ``check`` raises if the response is not one that the service documents. ``repeat`` sends the
    request again after a fault, if it must succeed then. ``prepare`` makes what the request needs,
    before the fault. ``is_changed`` is true for an example with other fields. ``seconds`` is the
    time in which the request must end.
    """

    name: str
    send: Callable[[], Answer]
    check: Callable[[Answer], None]
    repeat: Callable[[], Answer] | None = None
    prepare: Callable[[], object] = lambda: None
    is_changed: bool = False
    seconds: float = GATEWAY_SECONDS


def every_request(runner: ExampleRunner, console: World) -> list[ServiceRequest]:
    """Return all requests, in a fixed order."""
    return [
        *operation_requests(runner),
        *_chats(runner),
        *_tools(runner),
        *_pages(runner),
        *_console_pages(console),
    ]


def operation_requests(runner: ExampleRunner) -> Iterator[ServiceRequest]:
    """Yield the example of each operation of the reference, and some with other fields."""
    examples: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in EACH]
    for name, changes in [*examples, *CHANGED]:
        if name == "chat_stream":
            continue
        operation = REGISTRY[name]
        send = partial(_send_example, runner, EACH[name], **changes)
        repeats = operation.accepts_idempotency_key or operation.read_only
        yield ServiceRequest(
            " with ".join([name, *(field for field in changes if changes[field] is not None)]),
            send,
            partial(_check_envelope, failures.failure_codes(failures.errors_of(operation))),
            repeat=send if repeats else None,
            is_changed=bool(changes),
        )


_PAGE = "https://bakery.example/menu"
_PICTURE = "https://bakery.example/loaf.png"
CHANGED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_knowledge", {"url": _PAGE, "text": None}),
    ("add_knowledge", {"fileId": "FILE_ID", "text": None}),
    ("ai_fill_product", {"barcode": "5449000000996"}),
    ("create_blog_post", {"coverImage": _PICTURE}),
    ("create_booking", {"client": {"name": "Grace", "phone": "+7 914 700-12-34"}}),
    ("create_product", {"images": [{"url": _PICTURE}]}),
    ("create_service", {"images": [{"url": _PICTURE}]}),
    ("import_page_html", {"html": None, "url": _PAGE}),
    ("import_page_html", {"html": f"<img src='{_PICTURE}'><p>Rye</p>", "rehostImages": True}),
    ("lookup_barcode", {"barcode": "5449000000996"}),
    ("set_site_domain", {"domain": "bakery.localhost"}),
    ("update_product", {"images": [{"url": _PICTURE}]}),
)
"""Changes of examples, so that they reach gateways. None removes a field."""


def _send_example(runner: ExampleRunner, document: OperationDoc, **changes: Any) -> Answer:
    path, query, body = document.call
    arguments = (query or body) | changes
    arguments = {
        name: argument
        for name, argument in arguments.items()
        if argument is not None or name not in changes
    }
    path, arguments = fill(path, runner.placeholders), fill(arguments, runner.placeholders)
    url = document.path
    for name, value in path.items():
        url = url.replace(f"{{{name}}}", value)
    api = runner.world.api if document.needs_key else Api(None)
    if query:
        url += "?" + urlencode(
            {name: samples.query_text(argument) for name, argument in arguments.items()}
        )
        arguments = {}
    return api.call(document.method, url, arguments or None, {"Idempotency-Key": KEY})


def _check_envelope(codes: dict[str, list[str]], answer: Answer) -> None:
    """Check that a response is a success, or a failure that the reference documents."""
    if answer.status == 200:
        if answer.body.startswith(b'{"data"'):
            require(answer.data["status"] is True, answer)
        return
    data = answer.data
    require(data["status"] is False and data["requestId"] and data["message"], answer)
    require(data["code"] in codes.get(str(answer.status), ()), answer)


def _chats(runner: ExampleRunner) -> Iterator[ServiceRequest]:
    codes = failures.failure_codes(iter(failures.CHAT))
    agent = runner.world.things.agent
    messages = {
        "chat": ("Do you sell bread?", {}),
        "chat with a booking": (
            "I am Grace, grace@example.com. Book me a table.",
            {"features": ["actions"]},
        ),
        "chat in a session": ("And on Fridays?", {"sessionId": runner.placeholders["SESSION_ID"]}),
    }
    for name, (text, fields) in messages.items():

        def send(text: str = text, fields: dict[str, Any] = fields) -> Answer:
            reply = ask(agent, text, key=KEY, **fields)
            return Answer(reply.status, dict(reply.response.headers), reply.raw)

        yield ServiceRequest(name, send, partial(_check_chat, codes), seconds=STREAM_SECONDS)


def _check_chat(codes: dict[str, list[str]], answer: Answer) -> None:
    """Check that a stream ends with its last event, and that a refusal is in the envelope."""
    if answer.status != 200:
        _check_envelope(codes, answer)
        return
    events = list(read_events(answer.body))
    require(events[-1]["type"] in {"done", "error"}, answer)


def _tools(runner: ExampleRunner) -> Iterator[ServiceRequest]:
    """The tool server shares the operations, so a list, a read and a write are enough."""
    for name in ("list_sites", "create_site"):
        message = samples.tool_call(EACH[name])
        assert message is not None
        body = runner.fill(message).encode()
        yield _tool_request(runner, f"tool of {name}", body)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    yield _tool_request(runner, "list of tools", body)


def _tool_request(runner: ExampleRunner, name: str, body: bytes) -> ServiceRequest:
    def check(answer: Answer) -> None:
        if answer.status != 200:
            _check_envelope(_EVERY_CODE, answer)
            return
        result = json.loads(answer.body)["result"]
        if result.get("isError"):
            failure = json.loads(result["content"][0]["text"])
            codes = _EVERY_CODE.get(str(failure["httpStatus"]), ())
            require(failure["data"]["code"] in codes, answer)

    return ServiceRequest(name, lambda: runner.world.api.call("POST", MCP_PATH, body), check)


_EVERY_CODE = failures.failure_codes(
    error for operation in REGISTRY for error in failures.errors_of(operation)
)


def _pages(runner: ExampleRunner) -> Iterator[ServiceRequest]:
    row = booking_links.booking_of(runner.placeholders["CANCEL_TOKEN"], Purpose.CANCEL)
    token = booking_links.token(runner.world.workspace_id, row, Purpose.MANAGE)
    booking, later = f"/booking/{token}", urlencode({"at": "2027-03-09T17:00:00+03:00"})
    form = {"Content-Type": FORM, "Accept": "text/html"}
    for name, method, path, body in (
        ("page of a booking", "GET", booking, b""),
        ("form of a booking", "POST", booking, b"action=cancel"),
        ("move of a booking", "POST", booking, f"action=move&{later}".encode()),
        ("page of the blog", "GET", "/blog", b""),
    ):

        def send(method: str = method, path: str = path, body: bytes = body) -> Answer:
            return Api(None).call(method, path, body or None, form)

        yield ServiceRequest(name, send, check_page)
    message = json.dumps(update(2, 78, "/start unknown")).encode()
    headers = {telegram.SECRET_HEADER: telegram.webhook_secret()}
    post = partial(Api(None).call, "POST", TELEGRAM_PATH, message, headers)
    yield ServiceRequest("message to Telegram's bot", post, partial(_check_envelope, _EVERY_CODE))
    message = json.dumps(started(79, "unknown", 1)).encode()
    headers = {max_messenger.SECRET_HEADER: max_messenger.webhook_secret()}
    post = partial(Api(None).call, "POST", MAX_PATH, message, headers)
    yield ServiceRequest("message to the bot at MAX", post, partial(_check_envelope, _EVERY_CODE))


def _console_pages(world: World) -> Iterator[ServiceRequest]:
    boss = world.person("boss")
    for route, page in OPEN.items():
        path = world.here.path_of(route)
        if page.get:
            show = partial(_open, boss, path)
            yield ServiceRequest(f"page {route}", show, check_page, repeat=show)
        if page.post:
            fields = world.here.filled(FORMS[route])
            submit = partial(_submit, boss, path, fields)
            before = partial(prepare, route, world.here)
            yield ServiceRequest(f"form {route}", submit, check_page, prepare=before)
    here = world.here
    path, link = f"{here.path}/notifications", {"action": "link"}
    yield ServiceRequest("form that links Telegram", partial(_submit, boss, path, link), check_page)
    for path in (f"/book/{here.slug}", f"/book/{here.slug}/{here.service}"):
        visitor = Person("visitor@example.com")
        name = "booking page" + path.removeprefix(f"/book/{here.slug}")
        yield ServiceRequest(
            re.sub(here.service, "{service}", name), partial(_open, visitor, path), check_page
        )


def _open(person: Person, path: str) -> Answer:
    return Person(person.email, person.token).get(path)


def _submit(person: Person, path: str, fields: dict[str, str]) -> Answer:
    return Person(person.email, person.token).post(path, fields)


def check_page(answer: Answer) -> None:
    """Check that a page has a documented status, and a body unless it leads elsewhere."""
    statuses = {"200", "303", "304", "422", *failures.STATUSES}
    require(str(answer.status) in statuses, answer)
    require(answer.status in {303, 304} or bool(answer.body), answer)


def require(condition: bool, answer: Answer) -> None:
    if not condition:
        msg = f"expected a documented answer, received {answer.status}: {answer.body[:400]!r}"
        raise BrokenPromiseError(msg)
