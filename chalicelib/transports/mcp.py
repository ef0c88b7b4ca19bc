"""The tool server ``POST /api/mcp``, stateless JSON-RPC 2.0.

It supports both eras of MCP: clients that begin with a handshake (``initialize``), and modern
clients, whose requests are self-contained. ``serve`` makes the checks whose failures have an HTTP
status of their own (``json_rpc.failure``); ``respond`` dispatches without an HTTP framework. This
``ToolServer`` serves keys, and ``transports.assistants`` serves visitors' assistants.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl

from pydantic_core import from_json, to_json

from chalicelib import SERVICE, VERSION
from chalicelib.application.invoke import (
    MAX_ANSWER_BYTES,
    authorize,
    invoke,
    may_use,
    require_plan,
)
from chalicelib.core import idempotency_keys
from chalicelib.core.call_names import insert_tool_names
from chalicelib.core.errors import (
    AppError,
    ForbiddenError,
    InsufficientScopeError,
    InternalError,
    UnauthorizedError,
    ValidationError,
    failure_fields,
    log_fields,
)
from chalicelib.core.operations import REGISTRY, Entry
from chalicelib.core.principals import ApiKeyPrincipal, OAuthPrincipal, Principal
from chalicelib.core.settings import settings
from chalicelib.core.text import nearest
from chalicelib.core.wire.tool_arguments import read_arguments
from chalicelib.domains.oauth.rules import resources
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.transports import edge, mcp_apps, prompts, step_up, tools
from chalicelib.transports.auth import authenticate_tool_call
from chalicelib.transports.cors import TOOL_SERVER
from chalicelib.transports.http import (
    JSON_TYPE,
    HttpRequest,
    HttpResponse,
    check_size,
    log,
    parse_json,
)
from chalicelib.transports.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Answer,
    RpcError,
    error_body,
    respond_to_batch,
    valid_id,
)
from chalicelib.transports.mcp_apps import App, Record
from chalicelib.transports.step_up import StepUpError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
# Protocol versions whose messages may come in batches. The first versions have no header.
_WITH_BATCHES = (None, "2024-11-05", "2025-03-26")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

ROUTE = "POST /api/mcp"
ICON_PATH = "/assets/product.svg"
ICON_TYPE = "image/svg+xml"

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

# HTTP status of a JSON-RPC error, by era. Errors not listed have status 200.
_STATUS = {
    "handshake": {PARSE_ERROR: 400, INVALID_REQUEST: 400, UNSUPPORTED_VERSION: 400},
    "modern": {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        INVALID_PARAMS: 400,
        HEADER_MISMATCH: 400,
        UNSUPPORTED_VERSION: 400,
        METHOD_NOT_FOUND: 404,
    },
}

# Cache time of the list in milliseconds. A key's tools change only with its plan or role.
TTL_MS = 300_000
_CACHE = {"ttlMs": TTL_MS, "cacheScope": "private"}
_SERVER_INFO = {"name": "workspace-automation", "title": SERVICE, "version": VERSION}
# Protocol versions whose server info may have icons.
_WITH_ICONS = {"2025-11-25", *MODERN_VERSIONS}
# Methods of the stateless era whose header ``Mcp-Name`` repeats ``params.name``.
_NAMED_METHODS = frozenset({"prompts/get", "tools/call"})
_URI_METHODS = frozenset({"resources/read"})  # It repeats ``params.uri``.


class Raw(NamedTuple):
    """JSON bytes that are inserted into a result unchanged."""

    name: str
    body: bytes


class ToolServer(NamedTuple):
    """The tools that an endpoint offers."""

    instructions: "Callable[[Call], str]"  # what a model reads before this call
    tools: "Callable[[Call], bytes]"  # the list for this call, as JSON bytes
    entries: Callable[[], Mapping[str, Entry]]  # declarations by the tool's name
    # Returns the result of a call, and raises the errors of the operation.
    run: "Callable[[Call, Entry], dict[str, Any]]"
    # The HTML of a page for this call. Pages are shown beside results (``mcp_apps``). Without any,
    # there are no resources.
    page: "Callable[[Call, App], str] | None" = None
    # Pages of the tools that this caller sees.
    apps: "Callable[[Call], Sequence[App]]" = lambda _: ()
    records: "Callable[[Call], Sequence[Record]]" = lambda _: ()  # other resources
    has_prompts: bool = False
    # May refuse the whole request. It is called for all but tool calls that succeed, which must
    # check the same.
    admit: "Callable[[], None]" = lambda: None

    @property
    def capabilities(self) -> dict[str, Any]:
        # MCP, lifecycle
        pages: dict[str, Any] = {"resources": {}, "extensions": {mcp_apps.EXTENSION: {}}}
        return {
            **({"prompts": {}} if self.has_prompts else {}),
            **(pages if self.page else {}),
            "tools": {},
        }

    def has(self, method: str) -> bool:
        if method in _PROMPTS:
            return self.has_prompts
        return self.page is not None if method in _RESOURCES else True


@dataclass(frozen=True, slots=True)
class Call:
    """A JSON-RPC request with a valid envelope."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    principal: Principal
    request_id: str
    server: ToolServer
    in_batch: bool = False
    log: dict[str, Any] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """Whether the request belongs to the stateless era."""
        header = self.headers.get("mcp-protocol-version")
        return VERSION_KEY in self.meta or header not in {None, *HANDSHAKE_VERSIONS}

    @property
    def has_apps(self) -> bool:
        """Whether the list says which tools have pages.

        Clients of the handshake era say once what they can show, and this server keeps no session.
        Some of them show pages without saying so.
        """
        return not self.modern or mcp_apps.declares(self.meta.get(CAPABILITIES_KEY))

    @property
    def meta(self) -> Mapping[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def serve(request: HttpRequest) -> HttpResponse:
    """Respond to a request to the tool server."""
    # Size, key, rate limit, origin and plan are checked before anything is parsed.
    # The size comes first, because this check reads nothing from the database.
    check_size(request)
    principal = _authenticate(request)
    # The protocol requires this check, against DNS rebinding (MCP, transports).
    TOOL_SERVER.check_origin(request)
    try:
        require_plan(principal.plan)
    except ForbiddenError as error:
        _store_failure(error, principal, request.request_id)
        raise
    return to_response(respond(request, principal), principal.log_fields)


def to_response(answer: Answer, log_fields: Mapping[str, Any]) -> HttpResponse:
    """Return an HTTP response, with further fields of the log line."""
    status, body, more = answer
    headers = {"Content-Type": JSON_TYPE} if body else {}
    return HttpResponse(status, body, headers, {**log_fields, **more})


def _authenticate(request: HttpRequest) -> ApiKeyPrincipal:
    # A refusal states where clients find out how users sign in.
    try:
        return authenticate_tool_call(request.headers, request.client_ip)
    except UnauthorizedError as error:
        _store_failure(error, None, request.request_id)
        had_token = bool(request.headers.get("authorization"))
        error.headers["WWW-Authenticate"] = resources.challenge(
            edge.authority(request.headers), had_token=had_token
        )
        raise


def respond(request: HttpRequest, principal: Principal, server: ToolServer | None = None) -> Answer:
    """Dispatch a caller's request to a server, which is the one for keys if omitted."""
    read = partial(_read, request, principal, server or FOR_KEYS, in_batch=False)
    try:
        message = parse_json(request.body)
    except ValueError as error:
        return 400, error_body(None, RpcError(PARSE_ERROR, f"Parse error: the body {error}.")), {}
    if not isinstance(message, list):
        return _respond_to(read, message)
    if request.headers.get("mcp-protocol-version") not in _WITH_BATCHES:
        msg = "Expected one JSON-RPC object, because this protocol version has no batches."
        return 400, error_body(None, RpcError(INVALID_REQUEST, msg)), {}
    read = partial(read, in_batch=True)
    return respond_to_batch(message, partial(_respond_to, read), MAX_ANSWER_BYTES)


def _respond_to(read: "Callable[[object], Call | None]", message: object) -> Answer:
    try:
        call = read(message)
    except RpcError as error:
        return 400, error_body(None, error), {}
    if call is None:
        return 202, b"", {}
    modern = call.modern
    era = "modern" if modern else "handshake"
    if call.method != "tools/call":
        call.server.admit()
    try:
        if modern:
            _check_modern(call)
        handler = _METHODS[era].get(call.method)
        if handler is None or not call.server.has(call.method):
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {call.method[:80]}")  # noqa: TRY301
        result = handler(call)
    except RpcError as error:
        return _STATUS[era].get(error.code, 200), error_body(call.id, error), call.log
    return 200, _result(call, result, modern=modern), call.log


def _read(
    request: HttpRequest,
    principal: Principal,
    server: ToolServer,
    message: object,
    *,
    in_batch: bool,
) -> Call | None:
    # The server does not respond to notifications and responses, for which this returns None.
    if not isinstance(message, dict):
        msg = "Expected one JSON-RPC object, received another JSON value."
        raise RpcError(INVALID_REQUEST, msg)
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0".')
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, 'Invalid request: "method" must be a string.')
    # A message without an id is a notification, to which JSON-RPC 2.0 allows no reply.
    if "id" not in message:
        return None
    request_id = valid_id(message)
    if request_id is None:
        raise RpcError(INVALID_REQUEST, 'Invalid request: "id" must be a string or an integer.')
    params = {} if params is None else params
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, 'Invalid request: "params" must be an object.')
    return Call(
        request_id,
        method,
        params,
        request.headers,
        request.query,
        principal,
        request.request_id,
        server,
        in_batch,
    )


