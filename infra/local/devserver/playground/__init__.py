"""A plain page with the chat widget, at ``/playground?agent=ID``.

Its script reads the query and creates the widget's tag like the owner of a page would. Values of
the query never become HTML.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from chalicelib.core.errors import MethodNotAllowedError, NotFoundError
from chalicelib.transports.http import HTML_TYPE, HttpRequest, HttpResponse
from infra.local.devserver.api_gateway import LocalRoute

PATH = "/playground"
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "page.html": HTML_TYPE,
        "page.css": "text/css; charset=utf-8",
        "page.js": "text/javascript; charset=utf-8",
    }
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types widget-address",
    "X-Content-Type-Options": "nosniff",
}
"""A strict policy. The widget must work under this policy."""


def read(request: HttpRequest) -> HttpResponse:
    """Return the page or one of its files."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("The page is read with GET.", headers={"Allow": "GET, HEAD"})
    name = request.path["proxy"] or "page.html"
    if name not in _TYPES:
        raise NotFoundError("No such page. The playground is at /playground?agent=ID.")
    body = Path(__file__).with_name(name).read_bytes()
    return HttpResponse(200, body, {"Content-Type": _TYPES[name], **_HEADERS})


ROUTES = (LocalRoute(PATH, read), LocalRoute(f"{PATH}/", read))
