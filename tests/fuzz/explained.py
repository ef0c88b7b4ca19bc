"""Findings of ``make fuzz`` that are not errors, each with its reason.

Schemathesis compares responses with the OpenAPI document. It reports a valid request that is
refused, an invalid request that is accepted, and an unlisted status. The run fails with any
finding that this module does not explain.
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
    "Texts are trimmed before their characters are counted.": (
        r"expected at least 1 character\(s\), received string \"\s*\"",
    ),
    "Phone numbers follow the number plans of countries.": (
        r"expected a phone number such as",
        r"expected a number of [A-Z]{2} or one with its country code",
    ),
    "Days exist, come in order, and stay within bounds that depend on today.": (
        r"expected a (date|time) such as",
        r"expected a date from",
        r"expected at most \d+ (days|dates)",
        r"expected a time from",
        r"expected a year from",
        r"expected \S+ or (a later|an earlier) (date|day|time)",
    ),
    "Time zones, countries, currencies, models and events are names of a list that grows.": (
        r"expected the ISO (3166|4217) code",
        r"expected the name of a model",
        r"expected an IANA name",
        r"expected one of booking\.created, ",
    ),
    "Barcodes end in a check digit.": (r"expected (8, 12, 13 or 14 digits|the check digit)",),
    "Addresses, domains and origins have a grammar of their own.": (
        r"expected an address such as",
        r"expected an origin such as",
        r"expected (an https|a full) URL",
        r"expected labels of 1 to 63",
        r"expected a (URL|(bare |full |valid )?host name|name of your own)",
        r"expected an IPv[46] address",
    ),
    "URLs that the service fetches lead to the usual ports of the public internet.": (
        r"expected port 80 or 443",
        r"expected a URL on the public internet",
    ),
    "Some fields are required together, or exclude one another.": (
        r"[Ee]xpected (exactly|at least) one of",
        r"[Ee]xpected (startAt, resourceId|phone, email) or both",
        r"expected either \w+ or",
        r"expected (no options, which only|options for a field of type) ",
        r"expected intervals, such as",
        r"[Nn]othing to change",
        r"expected the price that you saw for each item",
        r"^value: is required",  # for some actions of a bulk change
        r"[Ee]xpected \w+ up to \w+, received the larger",
        r"[Ss]end at least one of",
        r"[Ee]xpected (email, phone or both|stock or stockDelta), received",
        r"Repeat with confirm",
        r"expected a name, an e-mail address or a phone, received none",
        r"expected no sortDir with the sort",
        r"expected (resourceId|startAt) for the action",
        r"expected price, durationMin or both",
    ),
    "Each record is named once in a list of objects.": (r"expected (each \w+|every booking) once",),
    "Names are shown in mails, where a web address in them would look like ours.": (
        r"expected a name without a web address",
    ),
    "A few flags can only be set, and constants are misread by generators of clients.": (
        r"expected true",
    ),
    "Opening hours are a language of their own.": (
        r"expected start and end, received only one of them",
        r"expected an end that differs from the start",
        r"expected mon to sun",
        r"expected at least one weekday",
        r"expected one rule per date",
        r"expected at most \d+ intervals for a day",
        r"expected no value together with",
        r"overlap",
    ),
    "Names within a list differ, and some names are reserved.": (
        r"received several fields named",
        r"reserved",
        r"expected (a file name|a name without)",
    ),
    "Texts hold something that can be seen, and fit their bytes.": (
        r"expected (a message|a text|HTML), received",
        r"expected at least one visible character",
        r"expected no characters that change the direction of text",
        r"bytes of UTF-8",
    ),
    "Some inputs depend on what there is: another record, a page that has HTML.": (
        r"expected another",
        r"expected the value of next on the previous page",
        r"expected a page with HTML",
        r"like the file that it replaces",
        r"expected a txt, md, html, csv or pdf file",
        r"^fileId: ",  # what a file contains
        r"^resourceId: is required, because the service",
        r"^resourceId: expected (a resource of the|one of the) service",
        r"expected ids of resourceIds",
        r"expected a service that is offered on dates only",
        r"expected services (that can follow one another|of at most \d+ minutes)",
        r"expected no further services with bookingId",
    ),
    "Moments lie ahead, exist in their zone, and fit what they belong to.": (
        r"expected (a time after|the time of from or)",
        r"expected a time (in the future|within the next|without seconds)",
        r"(does not exist|occurs twice), because clocks go",
        r"has no reserved time and cannot be moved",
        r"expected a booking of this service",
        r"expected a time with an offset",
    ),
    "An edit finds what it replaces, and folders nest only so deep.": (
        r"find matched",
        r"expected at most \d+ levels of folders",
    ),
    "Files are sent as base64, and hold something.": (
        r"expected the file's bytes in base64",
        r"expected at least one byte",
        r"expected [0-9,]+ bytes at the upload's URL",
        r"expected one file in the form",
    ),
}
"""Refusals of schema-valid input, by the reason why the schema cannot forbid it."""
WITHOUT_A_NETWORK = "upstream_failed"
"""The service under test has no network, so it cannot fetch external data."""
WHOLE_STREAM = "SSE event violates schema"
"""OpenAPI 3.1 describes a stream as one text.

Schemathesis compares each event with that schema, as version 3.2 would. The chat's own tests check
each event against its schema.
"""
BEFORE_ANY_ROUTE = "uri_too_long"
"""A request line over 8 KB is refused before its operation is known.

No operation lists the code.
"""


@schemathesis.hook
def filter_failure(_context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Return whether a finding counts as an error."""
    if code(response) in {WITHOUT_A_NETWORK, BEFORE_ANY_ROUTE}:
        return False
    if failure.title == WHOLE_STREAM:
        return False
    if isinstance(failure, RejectedPositiveData):
        return not all(map(is_explained, refusals(response)))
    if isinstance(failure, AcceptedNegativeData):
        # Null and an empty string count as omitted where omission has no effect, because AI clients
        # and forms fill in every field. The schema documents the intended values only.
        # An invalid item of a batch fails without the others, with its own outcome.
        nothing = sends_nothing(case.query) or sends_nothing(case.body)
        return not (nothing or data(response).get("summary", {}).get("failed"))
    return True


def code(response: Response) -> str:
    """Return the code of a failure."""
    return str(data(response).get("code", ""))


def data(response: Response) -> dict[str, Any]:
    """Return the data inside the envelope, if the response is an envelope."""
    try:
        error_data: dict[str, Any] = response.json()["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error_data


def refusals(response: Response) -> list[str]:
    """Return the reasons of a refusal: for each field, its name and a message."""
    error_data = data(response)
    fields = [f"{error['field']}: {error['message']}" for error in error_data.get("errors", ())]
    return fields or [error_data.get("message", "")]


def is_explained(message: str) -> bool:
    """Whether a refusal is one that no schema can announce."""
    patterns = (pattern for group in BEYOND_A_SCHEMA.values() for pattern in group)
    return any(re.search(pattern, message) for pattern in patterns)


def sends_nothing(value: Any) -> bool:
    """Whether a part of the input is null or an empty string."""
    if isinstance(value, dict):
        return any(map(sends_nothing, value.values()))
    if isinstance(value, list):
        return any(map(sends_nothing, value))
    return value is None or value == ""