def _check_modern(call: Call) -> None:
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in call.meta]:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}.")
    # An intermediary may route by the headers, so they must say the same as the body.
    version = call.meta[VERSION_KEY]
    expected = {"MCP-Protocol-Version": version, "Mcp-Method": call.method}
    if call.method in _NAMED_METHODS:
        expected["Mcp-Name"] = _name(call)
    elif call.method in _URI_METHODS:
        expected["Mcp-Name"] = _uri(call)
    for name, value in expected.items():
        if _decode_header(call.headers.get(name.lower())) != value:
            raise RpcError(
                HEADER_MISMATCH,
                f"The {name} header is missing, or it differs from the value in the body.",
            )
    if version not in MODERN_VERSIONS:
        data = {"supported": MODERN_VERSIONS, "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version.", data)


def _decode_header(value: str | None) -> str | None:
    text = (value or "").strip()
    if text.startswith("=?base64?") and text.endswith("?="):
        try:
            return base64.b64decode(text[9:-2], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
    return text if value is not None else None


def _name(call: Call) -> str:
    name = call.params.get("name")
    if not isinstance(name, str):
        kind = "a prompt" if call.method == "prompts/get" else "a tool"
        msg = f"params.name must be the name of {kind}."
        raise RpcError(INVALID_PARAMS, msg)
    return name


def _uri(call: Call) -> str:
    uri = call.params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, "params.uri must be the URI of a resource.")
    return uri


