"""Pages that receive and show what the service sends to others, in development only.

``/dev/mail`` shows mail, ``/dev/sms`` shows SMS, ``/dev/telegram`` and ``/dev/max`` are messengers
with one chat each, ``/dev/webhooks`` is a receiver of webhooks, and ``/dev/pay`` is a payment
provider. Only mail, SMS and payments are kept after the process ends.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.lib import currencies
from chalicelib.lib.markup import templates
from chalicelib.transports.http import HTML_TYPE, HttpResponse

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_HEADERS = {
    "Content-Type": HTML_TYPE,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def page(template: str, **values: object) -> HttpResponse:
    """Return a page from a template of this folder."""
    body = _environment().get_template(template).render(**values)
    return HttpResponse(200, body.encode(errors="replace"), PAGE_HEADERS)


@cache
def _environment() -> "Environment":
    environment = templates.environment(Path(__file__).parent)
    environment.globals["plain"] = currencies.plain
    return environment
