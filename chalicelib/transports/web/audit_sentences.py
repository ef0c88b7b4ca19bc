"""What an entry of the audit log says was done, in the reader's language."""

from functools import cache

from chalicelib.lib import po_files
from chalicelib.transports.web.languages import Language
from chalicelib.transports.web.texts import LOCALE


def change_made(language: Language, operation: str) -> str:
    """Describe an entry of the audit log, such as ``updated a lead``, after its actor's name."""
    # The name of an unknown operation is returned unchanged.
    return str(_changes(language).texts.get(operation, operation))


@cache
def _changes(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "changes")
