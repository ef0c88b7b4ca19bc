"""Generate the OpenAPI 3.1 document from the registry. Inputs and records are named components."""

import json
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from chalicelib import SERVICE, VERSION
from chalicelib.core import areas, idempotency_keys
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.manifest import SERVER
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.json_schema import NULL_OMITS, REF, components, json_schema
from chalicelib.core.wire.list_names import other_names
from chalicelib.core.wire.message_detail import MessageDetail
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.chat.flows.accept_message import MESSAGES
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.transports import form_data, public, rest
from chalicelib.transports.api_docs import failures, response_headers
from chalicelib.transports.chat import chat_events, chat_route
from chalicelib.transports.http import JSON_TYPE, TEXT_TYPE

CHAT_EXAMPLE = {"agentId": "AGENT_ID", "message": "Do you sell bread?"}
# Recorded responses to the operations' examples, which ``make update`` writes. The deployed
# service has the finished document instead.
ANSWERS = Path(__file__).parents[3] / "docs" / "recorded_answers.json"
# The keys of each error code, which ``make update`` collects from the raises.
ERROR_KEYS = ANSWERS.with_name("error_keys.json")
_SECURITY = "apiKey"
_IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": idempotency_keys.HEADER,
    "in": "header",
    "required": False,
    "description": (
        f"1-{idempotency_keys.MAX_LENGTH} characters of your choice. For 24 hours, a call with "
        "the same key and input returns the first response."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": idempotency_keys.MAX_LENGTH},
}
_FORM_FILE = "file"  # The documented name of the file part. Any name is accepted.
_PART = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}


def _documented_operations() -> list[Operation]:
    return [
        operation for operation in REGISTRY.select(Audience.KEY, Audience.PUBLIC) if operation.path
    ]


def document() -> dict[str, Any]:
    """Return the OpenAPI document of every operation, with ``SERVER`` for the base URL.

    Operations have ``x-tool``, ``x-scope``, ``x-error-codes`` (by status), ``x-rate-limit`` and
    ``x-destructive``; ``x-errors`` and ``x-warnings`` describe all codes, and ``x-error-keys`` has
    the keys of each error code. The reference is built only from this.
    """
    operations = _documented_operations()
    codes = failures.catalogue(operations)
    names, schemas = components(
        [*(operation.input for operation in operations if _has_named_body(operation)), ChatRequest],
        outputs=[
            *(operation.output for operation in operations),
            *(operation.accepted for operation in operations if operation.accepted),
            MessageDetail,
        ],
    )
    for operation in operations:
        if operation.path_parameters and _has_named_body(operation):
            name = names[operation.input]
            schemas[name] = _drop_properties(schemas[name], operation.path_parameters)
        if _takes_key_in_body(operation):
            schemas[names[operation.input]]["properties"][idempotency_keys.FIELD] = {
                **_IDEMPOTENCY_KEY["schema"],
                "type": ["string", "null"],
                NULL_OMITS: True,
                "description": "Alternative to the header.",
            }
    outputs = [(operation.output, operation.accepted) for operation in operations]
    for output in filter(None, dict.fromkeys(chain.from_iterable(outputs))):
        _add_envelope(schemas[names[output]])
    for operation in operations:
        if (
            operation.served_as and operation.served_as.is_calendar
        ):  # The response is only the file.
            del schemas[names[operation.output]]
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        entry = _operation(operation, names)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    paths[chat_route.PATH] = {"post": _chat(names[ChatRequest])}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": SERVICE,
            "version": VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": SERVER}],
        "security": [{_SECURITY: []}],
        "tags": [
            {"name": area.name, "x-displayName": area.title, "description": area.about}
            for area in areas.AREAS
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                _SECURITY: {"type": "http", "scheme": "bearer", "description": "An API key."}
            },
            "schemas": {
                **schemas,
                **chat_events.schemas(),
                "Failure": failures.schema(_WARNINGS, codes),
            },
            "headers": response_headers.COMPONENTS,
            "responses": {
                f"Failure{status}": {
                    "description": text,
                    "headers": response_headers.of_failure(status),
                    "content": {"application/json": {"schema": {"$ref": f"{REF}Failure"}}},
                }
                for status, text in failures.STATUSES.items()
            },
        },
        "x-errors": codes,
        "x-error-keys": json.loads(ERROR_KEYS.read_bytes()),
        "x-warnings": [
            {"code": code, "description": code.meaning, "facts": code.facts} for code in WarningCode
        ],
    }


