"""What an entry of the audit log says was done, in the reader's language.

Russian sentences are in ``changes.po``. English ones are made from the titles of operations.
"""

import re
from functools import cache

from chalicelib.lib import po_files
from chalicelib.transports.web.languages import Language
from chalicelib.transports.web.texts import LOCALE

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


def change_made(language: Language, operation: str, title: str | None) -> str:
    """Describe an entry of the audit log after the name of its actor.

    The English sentence is the title in the past tense. The Russian sentences are in the passive
    voice.
    """
    described = change(language, operation, title)
    return sentence(described) if language == "en" else described


def change(language: Language, operation: str, title: str | None) -> str:
    """Describe an entry of the audit log. ``title`` is the title of its operation.

    The catalogue has no English names of operations, because their titles are English.
    """
    return str(_changes(language).texts.get(operation, title or operation))


@cache
def _changes(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "changes")


def sentence(title: str) -> str:
    """Return what was done, such as ``updated a lead`` for the title ``Update a lead``.

    A second verb follows "or". A title that does not begin with a verb is returned unchanged.
    """
    match = _PARTS.fullmatch(title)
    if match is None:
        return title
    verb, _, second, complement = match.groups()
    verbs = [_past(verb_text) for verb_text in (verb.lower(), second) if verb_text]
    return " or ".join(verbs) + complement.replace("one's own", "their own").replace(
        "or move it", "or moved it"
    )


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb}ed"
