"""Link chats to clients by codes from the pages of their bookings, and send messages to them."""

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.messengers import Messenger
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.bookings.store.bookings import BOOKINGS, VISITOR_SOURCES, BookingRow
from chalicelib.domains.clients.store import client_chats, clients
from chalicelib.domains.clients.store.client_chats import Chat, ClientChatRow, LinkPlace
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.store import kept_messages
from chalicelib.domains.notifications.flows import gone_chats, updates_once
from chalicelib.domains.notifications.flows.client_message import ClientMessage
from chalicelib.domains.notifications.flows.updates_once import RefusedCodeError
from chalicelib.domains.notifications.rules.client_channels import BusyChannelError, Outcome
from chalicelib.domains.notifications.rules.messenger_updates import Answer, Message, text
from chalicelib.engine.reading import Key
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import messengers
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError

# Names in the audit log, which are names of operations.
LINK, UNLINK = "link_client_chat", "unlink_client_chat"


def place_of(workspace_id: str, booking: BookingRow, *, is_shared: bool) -> LinkPlace | None:
    """Return what a code from the page of a booking links, or None for an erased booking.

    A visitor types contacts, which may be those of another client. The link is for everything about
    the client only if an e-mail to the client's address has led to the booking, or the business has
    made it. ``is_shared`` is set for the link that a caller with a key got.
    """
    if booking.client_id is None or is_erased(booking):
        return None
    is_own = booking.is_proved or booking.source not in VISITOR_SOURCES
    only = None if is_own and not is_shared else booking.id
    return LinkPlace(workspace_id, booking.client_id, only)


def is_erased(booking: BookingRow) -> bool:
    """Return whether a booking has no contacts, as after the erasure of its client."""
    return not (booking.client_name or booking.client_email or booking.client_phone)


def stage_link(chat: Chat, message: Message, unit: UnitOfWork) -> str:
    """Stage the link of a client by the code of a message, or raise RefusedCodeError."""
    # A chat that has sent too many wrong codes may not try further ones.
    updates_once.check_wrong_codes(chat)
    code = client_chats.find_code(message.argument)
    if code is None:
        raise RefusedCodeError
    place, workspace = client_chats.place_of(code), workspaces.get(unit.tenant)
    chosen = workspace.client_channels
    if workspace.halt or (chosen is not None and chat.messenger not in chosen):
        raise RefusedCodeError
    answer: Answer = "client_linked" if place.booking_id is None else "client_linked_booking"
    linked = text(message.language, answer, workspace=workspace.name)
    if code.used_by is not None:  # The user may have followed the link twice.
        if code.used_by != str(chat) or place not in client_chats.of_chat(chat):
            raise RefusedCodeError
        return linked
    booking = BOOKINGS.find(unit.tenant, record_id=code.booking_id)
    if booking is None or is_erased(booking) or booking.client_id != code.client_id:
        raise RefusedCodeError
    # An erasure at the same moment ends the link, or refuses it.
    clients.stage_touch(unit, code.client_id, on_conflict=RefusedCodeError())
    client_chats.stage_use(unit, code, chat)
    client_chats.stage_link(unit, chat, place, language=message.language)
    return linked


def keys(workspace_id: str, booking: BookingRow, messenger: Messenger) -> list[Key]:
    """Return the keys of the rows that say whether a messenger leads to the client."""
    if booking.client_id is None or not messengers.may_be_ready(messenger):
        return []
    return client_chats.keys(
        workspace_id, client_id=booking.client_id, booking_id=booking.id, messenger=messenger
    )


def leads_to(messenger: Messenger, message: ClientMessage) -> bool:
    """Return whether the client has linked a chat of the messenger."""
    return _link(messenger, message) is not None


def deliver(messenger: Messenger, message: ClientMessage) -> Outcome:
    """Send a message to the client's chat. That of a test workspace is kept instead.

    Raises BusyChannelError. The links of a chat that is gone end.
    """
    link, workspace_id = _link(messenger, message), message.workspace.id
    if link is None:
        return Outcome.passed()
    chat = Chat(messenger, int(link.chat_id))
    if is_test(workspace_id):
        recipient = str(chat.chat_id)
        kept_messages.keep(
            workspace_id, channel=messenger, recipient=recipient, subject=None, text=message.text
        )
        return Outcome.sent()
    try:
        messengers.bot(messenger).send(chat.chat_id, message.text, origin=workspace_id)
    except ChatGoneError:
        gone_chats.end_links(chat)
        return Outcome.passed("gone")
    except BusyError as busy:
        raise BusyChannelError(busy.retry_after) from busy
    except NotConfiguredError:  # The operator has removed the bot.
        return Outcome.passed()
    except MessengerError:
        # It may have been sent. The next channel gets it, and this one does not get it again.
        return Outcome.passed("failed")
    return Outcome.sent()


def _link(messenger: Messenger, message: ClientMessage) -> ClientChatRow | None:
    booking = message.booking
    if booking.client_id is None or not messengers.may_be_ready(messenger):
        return None
    return client_chats.find(
        message.rows,
        message.workspace.id,
        client_id=booking.client_id,
        booking_id=booking.id,
        messenger=messenger,
        # A stranger who types the contacts of a client must not write to the client's chat.
        only_booking=booking.is_unproved,
    )
