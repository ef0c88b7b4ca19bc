"""Who gets into the console: people with a session, by forms of the console's own (security.md).

A session is a random token in a cookie that scripts cannot read. Every form carries a token made of
it, so that no other site's form is taken; and what a browser says of where a form stands is heard.
"""

import hashlib
import hmac
import re
from functools import cache
from secrets import token_urlsafe
from urllib.parse import quote, unquote_plus, urlencode, urlsplit

from chalicelib.core.errors import AppError, ForbiddenError, UnauthorizedError
from chalicelib.core.principals import MANAGING
from chalicelib.core.settings import settings
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import accounts, console_sessions, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.console_sessions import ConsoleSessionRow
from chalicelib.lib import tokens
from chalicelib.transports.console.console_request import SESSION_OVER, ConsoleRequest
from chalicelib.transports.console.routes import PREFIX, ROUTES, Page, View
from chalicelib.transports.http import (
    CSRF_HEADER,
    HttpRequest,
    HttpResponse,
    check_size,
    failure,
    prefers_html,
    redirect,
    set_cookie,
)
from chalicelib.transports.web import render

COOKIE = "__Host-session"
"""The token of a session; of one that has yet to begin, on the page to sign in, too."""
CSRF_FIELD = "csrf"
MAX_FORM_BYTES = 64_000
SIGN_IN = f"{PREFIX}/sign-in"
_VARIABLE, _SEGMENT = re.compile(r"{\w+}"), "[A-Za-z0-9_-]+"
"""Ids and slugs need no other characters; dots would lead out of /console again."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
"""What ``token_urlsafe`` makes of 32 bytes."""
_KEY = re.compile(f"({tokens.PREFIX}|{tokens.BOT_PREFIX})[0-9A-Za-z]{{20}}")
"""What is long enough to be a secret: people name keys after the prefix."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}
"""Of every answer below /console; the policy of pages forbids frames and foreign scripts, too."""
_IF_NO_PAGE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
"""Of those that are no pages, which have no policy of their own."""


class StaleFormError(ForbiddenError):
    """A form that is not the console's, or was made for a session that is over."""

    code = "stale_form"


def serve(page: Page, view: View, request: HttpRequest) -> HttpResponse:
    """Answer on a path of the console with the view of the request's method."""
    return _guarded(request, lambda asked: _answer(page, view, asked))


def refuse(error: AppError, request: HttpRequest) -> HttpResponse:
    """Answer below /console where nothing is, or nothing that takes the request's method."""

    def fail(_: HttpRequest) -> HttpResponse:
        raise error

    return _guarded(request, fail)


def _guarded(request: HttpRequest, answer: render.Handler) -> HttpResponse:
    if _carries_a_key(request):
        response = _refuse_key(request)
    else:
        response = render.with_pages(answer, link=(PREFIX, "to_console"))(request)
    return response._replace(headers={**_IF_NO_PAGE, **response.headers, **_HEADERS})


def _refuse_key(request: HttpRequest) -> HttpResponse:
    """Refuse a program; or a person who has pasted a key, in words for people."""
    if "authorization" not in request.headers and prefers_html(request):
        title, about, link = "refused", "key_in_console", (PREFIX, "to_console")
        return render.notice(
            request, 403, icon="triangle-alert", title=title, about=about, link=link
        )
    msg = "The console is for people who sign in. No API key opens it, whatever its scopes."
    return failure(ForbiddenError(msg), request.request_id)


def _carries_a_key(request: HttpRequest) -> bool:
    """Whether a request carries a key, wherever (contract, Keys and scopes).

    In a form, too: a key that somebody gives as a name would be kept, and shown to others.
    """
    if "authorization" in request.headers:
        return True
    query = [text for name, values in request.query.items() for text in (name, *values)]
    body = unquote_plus(request.body.decode(errors="replace"))
    sent = (*request.headers.values(), *request.path.values(), *query, body)
    return any(map(_KEY.search, sent))


def csrf_token(session_token: str) -> str:
    """Return what a form of a session must carry."""
    return hmac.new(session_token.encode(), b"console form", hashlib.sha256).hexdigest()


def visit_of(request: HttpRequest) -> ConsoleRequest | None:
    """Return the visit of who is signed in, None without a live session."""
    found = _signed_in(request)
    if found is None:
        return None
    session, account = found
    console_sessions.touch(session)
    return ConsoleRequest(request, csrf_token(_token(request)), account, session.session_id)


