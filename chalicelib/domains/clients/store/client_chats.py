"""Chats in messengers that clients have linked, and the codes with which they link them.

A link is for everything about a client, or for one booking only, if nothing has proved that its
visitor is the client: anybody can type the contacts of somebody else. A chat may be linked to
clients of several workspaces, so each link has an entry under its chat, too.
"""

import hashlib
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from pynamodb.attributes import (
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.core.messengers import MESSENGERS, Messenger
from chalicelib.core.principals import PLATFORM
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow, ControlRow
from chalicelib.engine.unit import UnitOfWork

CODE_LIFE = timedelta(hours=24)
# A link for one booking ends by itself. Bookings are made at most a year ahead, and moved.
BOOKING_LINK_LIFE = timedelta(days=800)
SORT_KEY = "-"
_WHOLE = "-"  # stands for the booking in the key of a link for everything


class ClientChatRow(ContentRow):
    """A link of a client. Its partition is the client, its sort key the messenger and booking."""

    version = VersionAttribute()
    chat_id = NumberAttribute()
    language = UnicodeAttribute()  # of the user's messenger: ru or en
    linked_at = UTCDateTimeAttribute()

    @property
    def workspace_id(self) -> str:
        return self.pk.split("#")[1]

    @property
    def client_id(self) -> str:
        return self.pk.split("#")[3]

    @property
    def messenger(self) -> Messenger:
        return cast("Messenger", self.sk.split("#")[0])

    @property
    def booking_id(self) -> str | None:
        """The only booking that the link is for, or None."""
        booking_id = self.sk.split("#")[1]
        return None if booking_id == _WHOLE else booking_id


class ClientChatEntryRow(ContentRow):
    """Entry of a link under its chat. It belongs to the platform, as a chat has no workspace."""


class ClientChatCodeRow(ControlRow):
    """A code, stored under its hash, and the chat that has used it."""

    workspace_id = UnicodeAttribute()
    client_id = UnicodeAttribute()
    booking_id = UnicodeAttribute()
    # Whether a link is for everything about the client: the visitor has proved to be the client.
    scope = UnicodeAttribute()  # ``client`` or ``booking``
    used_by = UnicodeAttribute(null=True)  # messenger and chat


class Chat(NamedTuple):
    """A chat in a messenger."""

    messenger: Messenger
    chat_id: int

    def __str__(self) -> str:
        return f"{self.messenger}#{self.chat_id}"


class LinkPlace(NamedTuple):
    """What a chat is linked to."""

    workspace_id: str
    client_id: str
    booking_id: str | None = None  # None: everything about the client


def keys(workspace_id: str, *, client_id: str, booking_id: str, messenger: Messenger) -> list[Key]:
    """Return the keys of the links by which a messenger leads to the client of a booking."""
    return [
        _key(messenger, LinkPlace(workspace_id, client_id, only)) for only in (None, booking_id)
    ]


def find(  # noqa: PLR0913  what a link is for
    rows: Rows,
    workspace_id: str,
    *,
    client_id: str,
    booking_id: str,
    messenger: Messenger,
    only_booking: bool,
) -> ClientChatRow | None:
    """Return the link by which a messenger leads to the client of a booking, or None.

    A link for the booking comes first. ``only_booking`` leaves out the link for everything.
    """
    places = [LinkPlace(workspace_id, client_id, booking_id)]
    if not only_booking:
        places.append(LinkPlace(workspace_id, client_id))
    found = (rows.find(ClientChatRow, _key(messenger, place)) for place in places)
    return next((row for row in found if row is not None and _is_current(row)), None)


def of_client(workspace_id: str, *, client_id: str) -> list[ClientChatRow]:
    """Return the links of a client."""
    rows = ClientChatRow.partition(_client_partition(workspace_id, client_id))
    return [row for row in rows if _is_current(row)]


def of_chat(chat: Chat) -> list[LinkPlace]:
    """Return what a chat is linked to."""
    places = []
    for row in ClientChatEntryRow.partition(_chat_partition(chat)):
        workspace_id, client_id, booking_id = row.sk.split("#")
        only = None if booking_id == _WHOLE else booking_id
        if _is_current(row):
            places.append(LinkPlace(workspace_id, client_id, only))
    return places


def stage_link(unit: UnitOfWork, chat: Chat, place: LinkPlace, *, language: str) -> None:
    """Stage a link. It replaces the former link of the messenger to the same place."""
    key = _key(chat.messenger, place)
    row = unit.rows.find(ClientChatRow, key)
    if row is not None and row.chat_id != chat.chat_id:
        # The former chat must not receive what the new one gets.
        former = Chat(chat.messenger, int(row.chat_id))
        unit.delete(_entry(former, place))
    row = row or ClientChatRow(key.pk, key.sk)
    row.chat_id, row.language, row.linked_at = chat.chat_id, language, clock.now()
    entry = _entry(chat, place)
    if place.booking_id is not None:
        row.expires = entry.expires = clock.now() + BOOKING_LINK_LIFE
    unit.save(row)
    unit.save(entry)


def stage_end(unit: UnitOfWork, row: ClientChatRow) -> None:
    """Stage the end of a link."""
    unit.delete(row, if_there=True)
    chat = Chat(row.messenger, int(row.chat_id))
    unit.delete(_entry(chat, LinkPlace(row.workspace_id, row.client_id, row.booking_id)))


def stage_end_of_booking(unit: UnitOfWork, *, client_id: str, booking_id: str) -> None:
    """Stage the end of the links that are for one booking only."""
    place = LinkPlace(unit.tenant, client_id, booking_id)
    for row in unit.rows.fetch(_key(messenger, place) for messenger in MESSENGERS):
        if isinstance(row, ClientChatRow):
            stage_end(unit, row)


def stage_end_of_chat(unit: UnitOfWork, chat: Chat, place: LinkPlace) -> None:
    """Stage the end of a link, unless another chat has it by now."""
    key = _key(chat.messenger, place)
    row = unit.rows.find(ClientChatRow, key)
    if row is not None and row.chat_id == chat.chat_id:
        unit.delete(row, if_there=True)
    unit.delete(_entry(chat, place))


def code_row(code: str, place: LinkPlace, *, booking_id: str) -> ClientChatCodeRow:
    """Return the row of a new code from the page of a booking, for the caller to stage."""
    return ClientChatCodeRow(
        _code_partition(code),
        SORT_KEY,
        workspace_id=place.workspace_id,
        client_id=place.client_id,
        booking_id=booking_id,
        scope="client" if place.booking_id is None else "booking",
        expires=clock.now() + CODE_LIFE,
    )


def find_code(code: str) -> ClientChatCodeRow | None:
    """Return a code, used or not, or None if it is unknown or has expired."""
    row = ClientChatCodeRow.find(_code_partition(code), SORT_KEY)
    # DynamoDB deletes expired rows late.
    return row if row is not None and row.expires > clock.now() else None


def place_of(code: ClientChatCodeRow) -> LinkPlace:
    """Return what a code links."""
    booking_id = None if code.scope == "client" else code.booking_id
    return LinkPlace(code.workspace_id, code.client_id, booking_id)


def stage_use(unit: UnitOfWork, code: ClientChatCodeRow, chat: Chat) -> None:
    """Stage the use of a code by a chat. Of several chats, one commits."""
    unit.update(
        code,
        [ClientChatCodeRow.used_by.set(str(chat))],
        ClientChatCodeRow.used_by.does_not_exist(),
    )


def _is_current(row: ClientChatRow | ClientChatEntryRow) -> bool:
    expires: datetime | None = row.expires
    return expires is None or expires > clock.now()


def _key(messenger: Messenger, place: LinkPlace) -> Key:
    partition = _client_partition(place.workspace_id, place.client_id)
    return Key(ClientChatRow, partition, f"{messenger}#{place.booking_id or _WHOLE}")


def _entry(chat: Chat, place: LinkPlace) -> ClientChatEntryRow:
    name = f"{place.workspace_id}#{place.client_id}#{place.booking_id or _WHOLE}"
    return ClientChatEntryRow(_chat_partition(chat), name)


def _client_partition(workspace_id: str, client_id: str) -> str:
    return f"W#{workspace_id}#CLIENT_CHAT#{client_id}"


def _chat_partition(chat: Chat) -> str:
    return f"W#{PLATFORM}#CLIENT_CHAT#{chat}"


def _code_partition(code: str) -> str:
    digest = hashlib.sha256(code.encode(errors="replace")).hexdigest()
    return f"W#{PLATFORM}#CLIENT_CHAT_CODE#{digest}"
