"""Errors of servers with OpenAI's API, recognized by their codes and parameters.

OpenAI and most servers send ``{"error": {"message", "type", "param", "code"}}``. vLLM and Mistral
also send these fields without ``error``, servers on FastAPI send ``detail``, and OpenRouter and
Ollama repeat the JSON of another server as a string. Some servers send no code that says anything.
Only then known words of the message decide.
"""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple, Self

from chalicelib.gateways.llm import FailureKind
from chalicelib.gateways.llm.observed_limits import OPTIONAL_PARTS

# The newer name of ``max_tokens`` in models of OpenAI. All other servers accept the old one.
NEW_MAX_TOKENS = "max_completion_tokens"

_REFUSING_CODES = frozenset(
    {"extra_forbidden", "unknown_parameter", "unsupported_parameter", "unsupported_value"}
)
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_KINDS: dict[str, FailureKind] = {
    "content_filter": "filtered",
    "content_policy_violation": "filtered",
    "data_inspection_failed": "filtered",
    "tool_use_failed": "unavailable",  # The model wrote a call that the server cannot read.
}
# Codes and types, in lower case, that name no problem. Numbers, which repeat the status, neither.
_GENERIC_CODES = frozenset(
    {
        "api_error",
        "bad request",
        "bad_request",
        "badrequest",
        "badrequesterror",
        "invalid_request",
        "invalid_request_error",
        "invalid_request_invalid_args",
        "notfounderror",
        "server_error",
    }
)
_NO_CODE = "no JSON"  # The words of a body with this code are not searched.

_TOO_LONG = re.compile(
    r"maximum (?:context|model|prompt) length|context (?:window|size|limit)|model token limit"
    r"|(?:prompt|input) is too long|too long to fit|too many (?:input )?tokens"
    r"|input tokens? (?:count|exceeded)|range of input length|tokens.? \+ .max_new_tokens",
    re.IGNORECASE,
)
_CONTEXT_TOKENS = re.compile(
    r"maximum (?:context|prompt) length (?:is|of) (\d+)|(?<!\d)(\d+) maximum context length"
    r"|context size \((\d+) tokens\)|tokens > (\d+) maximum",
    re.IGNORECASE,
)
# A server refuses these if it names them as ``param``. Others may only have a bad value.
_DECIDED_BY_PARAM = frozenset({"response_format", "stream", "stream_options", "tool_choice"})
# Part -> its names in messages. Other parts have their own name.
_NAMES = {
    "stream": r"stream(?!\w)",
    "tools": r"tools|tool use|(?:tool|function) calling|.auto. tool choice",
}
# Regular expressions for the refusal of a part with the names ``{0}``. ``{1}`` is any field.
_REFUSALS = (
    r"(?:does not|doesn.t) support (?:this )?(?:{0})",
    r"(?:{0})\W+(?:is|are) not (?:supported|permitted|enabled|allowed)",
    r"(?:unknown|unsupported|unrecogni[sz]ed|extra) (?:request )?(?:{1})[\w ]*\W+(?:{0})",
    r"(?:{0})(?: param)? requires --",
    r"that support (?:the provided )?.?(?:{0})",
    r"verified to (?:{0})",
    r"instead of (?:{0})",
)
_FIELD = r"argument|field|inputs?|param"


