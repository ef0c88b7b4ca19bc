"""Texts of messages to members, made from the record as the API shows it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from chalicelib.core.text import one_line, unlinked
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from chalicelib.lib import emails, localized, phones, po_files
from chalicelib.lib.currencies import RUB
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails
from chalicelib.lib.markup.mails import RenderedMail

MAX_TITLE = 120
MAX_FACT = 300
"""Maximum length, in characters, of a value. Longer values end with an ellipsis."""
LOCALE = Path(__file__).parent / "locale"
"""Folder of the PO files, with one folder per language."""
TEMPLATES = Path(__file__).parent / "mails"
# Facts for Telegram, an external service: no contacts, and nothing that a visitor has written.
SHAREABLE = frozenset(
    {
        *("disputed", "events", "former", "form", "host", "items", "key", "left", "paid"),
        *("advice", "reason", "refund"),
        *("resource", "role", "scopes", "service", "time", "total", "url"),
    }
)
# Kinds whose subject is not the name of a client, a visitor or an app.
SHAREABLE_SUBJECTS = frozenset(
    {
        *("balance", "booking", "booking_cancelled", "booking_moved", "booking_paid", "limit"),
        *("export_started", "key_created", "key_revoked", "refund_failed", "refund_returned"),
        *("payment_disputed", "topup_returned"),
    }
)

# Facts that may be or contain an address, or that have dots of this service. The others are names
# and numbers.
LINKED = frozenset({"account", "email", "events", "host", "message", "page", "url"})

Record = Mapping[str, Any]
Pairs = list[tuple[str, str | None]]


class Message(NamedTuple):
    """A message to members."""

    kind: str
    title: str
    shareable_title: str  # the title for external services
    facts: list[tuple[str, str, str]]  # each with its name in the catalogue, its label and value
    # Path of the record's page, below the workspace's path in the console. Empty if the member may
    # not open it.
    page: str


def message(language: Language, kind: str, record: Record) -> Message:
    """Return the message of a kind about a record, whose amounts are in its ``currency``."""
    subject, facts = _FACTS[kind](language, record)
    fact_lines = [
        (key, _text(language, f"fact_{key}"), _line(value, MAX_FACT, key in LINKED))
        for key, value in facts
        if value
    ]
    title = shareable = _text(language, f"title_{kind}")
    if subject and (subject_line := mailed_name(subject)):
        if kind in SHAREABLE_SUBJECTS:
            shareable = f"{title}: {subject_line}"
        title = f"{title}: {subject_line}"
    if kind in _CLIENT_SUBJECTS and (client := mailed_name(record["client"]["name"] or "")):
        title = f"{title}, {client}"
    page = _page(kind, is_for_staff="isForStaff" in record).format_map(record)
    if record.get("isGone"):
        page = page.partition("/")[0]
    return Message(kind, title, shareable, [fact for fact in fact_lines if fact[2]], page)


def for_staff(record: Record, resource_id: str) -> dict[str, Any]:
    """Return a record as the member of the staff may see it who has, or has had, it.

    Of a booking's client, that is the name and the phone. A booking that another member has got is
    known by its service and times only, and its page is not theirs.
    """
    record = {**record, "isForStaff": True}
    if "client" not in record:
        return record
    client = {**record["client"], "email": None}
    if record["resourceId"] == resource_id:
        return {**record, "client": client}
    client |= {"name": None, "phone": None, "phoneEntered": None}
    return {**record, "client": client, "notes": None, "isGone": True}


def mailed_name(text: str) -> str:
    """Return a name on one line for an e-mail, in which no mail program makes a link."""
    # Names are refused where they are entered if they contain a link. Older ones are stored as they
    # are, and names of visitors may be anything.
    return _line(text, MAX_TITLE, may_link=False)


def _line(text: str, limit: int, may_link: bool) -> str:  # noqa: FBT001  private
    line = one_line(text, limit + 1)
    if len(line) > limit:
        line = f"{line[: limit - 1].rstrip()}…"
    return line if may_link else unlinked(line)


def as_one(visit: Sequence[Record]) -> Record:
    """Return the record of a message about several bookings of a visit, or about one record."""
    if len(visit) == 1:
        return visit[0]
    names = {
        name: ", ".join(dict.fromkeys(booking[name] for booking in visit))
        for name in ("serviceName", "resourceName")
    }
    return {**visit[0], **names}


def is_about_nobody(kind: str, record: Record) -> bool:
    """Whether the client that a message is about has been erased. It is not sent then."""
    # A cancellation is sent in any case, because it frees the time of a booking.
    match kind:
        case "lead" | "order":
            return not any(record[name] for name in ("name", "email", "phone", "data"))
        case "booking" | "booking_moved" | "booking_paid":
            return not any(record["client"][name] for name in ("name", "email", "phone"))
        case "contacts":
            return not any(record[name] for name in ("name", "email", "phone"))
    return False


def digest(language: Language, kind: str, count: int, *, is_for_staff: bool = False) -> Message:
    """Return the message for several of a kind that were held back."""
    what = kind_name(language, kind)
    title = _text(language, "digest").format(kind=what, count=count)
    title = title[0].upper() + title[1:]
    # Several records have no page of their own, so the link leads to their list.
    page = _page(kind, is_for_staff=is_for_staff).partition("/{")[0]
    return Message(kind, title, title, [], page)


def _page(kind: str, *, is_for_staff: bool) -> str:
    return "" if is_for_staff and MEMBER_KINDS[kind].managers_page else _PAGES[kind]


def kind_name(language: Language, kind: str) -> str:
    """Return the name of a kind of messages."""
    return _text(language, f"kind_{kind}")


def confirmed_title(language: Language, operation: str) -> str:
    """Return what a member has done with a code or the password, by the name of the operation."""
    return _text(language, f"confirmed_{operation}")


def to_text(message: Message, workspace: str, *, console_url: str) -> str:
    """Return a message as a few lines that may be sent to third-party services."""
    lines = [f"{label}: {value}" for key, label, value in message.facts if key in SHAREABLE]
    if message.page:
        lines.append(f"{console_url}/{message.page}")
    return "\n".join([message.shareable_title, *lines, one_line(workspace, MAX_TITLE)])


def mail(
    language: Language,
    message: Message,
    *,
    workspace: str,
    unsubscribe_url: str,
    console_url: str,
) -> RenderedMail:
    """Return a message as an e-mail. ``console_url`` is the URL of the workspace in the console."""
    return mails.render(
        TEMPLATES,
        "member",
        language,
        title=message.title,
        facts=[(label, value, _address(key, value=value)) for key, label, value in message.facts],
        kind=kind_name(language, message.kind),
        workspace=mailed_name(workspace),
        unsubscribe_url=unsubscribe_url,
        page_url=f"{console_url}/{message.page}" if message.page else None,
        action=_text(language, _ACTIONS.get(message.page.partition("/")[0], "open_console")),
        settings_url=f"{console_url}/notifications",
    )


def _lead(_: Language, lead: Record) -> tuple[str | None, Pairs]:
    contact_values = {lead["name"], lead["email"], _phone(lead)}
    texts = [
        text
        for value in lead["data"].values()
        if (text := _value_text(value)).strip() and text not in contact_values
    ]
    return lead["name"] or _phone(lead) or lead["email"], [
        ("name", lead["name"]),
        *_contacts(lead),
        ("form", lead["form"]),
        ("message", "; ".join(texts)),
    ]


def _value_text(value: object) -> str:
    """Return a submitted value as text, or "" for a box, a consent and the products of an order."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_value_text, value)))
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_text else ""


