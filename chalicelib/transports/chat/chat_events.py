"""Schemas of the chat stream's events, for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.wire.json_schema import REF
from chalicelib.domains.chat.rules.endings import ERRORS

EVENT = "ChatEvent"
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}


def _object(
    description: str,
    /,
    optional: Mapping[str, Mapping[str, Any]] | None = None,
    **fields: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": [*fields],
        "properties": {**fields, **(optional or {})},
    }


def _event(
    kind: str,
    description: str,
    /,
    optional: Mapping[str, Mapping[str, Any]] | None = None,
    **fields: Mapping[str, Any],
) -> dict[str, Any]:
    schema = _object(description, optional, **fields)
    kind_field = {**_TEXT, "const": kind, "description": "Type of the event."}
    return {
        **schema,
        "required": ["type", *schema["required"]],
        "properties": {"type": kind_field, **schema["properties"]},
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
        optional={
            "lastReplyId": {
                **_TEXT,
                "description": "Id of the latest reply of a member of staff, if there is one. "
                "POST /api/agents/public/replies returns the replies.",
            }
        },
        sessionId={**_TEXT, "description": "Continues the dialog with the next message."},
    ),
    "ChatChunk": _event(
        "chunk",
        "A piece of the answer.",
        content={**_TEXT, "description": "Text to append to the previous pieces."},
    ),
    "ChatAction": _event(
        "action",
        "An action to confirm, for clients with the feature actions. "
        "POST /api/agents/public/actions/{id} decides on it.",
        id={**_TEXT, "description": "Action id."},
        kind={**_TEXT, "enum": ["booking", "order"], "description": "Kind of the action."},
        language={**_TEXT, "description": "Language of the texts: ru or en."},
        title={**_TEXT, "description": "Title of the card."},
        details={
            "type": "array",
            "description": "Lines of text on the card.",
            "items": _object(
                "A line.",
                label={**_TEXT, "description": "Left side."},
                value={**_TEXT, "description": "Right side."},
            ),
        },
        fields={
            "type": "array",
            "description": "Values that the visitor must still enter.",
            "items": _object(
                "A field.",
                name={**_TEXT, "description": "Name of the value."},
                label={**_TEXT, "description": "Label."},
                type={**_TEXT, "description": "Type, as in forms."},
                required={"type": "boolean", "description": "Whether it must be filled in."},
                options={
                    "type": "array",
                    "items": _TEXT,
                    "description": "Choices of a select.",
                },
            ),
        },
        note={**_TEXT, "description": "Note that nothing is done until the visitor confirms."},
        consent=_object(
            "Consent that the visitor gives by confirming.",
            text={**_TEXT, "description": "Sentence."},
            url={"type": ["string", "null"], "description": "Privacy policy, or null."},
        ),
        confirm={**_TEXT, "description": "Label of the button that confirms."},
        cancel={**_TEXT, "description": "Label of the button that declines."},
        expiresAt={
            **_TEXT,
            "format": "date-time",
            "description": "Time until which the visitor can confirm.",
        },
    ),
    "ChatDone": _event(
        "done",
        "The last event of a complete answer.",
        optional={
            "sources": {
                "type": "array",
                "description": "Pages that the facts come from, for clients with the feature "
                "sources.",
                "items": _object(
                    "A page.",
                    title={**_TEXT, "description": "Title."},
                    url={**_TEXT, "description": "URL."},
                ),
            },
            "truncated": {
                "type": "boolean",
                "description": "True if the answer was cut at its maximum length; else absent.",
            },
        },
        usage={"$ref": f"{REF}ChatUsage", "description": "Tokens that the request used."},
    ),
    "ChatError": _event(
        "error",
        "The last event of a failed answer.",
        optional={
            "usage": {
                "$ref": f"{REF}ChatUsage",
                "description": "Tokens of an empty answer that was charged.",
            },
        },
        code={
            **_TEXT,
            "enum": list(ERRORS),
            "description": "empty_answer: there is no visible text and no action; filtered: a "
            "filter withheld the answer or its rest; provider_failed, timed_out: the model failed "
            "before any text; cut_off: it failed after some text.",
        },
        error={**_TEXT, "description": "Reason, for display to the visitor."},
    ),
}


def schemas() -> dict[str, Any]:
    """Return the components, which are the event types and their union."""
    types = {event["properties"]["type"]["const"]: name for name, event in _EVENTS.items()}
    mapping = {kind: f"{REF}{name}" for kind, name in types.items()}
    union = {
        "description": "An event of the stream: the JSON object of one `data:` line.",
        "oneOf": [{"$ref": ref} for ref in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return {**_EVENTS, "ChatUsage": _USAGE, EVENT: union}
