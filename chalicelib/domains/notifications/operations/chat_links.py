"""Let clients link a chat in a messenger to their booking, and members see and end such links."""

from datetime import timedelta
from secrets import token_urlsafe
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotConfiguredError, UpstreamFailedError
from chalicelib.core.limits import Limit
from chalicelib.core.messengers import NAMES, Messenger
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.clients.flows import messenger_offers
from chalicelib.domains.clients.store import client_chats
from chalicelib.domains.clients.store.client_chats import ClientChatRow
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.notifications.flows import client_chats as linking
from chalicelib.gateways import messengers
from chalicelib.gateways.messenger_errors import MessengerError

CODE_BYTES = 16  # 22 characters of A-Z, a-z, 0-9, _ and -
CODES = Limit("client-chat-codes", "codes for messengers within an hour", 20, timedelta(hours=1))


class ClientChatRequest(Wire):
    """The booking of a client, and the messenger in which the client wants messages."""

    token: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="The end of manageUrl, after the last slash."
    )
    messenger: Messenger = Field(description="One of the messengers of the booking.")


class ClientChatCode(Wire):
    """A code that links the chat in which it is sent."""

    messenger: Messenger = Field(description="telegram or max.")
    code: str = Field(description="The code. Send it to the bot as /start and the code.")
    url: str = Field(description="URL that opens the chat with the bot and sends the code.")
    expires_at: Timestamp = Field(description="When the code expires. It is valid once.")


class ClientChatsQuery(Wire):
    """A client."""

    client_id: Id = Field(description="Client id.")


class ClientChatOut(Wire):
    """A chat that a client has linked. Its id is not shown to anybody."""

    messenger: Messenger = Field(description="telegram or max.")
    booking_id: Id | None = Field(description="The only booking it is for, or null for all.")
    linked_at: Timestamp = Field(description="When it was linked.")

    @classmethod
    def from_record(cls, row: ClientChatRow) -> Self:
        return cls(messenger=row.messenger, booking_id=row.booking_id, linked_at=row.linked_at)


class ClientChatList(Wire):
    """The chats of a client."""

    chats: list[ClientChatOut] = Field(description="The chats.")


class ClientChatRef(Wire):
    """The chats of a client in one messenger."""

    client_id: Id = Field(description="Client id.")
    messenger: Messenger = Field(description="telegram or max.")
    booking_id: Id | None = optional("Only the link for this booking; else the one for all.")


class ClientChatUnlinked(Wire):
    """Result of unlinking."""

    was_linked: bool = Field(description="Whether there was a link.")


@operation(
    rest="POST /api/public/bookings/messenger",
    title="Link a messenger to a booking",
    audience=PUBLIC,
    resolve=lambda args: booking_links.parse(args.token).workspace_id,
    limit=CODES,
    example={"token": "MANAGE_TOKEN", "messenger": "telegram"},
    errors=(ConflictError, NotConfiguredError, UpstreamFailedError),
    accepts_idempotency_key=False,
)
def link_client_chat(ctx: Context, args: ClientChatRequest) -> ClientChatCode:
    """Create a code for 24 hours. The chat that sends it to the bot gets the client's messages.

    These are the messages about the booking, or about all bookings of the client if the client's
    e-mail address is proved or the business has made the booking.
    """
    booking = booking_links.booking_of(args.token, *booking_links.MANAGING)
    is_shared = booking_links.is_shared(args.token, booking)
    place = linking.place_of(ctx.workspace_id, booking, is_shared=is_shared)
    if place is None:
        raise BOOKINGS.unavailable()
    if args.messenger not in messenger_offers.offered(workspaces.get(ctx.workspace_id)):
        name = NAMES[args.messenger]
        msg = f"This business sends no messages by {name}. Choose one of the booking's messengers."
        raise ConflictError(msg, key="messenger_not_offered")
    code = ctx.unit.run_side_effect_once("code", lambda: token_urlsafe(CODE_BYTES))
    bot = messengers.bot(args.messenger)
    try:
        url = ctx.unit.run_side_effect_once("url", lambda: bot.start_url(code))
    except MessengerError as error:
        msg = f"The messenger cannot be used now: {error}. Try again later."
        raise UpstreamFailedError(msg, key="messenger") from error
    row = client_chats.code_row(code, place, booking_id=booking.id)
    ctx.unit.create(row)
    return ClientChatCode(
        messenger=args.messenger, code=code, url=url, expires_at=row.expires or clock.now()
    )


@operation(
    title="List a client's chats",
    role=Role.MEMBER,
    reads=True,
    example={"clientId": "CLIENT_ID"},
)
def list_client_chats(ctx: Context, args: ClientChatsQuery) -> ClientChatList:
    """Return the chats in messengers that a client has linked."""
    CLIENTS.require(ctx.workspace_id, record_id=args.client_id)
    rows = client_chats.of_client(ctx.workspace_id, client_id=args.client_id)
    return ClientChatList(chats=[ClientChatOut.from_record(row) for row in rows])


@operation(
    title="Unlink a client's chat",
    role=Role.MEMBER,
    idempotent=True,
    destructive=True,
    example={"clientId": "CLIENT_ID", "messenger": "telegram"},
)
def unlink_client_chat(ctx: Context, args: ClientChatRef) -> ClientChatUnlinked:
    """End a link. The chat receives no more of the messages that it was for."""
    CLIENTS.require(ctx.workspace_id, record_id=args.client_id)
    rows = client_chats.of_client(ctx.workspace_id, client_id=args.client_id)
    place = (args.messenger, args.booking_id)
    row = next((row for row in rows if (row.messenger, row.booking_id) == place), None)
    if row is not None:
        client_chats.stage_end(ctx.unit, row)
        ctx.unit.mention(f"client:{args.client_id}")
    return ClientChatUnlinked(was_linked=row is not None)
