"""The pages for a forgotten password, which do not reveal whether an address has an account.

One page requests a link, and the other is behind the link. Opening a page changes nothing.
"""

from urllib.parse import urlencode

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.gateways import mail
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.routes import FORGOT_PASSWORD
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import render


def index(request: ConsoleRequest) -> HttpResponse:
    """Show the form in which a user types an e-mail address."""
    return _request_page(request, 200)


def send(request: ConsoleRequest) -> HttpResponse:
    """Request a link. The response is the same for all addresses."""
    try:
        _drop_session(request).call(
            "request_password_reset",
            email=request.form_value("email"),
            language=request.language,
        )
    except AppError as error:
        return _request_page(request, error.status, request.problem(error))
    return redirect(_add_language(request, FORGOT_PASSWORD, notice="reset_requested"))


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the form in which a user types a new password."""
    return _reset_page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Set the new password. The user is signed in, and the browser is a known device."""
    try:
        response = _drop_session(request).call(
            "reset_password",
            token=request.http.path["reset"],
            password=request.form_value("password"),
            endConnections=bool(request.form_value("end_connections")),
        )
    except NotFoundError:
        return _gone(request)
    except AppError as error:
        return _reset_page(request, error.status, request.problem(error))
    device = access.device_cookies(request, response["accountId"])
    return redirect(_add_language(request, access.SIGN_IN, notice="password_reset"), device)


def _drop_session(request: ConsoleRequest) -> ConsoleRequest:
    # The session may belong to another account.
    return ConsoleRequest(request.http, request.csrf)


def _add_language(request: ConsoleRequest, path: str, *, notice: str) -> str:
    language = {"lang": request.http.language} if request.http.language else {}
    return f"{path}?{urlencode({'done': notice, **language})}"


def _request_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    return request.page(
        "forgot_password",
        status,
        problem=problem,
        is_mailed=mail.is_on(),
        email=request.form_value("email"),
        language_query=request.query_with(lang=request.http.language),
    )


def _reset_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    try:
        password_reset = _drop_session(request).call(
            "get_password_reset", token=request.http.path["reset"]
        )
    except NotFoundError:
        return _gone(request)
    return request.page(
        "reset_password", status, problem=problem, reset=password_reset, path=request.path
    )


def _gone(request: ConsoleRequest) -> HttpResponse:
    return render.notice(
        request.http,
        404,
        icon="ban",
        title="reset_gone",
        about="reset_gone_about",
        link=(FORGOT_PASSWORD, "forgot_password"),
    )
