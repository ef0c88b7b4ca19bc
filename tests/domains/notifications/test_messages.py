"""Title and facts of each message to members, in emails and in Telegram."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domains.notifications.rules import messages
from chalicelib.domains.notifications.rules.messages import MAX_FACT, MAX_TITLE

CONSOLE = "https://console.example/w/bakery"
LEAD = {
    "id": "l1",
    "name": "Ada",
    "phone": "+74951234567",
    "email": "ada@example.com",
    "form": "Contact",
    "data": {"who": "Ada", "text": "Rye bread?", "blank": " ", "size": 2, "day": "Friday"},
}
ITEMS = [
    {"name": "Bread", "quantity": 2, "price": 12_000},
    {"name": "Cake", "quantity": 1, "price": 90_000},
]
ORDER = {**LEAD, "data": {"items": ITEMS, "text": "Soon"}}
BOOKING = {
    "id": "k1",
    "startLocal": "2027-01-20T14:30:00",
    "client": {"name": "Ada", "phone": None, "email": "ada@example.com"},
    "serviceName": "Haircut",
    "resourceName": "Eve",
    "notes": "Short",
}
HANDOVER = {
    "id": "d1",
    "agentId": "b1",
    "handoverReason": "A cake",
    "pageUrl": "https://shop.example",
}
WEBHOOK = {"id": "w1", "url": "https://receiver.example", "offBecause": "gone"}
APP = {"name": "Claude", "host": "claude.ai", "scopes": 3, "email": "bob@example.com"}
KEY = {"name": "Laptop", "masked": "svc_live_…abcd", "scopes": 2, "email": "bob@example.com"}
MEMBER = {"name": "Bob", "email": "bob@example.com", "role": "manager"}

CONTACTS = [("phone", "Phone", "+74951234567"), ("email", "E-mail", "ada@example.com")]
BOOKED = [
    ("service", "Service", "Haircut"),
    ("time", "Time", "Wednesday, 20 January 2027, 14:30"),
    ("resource", "Staff", "Eve"),
    ("name", "Name", "Ada"),
    ("email", "E-mail", "ada@example.com"),
    ("message", "Message", "Short"),
]
KEY_FACTS = [
    ("key", "Key", "svc_live_…abcd"),
    ("scopes", "Number of scopes", "2"),
    ("account", "Account", "bob@example.com"),
]
MANAGER = [("account", "Account", "bob@example.com"), ("role", "Role", "manager")]


@pytest.mark.parametrize(
    ("kind", "record", "title", "facts", "page"),
    [
        (
            "lead",
            LEAD,
            "New lead: Ada",
            [
                ("name", "Name", "Ada"),
                *CONTACTS,
                ("form", "Form", "Contact"),
                ("message", "Message", "Rye bread?; 2; Friday"),
            ],
            "leads/l1",
        ),
        (
            "order",
            ORDER,
            "New order: Ada",
            [
                ("items", "Items", "Bread: 2; Cake: 1"),
                ("total", "Total", "1,140 ₽"),
                ("name", "Name", "Ada"),
                *CONTACTS,
                ("form", "Form", "Contact"),
                ("message", "Message", "Soon"),
            ],
            "leads/l1",
        ),
        ("booking", BOOKING, "New booking: Haircut, 20.01 14:30, Ada", BOOKED, "bookings/k1"),
        (
            "booking_cancelled",
            BOOKING,
            "Booking cancelled: Haircut, 20.01 14:30, Ada",
            BOOKED,
            "bookings/k1",
        ),
        (
            "handover",
            HANDOVER,
            "A visitor asks for a person",
            [("message", "Message", "A cake"), ("page", "Page", "https://shop.example")],
            "dialogs/d1",
        ),
        (
            "limit",
            {"id": "b1", "name": "Anna"},
            "A bot reached its spending limit: Anna",
            [],
            "bots/b1/limits",
        ),
        (
            "webhook_off",
            WEBHOOK,
            "A webhook was switched off",
            [
                ("url", "URL", "https://receiver.example"),
                ("reason", "Reason", "The receiver responded that the URL no longer exists (410)."),
            ],
            "webhooks/w1",
        ),
        (
            "webhook_off",
            {"id": "w1", "url": "https://receiver.example"},
            "A webhook was switched off",
            [("url", "URL", "https://receiver.example")],
            "webhooks/w1",
        ),
        (
            "balance",
            {"kopecks": 10_000},
            "The balance is low: 100 ₽",
            [("left", "Remaining", "100 ₽")],
            "balance",
        ),
        (
            "app_connected",
            APP,
            "App connected: Claude",
            [
                ("host", "App's site", "claude.ai"),
                ("scopes", "Number of scopes", "3"),
                ("account", "Account", "bob@example.com"),
            ],
            "apps",
        ),
        ("key_created", KEY, "API key created: Laptop", KEY_FACTS, "keys"),
        ("key_revoked", KEY, "API key revoked: Laptop", KEY_FACTS, "keys"),
        (
            "export_started",
            {**KEY, "id": "e1"},
            "Export started by an API key: Laptop",
            KEY_FACTS,
            "exports/e1",
        ),
        ("member_added", MEMBER, "Member added: Bob", MANAGER, "members"),
        ("member_removed", {**MEMBER, "role": None}, "Member removed: Bob", MANAGER[:1], "members"),
        ("member_role", MEMBER, "Member role changed: Bob", MANAGER, "members"),
    ],
)
def test_a_message_has_the_facts_of_its_record(
    kind: str, record: dict[str, Any], title: str, facts: list[tuple[str, str, str]], page: str
) -> None:
    message = messages.message("en", kind, record)
    assert (message.kind, message.title, message.facts, message.page) == (kind, title, facts, page)


def test_the_role_of_a_member_is_in_the_language_of_the_message() -> None:
    facts = messages.message("ru", "member_role", MEMBER).facts
    assert facts[-1] == ("role", "Роль", "менеджер")


@pytest.mark.parametrize("items", [None, [{"name": "Bag", "quantity": 1, "price": 0}]])
def test_an_order_without_a_price_has_no_total(items: Any) -> None:
    order = {**ORDER, "data": {"items": items}}
    facts = messages.message("en", "order", order).facts
    assert "total" not in [key for key, _, _ in facts]


def test_long_and_blank_values_are_shortened_and_left_out() -> None:
    lead = {**LEAD, "name": "A" * 999, "form": "\u200b\n", "data": {"text": "b" * 999}}
    message = messages.message("en", "lead", lead)
    assert message.title.startswith("New lead: A")
    assert len(message.title) == len("New lead: ") + MAX_TITLE
    assert {
        key: len(value) for key, _, value in message.facts if key not in {"phone", "email"}
    } == {
        "name": MAX_FACT,
        "message": MAX_FACT,
    }
    assert messages.message("en", "lead", {**lead, "name": "\n"}).title == "New lead"
    unnamed = {**lead, "name": None}
    assert messages.message("en", "lead", unnamed).title == "New lead: +74951234567"


@pytest.mark.parametrize("kind", ["lead", "order"])
@pytest.mark.parametrize("known", ["name", "email", "phone", "data"])
def test_lead_has_personal_data_while_any_value_is_left(kind: str, known: str) -> None:
    erased = dict.fromkeys(("name", "email", "phone", "data"))
    assert messages.is_about_nobody(kind, erased)
    assert not messages.is_about_nobody(kind, {**erased, known: "x"})


@pytest.mark.parametrize("known", ["name", "email", "phone"])
def test_booking_has_personal_data_while_its_client_has_any_value(known: str) -> None:
    erased = dict.fromkeys(("name", "email", "phone"))
    assert messages.is_about_nobody("booking", {"client": erased})
    assert not messages.is_about_nobody("booking", {"client": {**erased, known: "x"}})
    assert not messages.is_about_nobody("booking_cancelled", {"client": erased})


def test_many_messages_are_summarized_by_kind_and_number() -> None:
    messages._catalogue.cache_clear()  # The file is read again here.
    digest = messages.digest("en", "booking_cancelled", 3)
    assert (digest.kind, digest.title) == ("booking_cancelled", "Cancelled bookings: 3 more")
    assert messages.to_text(digest, "Bakery", console_url=CONSOLE) == (
        f"Cancelled bookings: 3 more\n{CONSOLE}/bookings\nBakery"
    )


@pytest.mark.parametrize(
    ("kind", "record", "lines"),
    [
        ("lead", LEAD, ["New lead", "Form: Contact"]),
        ("order", ORDER, ["New order", "Items: Bread: 2; Cake: 1", "Total: 1,140 ₽"]),
        ("booking", BOOKING, ["New booking: Haircut, 20.01 14:30", "Service: Haircut"]),
        ("handover", HANDOVER, ["A visitor asks for a person", f"{CONSOLE}/dialogs/d1"]),
        ("app_connected", APP, ["App connected", "App's site: claude.ai"]),
        ("member_added", MEMBER, ["Member added", "Role: manager"]),
    ],
)
def test_chat_message_has_only_permitted_facts(
    kind: str, record: dict[str, Any], lines: list[str]
) -> None:
    text = messages.to_text(messages.message("en", kind, record), "My\nbakery", console_url=CONSOLE)
    text_lines = text.split("\n")
    assert [line for line in lines if line not in text_lines] == []
    assert text_lines[-1] == "My bakery"


VISITOR = ("name", "phone", "email", "notes", "handoverReason", "pageUrl", "text", "day", "who")


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("lead", LEAD),
        ("order", ORDER),
        ("booking", BOOKING),
        ("booking_cancelled", BOOKING),
        ("handover", HANDOVER),
    ],
)
@given(words=st.lists(st.text(min_size=3, max_size=60), min_size=1, max_size=9))
@example(words=["Ivan +7916 111-00-01 http://evil.example"])
def test_chat_message_has_no_text_of_a_visitor(
    kind: str, record: dict[str, Any], words: list[str]
) -> None:
    """The message does not depend on the strings of the visitor, so no such string is sent."""

    def entered(values: dict[str, Any], word: str) -> dict[str, Any]:
        visitor_values = {name: word for name in VISITOR if name in values}
        inner = {n: entered(v, word) for n, v in values.items() if isinstance(v, dict)}
        return values | visitor_values | inner

    def text(word: str) -> str:
        return messages.to_text(
            messages.message("en", kind, entered(record, word)), "Bakery", console_url=CONSOLE
        )

    assert {text(word) for word in words} == {text("Ada")}


def test_chat_message_is_short() -> None:
    text = messages.to_text(
        messages.message("en", "key_created", KEY), "B" * 999, console_url=CONSOLE
    )
    *lines, workspace = text.split("\n")
    assert lines == [
        "API key created: Laptop",
        "Key: svc_live_…abcd",
        "Number of scopes: 2",
        f"{CONSOLE}/keys",
    ]
    assert len(workspace) == MAX_TITLE


def test_email_has_all_facts_and_a_link_to_the_console() -> None:
    message = messages.message("en", "key_created", KEY)
    mail = messages.mail(
        "en", message, workspace="Bakery", unsubscribe_url="https://u.example", console_url=CONSOLE
    )
    assert mail.subject == "API key created: Laptop"
    for part in (
        "Account: bob@example.com",
        f"Open the console: {CONSOLE}/keys\n",
        "new API keys in the workspace “Bakery”",
        "Unsubscribe from these e-mails: https://u.example",
        f"Notification settings: {CONSOLE}/notifications",
    ):
        assert part in mail.text
    lead = messages.message("en", "lead", LEAD)
    mail = messages.mail("en", lead, workspace="B", unsubscribe_url="u", console_url=CONSOLE)
    assert f"Open the lead: {CONSOLE}/leads/l1\n" in mail.text
    for link in ("tel:+74951234567", "mailto:ada@example.com"):
        assert f'<a class="link" href="{link}"' in mail.html


@pytest.mark.parametrize("phone", ["call me", "javascript:alert(1)", "12"])
def test_only_a_phone_number_becomes_a_link_to_call(phone: str) -> None:
    lead = messages.message("en", "lead", {**LEAD, "phone": phone, "email": phone})
    mail = messages.mail("en", lead, workspace="B", unsubscribe_url="u", console_url=CONSOLE)
    assert mail.html.count("<a ") == 3  # the button and the links of the footer
