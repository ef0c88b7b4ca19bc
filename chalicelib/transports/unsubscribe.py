"""Pages behind the links that unsubscribe members from e-mail, and clients from advertising.

E-mail clients unsubscribe by POST (RFC 8058), without a session. Programs that check links send
GET, which therefore changes nothing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.clients.flows import advertising_links
from chalicelib.domains.notifications.flows import unsubscribing
from chalicelib.domains.notifications.rules import messages
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import render

T = TypeVar("T")
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def show(request: HttpRequest) -> HttpResponse:
    """Show a page with a button that unsubscribes."""
    return _ask(request, "unsubscribe_about", _words)


def unsubscribe(request: HttpRequest) -> HttpResponse:
    """Unsubscribe from the kind of e-mail that the link names."""

    def end(request: HttpRequest) -> None:
        unsubscribing.unsubscribe(_named(request, unsubscribing.parse))

    return _end(request, end, "unsubscribed_about", _words)


def show_advertising(request: HttpRequest) -> HttpResponse:
    """Show a page with a button that withdraws a client's consent to advertising."""
    return _ask(request, "advertising_about", _words_of_advertising)


def withdraw_advertising(request: HttpRequest) -> HttpResponse:
    """Withdraw the consent of the client that the link names."""

    def end(request: HttpRequest) -> None:
        advertising_links.withdraw(_named(request, advertising_links.parse))

    return _end(request, end, "advertising_ended", _words_of_advertising)


# Returns what the text of a page names.
_Words = Callable[[HttpRequest], dict[str, Any]]


def _words(request: HttpRequest) -> dict[str, Any]:
    subscription = _named(request, unsubscribing.parse)
    language = render.preferred_language(request)
    return {
        "kind": messages.kind_name(language, subscription.kind),
        "workspace": unsubscribing.workspace_name(subscription),
    }


def _words_of_advertising(request: HttpRequest) -> dict[str, Any]:
    recipient = _named(request, advertising_links.parse)
    return {"workspace": advertising_links.workspace_name(recipient)}


def _named(request: HttpRequest, parse: Callable[[str], T | None]) -> T:
    # What the token of the link names.
    named = parse(request.path["token"])
    if named is None:
        raise NotFoundError("This link is not valid.", key="link")
    return named


def _ask(request: HttpRequest, about: str, words: _Words) -> HttpResponse:
    def page(request: HttpRequest) -> HttpResponse:
        notice = render.notice(
            request,
            200,
            icon="inbox",
            title="unsubscribe",
            about=about,
            button="unsubscribe",
            **words(request),
        )
        return _private(notice)

    return render.failures_as_pages(page)(request)


def _end(
    request: HttpRequest, end: Callable[[HttpRequest], None], about: str, words: _Words
) -> HttpResponse:
    def page(request: HttpRequest) -> HttpResponse:
        end(request)
        notice = render.notice(
            request, 200, icon="circle-check", title="unsubscribed", about=about, **words(request)
        )
        return _private(notice)

    return render.failures_as_pages(page)(request)


def _private(page: HttpResponse) -> HttpResponse:
    return page._replace(headers={**page.headers, **_HEADERS})
