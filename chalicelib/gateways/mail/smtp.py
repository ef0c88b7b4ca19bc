"""Send e-mail through an SMTP server, with a new connection each time."""

import logging
import smtplib
import ssl
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from chalicelib.core.settings import settings
from chalicelib.gateways.mail import MailDelayedError, MailError, MailRefusedError
from chalicelib.gateways.mail.message import RawMail

STEP_SECONDS = 10.0  # the longest wait for one response of the server
SMTP_PORT, SMTPS_PORT = 587, 465  # submission without and with implicit TLS (RFC 6409, RFC 8314)
# Status codes from this one on are permanent, lower ones are temporary (RFC 5321, 4.2.1).
PERMANENT = 500

log = logging.getLogger(__name__)


def send(mail: RawMail) -> None:
    """Send an e-mail through the server of ``MAIL_SMTP``, with TLS if the server offers it."""
    place = urlsplit(settings().mail_smtp)
    try:
        client = _connect(place, mail.sender.rpartition("@")[2])
        try:
            _send(client, mail, place)
        finally:
            client.close()  # The mail is sent, or refused: QUIT could only fail.
    except smtplib.SMTPRecipientsRefused as error:
        ((code, _),) = error.recipients.values()
        raise _failure(code, "the recipient") from None
    except smtplib.SMTPDataError as error:
        raise _failure(error.smtp_code, "the content") from None
    except (smtplib.SMTPException, OSError) as error:
        status = getattr(error, "smtp_code", None)
        # A wrong password or a sender that is not allowed is the operator's mistake.
        is_mistake = isinstance(error, ssl.SSLError) or (status or 0) >= PERMANENT
        log.log(
            logging.ERROR if is_mistake else logging.INFO,
            "the mail server sends no mail for this service",
            extra={"cause": type(error).__name__, "status": status},
        )
        msg = f"The mail server failed, or cannot be reached: {type(error).__name__}."
        raise MailDelayedError(msg) from None


def _connect(place: SplitResult, name: str) -> smtplib.SMTP:
    # Without ``name``, the library would look up the machine's.
    host = str(place.hostname)
    if place.scheme == "smtps":
        port = place.port or SMTPS_PORT
        return smtplib.SMTP_SSL(host, port, name, timeout=STEP_SECONDS, context=_tls())
    return smtplib.SMTP(host, place.port or SMTP_PORT, name, timeout=STEP_SECONDS)


def _send(client: smtplib.SMTP, mail: RawMail, place: SplitResult) -> None:
    client.ehlo()
    secure = place.scheme == "smtps" or _is_loopback(str(place.hostname))
    if place.scheme == "smtp" and client.has_extn("starttls"):
        client.starttls(context=_tls())
        # A client must greet again after TLS begins (RFC 3207, 4.2).
        client.ehlo()
        secure = True
    if place.username:
        # Anyone on the way could read the password.
        if not secure:
            raise MailDelayedError("The mail server offers no TLS, so no password is sent to it.")
        client.login(unquote(place.username), unquote(place.password or ""))
    options = []
    if not mail.recipient.isascii():
        if not client.has_extn("smtputf8"):
            raise MailRefusedError("The mail server accepts only addresses in ASCII.")
        # Both parameters are required for an address that is not ASCII (RFC 6531, 3.4).
        options = ["SMTPUTF8", "BODY=8BITMIME"]
    client.sendmail(mail.sender, [mail.recipient], mail.content, options)


def _tls() -> ssl.SSLContext:
    # Tests replace it to trust their own authority.
    return ssl.create_default_context()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _failure(code: int, about: str) -> MailError:
    msg = f"The mail server refused {about} with {code}."
    if code < PERMANENT:
        return MailDelayedError(msg)
    log.warning("the mail server refused a mail", extra={"status": code})
    return MailRefusedError(msg)