_DESCRIPTION = (
    "Manage a workspace with an API key. Every response is `{data: {status, ...}}`; money is in "
    "minor units of the workspace's currency (kopecks), durations are in minutes, times are "
    "ISO 8601 in UTC. Unknown fields of a request are ignored and named in `data.warnings`, and "
    "refused with the header `Prefer: handling=strict`. Responses may get new fields without "
    "notice, so ignore unknown fields."
)


def _area(operation: Operation) -> str:
    if Audience.PUBLIC in operation.audience:
        return areas.PUBLIC.name
    return operation.scope.area if operation.scope else areas.WORKSPACE.name


def _access_sentence(operation: Operation) -> str:
    if Audience.PUBLIC in operation.audience:
        return "No key is needed. Pages of any origin can call this operation."
    return f"Scope: `{operation.scope}`." if operation.scope else "Any valid key."


def _operation(operation: Operation, names: dict[type[Wire], str]) -> dict[str, Any]:
    tool = f" Tool: `{operation.tool}`." if operation.tool else ""
    codes = failures.failure_codes(failures.errors_of(operation))
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [_area(operation)],
        "summary": operation.title,
        "description": f"{operation.description}\n\n{_access_sentence(operation)}{tool}",
        "parameters": _parameters(operation),
        "responses": {
            "200": {
                "description": "Success.",
                "content": {JSON_TYPE: {"schema": _success(names[operation.output])}},
            },
            **_failures(codes),
        },
        **_extensions(operation),
        "x-error-codes": codes,
    }
    if operation.accepted is not None:
        entry["responses"]["202"] = {
            "description": "Accepted. The link in an e-mail completes the call.",
            "headers": response_headers.of_success(operation),
            "content": {JSON_TYPE: {"schema": _success(names[operation.accepted])}},
        }
    if Audience.PUBLIC in operation.audience:
        entry["security"] = []
    if handler := public.handler_of(operation):
        entry["responses"].update(handler.responses)
    success = {"headers": response_headers.of_success(operation), **entry["responses"]["200"]}
    entry["responses"]["200"] = success
    if not operation.reads_query:
        entry["requestBody"] = _body(operation, names)
    return _add_example_response(entry)


def _extensions(operation: Operation) -> dict[str, Any]:
    extensions: dict[str, Any] = {
        "x-tool": operation.tool,
        "x-scope": operation.scope and str(operation.scope),
        "x-destructive": operation.destructive or None,
    }
    if (limit := operation.limit) is not None:
        extensions["x-rate-limit"] = {
            "requests": limit.max_requests,
            "seconds": round(limit.window.total_seconds()),
            "counts": limit.what,
        }
    return {name: value for name, value in extensions.items() if value is not None}


def _failures(codes: Mapping[str, Any]) -> dict[str, Any]:
    return {status: {"$ref": f"#/components/responses/Failure{status}"} for status in codes}


@cache
def _answers() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(ANSWERS.read_bytes())
    return answers


def _add_example_response(entry: dict[str, Any]) -> dict[str, Any]:
    if (answer := _answers().get(entry["operationId"])) is not None:
        for content in entry["responses"]["200"]["content"].values():
            content["example"] = answer
    return entry


_CHAT_DESCRIPTION = """Send a visitor's message to a bot, which answers in server-sent events.

Each event is `data:` with a JSON object, and a blank line. The first is `start` with `sessionId`, \
which continues the dialog. Any number of `chunk` events with `content` follow, and `action` \
events for clients with the feature `actions`. The last is `done` with `usage` ({inputTokens, \
outputTokens, totalTokens}), or `error` with a text. Lines that begin with a colon keep the \
connection alive.

Without `sessionId`, a new dialog begins. Private bots require `apiKey`. 429 has the code \
`limit_daily`, `limit_weekly`, `limit_monthly` or `insufficient_balance` if the bot may not spend \
more, and `rate_limited` if the visitor sends too many messages. 409 `session_busy` means that the \
previous answer is not finished yet.

No key: pages of any origin may call it."""


def _chat(body: str) -> dict[str, Any]:
    # The chat streams, so it is not an operation of the registry.
    event_stream = {
        "schema": {
            "type": "string",
            "description": f"Events: `data:` lines, each with a `{chat_events.EVENT}` as JSON.",
            "contentMediaType": JSON_TYPE,
            "contentSchema": {"$ref": f"{REF}{chat_events.EVENT}"},
        }
    }
    codes = failures.failure_codes(iter(failures.CHAT))
    entry = {
        "operationId": "chat_stream",
        "tags": [areas.CHAT.name],
        "summary": "Talk to a bot",
        "description": _CHAT_DESCRIPTION,
        "security": [],
        "parameters": [_IDEMPOTENCY_KEY],
        "requestBody": {
            "required": True,
            "content": {JSON_TYPE: {"schema": {"$ref": f"{REF}{body}"}, "example": CHAT_EXAMPLE}},
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": response_headers.refs(response_headers.REQUEST_ID),
                "content": {"text/event-stream": event_stream},
            },
            **_failures(codes),
        },
        "x-rate-limit": {
            "requests": MESSAGES.max_requests,
            "seconds": round(MESSAGES.window.total_seconds()),
            "counts": MESSAGES.what,
        },
        "x-error-codes": codes,
    }
    return _add_example_response(entry)


