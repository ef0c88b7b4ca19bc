"""Explains why a body is refused as JSON, and how to change it.

The parser reports a syntax error for much that is valid JSON but not supported here. A refused body
is therefore parsed again, with a more lenient parser.
"""

import json
import re

MAX_LEVELS = 200
"""Deepest nesting of arrays and objects that the parser accepts."""
MAX_DIGITS = 4_300
"""Largest number of digits in an integer. Longer integers take quadratic time to parse."""
_PLACE = re.compile(r"line ([0-9]+) column ([0-9]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fault_of(body: bytes, error: ValueError) -> str:
    """Return the reason as the rest of a sentence that begins with "The body".

    ``error`` is the exception that the parser raised.
    """
    if b"\0" in body:
        return "has NUL bytes, as UTF-16 and UTF-32 have; send JSON as UTF-8, in which none occur"
    try:
        text = body.decode()
    except UnicodeDecodeError as failed:
        return f"is not UTF-8 at byte {failed.start + 1}; encode the JSON as UTF-8"
    if "recursion limit" in str(error):
        return f"is nested more than {MAX_LEVELS} levels deep; send flatter JSON"
    return _beyond_syntax(text) or _malformed(error)


def _beyond_syntax(text: str) -> str | None:
    """Return the fault of a text with valid JSON syntax; None if its syntax is the fault."""
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
        return f"has {constants[0]}, which is not a number in JSON; send a number, or null"
    if longest[0] > MAX_DIGITS:
        return (
            f"is valid JSON, but has an integer of {longest[0]:,} digits; the most is"
            f" {MAX_DIGITS:,}. Send it as text"
        )
    if surrogate:
        return (
            f"is valid JSON, but has an unpaired surrogate, \\u{ord(surrogate[0]):04x}, which is"
            " not a character; send the whole character, both its halves if it is escaped"
        )
    return None


def _malformed(error: ValueError) -> str:
    place = _PLACE.search(str(error))
    where = f"at line {place[1]}, column {place[2]}" if place else "at its end"
    return f"is not valid JSON {where}; look for a missing quote, comma or bracket there"
