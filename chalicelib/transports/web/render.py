"""Pages of templates: one frame, escaped throughout, in the reader's language.

They are whole without script; one of ours may add to a page, and nothing else runs in it.
"""

import base64
import hashlib
import logging
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from chalicelib import SERVICE
from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError, log_fields
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import iso
from chalicelib.lib import templates
from chalicelib.transports.http import HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import assets, texts
from chalicelib.transports.web.texts import Language

if TYPE_CHECKING:
    from jinja2 import Environment

ZONE = "Europe/Moscow"
"""Where the platform is: the dates of its own pages are told in this time zone."""
CACHED = "public, max-age=60"
"""For pages that all readers share: an edit is seen within a minute (chalice.md)."""
_POLICY = (
    "default-src 'none'; style-src {style}; img-src 'self' https: data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_WITH_SCRIPT = "; script-src 'self'; connect-src 'self'"

Handler = Callable[[HttpRequest], HttpResponse]

log = logging.getLogger(__name__)


@cache
def environment() -> "Environment":
    """Return what makes pages of templates; it escapes everything that is not ``Markup``."""
    from markupsafe import Markup  # noqa: PLC0415  it comes with Jinja, which only pages need

    made = templates.environment(Path(__file__).parent / "templates")
    made.globals["icon"] = lambda name: Markup(assets.icon(name))  # noqa: S704  an icon of ours
    made.globals["style_url"] = assets.style_url
    made.globals["script_url"] = assets.script_url
    made.globals["style"] = lambda name: Markup(_style(name))  # noqa: S704  a style sheet of ours
    made.filters["iso"] = iso
    made.filters["urlquote"] = partial(quote, safe="")
    return made


def language(request: HttpRequest) -> Language:
    """Return the language in which a page speaks to who asks for it."""
    return texts.preferred(request.headers.get("accept-language", ""))


def document(spoken: Language, template: str, **values: object) -> str:
    """Return a document made of a template, which speaks a language."""
    own = {
        "lang": spoken,
        "say": partial(texts.say, spoken),
        "day": lambda when: texts.day(spoken, clock.local_day(when, ZONE)),
        "base_url": settings().public_url,
        "name": SERVICE,
        "script": None,
    }
    return environment().get_template(template).render({**own, **values})


def page(
    request: HttpRequest,
    template: str,
    status: int = 200,
    *,
    cached: bool = True,
    script: str | None = None,
    **values: object,
) -> HttpResponse:
    """Return a page; a ``cached`` one is what everybody sees who speaks the reader's language.

    ``script`` names one of ``assets.SCRIPTS``, which adds to it.
    """
    body = document(language(request), template, script=script, **values).encode()
    headers = {"Content-Type": HTML_TYPE, "Vary": "Accept-Language", **_guard("'self'")}
    if script is not None:
        headers["Content-Security-Policy"] += _WITH_SCRIPT
    if cached:
        headers |= {"Cache-Control": CACHED, "ETag": etag(body)}
    return HttpResponse(status, body, headers)


def notice(  # noqa: PLR0913  what a page of a few words has
    request: HttpRequest,
    status: int,
    *,
    icon: str,
    title: str,
    about: str,
    link: tuple[str, str] | None = None,
    **values: object,
) -> HttpResponse:
    """Return a page of a few words that brings its style with it: it may be shown on any host.

    ``title``, ``about`` and the text of ``link`` (a URL and a text) are keys of the catalogue.
    """
    shown = {"icon_name": icon, "title": title, "about": about, "link": link, "values": values}
    body = document(language(request), "notice.html", **shown).encode()
    digest = base64.b64encode(hashlib.sha256(_style("plain").encode()).digest()).decode()
    headers = {
        "Content-Type": HTML_TYPE,
        "Vary": "Accept-Language",
        "X-Robots-Tag": "noindex",
        **_guard(f"'sha256-{digest}'"),
    }
    return HttpResponse(status, body, headers)


def with_pages(handler: Handler, *, link: tuple[str, str] | None = None) -> Handler:
    """Let a handler's failures be told to people; ``link``, as in ``notice``, leads on."""

    def run(request: HttpRequest) -> HttpResponse:
        try:
            return handler(request)
        except NotFoundError:
            return notice(
                request,
                404,
                icon="file-question",
                title="not_found",
                about="site_page_not_found",
                link=link,
            )
        except Exception as error:
            if not isinstance(error, AppError):
                log.exception("a page failed", extra={"requestId": request.request_id})
            status = error.status if isinstance(error, AppError) else 500
            own = f"error_{error.code}" if isinstance(error, AppError) else ""
            known = texts.has(language(request), own)
            told = notice(
                request,
                status,
                icon="triangle-alert",
                title="refused" if known else "failed",
                about=own if known else "failed_about",
                link=link,
                request_id=request.request_id,
            )
            if not isinstance(error, AppError):
                return told
            return told._replace(headers={**told.headers, **error.headers}, log=log_fields(error))

    return run


def _style(name: str) -> str:
    return assets.style_sheet(name).decode()


def _guard(style: str) -> dict[str, str]:
    """Return the headers of a page that runs nothing and is in nobody's frame."""
    return {
        "Content-Security-Policy": _POLICY.format(style=style),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