def _server_info(version: str) -> dict[str, Any]:
    if version not in _WITH_ICONS:
        return _SERVER_INFO
    icon = {"src": settings().public_url + ICON_PATH, "mimeType": ICON_TYPE, "sizes": ["any"]}
    return {**_SERVER_INFO, "icons": [icon]}


def _initialize(call: Call) -> dict[str, Any]:
    requested = call.params.get("protocolVersion")
    # A server that lacks the requested version replies with its latest one (MCP, lifecycle).
    version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {
        "protocolVersion": version,
        "capabilities": call.server.capabilities,
        "serverInfo": _server_info(version),
        "instructions": call.server.instructions(call),
    }


def _discover(call: Call) -> dict[str, Any]:
    return {
        "supportedVersions": MODERN_VERSIONS,
        "capabilities": call.server.capabilities,
        "instructions": call.server.instructions(call),
        **_CACHE,
        "_meta": {SERVER_INFO_KEY: _server_info(call.meta[VERSION_KEY])},
    }


def _instructions(call: Call) -> str:
    return tools.instructions(_key(call), tools.Selection.read(call.headers, call.query))


def _tool_names(call: Call) -> tuple[str, ...]:
    return tools.names_for(_key(call), tools.Selection.read(call.headers, call.query))


def _key(call: Call) -> ApiKeyPrincipal:
    return cast("ApiKeyPrincipal", call.principal)


