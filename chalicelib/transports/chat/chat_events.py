"""Schemas of the chat stream's events, for the OpenAPI document.

``chat_stream.encode`` writes the events.
"""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.wire.json_schema import REF

EVENT = "ChatEvent"
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}


def _event(kind: str, description: str, **fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": ["type", *fields],
        "properties": {
            "type": {**_TEXT, "const": kind, "description": "Type of the event."},
            **fields,
        },
    }


_USAGE = {
    "type": "object",
    "description": "Tokens that the request used.",
    "required": ["inputTokens", "outputTokens", "totalTokens"],
    "properties": {
        "inputTokens": {**_COUNT, "description": "Sent to the model."},
        "outputTokens": {**_COUNT, "description": "In the answer."},
        "totalTokens": {**_COUNT, "description": "Both together."},
    },
}
_EVENTS = {
    "ChatStart": _event(
        "start",
        "The first event.",
        sessionId={**_TEXT, "description": "Continues the dialog with the next message."},
    ),
    "ChatChunk": _event(
        "chunk",
        "A piece of the answer.",
        content={**_TEXT, "description": "Text to append to the previous pieces."},
    ),
    "ChatDone": _event(
        "done",
        "The last event of a complete answer.",
        usage={"$ref": f"{REF}ChatUsage", "description": "Tokens that the request used."},
    ),
    "ChatError": _event(
        "error",
        "The last event of an interrupted answer.",
        error={**_TEXT, "description": "The reason, to show to the user."},
    ),
}


def schemas() -> dict[str, Any]:
    """Return the components: one for each type of event, and their union."""
    types = {event["properties"]["type"]["const"]: name for name, event in _EVENTS.items()}
    mapping = {kind: f"{REF}{name}" for kind, name in types.items()}
    union = {
        "description": "An event of the stream: the JSON object of one `data:` line.",
        "oneOf": [{"$ref": ref} for ref in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return {**_EVENTS, "ChatUsage": _USAGE, EVENT: union}
