"""Render pages from templates, in the reader's language and with every value escaped.

Pages work without script. A page may load one of the project's scripts; no other script runs.
"""

import base64
import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import AppError, NotFoundError, log_fields
from chalicelib.core.settings import settings
from chalicelib.lib import phones
from chalicelib.lib.markup import brands, templates
from chalicelib.transports.http import CACHED, HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import assets, control_limits, texts
from chalicelib.transports.web.texts import Language

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

ZONE = "Europe/Moscow"  # Time zone of the dates on the platform's own pages.
CACHED_LONGER = "public, max-age=600"  # For what search engines read.
# Characters that XML cannot hold (XML 1.0, 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORM_ACTION = "form-action 'self'; "
_NOT_FRAMED = "frame-ancestors 'none'"
_POLICY = (
    "default-src 'none'; style-src {style}; img-src 'self' https: data:; base-uri 'none'; "
    f"{_FORM_ACTION}{_NOT_FRAMED}"
)
_WITH_SCRIPT = "; script-src 'self'; connect-src 'self'; manifest-src 'self'"

_TIMES = re.compile(r"\d\d:\d\d\u2013\d\d:\d\d")
# Matches the beginning of a path in an attribute.
_ROOTED = re.compile(r'((?:href|src|action|formaction|data-chat)=")/(?!/)')

Handler = Callable[[HttpRequest], HttpResponse]

log = logging.getLogger(__name__)


@cache
def environment() -> "Environment":
    """Return the template environment. It escapes every value that is not ``Markup``."""
    from markupsafe import Markup

    result = templates.environment(Path(__file__).parent / "templates", brands.FOLDER)
    result.globals["icon"] = lambda name: Markup(assets.icon(name))  # noqa: S704  the project's own icon  # nosec B704
    result.globals["style_url"] = assets.style_url
    result.globals["script_url"] = assets.script_url
    result.globals["style"] = lambda name: Markup(_style(name))  # noqa: S704  the project's own style sheet  # nosec B704
    result.globals["limits"] = control_limits.of
    result.filters["iso"] = iso
    result.filters["whole_times"] = _whole_times
    result.filters["phone"] = lambda phone: phones.printed(phone) if phone else ""
    result.filters["urlquote"] = partial(quote, safe="")
    return result


def _whole_times(text: str) -> "Markup":
    """Return an escaped text in which no line ends inside of a span of hours and minutes."""
    from markupsafe import Markup, escape

    return Markup(_TIMES.sub(r'<span class="whole">\g<0></span>', escape(text)))  # noqa: S704  escaped before  # nosec B704


def preferred_language(request: HttpRequest) -> Language:
    """Return the page's language, which the reader has chosen or the browser prefers."""
    language = texts.supported(request.language)
    return language or texts.preferred(request.headers.get("accept-language", ""))


def document(language: Language, template: str, /, **values: object) -> str:
    """Render a template in a language. Paths begin with the path of the base URL."""
    shared = {
        "lang": language,
        "translate": partial(texts.translate, language),
        "day": lambda when: texts.day(language, clock.local_day(when, ZONE)),
        "base_url": settings().public_url,
        "name": settings().product_name,
        "support_url": settings().support_url,
        "script": None,
    }
    html = environment().get_template(template).render({**shared, **values})
    base = settings().base_path
    return _ROOTED.sub(rf"\1{base}/", html) if base else html


def page(  # noqa: PLR0913  the options of a page
    request: HttpRequest,
    template: str,
    /,
    status: int = 200,
    *,
    cached: bool = True,
    script: str | None = None,
    is_test: bool = False,
    **values: object,
) -> HttpResponse:
    """Return a page. A ``cached`` page is the same for all readers of a language.

    ``script`` names one of ``assets.SCRIPTS``, which the page loads. A page of a test workspace
    (``is_test``) says so, and search engines do not list it.
    """
    body = document(
        preferred_language(request), template, script=script, is_test=is_test, **values
    ).encode()
    headers = {"Content-Type": HTML_TYPE, "Vary": "Accept-Language", **_security_headers("'self'")}
    if script is not None:
        headers["Content-Security-Policy"] += _WITH_SCRIPT
    if is_test:
        headers["X-Robots-Tag"] = "noindex"
    if cached:
        headers |= {"Cache-Control": CACHED, "ETag": etag(body)}
    return HttpResponse(status, body, headers)


