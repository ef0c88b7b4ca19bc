"""Signing in, signing out, and the account page."""

from contextlib import suppress
from dataclasses import replace

from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.domains.identity.operations.sessions import MAX_DEVICE
from chalicelib.transports.console import access, kept_forms, second_factor
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect, set_cookie
from chalicelib.transports.web import texts

ACCOUNT = f"{PREFIX}/account"
FORM = Form(
    Field("name", "your_name", empty="", wrong="wrong_person_name"),
    Field("language", "account_language", empty=""),
)


def home(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the first workspace, or to the account page without a workspace."""
    return redirect(request.memberships[0].path if request.memberships else ACCOUNT)


def sign_in_page(request: ConsoleRequest) -> HttpResponse:
    """Show the sign-in form, or redirect accounts that are signed in already."""
    next_path = request.query_value(access.NEXT)
    if request.account is not None:
        return redirect(next_path if access.is_consent_path(next_path) else PREFIX)
    return access.render_sign_in(request, 200, next_path)


def sign_in(request: ConsoleRequest) -> HttpResponse:
    """Start a new session and redirect to the requested page.

    A session that the browser already has ends. If the form carries another one, which arrived
    after its session had ended, a page offers to send that.
    """
    next_path, kept_form = request.form_value(access.NEXT), kept_forms.from_sign_in(request)
    try:
        session = ConsoleRequest(request.http, request.csrf).call(
            "sign_in",
            email=request.form_value("email"),
            password=request.form_value("password"),
            browser=request.http.headers.get("user-agent", ""),
            language=chosen_language(request),
            pageLanguage=request.language,
            device=request.http.cookies.get(access.DEVICE_COOKIE, "")[:MAX_DEVICE],
        )
    except ValidationError as error:
        # No account can have this input, so the response is the same as for a wrong password.
        problem = Problem(request.translate("error_unauthorized"))
        return access.render_sign_in(request, error.status, next_path, problem, kept_form)
    except AppError as error:
        return access.render_sign_in(
            request, error.status, next_path, request.problem(error), kept_form
        )
    if request.account is not None:
        _end_session(request, request.session_id)
    cookies = access.start_cookies(request, session)
    if kept_form is None:
        return redirect(access.safe_redirect_path(next_path), cookies)
    headers = {**request.http.headers, "cookie": f"{access.COOKIE}={session['token']}"}
    signed_in = access.signed_in_request(replace(request.http, headers=headers))
    if signed_in is None:  # The session has been ended at this moment.
        return redirect(access.SIGN_IN)
    return access.render_kept_form(signed_in, kept_form)._replace(cookies=cookies)


def sign_out(request: ConsoleRequest) -> HttpResponse:
    """End this session.

    Pages that need another account are then shown again.
    """
    _end_session(request, request.session_id)
    next_path = request.form_value(access.NEXT)
    if access.safe_redirect_path(next_path) != next_path:
        next_path = f"{access.SIGN_IN}?done=signed_out"
    return redirect(next_path, [set_cookie(access.COOKIE, "", 0)])


def person_problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure, in which ``name`` is a user's name."""
    problem = request.problem(error)
    if "name" not in problem.fields:
        return problem
    text = request.translate("wrong_person_name")
    return problem._replace(fields={**problem.fields, "name": text})


def chosen_language(request: ConsoleRequest) -> texts.Language | None:
    """Return the language that a visitor has chosen on a page, if any."""
    return texts.supported(request.http.language)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the account: its name and language, its workspaces, its password and its sessions.

    With ``leave`` in the query, ask whether to leave that workspace. With ``do``, show the second
    factor. The link that proves the
    address leads here, too.
    """
    if request.query_value("do") == second_factor.PART:
        return second_factor.show(request)
    if slug := request.query_value("leave"):
        request.select_workspace(slug)
        return request.page("workspace_leave")
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the name and the language, only the language, leave a workspace, or request an e-mail.

    The language is also chosen at the foot of each page, which is then shown again.
    """
    if request.form_value("do") == second_factor.PART:
        return second_factor.save(request)
    if slug := request.form_value("leave"):
        request.select_workspace(slug)
        request.call("leave_workspace")
        return redirect(f"{ACCOUNT}?done=workspace_left")
    if request.form_value("request_proof"):
        request.call("request_proof")
        return redirect(f"{ACCOUNT}?done=proof_requested")
    if back := request.form_value("back"):
        request.call("update_account", language=request.form_value("language"))
        return redirect(access.safe_redirect_path(back))

    how = Save(_find, "update_account", _page, "account_saved", "")
    return FORM.save(request, how)


def prove(request: ConsoleRequest) -> HttpResponse:
    """Prove the account's address by the link in an e-mail to the address."""
    try:
        request.call("prove_email", token=request.http.path["proof"])
    except NotFoundError:
        problem = Problem(request.translate("proof_wrong"))
        return _page(request, _find(request), State(404, problem))
    return redirect(f"{ACCOUNT}?done=email_proved")


def change_password(request: ConsoleRequest) -> HttpResponse:
    """Change the password and end every other session.

    A box disconnects the apps, too.
    """
    try:
        session = request.call(
            "change_password",
            current=request.form_value("current"),
            password=request.form_value("password"),
            endConnections=bool(request.form_value("end_connections")),
        )
    except AppError as error:
        return _page(request, _find(request), State(error.status, request.problem(error)))
    return redirect(f"{ACCOUNT}?done=password_changed", access.start_cookies(request, session))


def end_session(request: ConsoleRequest) -> HttpResponse:
    """End one session."""
    _end_session(request, request.form_value("id"))
    return redirect(f"{ACCOUNT}?done=session_ended")


def sign_out_everywhere(request: ConsoleRequest) -> HttpResponse:
    """End all sessions."""
    request.call("sign_out_everywhere")
    return redirect(f"{access.SIGN_IN}?done=signed_out", [set_cookie(access.COOKIE, "", 0)])


def _end_session(request: ConsoleRequest, session_id: str) -> None:
    """End a session.

    Another tab or a second click may have ended it already.
    """
    with suppress(NotFoundError):
        request.call("end_session", id=session_id)


def browser_name(user_agent: str) -> str:
    """Return the names of browser and system in a ``User-Agent``, or "" if unknown."""
    browser = next((name for token, name in _BROWSERS.items() if token in user_agent), "")
    system = next((name for token, name in _SYSTEMS.items() if token in user_agent), "")
    return ", ".join(filter(None, (browser, system)))


# The order matters, because each browser also claims to be the later ones.
_BROWSERS = {
    "YaBrowser/": "Yandex Browser",
    "SamsungBrowser/": "Samsung Internet",
    "Edg/": "Edge",
    "EdgA/": "Edge",
    "EdgiOS/": "Edge",
    "OPR/": "Opera",
    "OPT/": "Opera",
    "FxiOS/": "Firefox",
    "Firefox/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def _find(request: ConsoleRequest) -> Record:
    """Return the account.

    Its language is the page's language unless the user has chosen one.
    """
    account = request.call("get_account")["account"]
    return {**account, "language": account["language"] or request.language}


def _page(request: ConsoleRequest, account: Record, state: State = STORED) -> HttpResponse:
    sessions = [
        {**session, "browser": browser_name(session["browser"])}
        for session in request.call("list_sessions")["sessions"]
    ]
    return request.page(
        "account",
        sessions=sessions,
        proof_path=request.path if "proof" in request.http.path else None,
        **FORM.page_values(request, account, state),
    )
