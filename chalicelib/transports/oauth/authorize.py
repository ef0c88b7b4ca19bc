"""The page on which a user lets an AI client use a workspace (RFC 6749, 4.1.1; RFC 9700).

The page is part of the console, with its sessions and protected forms. Consent is never given by a
click that was meant for another page: a script makes the button active after a pause and a gesture
(``console.js``), or else a second page repeats the question. Denying is the default.

An unknown client, or an address that it has not registered, is an error page, never a redirect.
Anybody can register a client, so the user goes to its address only after a decision or a click (RFC
9700, 4.11.2).
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from chalicelib.core.areas import SCOPED
from chalicelib.core.errors import AppError, ConflictError, UnauthorizedError
from chalicelib.core.plans import PLANS_WITH_API
from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.flows import clients
from chalicelib.domains.oauth.rules import redirect_uris
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import ConsoleRequest, Membership, Problem
from chalicelib.transports.console.routes import CONSENT, PREFIX
from chalicelib.transports.console.settings.keys import PRESETS, preset, rights
from chalicelib.transports.http import HttpRequest, HttpResponse, redirect
from chalicelib.transports.oauth.answers import describe
from chalicelib.transports.oauth.authorization_request import (
    AuthorizationRequest,
    ClientRequest,
    parse_request,
    read_client,
)
from chalicelib.transports.web import render

ALLOW, DENY = "allow", "deny"
DECISION, SCOPES, WORKSPACE = "decision", "scopes", "workspace"
REVIEW = "review"  # Field of a form whose script has not run. It leads to a second page.
_DOCUMENT = "https://"  # The beginning of client ids that are the URL of a metadata document.


class Choice(NamedTuple):
    """A workspace on the page. ``obstacle`` is the catalogue key of the reason that excludes it."""

    membership: Membership
    obstacle: str

    @property
    def slug(self) -> str:
        return str(self.membership.workspace.slug)


def show(request: HttpRequest) -> HttpResponse:
    """Show the page for consent, or first the sign-in form."""
    return access.protect(request, _show)


def decide(request: HttpRequest) -> HttpResponse:
    """Redirect to the client with a code, or with the reason why it gets none."""
    return access.protect(request, _decide)


def _show(http: HttpRequest) -> HttpResponse:
    request = access.signed_in_request(http)
    if request is None:
        return _sign_in_page(http)
    return _answer(request, _render_consent)


def _decide(http: HttpRequest) -> HttpResponse:
    request = access.signed_in_request(http)
    if request is None:
        return _sign_in_page(http)
    # Without the token, another site could send the form and so give itself access (CSRF).
    access.check_form(http, request.form_value(access.CSRF_FIELD))
    if request.form_value(DECISION) == DENY:
        return _answer(request, _deny)
    return _answer(request, _render_consent if request.form_value("preset") else _grant)


def _sign_in_page(http: HttpRequest) -> HttpResponse:
    # A client with a metadata document is looked up only after signing in, because its document is
    # requested from its server. The form is shown here, since the address of the sign-in page could
    # not contain the whole request.
    def view(request: ConsoleRequest) -> HttpResponse:
        if not request.query_value("client_id").startswith(_DOCUMENT):
            try:
                read_client(http, clients.find)
            except OAuthError as error:
                return _error_page(request, error)
        path = f"{CONSENT}?{urlencode(http.query, doseq=True)}"
        if not access.is_consent_path(path):
            too_long = "expected a request of at most 8,000 characters, received a longer request."
            return _error_page(request, OAuthError("invalid_request", too_long))
        return access.render_sign_in(request, 200, path)

    return access.respond_to_guest(http, view)


def _answer(
    request: ConsoleRequest,
    view: Callable[[ConsoleRequest, AuthorizationRequest], HttpResponse],
) -> HttpResponse:
    # Mistakes of a known client are shown with a link to its URI.
    try:
        asking = read_client(request.http, clients.find)
    except OAuthError as error:
        return _error_page(request, error)
    try:
        admin = request.signed_in_account.role == "admin"
        return view(request, parse_request(asking, request.http.query, admin=admin))
    except OAuthError as error:
        return _error_page(request, error, asking)


def _deny(_: ConsoleRequest, asking: AuthorizationRequest) -> HttpResponse:
    error = OAuthError("access_denied", "The user has denied access.")
    return redirect(_error_url(asking.client, error)).with_log_fields(error=error.error)


def _grant(request: ConsoleRequest, asking: AuthorizationRequest) -> HttpResponse:
    # The form comes from the browser, so only scopes that the client requested count.
    ticked = set(request.form.get(SCOPES, ())) & asking.scopes
    slug = request.form_value(WORKSPACE)
    slugs = {choice.slug for choice in _choices(request) if not choice.obstacle}
    missing = {
        name: request.translate(f"wrong_consent_{name}")
        for name, is_given in ((WORKSPACE, slug in slugs), (SCOPES, ticked))
        if not is_given
    }
    if missing:
        problem = Problem(request.translate("wrong_fields"), missing)
        return _render_consent(request, asking, 400, problem)
    if request.form_value(REVIEW):
        return _render_consent(request, asking, is_review=True)
    request.select_workspace(slug)
    client = asking.client.client
    try:
        response = request.call(
            "grant_access",
            clientId=client.id,
            clientName=client.name,
            clientHost=client.host,
            redirectUri=asking.client.redirect_uri,
            codeChallenge=asking.code_challenge,
            scopes=sorted(ticked),
        )
    except UnauthorizedError:  # The session has ended since the form was received.
        return _sign_in_page(request.http)
    except ConflictError as error:
        request.membership = None
        problem = Problem(request.translate("apps_full"))
        return _render_consent(request, asking, error.status, problem)
    except AppError as error:
        request.membership = None
        return _render_consent(request, asking, error.status, request.problem(error))
    return redirect(_client_url(asking.client, code=response["code"]))


def _render_consent(
    request: ConsoleRequest,
    asking: AuthorizationRequest,
    status: int = 200,
    problem: Problem | None = None,
    *,
    is_review: bool = False,
) -> HttpResponse:
    choices = _choices(request)
    open_to_all = [choice.slug for choice in choices if not choice.obstacle]
    admin = request.signed_in_account.role == "admin"
    presets = {name: preset(name, admin=admin) & asking.scopes for name in PRESETS}
    if request.http.method == "POST":
        slug = request.form_value(WORKSPACE)
        pressed = presets.get(request.form_value("preset"))
        ticked = set(request.form.get(SCOPES, ())) if pressed is None else pressed
    else:
        slug = open_to_all[0] if len(open_to_all) == 1 else ""
        former = connections.scopes_of_client(
            request.signed_in_account.id, client_id=asking.client.client.id
        )
        ticked = presets["read"] | former & asking.scopes
    uri = redirect_uris.parse(asking.client.redirect_uri)
    return request.page(
        "consent",
        status,
        problem=problem,
        client=asking.client.client,
        redirect_to=uri,
        choices=choices,
        chosen=slug,
        review=next(choice for choice in choices if choice.slug == slug) if is_review else None,
        rights=rights(sorted(ticked)),
        may_allow=bool(open_to_all),
        areas=[
            (area, [f"{area.name}:{right}" for right in ("read", "write")])
            for area in SCOPED.values()
            if any(scope.partition(":")[0] == area.name for scope in asking.scopes)
        ],
        offered=asking.scopes,
        ticked=ticked,
        presets={name: sorted(scopes) for name, scopes in presets.items() if scopes},
        this_path=f"{CONSENT}?{urlencode(request.http.query, doseq=True)}",
    )


def _choices(request: ConsoleRequest) -> list[Choice]:
    choices = [Choice(membership, _obstacle(membership)) for membership in request.memberships]
    return sorted(choices, key=lambda choice: bool(choice.obstacle))


def _obstacle(membership: Membership) -> str:
    if not membership.may("grant_access"):
        return "consent_not_manager"
    return "" if membership.workspace.plan in PLANS_WITH_API else "consent_no_plan"


def _error_url(asking: ClientRequest, error: OAuthError) -> str:
    # RFC 6749, 4.1.2.1
    return _client_url(asking, error=error.error, error_description=describe(error.message))


def _client_url(asking: ClientRequest, **parameters: str) -> str:
    # ``iss`` names the server that responds (RFC 9207, 2).
    if asking.state:
        # The client compares ``state`` to detect a response to a request that it did not make.
        parameters["state"] = asking.state
    parameters["iss"] = asking.issuer
    uri = asking.redirect_uri
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def _error_page(
    request: ConsoleRequest, error: OAuthError, asking: ClientRequest | None = None
) -> HttpResponse:
    # For a request whose address is checked, the page links to the client.
    kinds = {"invalid_client": "unknown_app", "temporarily_unavailable": "app_unreachable"}
    facts, link = [(request.translate("reason"), error.message)], (PREFIX, "to_console")
    if asking is not None:
        address = redirect_uris.parse(asking.redirect_uri).display_name
        facts.append((request.translate("link_leads_to"), address))
        link = (_error_url(asking, error), "back_to_app")
    page = render.notice(
        request.http,
        503 if error.error == "temporarily_unavailable" else 400,
        icon="triangle-alert",
        title="consent_failed",
        about=kinds.get(error.error, "wrong_app_request"),
        facts=facts,
        link=link,
    )
    return page.with_log_fields(error=error.error)
