"""Clients who link chats in messengers, and what they receive there."""

import itertools
from typing import Any

from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.clients.store import client_chats
from chalicelib.gateways import max_messenger
from tests.conftest import Answer, Api, Owner
from tests.domains.notifications.helpers import send_text
from tests.fakes.max_messenger import started

LINK = "/api/public/bookings/messenger"
MAX_PATH = "/api/max/webhook"
WRONG = "This code is wrong"
visitor = Api(None)
_times = itertools.count(1)


def booking_row(owner: Owner, booking_id: str) -> BookingRow:
    """Return a stored booking."""
    return BOOKINGS.require(owner.workspace.id, record_id=booking_id)


def token_of(owner: Owner, booking_id: str, purpose: Purpose = Purpose.MANAGE) -> str:
    """Return the token of a booking's link."""
    return booking_links.token(owner.workspace.id, booking_row(owner, booking_id), purpose)


def ask(owner: Owner, booking_id: str, messenger: str = "telegram") -> Any:
    """Ask for a code on the page of a booking."""
    token = token_of(owner, booking_id)
    return visitor.post(LINK, {"token": token, "messenger": messenger})


def link(owner: Owner, booking_id: str, chat_id: int = 7) -> str:
    """Link a chat in Telegram to the client of a booking, and return the bot's answer."""
    return send_text(chat_id, f"/start {ask(owner, booking_id)['code']}")


def link_max(owner: Owner, booking_id: str, user_id: int = 7) -> None:
    """Link a chat in MAX to the client of a booking."""
    code = ask(owner, booking_id, "max")["code"]
    assert post_max(started(user_id, code, next(_times))).status == 200


def post_max(content: Any, secret: str | None = None) -> Answer:
    """Send an update to the webhook, as MAX does unless ``secret`` is another one."""
    secret = max_messenger.webhook_secret() if secret is None else secret
    headers = {max_messenger.SECRET_HEADER: secret}
    return visitor.call("POST", MAX_PATH, content, headers)


def chats_of(owner: Owner, booking_id: str) -> list[tuple[str, int, bool]]:
    """Return the chats of a booking's client: messenger, chat, and whether it gets everything."""
    client_id = booking_row(owner, booking_id).client_id or ""
    rows = client_chats.of_client(owner.workspace.id, client_id=client_id)
    return [(row.messenger, int(row.chat_id), row.booking_id is None) for row in rows]
