"""OpenAPI 3.1, generated from the registry; inputs and records are named components."""

from collections.abc import Iterator, Mapping
from typing import Any

from chalicelib import SERVICE, VERSION
from chalicelib.core import errors
from chalicelib.core.json_schema import REF, components
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.schema import Wire
from chalicelib.core.scopes import Scope
from chalicelib.flows.chat_request import ChatRequest
from chalicelib.flows.invoke import IDEMPOTENCY_KEY
from chalicelib.transports import chat_route, form_data, public, rest
from chalicelib.transports.http import JSON_TYPE, TEXT_TYPE
from chalicelib.transports.reference import SERVER

_SECURITY = "apiKey"

_FAILURES = {
    "400": "The input does not fit; `errors` names the fields.",
    "401": "No key, or one that is not valid.",
    "403": "The plan, the scope or the account's role does not allow it.",
    "404": "Nothing in the workspace has this id.",
    "405": "The path does not take this method; `Allow` names those it takes.",
    "409": "The request clashes with the present state.",
    "413": "The body, a field or the answer is too large.",
    "415": "The body is of another type than the operation takes.",
    "429": "Too many requests; `Retry-After` says how long to wait.",
    "500": "Something broke on our side; report the `requestId`.",
    "502": "A service that this one asks did not answer as it should.",
    "503": "Out of reach, overloaded or not set up; `Retry-After` says if a retry helps.",
}

_IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": (
        "1-255 characters of your choice. "
        "The same key with the same input replays the first answer for 24 hours."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


_OF_KEYS = frozenset({"401", "403"})
"""Failures that a call without a key does not meet."""

_FILE = {
    "type": "string",
    "format": "binary",
    "contentMediaType": "application/octet-stream",
    "description": "The file; its file name is the default of name.",
}
_FORM_FILE = "file"
"""What documentation calls the part with the file; any name is taken."""


def _shown() -> list[Operation]:
    """Return the operations that programs and visitors' pages call, which have a route."""
    return [each for each in REGISTRY.of(Audience.KEY, Audience.PUBLIC) if each.path]


def document(server: str = SERVER) -> dict[str, Any]:
    """Return the OpenAPI document of every operation, as a server at a base URL answers it."""
    operations = _shown()
    names, schemas = components(
        [*(each.input for each in operations if _has_named_body(each)), ChatRequest],
        [each.output for each in operations],
    )
    for operation in operations:
        if operation.path_parameters and _has_named_body(operation):
            name = names[operation.input]
            schemas[name] = _without(schemas[name], operation.path_parameters)
        if operation.file_field:
            form = _file_form(operation.input_schema, operation.file_field)
            schemas[f"{names[operation.input]}Form"] = form
        if _takes_key_in_body(operation):
            schemas[names[operation.input]]["properties"][IDEMPOTENCY_KEY] = {
                **_IDEMPOTENCY_KEY["schema"],
                "description": "In place of the header.",
            }
    for output in {operation.output for operation in operations}:
        _add_envelope(schemas[names[output]])
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = _operation(operation, names)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    paths[chat_route.PATH] = {"post": _chat(names[ChatRequest])}
    return {
        "openapi": "3.1.0",
        "info": {"title": SERVICE, "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": server}],
        "security": [{_SECURITY: []}],
        "tags": [{"name": area} for area in _areas()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                _SECURITY: {"type": "http", "scheme": "bearer", "description": "An API key."}
            },
            "schemas": {**schemas, "Failure": _failure_schema()},
            "responses": {
                f"Failure{status}": {
                    "description": text,
                    "content": {"application/json": {"schema": {"$ref": f"{REF}Failure"}}},
                }
                for status, text in _FAILURES.items()
            },
        },
    }


_PUBLIC = "public"
"""The area of what visitors call, without a key."""

