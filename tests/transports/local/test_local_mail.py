"""The pages of ``make dev`` to read the mail that the service sends."""

import os
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest

import app as application
from chalicelib.core.principals import PLATFORM
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Attachment, Mail
from chalicelib.lib.markup.mails import RenderedMail
from tests.conftest import Api
from tests.transports.conftest import LocalServer, Records, WireReply

HOSTILE = '<script>alert("1")</script>'
CALENDAR = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


@pytest.fixture(autouse=True)
def _quiet(log_records: Records) -> Iterator[None]:
    """Check that no error is logged."""
    yield
    assert log_records.errors == []


@pytest.fixture
def folder(tmp_path: Path, reload_settings: Callable[[], None]) -> Path:
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
    return tmp_path


def send(name: str, subject: str = HOSTILE) -> None:
    mail.send(
        Mail(
            origin=PLATFORM,
            id=name,
            recipient="ada@example.com",
            content=RenderedMail(subject, f"Привет {HOSTILE}", f"<p>Привет</p>{HOSTILE}"),
            sender_name=HOSTILE,
            attachments=[Attachment(HOSTILE, "text/calendar; method=REQUEST", CALENDAR)],
        )
    )


def get(server: LocalServer, path: str, method: str = "GET") -> WireReply:
    return server.request(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def test_mails_are_listed_newest_first(folder: Path, local_server: LocalServer) -> None:
    assert "No e-mails yet" in get(local_server, "/dev/mail").body.decode()
    for number, name in enumerate(("b", "c", "a")):
        send(name, f"Mail {name}")
        os.utime(folder / f"{name}.eml", (number, number))
    page = get(local_server, "/dev/mail").body.decode()
    assert re.findall(r'<a href="/dev/mail/(\w)">Mail (\w)</a>', page) == [
        ("a", "a"),
        ("c", "c"),
        ("b", "b"),
    ]


def test_a_mail_is_shown_with_everything_escaped(folder: Path, local_server: LocalServer) -> None:
    send("one")
    assert HOSTILE not in get(local_server, "/dev/mail").body.decode()
    reply = get(local_server, "/dev/mail/one")
    page = reply.body.decode()
    assert reply.status == 200
    assert "<script" not in page
    assert f"<pre>Привет {HOSTILE}" in unescape(page)
    assert f"<h1>{HOSTILE}</h1>" in unescape(page)
    assert "auto-generated" in page
    assert "script-src" not in str(reply.header("Content-Security-Policy"))
    assert re.search(r'<iframe sandbox="allow-popups [\w-]+" src="/dev/mail/one/html"', page)


def test_the_html_part_is_in_a_sandbox_without_scripts(
    folder: Path, local_server: LocalServer
) -> None:
    send("one")
    reply = get(local_server, "/dev/mail/one/html")
    policy = str(reply.header("Content-Security-Policy"))
    assert reply.body.decode().startswith("<p>Привет</p>")
    assert policy.startswith("sandbox allow-popups")
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert "same-origin" not in policy


def test_attachments_and_the_source_are_downloaded(folder: Path, local_server: LocalServer) -> None:
    send("one")
    reply = get(local_server, "/dev/mail/one/0")
    assert reply.body == CALENDAR
    assert str(reply.header("Content-Disposition")).startswith("attachment; filename*=UTF-8''")
    assert reply.header("Content-Type") == "application/octet-stream"
    source = get(local_server, "/dev/mail/one/source")
    assert source.body == (folder / "one.eml").read_bytes()
    assert source.header("Content-Type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["two", "../one", "..%2Fone", "one/1", "one/text", "one.eml", "%00", "one/html/x"]
)
def test_other_paths_are_not_found(path: str, folder: Path, local_server: LocalServer) -> None:
    send("one")
    assert get(local_server, f"/dev/mail/{path}").status == 404


def test_mail_is_read_only_and_only_with_get(folder: Path, local_server: LocalServer) -> None:
    assert get(local_server, "/dev/mail", "DELETE").status == 405
    assert get(local_server, "/dev/mail", "HEAD").status == 200


def test_a_damaged_file_does_not_break_the_list(folder: Path, local_server: LocalServer) -> None:
    (folder / "bad.eml").write_bytes(b"Subject: =?utf-8?b?\xff?=\r\nDate: never\r\n\xff\x00")
    assert get(local_server, "/dev/mail").status == 200
    assert get(local_server, "/dev/mail/bad").status == 200


def test_without_a_folder_of_mail_the_page_says_why(local_server: LocalServer) -> None:
    reply = get(local_server, "/dev/mail")
    assert reply.status == 404
    assert "MAIL is off" in reply.data["message"]


@pytest.mark.parametrize("path", ["/dev/mail", "/dev/mail/one", "/dev/mail/one/html"])
def test_a_deployed_service_has_no_pages_of_mail(path: str, folder: Path) -> None:
    send("one")
    assert Api(None).call("GET", path).status == 403  # API Gateway's response for unknown paths
    assert not [route for route in application.app.routes if route.startswith("/dev")]
