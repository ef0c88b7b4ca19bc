"""Access to the console by sessions, and by forms that only the console's pages can send.

A session is a random token in a cookie that scripts cannot read. Forms carry a token derived from
it, and the browser's ``Sec-Fetch-Site`` and ``Origin`` headers are checked, too.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from secrets import token_urlsafe
from typing import Any
from urllib.parse import unquote_plus, urlencode, urlsplit

from chalicelib.core.errors import (
    AdminRequiredError,
    AppError,
    ForbiddenError,
    NotConfiguredError,
    PayloadTooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.flows import devices, sign_in_proofs, sign_up_links
from chalicelib.domains.identity.store import accounts, console_sessions, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.console_sessions import ConsoleSessionRow
from chalicelib.gateways import mail
from chalicelib.lib import tokens
from chalicelib.transports.console import form_labels, kept_forms
from chalicelib.transports.console.console_request import SESSION_OVER, ConsoleRequest, Problem
from chalicelib.transports.console.kept_forms import KeptForm
from chalicelib.transports.console.page import MAX_FORM_BYTES, Page, View
from chalicelib.transports.console.routes import (
    CONSENT,
    PREFIX,
    RESET_PASSWORD,
    ROUTES,
    SIGN_UP_LINK,
)
from chalicelib.transports.form_data import MULTIPART
from chalicelib.transports.http import (
    CSRF_HEADER,
    HttpRequest,
    HttpResponse,
    check_size,
    failure,
    media_type,
    prefers_html,
    redirect,
    set_cookie,
)
from chalicelib.transports.web import render

# Cookie of the session token. The sign-in page sets one before the session begins.
COOKIE = "__Host-session"
# Cookie by which a browser is recognised in which an account signed in before.
DEVICE_COOKIE = "__Host-device"
# Cookie of a browser in which signing in needs no code of the second factor.
REMEMBERED_COOKIE = "__Host-remembered"
# The longest age of a cookie that browsers accept (RFC 6265bis, 5.5).
DEVICE_SECONDS = 400 * 86_400
CSRF_FIELD = "csrf"
NEXT = "next"  # Field with the path to which the browser is redirected after signing in.
LANGUAGE = "lang"  # Field and query parameter with the language that a visitor has chosen.
SIGN_IN = f"{PREFIX}/sign-in"
SIGN_OUT = f"{PREFIX}/sign-out"
TO_CONSOLE = (PREFIX, "to_console")  # The link of pages that report a failure.
# Matches the path and the query (RFC 3986, 3.4) of a request for consent, up to 8 KB.
_CONSENT_PATH = re.compile(
    re.escape(CONSENT) + r"\?[A-Za-z0-9!$%&'()*+,./:;=?@_~-]{1,8000}", re.ASCII
)
# Ids and slugs have no other characters. A dot in a path could lead out of /console.
_VARIABLE, _SEGMENT = re.compile(r"{\w+}"), "[A-Za-z0-9_-]+"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # The format of ``token_urlsafe(32)``.
# Matches API keys and OAuth tokens that are long enough to be a secret. Shorter matches may be
# names that begin like a key.
_API_KEY = re.compile(
    f"({tokens.PREFIX}|{tokens.TEST_PREFIX}|{tokens.BOT_PREFIX}"
    f"|(?:{'|'.join(tokens.OAUTH_PREFIXES)})[0-9A-Z]{{26}}_)"
    "[0-9A-Za-z]{20}"
)
_OAUTH_TOKEN = re.compile(f"bearer +({'|'.join(tokens.OAUTH_PREFIXES)})", re.IGNORECASE)
# Headers of every response under /console. Pages also have their own Content-Security-Policy.
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}
# Referrer policy of pages whose path is a secret. No link or file gets the path. With
# ``no-referrer``, browsers would send ``Origin: null`` with the page's own form (Fetch, Origin
# header), which ``_same_site`` refuses.
_WITHOUT_PATH = "strict-origin"
# Headers of responses that are not pages and have no policy of their own.
_NON_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class StaleFormError(ForbiddenError):
    """The form is not the console's own, or its session has ended."""

    code = "stale_form"


def serve(page: Page, view: View, request: HttpRequest) -> HttpResponse:
    """Handle a request to a console path with the view of its method."""
    return protect(request, lambda incoming: _respond(page, view, incoming), page.max_bytes)


def refuse(error: AppError, request: HttpRequest) -> HttpResponse:
    """Return the failure page for an unknown console path, or for a method it does not accept."""
    return protect(request, _failing(error))