def _order(language: Language, lead: Record) -> tuple[str | None, Pairs]:
    items = lead["data"].get("items") or []
    subject, facts = _lead(language, lead)
    lines = [f"{item['name']}: {item['quantity']}" for item in items]
    total = sum(item["price"] * item["quantity"] for item in items)
    sums: Pairs = [("items", "; ".join(lines))]
    if total:
        sums.append(("total", _money(language, total, lead)))
    return subject, sums + facts


def _booking(language: Language, booking: Record) -> tuple[str | None, Pairs]:
    start = datetime.fromisoformat(booking["startLocal"])
    client = booking["client"]
    return f"{booking['serviceName']}, {_short(start)}", [
        ("service", booking["serviceName"]),
        ("time", localized.weekday_and_time(language, start)),
        ("resource", booking["resourceName"]),
        ("name", client["name"]),
        *_contacts(client),
        ("message", booking["notes"]),
    ]


def _moved(language: Language, booking: Record) -> tuple[str | None, Pairs]:
    subject, (service, time, *others) = _booking(language, booking)
    former = booking.get("formerStart")
    start = former and localized.weekday_and_time(language, datetime.fromisoformat(former))
    return subject, [service, time, ("former", start), *others]


def _paid(language: Language, booking: Record) -> tuple[str | None, Pairs]:
    subject, facts = _booking(language, booking)
    return subject, [("paid", _money(language, booking["paid"], booking)), *facts]


def _refund(language: Language, booking: Record) -> tuple[str | None, Pairs]:
    subject, facts = _booking(language, booking)
    return subject, [("refund", _money(language, booking["refund"], booking)), *facts]


def _disputed(language: Language, booking: Record) -> tuple[str | None, Pairs]:
    subject, facts = _booking(language, booking)
    return subject, [("disputed", _money(language, booking["disputed"], booking)), *facts]


def _client(_: Language, client: Record) -> tuple[str | None, Pairs]:
    return client["name"], [("name", client["name"]), *_contacts(client)]


def _dialog(_: Language, dialog: Record) -> tuple[str | None, Pairs]:
    return None, [("page", dialog["pageUrl"])]


def _handover(_: Language, dialog: Record) -> tuple[str | None, Pairs]:
    return None, [("message", dialog["handoverReason"]), ("page", dialog["pageUrl"])]


def _webhook(language: Language, webhook: Record) -> tuple[str | None, Pairs]:
    reason = webhook.get("offBecause")
    return None, [("url", webhook["url"]), ("reason", reason and _text(language, f"off_{reason}"))]