def _list(call: Call) -> dict[str, Any]:
    tool_list = Raw("tools", call.server.tools(call))
    return {"tools": tool_list, **(_CACHE if call.modern else {})}


def _list_prompts(call: Call) -> dict[str, Any]:
    definitions = [prompt.definition for prompt in prompts.available_prompts(_tool_names(call))]
    return {"prompts": definitions, **(_CACHE if call.modern else {})}


def _get_prompt(call: Call) -> dict[str, Any]:
    arguments = arguments_of(call)
    if arguments is None:
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object, such as {}.")
    try:
        return prompts.rendered(_name(call), arguments, _tool_names(call))
    except prompts.PromptError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None


def _list_resources(call: Call) -> dict[str, Any]:
    offered: list[App | Record] = [*call.server.apps(call), *call.server.records(call)]
    definitions = [resource.definition for resource in offered]
    return {"resources": definitions, **(_CACHE if call.modern else {})}


def _list_templates(call: Call) -> dict[str, Any]:
    return {"resourceTemplates": [], **(_CACHE if call.modern else {})}


def _read_resource(call: Call) -> dict[str, Any]:
    uri = _uri(call)
    base, _, query = uri.partition("?")
    for app in call.server.apps(call):
        if app.uri == uri and call.server.page:
            contents = app.contents(call.server.page(call, app))
            return {"contents": [contents], **(_CACHE if call.modern else {})}
    for record in call.server.records(call):
        if record.uri == base:
            # It may be another one at the next reading.
            cache = {**_CACHE, "ttlMs": 0} if call.modern else {}
            return {"contents": [_read_record(call, record, query)], **cache}
    msg = f"There is no resource {uri[:200]}. resources/list returns all resources."
    raise RpcError(INVALID_PARAMS, msg, {"uri": uri[:200]})


def _read_record(call: Call, record: Record, query: str) -> dict[str, Any]:
    operation = REGISTRY[record.operation]
    try:
        authorize(operation, call.principal)
        reply = invoke(
            operation,
            call.principal,
            lambda: dict(parse_qsl(query)),
            request_id=call.request_id,
            naming=insert_tool_names,
        )
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, error.message) from None
    text = to_json(from_json(reply.body)["data"]).decode()
    return {"uri": call.params["uri"], "mimeType": JSON_TYPE, "text": text}


def arguments_of(call: Call) -> dict[str, Any] | None:
    """Return the arguments, which some clients send as a string, or None for other types."""
    arguments = call.params.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = parse_json(arguments.encode()) if arguments.strip() else None
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else None


def _call(call: Call) -> dict[str, Any]:
    name = _name(call)
    entries = call.server.entries()
    entry = entries.get(name)
    if entry is None:
        call.server.admit()
        suggestion = nearest(name, entries)
        hint = f'did you mean "{suggestion}"?' if suggestion else "tools/list returns all tools."
        raise RpcError(INVALID_PARAMS, f'Unknown tool "{name[:80]}"; {hint}')
    call.log["operation"] = entry.name
    try:
        return call.server.run(call, entry)
    except RpcError:
        call.server.admit()
        raise
    except StepUpError as error:
        # The challenge is a header, which only the whole response can have.
        _store_failure(error, call.principal, call.request_id, entry)
        raise
    except AppError as error:
        call.server.admit()
        return _failed(call, entry, error)
    except Exception:  # noqa: BLE001  a crash is a failed call, not a broken connection
        log.exception("a tool crashed", extra={"requestId": call.request_id, "tool": name})
        return _failed(call, entry, InternalError())


def _run(call: Call, entry: Entry) -> dict[str, Any]:
    operation = REGISTRY[entry.name]
    selection = tools.Selection.read(call.headers, call.query)
    try:
        authorize(operation, call.principal)
    except InsufficientScopeError as error:
        return _ask_for_scope(call, operation, error)
    if not selection.admits(operation):
        msg = (
            f"The X-MCP headers or the query of this connection exclude {operation.tool}. Change "
            "them to use this tool."
        )
        raise ForbiddenError(msg, key="tool_excluded")
    arguments = arguments_of(call)
    if arguments is None:
        raise ValidationError.of("arguments", message="expected an object, such as {}")
    values, key = idempotency_keys.split(operation, arguments)
    reply = invoke(
        operation,
        call.principal,
        lambda: read_arguments(operation.input, values, parse_json),
        request_id=call.request_id,
        idempotency_key=key,
        naming=insert_tool_names,
    )
    return text_result(reply.body.decode())


