"""Emails through an SMTP server on loopback."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from chalicelib.core.settings import settings
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError, MailRefusedError, smtp
from tests.gateways.mail.conftest import Configure, example_mail
from tests.support.patience import PATIENCE

PASSWORD = "p@ss/w:rd"
IN_URL = "p%40ss%2Fw%3Ard"


class Inbox:
    """Handler of an SMTP server. ``answers`` replaces its replies by command."""

    def __init__(self, **answers: str) -> None:
        self.received: list[Envelope] = []
        self.greetings: list[str | None] = []
        self._answers = answers

    async def handle_RCPT(  # noqa: N802  aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return self._answers.get("rcpt", "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if "close" in self._answers:
            server.transport.close()  # type: ignore[union-attr]
        answer = self._answers.get("data", "250 OK")
        if answer.startswith("250"):
            self.received.append(envelope)
            self.greetings.append(session.host_name)
        return answer


class Server(Controller):
    """An SMTP server on a free port."""

    def _create_server(self) -> Any:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        return self.loop.create_server(self._factory_invoker, sock=listener, ssl=self.ssl_context)


Serve = Callable[..., int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server and returns its port."""
    with ExitStack() as running:

        def start(inbox: Inbox, **options: Any) -> int:
            options = {"enable_SMTPUTF8": True, **options}
            server = Server(inbox, hostname="127.0.0.1", ready_timeout=PATIENCE, **options)
            server.start()
            running.callback(server.stop)
            return int(server.port)

        yield start


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """TLS of a server, whose authority the client trusts."""
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(smtp, "_tls", lambda: trusting)
    return served


def authenticator(_: object, __: object, ___: object, ____: object, data: object) -> AuthResult:
    known = LoginPassword(b"ada@x", PASSWORD.encode())
    return AuthResult(success=data == known, handled=False)


def test_message_reaches_the_server(serve: Serve, configure: Configure) -> None:
    inbox = Inbox()
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(inbox)}")
    mail.send(example_mail())
    (envelope,) = inbox.received
    assert envelope.mail_from == "mail@notify.example.com"
    assert envelope.rcpt_tos == ["ada@example.com"]
    assert isinstance(envelope.content, bytes)
    assert b"\r\nSubject: Booked\r\n" in envelope.content
    assert inbox.greetings == ["notify.example.com"]


def test_starttls_is_used_where_it_is_offered_and_the_password_is_decoded(
    serve: Serve, configure: Configure, tls: ssl.SSLContext
) -> None:
    inbox = Inbox()
    secured = {"tls_context": tls, "require_starttls": True}
    port = serve(inbox, **secured, auth_required=True, authenticator=authenticator)
    configure("smtp", smtp=f"smtp://ada%40x:{IN_URL}@127.0.0.1:{port}")
    mail.send(example_mail())
    assert len(inbox.received) == 1


def test_server_of_another_authority_gets_no_message(
    serve: Serve, configure: Configure, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox()
    monkeypatch.setattr(smtp, "_tls", ssl.create_default_context)
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(inbox, tls_context=tls)}")
    with pytest.raises(MailDelayedError, match="SSLCertVerificationError"):
        mail.send(example_mail())
    assert not inbox.received


def test_smtps_starts_with_tls(serve: Serve, configure: Configure, tls: ssl.SSLContext) -> None:
    inbox = Inbox()
    configure("smtp", smtp=f"smtps://127.0.0.1:{serve(inbox, ssl_context=tls)}")
    mail.send(example_mail())
    assert len(inbox.received) == 1


def test_wrong_password_delays_the_message_and_is_not_logged(
    serve: Serve,
    configure: Configure,
    tls: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = serve(Inbox(), tls_context=tls, authenticator=authenticator)
    configure("smtp", smtp=f"smtp://ada:wrong-secret@127.0.0.1:{port}")
    with pytest.raises(MailDelayedError, match="SMTPAuthenticationError") as caught:
        mail.send(example_mail())
    logged = [vars(record) for record in caplog.records if record.name == smtp.log.name]
    assert [record["status"] for record in logged] == [535]
    assert "wrong-secret" not in f"{logged} {caught.value!r} {settings()!r}"


def test_no_password_is_sent_without_tls_to_another_machine(
    serve: Serve, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox()
    monkeypatch.setattr(smtp, "_is_loopback", lambda _: False)
    configure("smtp", smtp=f"smtp://ada:secret@127.0.0.1:{serve(inbox)}")
    with pytest.raises(MailDelayedError, match="no TLS"):
        mail.send(example_mail())
    assert not inbox.received


@pytest.mark.parametrize("command", ["rcpt", "data"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("550 5.1.1 <ada@example.com> unknown", MailRefusedError),
        ("552 too large", MailRefusedError),
        ("451 4.7.1 try again", MailDelayedError),
        ("421 closing", MailDelayedError),
    ],
)
def test_5xx_is_permanent_and_4xx_is_temporary(
    command: str,
    answer: str,
    error: type[Exception],
    serve: Serve,
    configure: Configure,
) -> None:
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(Inbox(**{command: answer}))}")
    with pytest.raises(error, match=answer[:3]) as caught:
        mail.send(example_mail())
    assert "ada" not in str(caught.value)


def test_server_that_closes_early_delays_the_message(serve: Serve, configure: Configure) -> None:
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(Inbox(close='at DATA'))}")
    with pytest.raises(MailDelayedError, match="SMTPServerDisconnected"):
        mail.send(example_mail())


def test_hanging_server_delays_the_message(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "STEP_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        configure("smtp", smtp=f"smtp://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(MailDelayedError, match="SMTPServerDisconnected"):
            mail.send(example_mail())


def test_unreachable_server_delays_the_message(configure: Configure) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # A port that is bound without listening refuses connections.
        configure("smtp", smtp=f"smtp://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(MailDelayedError, match="ConnectionRefusedError"):
            mail.send(example_mail())


def test_international_address_requires_smtputf8(serve: Serve, configure: Configure) -> None:
    inbox = Inbox()
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(inbox)}")
    mail.send(example_mail(recipient="анна@example.com"))
    assert inbox.received[0].rcpt_tos == ["анна@example.com"]
    configure("smtp", smtp=f"smtp://127.0.0.1:{serve(inbox, enable_SMTPUTF8=False)}")
    with pytest.raises(MailRefusedError):
        mail.send(example_mail(recipient="анна@example.com"))
