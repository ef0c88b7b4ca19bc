"""Write the table of messages into docs/notifications.md, from its declaration."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from chalicelib.domains.notifications.rules import who_is_told
from chalicelib.domains.notifications.rules.messages import kind_name
from chalicelib.domains.notifications.rules.who_is_told import NotSent, Role, Told, ToMembers
from infra.local import document_tables

DOCUMENT = document_tables.DOCS / "notifications.md"
NAME = "messages"
CHANNELS = "channels"
# Kinds that go by the channels of the workspace. The others prove an address, or are replies.
_BY_CHANNELS = frozenset(get_args(who_is_told.ClientKind)) - {"link"}


def write() -> Path:
    """Write the table into the document, and return the document's path."""
    return document_tables.write(DOCUMENT, NAME, _lines())


def markdown() -> str:
    """Return the tables between their marks."""
    return document_tables.table(NAME, _lines())


def _lines() -> Iterator[str]:
    yield from _rows()
    yield ""
    yield from _account_rows()


def _rows() -> Iterator[str]:
    yield "| event or job | sent when | client | owner, managers | member of the staff |"
    yield "|---|---|---|---|---|"
    for name, told in {**who_is_told.EVENTS, **who_is_told.JOBS}.items():
        cells = (f"`{name}`", who_is_told.when(name), _client(told), *_members(told))
        yield f"| {' | '.join(cells)} |"


def _account_rows() -> Iterator[str]:
    yield "| job | sent by mail to the address of the account, when |"
    yield "|---|---|"
    for kind, when in who_is_told.ACCOUNT_MAILS.items():
        yield f"| `{kind}` | {when} |"


def _client(told: Told) -> str:
    if isinstance(told.client, NotSent):
        return f"not sent: {told.client.because}"
    kinds = dict.fromkeys(told.client.by_status.values())
    by_channels = CHANNELS if all(kind in _BY_CHANNELS for kind in kinds) else "mail"
    return f"{by_channels}: {', '.join(f'`{kind}`' for kind in kinds)}"


def _members(told: Told) -> tuple[str, str]:
    members = told.members
    if isinstance(members, NotSent):
        return (f"not sent: {members.because}",) * 2
    owner = _channels(members, "owner")
    if not members.owner_only:
        as_managers = _channels(members, "manager")
        owner += "" if as_managers == owner else f"; managers: {as_managers}"
    except_own = ", except their own changes" if members.for_others else ""
    owner = f"{kind_name('en', members.kind)}: {owner}{except_own}"
    if members.owner_only:
        return owner, "not sent: money and access concern the owner"
    return owner, _channels(members, "staff")


def _channels(members: ToMembers, role: Role) -> str:
    return "mail, Telegram if chosen" if role in members.mailed else "if chosen"