def _failing(error: AppError) -> render.Handler:
    def fail(_: HttpRequest) -> HttpResponse:
        raise error

    return fail


def protect(
    request: HttpRequest, handler: render.Handler, max_bytes: int = MAX_FORM_BYTES
) -> HttpResponse:
    """Run a handler of pages, without API keys and with the headers of the console.

    A body of more than ``max_bytes`` is refused before any part of it is parsed.
    """
    try:
        check_size(request, max_bytes)
    except PayloadTooLargeError as error:
        request, handler = replace(request, body=b""), _failing(error)
    if _has_api_key(request):
        response = _refuse_api_key(request)
    else:
        response = render.failures_as_pages(handler, link=TO_CONSOLE)(request)
    headers = {**_NON_PAGE_HEADERS, **response.headers, **_HEADERS}
    if request.route in {RESET_PASSWORD, SIGN_UP_LINK}:
        headers["Referrer-Policy"] = _WITHOUT_PATH
    # Clients of OAuth open the page for consent in a window whose end they wait for.
    # ``same-origin`` would cut that window off (HTML, 7.1.3).
    if _leads_to_consent(request):
        headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
        headers = render.allow_form_redirects(headers)
    return response._replace(headers=headers)


def _leads_to_consent(request: HttpRequest) -> bool:
    if request.route in {SIGN_IN, SIGN_OUT}:
        return any(map(is_consent_path, request.query.get(NEXT, ()))) or is_consent_path(
            ConsoleRequest(request, "").form_value(NEXT)
        )
    return request.route == CONSENT


def is_consent_path(path: str) -> bool:
    """Whether a string is the path and query of a request for consent."""
    return _CONSENT_PATH.fullmatch(path) is not None


def _refuse_api_key(request: HttpRequest) -> HttpResponse:
    # Programs get the envelope, browsers get a page.
    if "authorization" not in request.headers and prefers_html(request):
        title, about = "refused", "key_in_console"
        return render.notice(
            request, 403, icon="triangle-alert", title=title, about=about, link=TO_CONSOLE
        )
    if _OAUTH_TOKEN.match(request.headers.get("authorization", "")):
        message = "OAuth tokens are valid only for POST /api/mcp. Sign in to the console instead."
        return failure(UnauthorizedError(message, key="oauth_token"), request.request_id)
    msg = "API keys do not give access to the console. Sign in instead."
    return failure(ForbiddenError(msg, key="api_key"), request.request_id)


def _has_api_key(request: HttpRequest) -> bool:
    # Form fields count, too: a key that is typed as a name would be stored and shown to others.
    if "authorization" in request.headers:
        return True
    query = [text for name, values in request.query.items() for text in (name, *values)]
    if media_type(request) == MULTIPART:  # Its fields are not encoded, and it may have a file.
        body = request.body.decode("latin-1")
    else:
        body = unquote_plus(request.body.decode(errors="replace"))
    texts = (*request.headers.values(), *request.path.values(), *query, body)
    return any(map(_API_KEY.search, texts))


def csrf_token(session_token: str) -> str:
    """Return the token that the forms of a session must carry."""
    return hmac.new(session_token.encode(), b"console form", hashlib.sha256).hexdigest()


def signed_in_request(request: HttpRequest) -> ConsoleRequest | None:
    """Return the console request of a live session, or None without a session."""
    sign_in = _signed_in(request)
    if sign_in is None:
        return None
    session, account = sign_in
    console_sessions.touch(session)
    localized_request = replace(request, language=account.language or "")
    return ConsoleRequest(
        localized_request,
        csrf_token(_token(request)),
        account,
        session.session_id,
        session.is_confirmed,
    )


def _signed_in(request: HttpRequest) -> tuple[ConsoleSessionRow, AccountRow] | None:
    token = _token(request)
    session = console_sessions.find(token) if token else None
    if session is None:
        return None
    account = accounts.get(session.account_id)
    return (session, account) if session.lives(account) else None


