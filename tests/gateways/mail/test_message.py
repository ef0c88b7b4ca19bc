"""The MIME message of an email."""

import re
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib import SERVICE
from chalicelib.core.text import one_line, unlinked
from chalicelib.gateways.mail import Attachment, MailRefusedError
from chalicelib.gateways.mail.message import MAX_NAME, MAX_SUBJECT, build
from tests.conftest import Time
from tests.gateways.mail.conftest import SENDER, example_mail

HEADERS = {
    *("from", "to", "subject", "date", "message-id", "auto-submitted", "mime-version"),
    *("content-type", "reply-to", "list-unsubscribe", "list-unsubscribe-post"),
}
HOSTILE = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [
                *("\r\nBcc: eve@example.com", "\n\n<b>", "\x85", "\u2028", "\0", "\ud800"),
                *("=?utf-8?q?=0D=0ABcc:_eve@example.com?=", '"', "\\", ",", "<eve@example.com>"),
                *("x" * 90, "Анна", "é", ";", ":", " ", "?= =?", "=?", "?=", "."),
            ]
        )
    ).map("".join),
)


def parsed(**changes: Any) -> EmailMessage:
    content = build(example_mail(**changes), SENDER).content
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    return message


@given(name=HOSTILE, subject=HOSTILE, file=HOSTILE)
def test_no_text_of_a_user_adds_a_header_or_an_address(name: str, subject: str, file: str) -> None:
    raw = build(
        example_mail(
            subject=subject,
            sender_name=name,
            reply_to="owner@example.com",
            attachments=[Attachment(file, "text/calendar", b"x")],
            unsubscribe_url="https://example.com/u",
        ),
        SENDER,
    ).content
    head = raw.partition(b"\r\n\r\n")[0].decode("ascii")
    assert "\r" not in head.replace("\r\n", "")
    assert "\n" not in head.replace("\r\n", "")
    fields = [line for line in head.split("\r\n") if not line.startswith((" ", "\t"))]
    assert {field.partition(":")[0].lower() for field in fields} == HEADERS
    assert len(fields) == len(HEADERS)
    assert max(map(len, head.split("\r\n"))) <= 998
    message = message_from_bytes(raw, policy=policy.default)
    sender = message["From"].addresses
    assert [address.addr_spec for address in sender] == [SENDER]
    clean = unlinked(one_line(name.encode(errors="ignore").decode(), MAX_NAME))
    assert [address.addr_spec for address in message["To"].addresses] == ["ada@example.com"]
    # Older readers of headers find one sender, too.
    old = message_from_bytes(raw, policy=policy.compat32)
    ((words, address),) = getaddresses([old["From"]])
    assert address == SENDER
    shown_name = str(make_header(decode_header(words)))
    assert shown_name == (f"{clean} via {SERVICE}" if clean else SERVICE)
    assert one_line(str(message["Subject"]), 999) == one_line(
        subject.encode(errors="ignore").decode(), MAX_SUBJECT
    )


def test_message_has_both_parts_and_automatic_headers(time: Time) -> None:
    message = parsed(text="Привет", html="<p>Привет</p>", sender_name="Хлеб, ООО")
    assert message["Message-ID"] == "<01J-1@notify.example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"].datetime == time.now
    assert message.get_content_type() == "multipart/alternative"
    text, html = message.iter_parts()
    assert isinstance(text, EmailMessage)
    assert isinstance(html, EmailMessage)
    assert (text.get_content_type(), text.get_content()) == ("text/plain", "Привет\r\n")
    assert (html.get_content_type(), html.get_content()) == ("text/html", "<p>Привет</p>\r\n")
    assert "Reply-To" not in message
    assert "List-Unsubscribe" not in message


def test_message_is_ascii() -> None:
    assert build(example_mail(text="Привет", html="é" * 2000), SENDER).content.isascii()


def test_an_invitation_keeps_its_media_type_its_bytes_and_its_name() -> None:
    content = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
    kind = "text/calendar; method=REQUEST; charset=utf-8"
    (part,) = parsed(attachments=[Attachment("визит.ics", kind, content)]).iter_attachments()
    assert part.get_content_type() == "text/calendar"
    assert part["Content-Type"].params == {"method": "REQUEST", "charset": "utf-8"}
    assert part.get_filename() == "визит.ics"
    assert part.get_payload(decode=True) == content


def test_a_long_unsubscribe_url_is_in_one_piece() -> None:
    url = "https://example.com/u/" + "x" * 400
    raw = build(example_mail(unsubscribe_url=url), SENDER).content
    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in raw
    assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw


@pytest.mark.parametrize(
    "changes",
    [
        *({"unsubscribe_url": url} for url in ("javascript:x", "https://a>b", "https://a\r\nX: y")),
        *({"id": name} for name in ("", "a b", "../a", "a\r\nBcc: b", "x" * 201)),
        {"attachments": [Attachment("a", "text/calendar\r\nX: y", b"")]},
        {"attachments": [Attachment("a", "calendar", b"")]},
    ],
)
def test_malformed_values_of_the_program_are_errors(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        build(example_mail(**changes), SENDER)


@pytest.mark.parametrize("field", ["recipient", "reply_to"])
@pytest.mark.parametrize(
    "address", ["", "ada", "a@b@example.com", "ada@example.com, eve@example.com", "a\r\nb@e.com"]
)
def test_invalid_address_is_refused_permanently(field: str, address: str) -> None:
    with pytest.raises(MailRefusedError):
        build(example_mail(**{field: address}), SENDER)


def test_a_host_in_another_script_is_encoded() -> None:
    message = build(example_mail(recipient="info@bücher.de"), SENDER)
    assert message.recipient == "info@xn--bcher-kva.de"


def test_a_local_part_in_another_script_makes_utf8_headers() -> None:
    raw = build(example_mail(recipient="анна@пример.рф", subject="Да"), SENDER)
    assert raw.recipient == "анна@xn--e1afmkfd.xn--p1ai"
    assert f"\r\nTo: {raw.recipient}\r\n".encode() in raw.content
    head = raw.content.partition(b"\r\n\r\n")[0]
    assert re.search(rb"^Subject: =\?utf-8\?", head, re.MULTILINE)