class ErrorReport(NamedTuple):
    """An error as a server reports it."""

    status: int | None  # None inside a stream without a number
    message: str
    code: str = ""  # empty without one, or with a generic one
    param: str = ""
    context: int | None = None  # of the model in tokens

    @classmethod
    def from_body(cls, status: int, body: bytes) -> Self:
        """Return the report in the body of a response that is not a success."""
        text = body.decode(errors="replace")
        value = _parsed(text)
        if isinstance(value, list) and value:  # Gemini wraps its errors in a list.
            value = value[0]
        if not isinstance(value, dict):
            return cls(status, text, _NO_CODE)
        return cls.from_json(value, status)

    @classmethod
    def from_json(cls, value: object, status: int | None = None) -> Self:
        if isinstance(value, dict) and value.get("error"):
            value = value["error"]
        if not isinstance(value, dict):
            return cls(status, str(value))
        if nested := _nested(value):
            return cls.from_json(nested, status)
        message = value.get("message") or value
        detail = message.get("detail") if isinstance(message, dict) else value.get("detail")
        source = detail[0] if isinstance(detail, list) and detail else value
        source = source if isinstance(source, dict) else value
        path, number, context = source.get("loc"), value.get("code"), value.get("n_ctx")
        text = source.get("msg", message)
        return cls(
            number if status is None and isinstance(number, int) else status,
            text if isinstance(text, str) else "",
            _code(source),
            ".".join(map(str, path[1:])) if isinstance(path, list) else _text(source, "param"),
            context if isinstance(context, int) else None,
        )

    @property
    def kind(self) -> FailureKind:
        if self._is_too_long:
            return "too_long"
        if kind := _KINDS.get(self.code):
            return kind
        match self.status:
            case 408 | 504:
                return "timeout"
            case 429:
                return "rate_limited"
            case int() if self.status < 500:  # noqa: PLR2004  the status classes of HTTP
                return "refused"
            case _:
                return "unavailable"

    @property
    def context_tokens(self) -> int | None:
        """The model's context in tokens, if the error contains it."""
        return self.context or context_tokens_in(self.message)

    @property
    def _is_too_long(self) -> bool:
        if self.code:
            return self.code in _TOO_LONG_CODES
        is_refusal = self.status in {400, 413, 422}
        return is_refusal and (self.param == "input_tokens" or is_too_long(self.message))

    def refused_part(self, request_parts: Collection[str]) -> str | None:
        """Return the part among ``OPTIONAL_PARTS`` that the server refuses, or None."""
        # llama.cpp answers 500 to tools if it was started without --jinja.
        is_refusal = self.status in {400, 404, 422} or "--jinja" in self.message
        if not is_refusal or self._is_too_long:
            return None
        # A parameter or a code decides, and otherwise the message. A parameter inside a part, such
        # as ``tools[0].function``, is a fault of its value.
        parts = [part for part in OPTIONAL_PARTS if part in request_parts]
        if self.param:
            part = "stream_options" if self.param.startswith("stream_options.") else self.param
            is_decided = self.code in _REFUSING_CODES or part in _DECIDED_BY_PARAM
            return part if part in parts and is_decided else None
        if self.code and self.code not in _REFUSING_CODES:
            return None
        return next((part for part in parts if _refuses(self.message, part=part)), None)


class ProviderFailedError(Exception):
    """The provider reports an error inside its answer."""

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.message)
        self.report = report


def is_too_long(message: str) -> bool:
    """Return whether an error says that the messages exceed the model's context."""
    return bool(_TOO_LONG.search(message))


def context_tokens_in(message: str) -> int | None:
    """Return the model's context that a message contains, in tokens."""
    match = _CONTEXT_TOKENS.search(message)
    return int(match[match.lastindex or 0]) if match else None


def _refuses(message: str, *, part: str) -> bool:
    if part == "max_tokens" and NEW_MAX_TOKENS in message:
        return True
    names = _NAMES.get(part, part)
    return any(
        re.search(pattern.format(names, _FIELD), message, re.IGNORECASE) for pattern in _REFUSALS
    )


def _code(error: dict[str, Any]) -> str:
    codes = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str)]
    specific = (
        code for code in codes if code.lower() not in _GENERIC_CODES and not code.isdecimal()
    )
    return next(specific, "")


def _nested(error: dict[str, Any]) -> dict[str, Any] | None:
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else error.get("message")
    nested = _parsed(raw) if isinstance(raw, str) and raw.lstrip().startswith("{") else None
    return nested if isinstance(nested, dict) else None


def _parsed(text: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def _text(value: dict[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""
