"""Preferences of a request (RFC 7240)."""

import re
from collections.abc import Iterator

HEADER = "prefer"
APPLIED = {"Preference-Applied": "handling=strict"}
"""Header of responses to requests whose preference was followed."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A quote that does not end reaches to the end of the header. So no part is read twice.
_PART = re.compile(r',|[^",]+|"(?:[^"\\]|\\.)*(?:"|\\?$)', re.DOTALL)
_PREFERENCE = re.compile(rf"\s*({_NAME})\s*(?:=\s*({_NAME}|{_QUOTED})\s*)?(?:;.*)?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")


def is_strict(header: str) -> bool:
    """Whether a ``Prefer`` header asks for strict handling; the first of a name counts.

    >>> is_strict('respond-async, Handling="strict"; x=1, handling=lenient')
    True
    >>> is_strict("handling=lenient, handling=strict")
    False
    """
    for member in _members(header):
        preference = _PREFERENCE.fullmatch(member)
        if preference is not None and preference[1].lower() == "handling":
            value = preference[2] or ""
            if value.startswith('"'):
                value = _ESCAPED.sub(r"\1", value[1:-1])
            return value.lower() == "strict"
    return False


def _members(header: str) -> Iterator[str]:
    member: list[str] = []
    for part in _PART.findall(header):
        if part == ",":
            yield "".join(member)
            member = []
        else:
            member.append(part)
    yield "".join(member)
