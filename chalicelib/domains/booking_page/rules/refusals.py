"""Say to a visitor why a booking is refused, and what to do, on the page and in a chat."""

from functools import cache
from pathlib import Path
from typing import Literal, get_args

from chalicelib.lib import po_files
from chalicelib.lib.localized import Language

LOCALE = Path(__file__).parent / "locale"  # has one folder of PO files per language
# What has too many bookings: the contact, the visitor's address or network, or the service.
# ``links`` are e-mails with links that book, ``upcoming`` upcoming bookings for the contact,
# ``holds`` unpaid bookings of the visitor's address or network, and ``requests`` its requests.
Reason = Literal["contact", "connection", "service", "links", "upcoming", "holds", "requests"]
REASONS = get_args(Reason)
Advice = Literal["give_email", "give_email_in_chat", "leave_contacts", "call", "wait"]


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "refusals")


def text(language: Language, reason: Reason, *advice: Advice, phone: str = "") -> str:
    """Return the reason, and what the visitor can do, in this order.

    ``call`` comes last. It ends with the phone, or before it if a link to the phone follows.
    """
    texts = _catalogue(language).texts
    return " ".join(str(texts[key]).format(phone=phone) for key in (reason, *advice)).strip()
