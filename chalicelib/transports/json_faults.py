"""Explain why a body is refused as JSON, by parsing it again with a more lenient parser.

The first parser reports a syntax error for much that is valid JSON but not supported here.
"""

import json
import re

MAX_LEVELS = 200  # Maximum nesting of arrays and objects that the parser accepts.
# Largest number of digits in an integer. Longer integers take quadratic time to parse.
MAX_DIGITS = 4_300
_PLACE = re.compile(r"line ([0-9]+) column ([0-9]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fault_of(body: bytes, error: ValueError) -> str:
    """Return the reason for the parser's ``error``, to follow the words "The body"."""
    if b"\0" in body:
        return "contains NUL bytes, so it may be UTF-16 or UTF-32; send the JSON as UTF-8"
    try:
        text = body.decode()
    except UnicodeDecodeError as failed:
        return f"is not UTF-8 at byte {failed.start + 1}; encode the JSON as UTF-8"
    if "recursion limit" in str(error):
        return f"is nested more than {MAX_LEVELS} levels deep; send JSON with fewer levels"
    return _beyond_syntax(text) or _malformed(error)


def _beyond_syntax(text: str) -> str | None:
    constants: list[str] = []
    longest = [0]

    def measure(digits: str) -> int:
        longest[0] = max(longest[0], len(digits.lstrip("-")))
        return 0

    try:
        # Lists of pairs keep names that occur twice in an object.
        value = json.loads(
            text, parse_constant=constants.append, parse_int=measure, object_pairs_hook=list
        )
        surrogate = _SURROGATE.search(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    if constants:
        return f"contains {constants[0]}, which is not a number in JSON; send a number or null"
    if longest[0] > MAX_DIGITS:
        return (
            f"contains an integer of {longest[0]:,} digits, but the maximum is {MAX_DIGITS:,}; "
            "send the integer as a string"
        )
    if surrogate:
        return (
            f"contains an unpaired surrogate, \\u{ord(surrogate[0]):04x}, which is not a "
            "character; send both halves of the surrogate pair"
        )
    return None


def _malformed(error: ValueError) -> str:
    place = _PLACE.search(str(error))
    where = f"at line {place[1]}, column {place[2]}" if place else "at its end"
    return f"is not valid JSON {where}; look for a missing quote, comma or bracket there"