def _unread_calendar(language: Language, calendar: Record) -> tuple[str | None, Pairs]:
    return calendar["resourceName"], [
        ("resource", calendar["resourceName"]),
        ("host", calendar["host"]),
        ("reason", _text(language, f"unread_{calendar['problem']}")),
        ("advice", _text(language, "calendar_advice") if "isForStaff" in calendar else None),
    ]


def _changed_webhook(language: Language, webhook: Record) -> tuple[str | None, Pairs]:
    return None, [
        ("url", webhook["url"]),
        ("events", ", ".join(webhook["types"]) or _text(language, "all_events")),
        ("key", webhook["key"]),
        ("account", webhook["email"] or _text(language, "the_operator")),
    ]


def _limit(_: Language, bot: Record) -> tuple[str | None, Pairs]:
    return bot["name"], []


def _balance(language: Language, balance: Record) -> tuple[str | None, Pairs]:
    amount = localized.money(language, balance["kopecks"], RUB)
    return amount, [("left", amount)]


def _payment(language: Language, payment: Record) -> tuple[str | None, Pairs]:
    return payment["description"], [
        ("total", _money(language, payment["amount"], payment)),
        ("reason", payment["reason"]),
    ]


def _key(_: Language, key: Record) -> tuple[str | None, Pairs]:
    return key["name"], [
        ("key", key["masked"]),
        ("scopes", str(key["scopes"])),
        ("account", key["email"]),
    ]


def _app(_: Language, app: Record) -> tuple[str | None, Pairs]:
    return app["name"], [
        ("host", app["host"]),
        ("scopes", str(app["scopes"])),
        ("account", app["email"]),
    ]


def _member(language: Language, member: Record) -> tuple[str | None, Pairs]:
    role = member["role"]
    return member["name"], [
        ("account", member["email"]),
        ("role", role and _text(language, f"role_{role}")),
    ]


# Functions that return the subject of a record and its facts, by kind.
_FACTS: Mapping[str, Callable[[Language, Record], tuple[str | None, Pairs]]] = {
    "lead": _lead,
    "order": _order,
    "booking": _booking,
    "booking_moved": _moved,
    "booking_cancelled": _booking,
    "booking_paid": _paid,
    "refund_returned": _refund,
    "refund_failed": _refund,
    "payment_disputed": _disputed,
    "contacts": _client,
    "dialog": _dialog,
    "handover": _handover,
    "limit": _limit,
    "limit_half": _limit,
    "calendar_unread": _unread_calendar,
    "webhook_off": _webhook,
    "webhook_changed": _changed_webhook,
    "webhook_deleted": _changed_webhook,
    "balance": _balance,
    "topup_returned": _balance,
    "payment_refused": _payment,
    "app_connected": _app,
    "key_created": _key,
    "key_revoked": _key,
    "export_started": _key,
    "member_added": _member,
    "member_removed": _member,
    "member_role": _member,
}
# Pages of the console by kind.
_PAGES = {
    "lead": "leads/{id}",
    "order": "leads/{id}",
    "booking": "bookings/{id}",
    "booking_moved": "bookings/{id}",
    "booking_cancelled": "bookings/{id}",
    "booking_paid": "bookings/{id}",
    "refund_returned": "bookings/{id}",
    "refund_failed": "bookings/{id}",
    "payment_disputed": "bookings/{id}",
    "contacts": "clients/{id}",
    "dialog": "dialogs/{id}",
    "handover": "dialogs/{id}",
    "limit": "bots/{id}/limits",
    "limit_half": "bots/{id}/limits",
    "calendar_unread": "staff/{resourceId}/busy-times",
    "webhook_off": "webhooks/{id}",
    "webhook_changed": "webhooks/{id}",
    "webhook_deleted": "webhooks",
    "balance": "balance",
    "topup_returned": "balance",
    "payment_refused": "payment-settings",
    "app_connected": "apps",
    "key_created": "keys",
    "key_revoked": "keys",
    "export_started": "exports/{id}",
    "member_added": "members",
    "member_removed": "members",
    "member_role": "members",
}
# Catalogue keys of the button in an e-mail, by the first part of the page's path.
_ACTIONS = {
    "leads": "open_lead",
    "bookings": "open_booking",
    "clients": "open_client",
    "dialogs": "open_dialog",
}
# Kinds whose e-mail names the client in its subject, after the facts that may be shared.
_CLIENT_SUBJECTS = frozenset(kind for kind, page in _PAGES.items() if page == "bookings/{id}")


def _money(language: Language, amount: int, record: Record) -> str:
    return localized.money(language, amount, record.get("currency", RUB))


def _short(start: datetime) -> str:
    return f"{start:%d.%m %H:%M}"


def _contacts(person: Record) -> Pairs:
    return [("phone", _phone(person)), ("email", person["email"])]


def _phone(person: Record) -> str | None:
    phone: str | None = person["phone"] or person.get("phoneEntered")
    return phone


def _address(key: str, *, value: str) -> str | None:
    if key == "phone":
        return f"tel:{value}" if phones.is_number(value) else None
    return f"mailto:{value}" if key == "email" and emails.find_email(value) else None


def _text(language: Language, key: str) -> str:
    return str(_catalogue(language).texts[key])


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "messages")