def is_test_chat(request: HttpRequest, agent_id: str) -> bool:
    """Whether a chat request is a test from the console, by a manager of the bot's workspace.

    Raises:
        UnauthorizedError: the session of the page has ended.
        StaleFormError: the request does not come from a page of this session.
        ForbiddenError: the user is a plain member, who may not spend the owner's money.
    """
    # The chat's function may read sessions and memberships but not write them, so the session's
    # last use is not recorded.
    sign_in = _signed_in(request)
    if sign_in is None:
        if CSRF_HEADER in request.headers:
            raise UnauthorizedError(
                "The session of this page has ended. Sign in again.", key="session_ended"
            )
        return False
    check_form(request, request.headers.get(CSRF_HEADER, ""))
    _, account = sign_in
    membership = workspaces.membership(
        account.id, workspace_id=AGENTS.found_for_visitor(AGENTS.workspace_of(agent_id))
    )
    if membership is not None and not Role(membership.role).includes(Role.MANAGER):
        msg = (
            "Members cannot use functions that spend the owner's balance. Ask the owner or a "
            "manager."
        )
        raise ForbiddenError(msg, key="role_required", details={"role": Role.MANAGER})
    return membership is not None


def check_form(request: HttpRequest, csrf: str) -> None:
    """Raise StaleFormError unless a form is the console's own, made for this session."""
    token = _token(request)
    same = token and hmac.compare_digest(csrf_token(token).encode(), csrf.encode())
    if not same or not _same_site(request):
        raise StaleFormError("This form is out of date. Reload its page, and send the form again.")


def _token(request: HttpRequest) -> str:
    token = request.cookies.get(COOKIE, "")
    return token if _TOKEN.fullmatch(token) else ""


def session_cookie(token: str) -> str:
    """Return the ``Set-Cookie`` value of a session."""
    return set_cookie(COOKIE, value=token, max_age=int(console_sessions.LONGEST.total_seconds()))


def start_cookies(request: ConsoleRequest, started: dict[str, Any]) -> list[str]:
    """Return the ``Set-Cookie`` values of a session that an operation has started."""
    device = device_cookies(request, started["accountId"])
    return [session_cookie(started["token"]), *device]


def remembered_cookie(value: str) -> str:
    """Return the ``Set-Cookie`` value of a browser that needs no code."""
    return set_cookie(
        REMEMBERED_COOKIE, value=value, max_age=int(sign_in_proofs.REMEMBERED_FOR.total_seconds())
    )


def device_cookies(request: ConsoleRequest, account_id: str) -> list[str]:
    """Return the ``Set-Cookie`` values that make a browser a device of an account."""
    try:
        device = devices.add_account(
            request.http.cookies.get(DEVICE_COOKIE, ""), account_id=account_id
        )
    except (NotConfiguredError, UnavailableError):
        # Without the master key, signing in must still work.
        return []
    return [set_cookie(DEVICE_COOKIE, value=device, max_age=DEVICE_SECONDS)]


def safe_redirect_path(path: str) -> str:
    """Return the path of a page of the console or for consent, else the console's start."""
    is_page = any(page.fullmatch(path) for page in _page_patterns())
    return path if is_page or is_consent_path(path) else PREFIX


@cache
def _page_patterns() -> list[re.Pattern[str]]:
    # Paths that only accept forms are excluded.
    paths = (path for path, page in ROUTES.items() if page.get)
    return [re.compile(_VARIABLE.sub(_SEGMENT, path), re.ASCII) for path in paths]


def _respond(page: Page, view: View, http: HttpRequest) -> HttpResponse:
    request = signed_in_request(http)
    if request is None and not page.guest:
        return _keep_form(http) or _redirect_to_sign_in(page, http)
    if request is None:
        return respond_to_guest(http, lambda guest: _view_page(page, view, guest))

    def respond(_: HttpRequest) -> HttpResponse:
        try:
            return _view_page(page, view, request)
        except StaleFormError:
            # The user has signed in again in another tab, so the page's token is out of date.
            kept_form = kept_forms.from_request(http) if _is_own_page(http) else None
            if kept_form is None:
                raise
            return render_kept_form(request, kept_form, 403)

    # Here, and not only in ``protect``, so that failures are in the account's language.
    answer = render.failures_as_pages(respond, link=TO_CONSOLE)
    return answer(request.http)


def respond_to_guest(
    http: HttpRequest, view: Callable[[ConsoleRequest], HttpResponse]
) -> HttpResponse:
    """Run a view for a visitor without a session, and set the cookie that forms are bound to."""
    token = _token(http) or token_urlsafe(32)
    guest = ConsoleRequest(http, csrf_token(token))
    language = guest.form_value(LANGUAGE) or guest.query_value(LANGUAGE)
    response = view(replace(guest, http=replace(http, language=language)))
    return response if response.cookies else response._replace(cookies=[session_cookie(token)])


