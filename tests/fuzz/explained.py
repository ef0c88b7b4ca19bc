"""Findings of ``make fuzz`` that are no faults, each with the reason.

Schemathesis compares answers with the OpenAPI document. It reports a request that fits the schema
and is refused, a request that does not fit and is accepted, and a status that is not listed. What
this module does not explain fails the run.
"""

import re
from typing import Any

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.openapi.checks import RejectedPositiveData

BEYOND_A_SCHEMA = {
    "Texts that are shown hold no control characters; patterns cannot say so portably.": (
        r"expected no control characters",
    ),
    "Days exist, come in order, and stay within bounds that depend on today.": (
        r"expected a (date|time) such as",
        r"expected a day (up to|from)",
        r"expected at most \d+ days",
        r"expected \S+ or (a later|an earlier) (date|time)",
    ),
    "Time zones and languages are names of a list that grows.": (
        r"expected an IANA name",
        r"expected a language",
    ),
    "Barcodes end in a check digit.": (r"expected (8, 12, 13 or 14 digits|the check digit)",),
    "Addresses, domains and origins have a grammar of their own.": (
        r"expected an address such as",
        r"expected an origin such as",
        r"expected (an https|a full) URL",
        r"expected labels of 1 to 63",
    ),
    "Some fields are required together, or exclude one another.": (
        r"[Ee]xpected (exactly|at least) one of",
        r"[Ee]xpected (startAt, resourceId|phone, email) or both",
        r"expected either \w+ or",
        r"only a select has options",
        r"^value: is required",  # of some actions of a bulk change
        r"Nothing to change",
        r"Send (at least one of|email or phone|stock or stockDelta)",
        r"is above max",
        r"Repeat with confirm",
    ),
    "Files are sent as base64, and hold something.": (
        r"expected the file's bytes in base64",
        r"expected at least one byte",
    ),
}
"""Refusals of what fits the schema, by the reason for which the schema cannot forbid it."""
WITHOUT_A_NETWORK = "upstream_failed"
"""The service of the run reaches no network, so what it should fetch does not come."""
BEFORE_ANY_ROUTE = "uri_too_long"
"""A request line over 8 KB is refused before its operation is known; no operation lists it."""


@schemathesis.hook
def filter_failure(_context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Return whether a finding counts."""
    if code(response) in {WITHOUT_A_NETWORK, BEFORE_ANY_ROUTE}:
        return False
    if isinstance(failure, RejectedPositiveData):
        return not all(map(is_explained, refusals(response)))
    if isinstance(failure, AcceptedNegativeData):
        # Null and an empty text stand for an omission, wherever an omission does nothing: AI
        # clients and forms fill every field. The schema says what is meant, not all that is taken.
        return not (sends_nothing(case.query) or sends_nothing(case.body))
    return True


def code(response: Response) -> str:
    """Return the code of a failure."""
    return str(data(response).get("code", ""))


def data(response: Response) -> dict[str, Any]:
    """Return what is inside the envelope, if the answer is one."""
    try:
        found: dict[str, Any] = response.json()["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found


def refusals(response: Response) -> list[str]:
    """Return why the input was refused: for each field its name and a sentence."""
    found = data(response)
    fields = [f"{each['field']}: {each['message']}" for each in found.get("errors", ())]
    return fields or [found.get("message", "")]


def is_explained(message: str) -> bool:
    """Whether a refusal is one that no schema can announce."""
    patterns = (pattern for group in BEYOND_A_SCHEMA.values() for pattern in group)
    return any(re.search(pattern, message) for pattern in patterns)


def sends_nothing(value: Any) -> bool:
    """Whether a part of the input is null or an empty text."""
    if isinstance(value, dict):
        return any(map(sends_nothing, value.values()))
    if isinstance(value, list):
        return any(map(sends_nothing, value))
    return value is None or value == ""
