"""Pages behind the links that unsubscribe members from e-mail, and clients from advertising.

E-mail clients unsubscribe by POST (RFC 8058), without a session. Programs that check links send
GET, which therefore changes nothing.
"""

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.clients.flows import advertising_links
from chalicelib.domains.clients.flows.advertising_links import Recipient
from chalicelib.domains.notifications.flows import unsubscribing
from chalicelib.domains.notifications.flows.unsubscribing import Subscription
from chalicelib.domains.notifications.rules import messages
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import render

_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def show(request: HttpRequest) -> HttpResponse:
    """Show a page with a button that unsubscribes."""
    return render.failures_as_pages(
        lambda request: _page(
            request, "unsubscribe", about="unsubscribe_about", button="unsubscribe"
        )
    )(request)


def unsubscribe(request: HttpRequest) -> HttpResponse:
    """Unsubscribe from the kind of e-mail that the link names."""

    def end(request: HttpRequest) -> HttpResponse:
        unsubscribing.unsubscribe(_subscription(request))
        return _page(request, "unsubscribed", about="unsubscribed_about")

    return render.failures_as_pages(end)(request)


def _page(
    request: HttpRequest, title: str, *, about: str, button: str | None = None
) -> HttpResponse:
    subscription = _subscription(request)
    language = render.preferred_language(request)
    page = render.notice(
        request,
        200,
        icon="circle-check" if button is None else "inbox",
        title=title,
        about=about,
        button=button,
        kind=messages.kind_name(language, subscription.kind),
        workspace=unsubscribing.workspace_name(subscription),
    )
    return page._replace(headers={**page.headers, **_HEADERS})


def show_advertising(request: HttpRequest) -> HttpResponse:
    """Show a page with a button that withdraws a client's consent to advertising."""
    return render.failures_as_pages(
        lambda request: _advertising_page(
            request, "unsubscribe", about="advertising_about", button="unsubscribe"
        )
    )(request)


def withdraw_advertising(request: HttpRequest) -> HttpResponse:
    """Withdraw the consent of the client that the link names."""

    def end(request: HttpRequest) -> HttpResponse:
        advertising_links.withdraw(_recipient(request))
        return _advertising_page(request, "unsubscribed", about="advertising_ended")

    return render.failures_as_pages(end)(request)


def _advertising_page(
    request: HttpRequest, title: str, *, about: str, button: str | None = None
) -> HttpResponse:
    page = render.notice(
        request,
        200,
        icon="circle-check" if button is None else "inbox",
        title=title,
        about=about,
        button=button,
        workspace=advertising_links.workspace_name(_recipient(request)),
    )
    return page._replace(headers={**page.headers, **_HEADERS})


def _recipient(request: HttpRequest) -> Recipient:
    recipient = advertising_links.parse(request.path["token"])
    if recipient is None:
        raise NotFoundError("This link is not valid.", key="link")
    return recipient


def _subscription(request: HttpRequest) -> Subscription:
    subscription = unsubscribing.parse(request.path["token"])
    if subscription is None:
        raise NotFoundError("This link is not valid.", key="link")
    return subscription