def _ask_for_scope(call: Call, entry: Entry, error: InsufficientScopeError) -> dict[str, Any]:
    # Only the user of a connected app can allow a scope.
    caller, scope = call.principal, entry.scope
    if (
        not isinstance(caller, OAuthPrincipal)
        or scope is None
        or not step_up.may_be_granted(scope, caller)
    ):
        raise error
    header = step_up.challenge(scope, caller, edge.authority(call.headers))
    # A status of its own would take the other responses of a batch with it.
    if step_up.handles_challenges(caller) and not call.in_batch:
        raise StepUpError(
            error.message, details=error.details, headers={"WWW-Authenticate": header}
        )
    refusal = InsufficientScopeError(step_up.message(scope, caller), details=error.details)
    return {**_failed(call, entry, refusal), "_meta": step_up.meta(header)}


def _failed(call: Call, entry: Entry, error: AppError) -> dict[str, Any]:
    _store_failure(error, call.principal, call.request_id, entry)
    call.log.update(log_fields(error), httpStatus=error.status)
    data = failure_fields(error, call.request_id)
    return text_result(to_json({"data": data, "httpStatus": error.status}).decode(), is_error=True)


def _store_failure(
    error: AppError, principal: Principal | None, request_id: str, entry: Entry | None = None
) -> None:
    from chalicelib.transports import key_failures  # noqa: PLC0415  saves cold starts the import

    key_failures.store(
        error,
        principal,
        request_id=request_id,
        route=ROUTE,
        operation=entry.name if entry else "",
        tool=entry.tool if entry else None,
    )


def text_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return the result of a tool call with one text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _apps(call: Call) -> Sequence[App]:
    names = set(_tool_names(call))
    return [app for app in mcp_apps.FOR_MEMBERS if names.intersection(app.tools)]


def _records(call: Call) -> Sequence[Record]:
    entry = REGISTRY.entry(mcp_apps.BOOKINGS.operation)
    return [mcp_apps.BOOKINGS] if may_use(entry, _key(call)) else []


def _page(call: Call, app: App) -> str:
    from chalicelib.transports import mcp_app_pages  # noqa: PLC0415  saves cold starts the import

    currency = currency_of(_key(call).workspace_id)
    return mcp_app_pages.document(app.name, mcp_app_pages.Look(currency))


# The server for callers with a key, which offers the operations of a workspace.
FOR_KEYS = ToolServer(
    _instructions,
    lambda call: tools.list_bytes(_tool_names(call), with_apps=call.has_apps),
    tools.entries_by_tool,
    _run,
    _page,
    _apps,
    _records,
    has_prompts=True,
)
_PROMPTS = frozenset({"prompts/get", "prompts/list"})
_RESOURCES = frozenset({"resources/list", "resources/read", "resources/templates/list"})
_Methods = dict[str, Callable[[Call], dict[str, Any]]]
_SHARED_METHODS: _Methods = {
    "prompts/get": _get_prompt,
    "prompts/list": _list_prompts,
    "resources/list": _list_resources,
    "resources/read": _read_resource,
    "resources/templates/list": _list_templates,
    "tools/call": _call,
    "tools/list": _list,
}
_METHODS: dict[str, _Methods] = {
    "handshake": {"initialize": _initialize, "ping": lambda _: {}, **_SHARED_METHODS},
    "modern": {"server/discover": _discover, **_SHARED_METHODS},
}


def _result(call: Call, result: dict[str, Any], *, modern: bool) -> bytes:
    if modern:
        meta = {SERVER_INFO_KEY: _SERVER_INFO, **result.get("_meta", {})}
        result = {"resultType": "complete", **result, "_meta": meta}
    if call.method != "tools/list":
        return to_json({"jsonrpc": "2.0", "id": call.id, "result": result})
    # The list is JSON already.
    parts = [
        to_json(name) + b":" + (value.body if isinstance(value, Raw) else to_json(value))
        for name, value in result.items()
    ]
    return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (to_json(call.id), b",".join(parts))