_DESCRIPTION = (
    "Manage a workspace with an API key. Every answer is `{data: {status, ...}}`; "
    "money is in kopecks, durations are in minutes, times are ISO 8601 in UTC."
)


def _area(operation: Operation) -> str:
    if Audience.PUBLIC in operation.audience:
        return _PUBLIC
    return operation.scope.area if operation.scope else "workspace"


def _areas() -> list[str]:
    used = {_area(operation) for operation in _shown()}
    return [
        area
        for area in dict.fromkeys(["workspace", *(scope.area for scope in Scope), _PUBLIC])
        if area in used
    ]


def _who(operation: Operation) -> str:
    if Audience.PUBLIC in operation.audience:
        return "No key: pages of any origin may call it."
    return f"Scope: `{operation.scope}`." if operation.scope else "Any valid key."


def _operation(operation: Operation, names: dict[type[Wire], str]) -> dict[str, Any]:
    open_to_all = Audience.PUBLIC in operation.audience
    tool = f" Tool: `{operation.tool}`." if operation.tool else ""
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [_area(operation)],
        "summary": operation.title,
        "description": f"{operation.description}\n\n{_who(operation)}{tool}",
        "parameters": _parameters(operation),
        "responses": {
            "200": {
                "description": "Success.",
                "content": {"application/json": {"schema": _success(names[operation.output])}},
            },
            **{
                status: {"$ref": f"#/components/responses/Failure{status}"}
                for status in _failures(operation)
            },
        },
    }
    if open_to_all:
        entry["security"] = []
    entrance = public.ENTRANCES.get(operation.name)
    if entrance is not None:
        entry["responses"].update(entrance.responses)
    if not operation.reads_query:
        entry["requestBody"] = _body(operation, names)
    return entry


_CHAT_DESCRIPTION = """Send a visitor's message to a bot; its answer comes as server-sent events.

Each is `data:` with a JSON object and a blank line: `start` with `sessionId`, to continue the \
dialog with; `chunk` with `content`, any number of them; at the end `done` with `usage` \
({inputTokens, outputTokens, totalTokens}), or `error` with a text. Lines that begin with a colon \
keep the connection alive.

Without `sessionId` a new dialog begins. Private bots ask for `apiKey`. 429 has the code \
`limit_daily`, `limit_weekly`, `limit_monthly` or `insufficient_balance` if the bot may not spend \
more, `rate_limited` if the visitor sends too much. 409 `session_busy`: the last answer is still \
coming.

No key: pages of any origin may call it."""


def _chat(body: str) -> dict[str, Any]:
    """Return the entry of the chat, which is no operation of the registry: it streams."""
    event_stream = {"schema": {"type": "string", "description": "The events, as described."}}
    return {
        "operationId": "chat_stream",
        "tags": [_PUBLIC],
        "summary": "Talk to a bot",
        "description": _CHAT_DESCRIPTION,
        "security": [],
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": {
            "required": True,
            "content": {JSON_TYPE: {"schema": {"$ref": f"{REF}{body}"}}},
        },
        "responses": {
            "200": {"description": "The answer.", "content": {"text/event-stream": event_stream}},
            **{
                status: {"$ref": f"#/components/responses/Failure{status}"}
                for status in _FAILURES
                if status not in {"401", "502"}
            },
        },
    }


def _failures(operation: Operation) -> Iterator[str]:
    """Yield the statuses of the failures that an operation may answer with."""
    missing = {
        "409": operation.read_only,
        "415": operation.reads_query,
        "502": not operation.open_world,
    }
    if Audience.PUBLIC in operation.audience:
        missing |= dict.fromkeys(_OF_KEYS, True)
    return (status for status in _FAILURES if not missing.get(status))


def _has_named_body(operation: Operation) -> bool:
    """Whether an operation's body is a component; what is read from forms is described in place."""
    in_place = operation.path_parameters and operation.name in public.ENTRANCES
    return not (operation.reads_query or in_place)


