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

NEW_MAX_TOKENS = "max_completion_tokens"
"""Name of ``max_tokens`` in newer models of OpenAI. All other servers accept the old name."""

_REFUSING_CODES = frozenset(
    {"extra_forbidden", "unknown_parameter", "unsupported_parameter", "unsupported_value"}
)
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_KINDS: dict[str, FailureKind] = {
    "content_filter": "filtered",
    "tool_use_failed": "unavailable",  # The model wrote a call that the server cannot read.
}
_CODES = _REFUSING_CODES | _TOO_LONG_CODES | _KINDS.keys()
"""Codes that say what is wrong. Other codes name a class of errors, or repeat the status."""

_TOO_LONG = re.compile(
    r"maximum context length|context (?:window|size)|(?:prompt|input) is too long", re.IGNORECASE
)
_STATED_CONTEXT = re.compile(
    r"maximum context length (?:is|of) (\d+)|(\d+) maximum context length"
    r"|context size \((\d+) tokens\)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"unrecogni[sz]ed|unknown|unsupported|not supported|not permitted|not enabled|extra inputs"
    r"|does not support|that support|requires --|instead of",
    re.IGNORECASE,
)
_NAMES = {
    "max_tokens": NEW_MAX_TOKENS,
    "tools": r"tools|tool use|(?:tool|function) calling|.auto. tool choice",
}
"""Part -> its names in messages. Other parts have their own name."""


class ErrorReport(NamedTuple):
    """An error as a server reports it.

    ``status`` is None inside a stream without a number. ``code`` is one of ``_CODES`` or empty.
    ``stated_context`` is the context of the model in tokens.
    """

    status: int | None
    message: str
    code: str = ""
    param: str = ""
    stated_context: int | None = None

    @classmethod
    def of_body(cls, status: int, body: bytes) -> Self:
        """Return the report in the body of a response that is not a success."""
        text = body.decode(errors="replace")
        value = _parsed(text)
        if isinstance(value, list) and value:  # Gemini wraps its errors in a list.
            value = value[0]
        return cls.of(value if isinstance(value, dict) else text, status)

    @classmethod
    def of(cls, value: object, status: int | None = None) -> Self:
        """Return the report in a JSON object or a text."""
        if isinstance(value, dict) and value.get("error"):
            value = value["error"]
        if not isinstance(value, dict):
            return cls(status, str(value))
        if nested := _nested(value):
            return cls.of(nested, status)
        message = value.get("message") or value
        detail = message.get("detail") if isinstance(message, dict) else value.get("detail")
        about = detail[0] if isinstance(detail, list) and detail else None
        about = about if isinstance(about, dict) else value
        place = about.get("loc")
        number, context = value.get("code"), value.get("n_ctx")
        codes = (about.get("code"), about.get("type"))
        return cls(
            number if status is None and isinstance(number, int) else status,
            message if isinstance(message, str) else json.dumps(message, ensure_ascii=False),
            next((code for code in codes if isinstance(code, str) and code in _CODES), ""),
            ".".join(map(str, place[1:])) if isinstance(place, list) else _text(about, "param"),
            context if isinstance(context, int) else None,
        )

    @property
    def kind(self) -> FailureKind:
        """The kind of failure."""
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
        """The model's context in tokens, if the error states it."""
        stated = _STATED_CONTEXT.search(self.message)
        return self.stated_context or (int(stated[stated.lastindex or 0]) if stated else None)

    @property
    def _is_too_long(self) -> bool:
        if self.code:
            return self.code in _TOO_LONG_CODES
        is_refusal = self.status in {400, 413, 422}
        return is_refusal and bool(self.param == "input_tokens" or _TOO_LONG.search(self.message))

    def refused_part(self, sent: Collection[str]) -> str | None:
        """Return the part among ``OPTIONAL_PARTS`` that the server refuses, or None."""
        # llama.cpp answers 500 to tools if it was started without --jinja.
        is_refusal = self.status in {400, 404, 422} or "--jinja" in self.message
        if not is_refusal or self._is_too_long:
            return None
        parts = [part for part in OPTIONAL_PARTS if part in sent]
        if self.code:
            named = self.param.partition(".")[0].partition("[")[0]
            return named if self.code in _REFUSING_CODES and named in parts else None
        if not _REFUSAL.search(self.message):
            return None
        names = {part: rf"(?<!\w)(?:{_NAMES.get(part, part)})\b" for part in parts}
        matches = (part for part in parts if re.search(names[part], self.message, re.IGNORECASE))
        return next(matches, None)


class ProviderFailedError(Exception):
    """The provider reports an error inside its answer."""

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.message)
        self.report = report


def _nested(error: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error of another server that an error repeats as a JSON string."""
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