def allow_form_redirects(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a page whose forms may lead to other hosts."""
    # Chromium applies ``form-action`` to every redirect that follows a form (CSP 3, 6.4.1).
    policy = "Content-Security-Policy"
    return {**headers, policy: headers[policy].replace(_FORM_ACTION, "")}


def framed_anywhere(handler: Handler) -> Handler:
    """Return a handler of pages that any site may show in a frame, failures included."""
    policy = "Content-Security-Policy"

    def run(request: HttpRequest) -> HttpResponse:
        response = failures_as_pages(handler)(request)
        # Even ``*`` would exclude ancestors without an origin, such as a sandboxed page of a site.
        allowed = response.headers[policy].replace(f"; {_NOT_FRAMED}", "")
        return response._replace(headers={**response.headers, policy: allowed})

    return run


def notice(  # noqa: PLR0913  the parts of a notice
    request: HttpRequest,
    status: int,
    *,
    icon: str,
    title: str,
    about: str,
    link: tuple[str, str] | None = None,
    button: str | None = None,
    facts: Sequence[tuple[str, str]] = (),
    **values: object,
) -> HttpResponse:
    """Return a short page with an inline style sheet, so it can be shown on any host.

    ``title``, ``about``, ``button`` and the second part of ``link`` (a URL and a label) are keys of
    the catalogue. The button sends a form without fields to the page's own address. ``facts`` are
    pairs of a name and a value, which the page lists.
    """
    template_values = {
        "icon_name": icon,
        "title": title,
        "about": about,
        "link": link,
        "button": button,
        "facts": facts,
        "values": values,
    }
    body = document(preferred_language(request), "notice.html", **template_values).encode()
    digest = base64.b64encode(hashlib.sha256(_style("plain").encode()).digest()).decode()
    headers = {
        "Content-Type": HTML_TYPE,
        "Vary": "Accept-Language",
        "X-Robots-Tag": "noindex",
        **_security_headers(f"'sha256-{digest}'"),
    }
    return HttpResponse(status, body, headers)


def xml(text: str, *, kind: str, caching: str, **headers: str) -> HttpResponse:
    """Return an XML document of a media type, without characters that XML cannot hold."""
    body = _NOT_XML.sub("", text).encode()
    headers_to_send = {
        "Content-Type": f"{kind}; charset=utf-8",
        "Cache-Control": caching,
        "ETag": etag(body),
        "X-Content-Type-Options": "nosniff",
        **headers,
    }
    return HttpResponse(200, body, headers_to_send)


def robots(rules: Sequence[str], sitemap: str) -> HttpResponse:
    """Return ``robots.txt`` (RFC 9309) with the URL of the sitemap."""
    body = "\n".join([*rules, "", f"Sitemap: {sitemap}", ""]).encode()
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": CACHED_LONGER}
    return HttpResponse(200, body, {**headers, "ETag": etag(body)})


def failures_as_pages(
    handler: Handler,
    *,
    link: tuple[str, str] | None = None,
    missing: tuple[str, str] = ("not_found", "site_page_not_found"),
) -> Handler:
    """Return a handler whose failures are shown as pages, with ``link`` as in ``notice``.

    ``missing`` are its ``title`` and ``about`` if there is nothing at the address.
    """

    def run(request: HttpRequest) -> HttpResponse:
        try:
            return handler(request)
        except NotFoundError:
            return notice(
                request,
                404,
                icon="file-question",
                title=missing[0],
                about=missing[1],
                link=link,
            )
        except Exception as error:
            if not isinstance(error, AppError):
                log.exception("a page failed", extra={"requestId": request.request_id})
            status = error.status if isinstance(error, AppError) else 500
            text_key = f"error_{error.code}" if isinstance(error, AppError) else ""
            has_text = texts.has(preferred_language(request), text_key)
            shown_notice = notice(
                request,
                status,
                icon="triangle-alert",
                title="refused" if has_text else "failed",
                about=text_key if has_text else "failed_about",
                link=link,
                request_id=request.request_id,
            )
            if not isinstance(error, AppError):
                return shown_notice
            return shown_notice._replace(
                headers={**shown_notice.headers, **error.headers}, log=log_fields(error)
            )

    return run


def private(handler: Handler) -> Handler:
    """Return a handler of pages whose address is a secret.

    They are not stored or framed, and other sites do not learn the address.
    """
    headers = {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }

    def run(request: HttpRequest) -> HttpResponse:
        shown = failures_as_pages(handler, missing=("link_not_found", "link_not_found_about"))
        response = shown(request)
        return response._replace(headers={**response.headers, **headers})

    return run


def _style(name: str) -> str:
    return assets.style_sheet(name).decode()


def _security_headers(style: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": _POLICY.format(style=style),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
