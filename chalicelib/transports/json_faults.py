"""Why a body that is not taken as JSON is refused, in words that say what to change.

The parser that bodies are read with names a syntax error for much that is valid JSON but outside
of what this service takes. The body is therefore read once more, leniently, when it was refused.
"""

import json
import re

LEVELS = 200
"""Arrays and objects within each other; the parser takes no more."""
MOST_DIGITS = 4_300
"""Digits of an integer; longer ones take quadratic time to read."""
_PLACE = re.compile(r"line ([0-9]+) column ([0-9]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fault_of(body: bytes, error: ValueError) -> str:
    """Return why a body was refused, as the rest of a sentence that begins with "The body".

    ``error`` is what the parser raised.
    """
    if b"\0" in body:
        return "has NUL bytes, as UTF-16 and UTF-32 have; send JSON as UTF-8, in which none occur"
    try:
        text = body.decode()
    except UnicodeDecodeError as failed:
        return f"is not UTF-8 at byte {failed.start + 1}; encode the JSON as UTF-8"
    if "recursion limit" in str(error):
        return f"is nested more than {LEVELS} levels deep; send flatter JSON"
    return _beyond_syntax(text) or _malformed(error)


def _beyond_syntax(text: str) -> str | None:
    """Return what else than its syntax is wrong with a text, or None if its syntax is."""
    constants: list[str] = []
    longest = [0]

    def measure(digits: str) -> int:
        longest[0] = max(longest[0], len(digits.lstrip("-")))
        return 0

    try:
        # Objects as lists of pairs, so that a name that comes twice hides nothing.
        value = json.loads(
            text, parse_constant=constants.append, parse_int=measure, object_pairs_hook=list
        )
        surrogate = _SURROGATE.search(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    if constants:
        return f"has {constants[0]}, which is no number in JSON; send a number, or null"
    if longest[0] > MOST_DIGITS:
        return (
            f"is valid JSON, but has an integer of {longest[0]:,} digits; the most is"
            f" {MOST_DIGITS:,}. Send it as text"
        )
    if surrogate:
        return (
            f"is valid JSON, but has an unpaired surrogate, \\u{ord(surrogate[0]):04x}, which is no"
            " character; send the whole character, both its halves if it is escaped"
        )
    return None


def _malformed(error: ValueError) -> str:
    place = _PLACE.search(str(error))
    where = f"at line {place[1]}, column {place[2]}" if place else "at its end"
    return f"is not valid JSON {where}; look for a missing quote, comma or bracket there"
