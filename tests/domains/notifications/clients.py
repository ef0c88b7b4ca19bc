"""Bookings of clients and their emails, for tests of emails to clients."""

from email.message import EmailMessage
from typing import Any

from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.inbox import Inbox
from tests.factories.salon import Salon

visitor = Api(None)
BOOK = "/api/public/bookings"
ADA = "ada@example.com"


def book(salon: Salon, start: str, email: str = ADA, **fields: Any) -> Any:
    """Book as a visitor, and return the response."""
    contact = {"name": "Ada", "email": email}
    return visitor.post(BOOK, salon.order(start) | {"client": contact} | fields)


def mails_to(inbox: Inbox, email: str = ADA) -> list[EmailMessage]:
    """Return the emails to an address, in the order in which they were sent."""
    return [message for message in inbox.mails if message["To"] == email]


def subjects_to(inbox: Inbox, email: str = ADA) -> list[str]:
    """Return the subjects of the emails to an address."""
    return sorted(str(message["Subject"]) for message in mails_to(inbox, email))


def withheld_counts(owner: Owner) -> dict[str, int]:
    """Return the number of emails withheld today, by reason."""
    response = call_console(
        owner.workspace.id, "get_notifications", account_id=owner.workspace.owner_id
    )
    return {reason: count for reason, count in response["withheld"].items() if count}