def _signed_in(request: HttpRequest) -> tuple[ConsoleSessionRow, AccountRow] | None:
    """Return the live session of a request, and its account."""
    token = _token(request)
    session = console_sessions.find(token) if token else None
    if session is None:
        return None
    account = accounts.get(session.account_id)
    return (session, account) if session.lives(account) else None


def may_try(request: HttpRequest, agent_id: str) -> bool:
    """Whether a request to a bot's chat comes from a page of the console of the bot's workspace.

    The chat's function reads a session and a membership, and may write neither: no use is noted.

    Raises:
        UnauthorizedError: it comes from a page of a session that is over.
        StaleFormError: it does not come from a page of this session.
        ForbiddenError: the person is a plain member, who may not spend the owner's money.
    """
    found = _signed_in(request)
    if found is None:
        if CSRF_HEADER in request.headers:
            raise UnauthorizedError("The session of this page is over. Sign in again.")
        return False
    check_form(request, request.headers.get(CSRF_HEADER, ""))
    _, account = found
    membership = workspaces.membership(
        account.id, AGENTS.found_for_visitor(AGENTS.workspace_of(agent_id))
    )
    if membership is not None and membership.role not in MANAGING:
        msg = "Members of a workspace may look, not spend. Ask its owner or a manager."
        raise ForbiddenError(msg)
    return membership is not None


def check_form(request: HttpRequest, given: str) -> None:
    """Refuse a form that is not one of the console's own, made for this session.

    Raises:
        StaleFormError: it stands on another site, or lacks the token.
    """
    token = _token(request)
    same = token and hmac.compare_digest(csrf_token(token).encode(), given.encode())
    if not same or not _same_site(request):
        raise StaleFormError("This form is out of date. Open its page again, and send it there.")


def _token(request: HttpRequest) -> str:
    """Return the token in the cookie, "" if there is none that could be of ours."""
    token = request.cookies.get(COOKIE, "")
    return token if _TOKEN.fullmatch(token) else ""


def cookie(token: str) -> str:
    """Return what sets the cookie of a session."""
    return set_cookie(COOKIE, token, int(console_sessions.LONGEST.total_seconds()))


def inside(path: str) -> str:
    """Return a path of the console with a page: nobody is sent elsewhere after signing in."""
    return path if any(page.fullmatch(path) for page in _pages()) else PREFIX


@cache
def _pages() -> list[re.Pattern[str]]:
    """Return what paths of pages look like; the forms' own, which are only sent, are none."""
    shown = (path for path, page in ROUTES.items() if page.get)
    return [re.compile(_VARIABLE.sub(_SEGMENT, path), re.ASCII) for path in shown]


def _answer(page: Page, view: View, request: HttpRequest) -> HttpResponse:
    check_size(request, MAX_FORM_BYTES)
    visit = visit_of(request)
    begun = ""
    if visit is None and not page.guest:
        return _to_sign_in(page, request)
    if visit is None:
        begun = _token(request) or token_urlsafe(32)
        visit = ConsoleRequest(request, csrf_token(begun))
    if request.method == "POST":
        check_form(request, visit.text(CSRF_FIELD))
    if "workspace" in request.path:
        visit.enter(request.path["workspace"])
    in_workspace = "workspace" in request.path
    changes = page.for_managers or request.method == "POST"
    if in_workspace and changes and not visit.here.manages:
        raise ForbiddenError("Members may look, not change. Ask the owner or a manager.")
    response = view(visit)
    if begun and not response.cookies:
        response = response._replace(cookies=[cookie(begun)])
    return response


def _to_sign_in(page: Page, request: HttpRequest) -> HttpResponse:
    """Send somebody to sign in, and back here afterwards where that is a page to be read.

    Who sent a form is told why it was not taken.
    """
    done = "signed_out" if page.signs_out else SESSION_OVER
    about = {"done": done} if request.method == "POST" else {}
    if page.get and request.route != PREFIX:
        path = request.route
        for name, value in request.path.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        about |= {"next": path} if inside(path) == path else {}
    return redirect(f"{SIGN_IN}?{urlencode(about)}" if about else SIGN_IN)


def _same_site(request: HttpRequest) -> bool:
    """Whether a browser says that the form stands on this host, or says nothing of it."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return True
    hosts = {urlsplit(settings().public_url).netloc, request.headers.get("host", "")}
    try:
        return urlsplit(origin).netloc in hosts - {""}
    except ValueError:  # no URL
        return False