def _has_named_body(operation: Operation) -> bool:
    # Bodies that are read from forms are inlined.
    in_place = operation.path_parameters and operation.served_as
    return not (operation.reads_query or in_place)


def _body(operation: Operation, names: dict[type[Wire], str]) -> dict[str, Any]:
    handler = public.handler_of(operation)
    inline = _drop_properties(_schema(operation), operation.path_parameters)
    name = names.get(operation.input)
    schema: Mapping[str, Any] = {"$ref": f"{REF}{name}"} if name else inline
    if handler is not None and handler.body is not None:
        schema = inline = dict(handler.body)
    kinds = (kind for kind in rest.body_types(operation) if kind != TEXT_TYPE)  # beacons' JSON
    content: dict[str, Any] = {kind: {"schema": schema} for kind in (JSON_TYPE, *kinds)}
    example = operation.example or {}
    body = {k: v for k, v in example.items() if k not in operation.path_parameters}
    content[JSON_TYPE]["example"] = body
    if operation.file_field:
        content[form_data.MULTIPART] = {"schema": _file_form(inline, operation.file_field)}
    return {"required": bool(inline.get("required")), "content": content}


def _takes_key_in_body(operation: Operation) -> bool:
    handler = public.handler_of(operation)
    return (
        Audience.PUBLIC in operation.audience
        and operation.accepts_idempotency_key
        and (handler is None or handler.body is None)
    )


def _file_form(schema: dict[str, Any], file_field: str) -> dict[str, Any]:
    # The form is a map of parts. For a second body with ``properties``, openapi-generator writes
    # code that imports a model which it does not generate (OpenAPITools/openapi-generator#24727).
    others = [name for name in schema["properties"] if name != file_field]
    return {
        "type": "object",
        "description": (
            f"The part `{_FORM_FILE}` is the file; its file name is the default of "
            f"`{form_data.NAME_FIELD}`. Other parts are strings: {', '.join(others)}."
        ),
        "additionalProperties": _PART,
    }


def _drop_properties(schema: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    properties = {k: v for k, v in schema["properties"].items() if k not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    remaining_schema = {k: v for k, v in schema.items() if k not in {"properties", "required"}}
    if minimum := remaining_schema.pop("minProperties", 0):
        remaining_schema["minProperties"] = minimum - (
            len(schema.get("required", ())) - len(required)
        )
    return {
        **remaining_schema,
        "properties": properties,
        **({"required": required} if required else {}),
    }


def _schema(operation: Operation) -> dict[str, Any]:
    return json_schema(operation.input, for_openapi=True)


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = _schema(operation)
    others = {name: other for other, name in other_names(operation.input).items()}
    parameters = []
    for name, declared in schema["properties"].items():
        in_path = name in operation.path_parameters
        if in_path or operation.reads_query:
            example = {"example": (operation.example or {}).get(name)}
            parameters.append(
                {
                    **(example if example["example"] is not None else {}),
                    "name": name,
                    "in": "path" if in_path else "query",
                    "required": in_path or name in schema.get("required", ()),
                    "description": declared["description"]
                    + (f" `{others[name]}` is another name." if name in others else ""),
                    "schema": {k: v for k, v in declared.items() if k != "description"},
                }
            )
    if operation.accepts_idempotency_key:
        parameters.append(_IDEMPOTENCY_KEY)
    return parameters


_WARNINGS = {
    "warnings": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Remarks about ignored input or incomplete work.",
    },
    "warningDetails": {
        "type": "array",
        "items": {"$ref": f"{REF}{MessageDetail.__name__}"},
        "description": "The warnings with their codes and facts.",
    },
}


def _add_envelope(schema: dict[str, Any]) -> None:
    status = {"type": "boolean", "description": "true: the call succeeded."}
    schema["required"] = ["status", *schema.get("required", ())]
    schema["properties"] = {
        "status": status,
        **schema.get("properties", {}),
        **_WARNINGS,
    }


def _success(name: str) -> dict[str, Any]:
    properties = {"data": {"$ref": f"{REF}{name}"}}
    return {"type": "object", "required": ["data"], "properties": properties}
