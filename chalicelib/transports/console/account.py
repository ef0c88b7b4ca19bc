"""The account page."""

from chalicelib.core.errors import AppError, ConflictError, NotFoundError
from chalicelib.transports.console import access, second_factor, sign_in
from chalicelib.transports.console.browser_names import browser_name
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect, set_cookie

ACCOUNT = f"{PREFIX}/account"
FORM = Form(
    Field("name", "your_name", empty="", wrong="wrong_person_name"),
    Field("language", "account_language", empty=""),
    changes="update_account",
)


def home(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the first workspace, or to the account page without a workspace."""
    return redirect(request.memberships[0].path if request.memberships else ACCOUNT)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the account: its name and language, its workspaces, its password and its sessions.

    With ``leave`` in the query, ask whether to leave that workspace. With ``do``, show the second
    factor. The link that proves the address leads here, too.
    """
    if request.query_value("do") == second_factor.PART:
        return second_factor.show(request)
    if slug := request.query_value("leave"):
        request.select_workspace(slug)
        return request.page("workspace_leave")
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change name or language, leave a workspace, or request an e-mail that proves the address."""
    if request.form_value("do") == second_factor.PART:
        return second_factor.save(request)
    if slug := request.form_value("leave"):
        request.select_workspace(slug)
        request.call("leave_workspace")
        return redirect(f"{ACCOUNT}?done=workspace_left")
    if request.form_value("request_proof"):
        request.call("request_proof")
        return redirect(f"{ACCOUNT}?done=proof_requested")
    # The language is also chosen at the foot of each page, which is then shown again.
    if back := request.form_value("back"):
        request.call("update_account", language=request.form_value("language"))
        return redirect(access.safe_redirect_path(back))

    how = Save(_find, _page, "account_saved", "")
    return FORM.save(request, how)


def prove(request: ConsoleRequest) -> HttpResponse:
    """Prove the account's address by the link in an e-mail to the address."""
    try:
        request.call("prove_email", token=request.http.path["proof"])
    except NotFoundError:
        problem = Problem(request.translate("proof_wrong"))
        return _page(request, _find(request), State(404, problem))
    return redirect(f"{ACCOUNT}?done=email_proved")


def new_test_workspace(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new test workspace."""
    return request.page("test_workspace_new", name_typed=request.form_value("name"))


def create_test_workspace(request: ConsoleRequest) -> HttpResponse:
    """Create a test workspace of the account, and open it."""
    typed = request.form_value("name")
    try:
        place = _place_of_tests(request)
        created = request.call_once("create_test_workspace", name=typed, **place)
    except AppError as error:
        problem = request.problem(error)
        if error.code == ConflictError.code:
            problem = Problem(request.translate("tests_full"))
        return request.page("test_workspace_new", error.status, problem=problem, name_typed=typed)
    return redirect(f"{PREFIX}/w/{created['slug']}?done=test_workspace_created")


def _place_of_tests(request: ConsoleRequest) -> dict[str, str]:
    """Return the country, zone and currency of the account's first workspace, if it has one."""
    if not request.memberships:
        return {}
    workspace = request.memberships[0].workspace
    names = ("country", "timezone", "currency")
    return {name: getattr(workspace, name) for name in names}


def change_password(request: ConsoleRequest) -> HttpResponse:
    """Change the password and end every other session. A box disconnects the apps, too."""
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
    sign_in.end_session(request, request.form_value("id"))
    return redirect(f"{ACCOUNT}?done=session_ended")


def sign_out_everywhere(request: ConsoleRequest) -> HttpResponse:
    """End all sessions."""
    request.call("sign_out_everywhere")
    return redirect(
        f"{access.SIGN_IN}?done=signed_out", [set_cookie(access.COOKIE, value="", max_age=0)]
    )


def _find(request: ConsoleRequest) -> Record:
    # The account's language is the page's language unless the user has chosen one.
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