def _body(operation: Operation, names: dict[type[Wire], str]) -> dict[str, Any]:
    entrance = public.ENTRANCES.get(operation.name)
    inline = _without(operation.input_schema, operation.path_parameters)
    name = names.get(operation.input)
    schema: Mapping[str, Any] = {"$ref": f"{REF}{name}"} if name else inline
    if entrance is not None and entrance.body is not None:
        schema = inline = dict(entrance.body)
    kinds = (kind for kind in rest.body_types(operation) if kind != TEXT_TYPE)  # beacons' JSON
    content = {kind: {"schema": schema} for kind in (JSON_TYPE, *kinds)}
    if operation.file_field:
        content[form_data.MULTIPART] = {"schema": {"$ref": f"{REF}{name}Form"}}
    return {"required": bool(inline.get("required")), "content": content}


def _takes_key_in_body(operation: Operation) -> bool:
    entrance = public.ENTRANCES.get(operation.name)
    return (
        Audience.PUBLIC in operation.audience
        and operation.accepts_idempotency_key
        and (entrance is None or entrance.body is None)
    )


def _file_form(schema: dict[str, Any], file_field: str) -> dict[str, Any]:
    """Return the form that an operation takes in place of JSON: a file, and its other fields."""
    rest = _without(schema, (file_field,))
    required = [name for name in rest.pop("required", ()) if name != form_data.NAME_FIELD]
    properties = {_FORM_FILE: _FILE, **rest["properties"]}
    return {**rest, "required": [_FORM_FILE, *required], "properties": properties}


def _without(schema: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    properties = {k: v for k, v in schema["properties"].items() if k not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    rest = {k: v for k, v in schema.items() if k not in {"properties", "required"}}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = operation.input_schema
    parameters = []
    for name, declared in schema["properties"].items():
        in_path = name in operation.path_parameters
        if in_path or operation.reads_query:
            parameters.append(
                {
                    "name": name,
                    "in": "path" if in_path else "query",
                    "required": in_path or name in schema.get("required", ()),
                    "description": declared["description"],
                    "schema": {k: v for k, v in declared.items() if k != "description"},
                }
            )
    if operation.accepts_idempotency_key:
        parameters.append(_IDEMPOTENCY_KEY)
    return parameters


_WARNINGS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "What the call ignored or could not do in full.",
}


def _add_envelope(schema: dict[str, Any]) -> None:
    """Add to a result what ``data`` has beside it."""
    status = {"type": "boolean", "const": True, "description": "true: it succeeded."}
    schema["required"] = ["status", *schema.get("required", ())]
    schema["properties"] = {
        "status": status,
        **schema.get("properties", {}),
        "warnings": _WARNINGS,
    }


def _success(name: str) -> dict[str, Any]:
    properties = {"data": {"$ref": f"{REF}{name}"}}
    return {"type": "object", "required": ["data"], "properties": properties}


def _failure_schema() -> dict[str, Any]:
    text = {"type": "string"}
    field = {
        "type": "object",
        "properties": {"field": text, "message": text},
        "required": ["field", "message"],
    }
    data = {
        "type": "object",
        "required": ["status", "message", "code", "requestId"],
        "properties": {
            "status": {"type": "boolean", "const": False, "description": "false: it failed."},
            "message": {**text, "description": "What was expected, what came and what to do."},
            "code": {**text, "description": "Stable code.", "examples": _codes()},
            "errors": {
                "type": "array",
                "items": field,
                "description": "The invalid fields, on 400 only.",
            },
            "warnings": _WARNINGS,
            "requestId": {**text, "description": "Quote it when you report a problem."},
        },
    }
    return {"type": "object", "required": ["data"], "properties": {"data": data}}


def _codes() -> list[str]:
    def family(error: type[errors.AppError]) -> set[str]:
        return {error.code}.union(*map(family, error.__subclasses__()))

    return sorted(family(errors.AppError))
