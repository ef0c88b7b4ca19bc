"""A development page at ``/dev/sms`` with the SMS of ``SMS=file``."""

import json
from pathlib import Path

from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.gateways.sms.folder import SUFFIX
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.devserver import inboxes
from infra.local.devserver.api_gateway import LocalRoute

PATH = "/dev/sms"
SHOWN = 200
"""SMS on the page, newest first."""


def read(request: HttpRequest) -> HttpResponse:
    """Return the page with the newest SMS."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("SMS are read with GET.", headers={"Allow": "GET, HEAD"})
    if settings().sms != "file":
        msg = f"No SMS are kept here, because SMS is {settings().sms}. Unset it to keep them."
        raise NotFoundError(msg)
    return inboxes.page("sms.html", messages=_newest())


def _newest() -> list[dict[str, object]]:
    files = Path(settings().sms_folder).glob(f"*{SUFFIX}")
    newest = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)[:SHOWN]
    return [json.loads(file.read_text(encoding="utf-8")) for file in newest]


ROUTES = (LocalRoute(PATH, read),)
