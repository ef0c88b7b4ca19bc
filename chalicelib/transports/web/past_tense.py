"""Sentences of the audit log in English, made from the titles of operations."""

import re

_IRREGULAR = {
    "bind": "bound",
    "bring": "brought",
    "cancel": "cancelled",
    "leave": "left",
    "read": "read",
    "send": "sent",
    "set": "set",
    "submit": "submitted",
    "sign": "signed",
}
_PARTS = re.compile(r"([A-Z][a-z]+)( or ([a-z]+))?(?=[ ,]|$)(.*)", re.DOTALL)


def sentence(title: str) -> str:
    """Return what was done, such as ``updated a lead`` for the title ``Update a lead``.

    A second verb follows "or". A title that does not begin with a verb is returned unchanged.
    """
    match = _PARTS.fullmatch(title)
    if match is None:
        return title
    verb, _, second, rest = match.groups()
    verbs = [_past(each) for each in (verb.lower(), second) if each]
    return " or ".join(verbs) + rest.replace("one's own", "their own").replace(
        "or move it", "or moved it"
    )


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb}ed"
