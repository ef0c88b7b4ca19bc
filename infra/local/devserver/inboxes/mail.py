"""Development pages at ``/dev/mail`` with the messages of ``MAIL=file``."""

import re
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import quote

from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.gateways.mail.folder import SUFFIX
from chalicelib.transports.http import TEXT_TYPE, HttpRequest, HttpResponse
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import LocalRoute

PATH = "/dev/mail"
SHOWN = 200
"""Messages in the list, newest first."""
SANDBOX = "allow-popups allow-popups-to-escape-sandbox"
"""Sandbox of the HTML part of an e-mail. Links may open links in a new tab."""
_ROUTE = re.compile(r"([A-Za-z0-9_-]{1,200})(?:/(html|source|[0-9]{1,3}))?")
_HTML_PART = {
    **inboxes.PAGE_HEADERS,
    "Content-Security-Policy": f"sandbox {SANDBOX}; default-src 'none'; "
    "style-src 'unsafe-inline'; img-src data: https:; base-uri 'none'; form-action 'none'",
}


def read(request: HttpRequest) -> HttpResponse:
    """Return the list, an e-mail, its HTML part, its source, or an attachment by its number."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("Mail is read with GET.", headers={"Allow": "GET, HEAD"})
    if settings().mail != "file":
        msg = f"No mail is kept here, because MAIL is {settings().mail}. Unset it to keep mail."
        raise NotFoundError(msg)
    if not request.path["proxy"]:
        return inboxes.page("mails.html", path=PATH, mails=_newest())
    match = _ROUTE.fullmatch(request.path["proxy"])
    path = Path(settings().mail_folder, f"{match[1]}{SUFFIX}") if match else None
    if match is None or path is None or not path.is_file():
        msg = f"No such mail. The list of mails is at {PATH}."
        raise NotFoundError(msg)
    raw = path.read_bytes()
    message = _parsed(raw)
    match match[2]:
        case None:
            return inboxes.page(
                "mail.html", path=PATH, id=match[1], sandbox=SANDBOX, **_message_json(message)
            )
        case "html":
            return HttpResponse(200, _part(message, "html").encode(), _HTML_PART)
        case "source":
            return HttpResponse(
                200, raw, {**inboxes.PAGE_HEADERS, "Content-Type": f"{TEXT_TYPE}; charset=utf-8"}
            )
    return _attachment(message, int(match[2]))


def _newest() -> list[dict[str, object]]:
    """Return id and message of the newest messages."""
    files = Path(settings().mail_folder).glob(f"*{SUFFIX}")
    newest = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)[:SHOWN]
    return [{"id": file.stem, "headers": _headers(_parsed(file.read_bytes()))} for file in newest]


def _parsed(raw: bytes) -> EmailMessage:
    return message_from_bytes(raw, EmailMessage, policy=policy.default)


def _message_json(message: EmailMessage) -> dict[str, object]:
    return {
        "headers": _headers(message),
        "text": _part(message, "plain"),
        "attachments": [
            {"name": part.get_filename(), "type": part["Content-Type"]}
            for part in message.iter_attachments()
        ],
    }


def _headers(message: EmailMessage) -> dict[str, str]:
    """Return the decoded headers.

    ``EmailMessage`` adds spaces to names of addresses that are encoded in several words.
    """
    headers = {name: _decoded(str(raw)) for name, raw in message.raw_items()}
    return {"Subject": "", "From": "", "To": "", "Date": "", **headers}


def _decoded(raw: str) -> str:
    try:
        return str(make_header(decode_header(raw)))
    except (HeaderParseError, UnicodeError, LookupError):
        return raw


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    return str(part.get_content()) if part else ""


def _attachment(message: EmailMessage, number: int) -> HttpResponse:
    parts = list(message.iter_attachments())
    if number >= len(parts):
        raise NotFoundError("The mail has no such attachment.")
    name = quote(parts[number].get_filename() or "attachment", safe="")
    headers = {
        **inboxes.PAGE_HEADERS,
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
    }
    content = parts[number].get_payload(decode=True)
    return HttpResponse(200, content if isinstance(content, bytes) else b"", headers)


ROUTES = (LocalRoute(PATH, read), LocalRoute(f"{PATH}/", read))
