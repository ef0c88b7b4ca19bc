"""Reasons why an answer is not whole, as callers, dialogs and ledgers receive them."""

from collections.abc import Mapping
from typing import Literal, get_args

ErrorCode = Literal["empty_answer", "filtered", "provider_failed", "timed_out", "cut_off"]
"""Why the answer ended with an error:

- ``empty_answer``: the model ended without visible text and without an action
- ``filtered``: a filter of the provider withheld the answer or its rest
- ``provider_failed``: the provider failed before any text
- ``timed_out``: the time was up before any text
- ``cut_off``: the provider failed, or the time was up, after some text
"""
# ``truncated``: the maximum length of the answer is reached.
EndReason = ErrorCode | Literal["truncated"]
END_REASONS: frozenset[EndReason] = frozenset({"truncated", *get_args(ErrorCode)})
# Messages for visitors. They never contain a provider's text.
ERRORS: Mapping[ErrorCode, str] = {
    "empty_answer": "The bot had no answer. Ask in other words.",
    "filtered": "A filter withheld the answer or a part of it. Ask in other words.",
    "provider_failed": "The bot could not answer. Try again in a moment.",
    "timed_out": "The bot took too long to answer. Try again in a moment.",
    "cut_off": "The answer was cut off. Ask again for the rest.",
}


def error_code(reason: EndReason | None) -> ErrorCode | None:
    """Return the code of the error that an answer ended with."""
    return None if reason == "truncated" else reason
