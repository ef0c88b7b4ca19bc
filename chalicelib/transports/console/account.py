"""Signing in and out, and a person's own account."""

from contextlib import suppress

from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.transports.console import door
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect, set_cookie

ACCOUNT = f"{PREFIX}/account"
NEXT = "next"


def home(visit: ConsoleRequest) -> HttpResponse:
    """Lead to the first workspace, or to the account where there is none."""
    return redirect(visit.places[0].path if visit.places else ACCOUNT)


def ask(visit: ConsoleRequest) -> HttpResponse:
    """Ask who it is; who is signed in already is led in."""
    if visit.account is not None:
        return redirect(PREFIX)
    return _sign_in_page(visit, 200, visit.asked(NEXT))


def sign_in(visit: ConsoleRequest) -> HttpResponse:
    """Begin a session, always a new one, and lead to the page that was asked for.

    Who is signed in already is so as a visitor, too: the session until now ends.
    """
    try:
        made = ConsoleRequest(visit.request, visit.csrf).call(
            "sign_in",
            email=visit.text("email"),
            password=visit.text("password"),
            browser=visit.request.headers.get("user-agent", ""),
        )
    except ValidationError as error:
        # What no account can have: the answer is that of any other wrong pair.
        problem = Problem(visit.say("error_unauthorized"))
        return _sign_in_page(visit, error.status, visit.text(NEXT), problem)
    except AppError as error:
        return _sign_in_page(visit, error.status, visit.text(NEXT), visit.problem(error))
    if visit.account is not None:
        _end(visit, visit.session_id)
    return redirect(door.inside(visit.text(NEXT)), [door.cookie(made["token"])])


def _sign_in_page(
    visit: ConsoleRequest, status: int, leads_to: str, problem: Problem | None = None
) -> HttpResponse:
    return visit.page(
        "sign_in",
        status,
        problem=problem,
        email=visit.text("email"),
        leads_to=door.inside(leads_to),
    )


def sign_out(visit: ConsoleRequest) -> HttpResponse:
    """End this session."""
    _end(visit, visit.session_id)
    return redirect(f"{door.SIGN_IN}?done=signed_out", [set_cookie(door.COOKIE, "", 0)])


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show the account: its workspaces, its password, where it is signed in."""
    return _account_page(visit, 200)


def change_password(visit: ConsoleRequest) -> HttpResponse:
    """Change the password; every other session ends."""
    try:
        made = visit.call(
            "change_password", current=visit.text("current"), password=visit.text("password")
        )
    except AppError as error:
        return _account_page(visit, error.status, visit.problem(error))
    return redirect(f"{ACCOUNT}?done=password_changed", [door.cookie(made["token"])])


def end_session(visit: ConsoleRequest) -> HttpResponse:
    """End one session."""
    _end(visit, visit.text("id"))
    return redirect(f"{ACCOUNT}?done=session_ended")


def sign_out_everywhere(visit: ConsoleRequest) -> HttpResponse:
    """End all sessions."""
    visit.call("sign_out_everywhere")
    return redirect(f"{door.SIGN_IN}?done=signed_out", [set_cookie(door.COOKIE, "", 0)])


def _end(visit: ConsoleRequest, session_id: str) -> None:
    """End a session, which may have been ended meanwhile, in another tab or by a second click."""
    with suppress(NotFoundError):
        visit.call("end_session", id=session_id)


def browser_name(told: str) -> str:
    """Return what people call the browser and the system of a ``User-Agent``; "" if unknown."""
    browser = next((name for mark, name in _BROWSERS.items() if mark in told), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in told), "")
    return ", ".join(filter(None, (browser, system)))


# In this order: each browser also says that it is the ones below it.
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
