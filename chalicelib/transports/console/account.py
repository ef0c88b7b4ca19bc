"""Signing in, signing out, and the account page."""

from contextlib import suppress

from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect, set_cookie

ACCOUNT = f"{PREFIX}/account"
NEXT = "next"


def home(visit: ConsoleRequest) -> HttpResponse:
    """Redirect to the first workspace, or to the account page if there is none."""
    return redirect(visit.places[0].path if visit.places else ACCOUNT)


def ask(visit: ConsoleRequest) -> HttpResponse:
    """Show the sign-in form; redirect accounts that are signed in already."""
    if visit.account is not None:
        return redirect(PREFIX)
    return _sign_in_page(visit, 200, visit.asked(NEXT))


def sign_in(visit: ConsoleRequest) -> HttpResponse:
    """Start a new session and redirect to the requested page.

    A session that the browser already has ends.
    """
    try:
        made = ConsoleRequest(visit.request, visit.csrf).call(
            "sign_in",
            email=visit.text("email"),
            password=visit.text("password"),
            browser=visit.request.headers.get("user-agent", ""),
        )
    except ValidationError as error:
        # No account can have this input, so the answer is that of a wrong password.
        problem = Problem(visit.say("error_unauthorized"))
        return _sign_in_page(visit, error.status, visit.text(NEXT), problem)
    except AppError as error:
        return _sign_in_page(visit, error.status, visit.text(NEXT), visit.problem(error))
    if visit.account is not None:
        _end(visit, visit.session_id)
    target = access.safe_redirect_path(visit.text(NEXT))
    return redirect(target, [access.session_cookie(made["token"])])


def _sign_in_page(
    visit: ConsoleRequest, status: int, leads_to: str, problem: Problem | None = None
) -> HttpResponse:
    return visit.page(
        "sign_in",
        status,
        problem=problem,
        email=visit.text("email"),
        leads_to=access.safe_redirect_path(leads_to),
    )


def sign_out(visit: ConsoleRequest) -> HttpResponse:
    """End this session."""
    _end(visit, visit.session_id)
    return redirect(f"{access.SIGN_IN}?done=signed_out", [set_cookie(access.COOKIE, "", 0)])


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show the account: its workspaces, its password and its sessions."""
    return _account_page(visit, 200)


def change_password(visit: ConsoleRequest) -> HttpResponse:
    """Change the password and end every other session."""
    try:
        made = visit.call(
            "change_password", current=visit.text("current"), password=visit.text("password")
        )
    except AppError as error:
        return _account_page(visit, error.status, visit.problem(error))
    return redirect(f"{ACCOUNT}?done=password_changed", [access.session_cookie(made["token"])])


def end_session(visit: ConsoleRequest) -> HttpResponse:
    """End one session."""
    _end(visit, visit.text("id"))
    return redirect(f"{ACCOUNT}?done=session_ended")


def sign_out_everywhere(visit: ConsoleRequest) -> HttpResponse:
    """End all sessions."""
    visit.call("sign_out_everywhere")
    return redirect(f"{access.SIGN_IN}?done=signed_out", [set_cookie(access.COOKIE, "", 0)])


def _end(visit: ConsoleRequest, session_id: str) -> None:
    """End a session. Another tab or a second click may have ended it already."""
    with suppress(NotFoundError):
        visit.call("end_session", id=session_id)


def browser_name(told: str) -> str:
    """Return the common names of browser and system in a ``User-Agent``; "" if unknown."""
    browser = next((name for mark, name in _BROWSERS.items() if mark in told), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in told), "")
    return ", ".join(filter(None, (browser, system)))


# The order matters: each browser also claims to be the ones below it.
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


def _account_page(
    visit: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    sessions = [
        {**each, "browser": browser_name(each["browser"])}
        for each in visit.call("list_sessions")["sessions"]
    ]
    return visit.page("account", status, problem=problem, sessions=sessions)