def _view_page(page: Page, view: View, request: ConsoleRequest) -> HttpResponse:
    http = request.http
    if http.method == "POST":
        check_form(http, request.form_value(CSRF_FIELD))
    if page.admin and request.signed_in_account.role != "admin":
        raise AdminRequiredError("This page is for ADMIN accounts.")
    if "workspace" in http.path:
        request.select_workspace(http.path["workspace"])
        operation = page.posts if http.method == "POST" else page.shows
        if page.instead and not request.current_membership.may(operation):
            return redirect(f"{request.current_membership.path}{page.instead}")
        request.require(operation)
        if request.current_membership.lacks_resource(operation):
            return request.page("no_staff_link", 403)
    return view(request)


def _keep_form(http: HttpRequest) -> HttpResponse | None:
    # None for other requests, and for forms that are not the console's own.
    kept_form = kept_forms.from_request(http) if http.method == "POST" else None
    if kept_form is None:
        return None
    request = ConsoleRequest(http, csrf_token(_token(http)))
    try:
        check_form(http, request.form_value(CSRF_FIELD))
    except StaleFormError:
        # A sign-in page in another tab has replaced the cookie.
        if not _is_own_page(http):
            return None
    return render_sign_in(request, 403, PREFIX, kept_form=kept_form)


def render_kept_form(
    request: ConsoleRequest, kept_form: KeptForm, status: int = 200
) -> HttpResponse:
    """Return a page with the values of a kept form and a button that sends them again."""
    # A form for a new record is on a page of its own, and is sent to the path of the list.
    pages = [_html_of(request, path) for path in (kept_form.path, f"{kept_form.path}/new")]
    labelled = max((form_labels.label_values(page, kept_form.fields) for page in pages), key=len)
    http = replace(request.http, route=PREFIX, path={})
    # The user decides, because the token of the form could not be checked.
    return ConsoleRequest(http, request.csrf).page(
        "kept_form", status, kept=kept_form, labelled=labelled
    )


def _html_of(request: ConsoleRequest, path: str) -> str:
    for route, page in ROUTES.items():
        pattern = _VARIABLE.sub(lambda name: f"(?P<{name[0][1:-1]}>{_SEGMENT})", route)
        match = re.fullmatch(pattern, path)
        if match is not None and page.get is not None:
            http = replace(
                request.http, method="GET", route=route, path=match.groupdict(), query={}, body=b""
            )
            opened = ConsoleRequest(http, request.csrf, request.account, request.session_id)
            with suppress(AppError):
                body = _view_page(page, page.get, opened).body
                return body.decode() if isinstance(body, bytes) else ""
    return ""


def render_sign_in(  # noqa: PLR0913  the parts of the page
    request: ConsoleRequest,
    status: int,
    next_path: str,
    problem: Problem | None = None,
    kept_form: KeptForm | None = None,
    *,
    proof: str = "",
) -> HttpResponse:
    """Return the sign-in form, which leads to a path or to a form that was kept.

    With the ``proof`` of a right password, it asks for a code of the second factor.
    """
    return request.page(
        "sign_in_code" if proof else "sign_in",
        status,
        problem=problem,
        proof=proof,
        email=request.form_value("email") if request.http.route == SIGN_IN else "",
        next_path=safe_redirect_path(next_path),
        connecting=is_consent_path(next_path),
        can_reset=mail.is_on(),
        can_sign_up=sign_up_links.is_open(),
        language_query=urlencode({"lang": request.http.language} if request.http.language else {}),
        kept=kept_form,
    )


def _redirect_to_sign_in(page: Page, request: HttpRequest) -> HttpResponse:
    # After a form was refused, the sign-in page shows the reason.
    notice = "signed_out" if page.signs_out else SESSION_OVER
    parameters = {"done": notice} if request.method == "POST" else {}
    if page.get and request.route != PREFIX:
        path = ConsoleRequest(request, "").path
        parameters |= {NEXT: path} if safe_redirect_path(path) == path else {}
    return redirect(f"{SIGN_IN}?{urlencode(parameters)}" if parameters else SIGN_IN)


def _is_own_page(request: HttpRequest) -> bool:
    headers = request.headers
    is_stated = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
    return is_stated and _same_site(request)


def _same_site(request: HttpRequest) -> bool:
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return True
    hosts = {urlsplit(settings().public_url).netloc, request.headers.get("host", "")}
    try:
        return urlsplit(origin).netloc in hosts - {""}
    except ValueError:  # not a URL
        return False
