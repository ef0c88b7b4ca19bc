"""The page behind the link of an invitation. Opening it changes nothing."""

from typing import Any

from chalicelib.core.errors import AlreadyCreatedError, AppError, ConflictError, NotFoundError
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.console.sign_in import chosen_language
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import render


def show(request: ConsoleRequest) -> HttpResponse:
    """Show who invites whom and to what, with what the reader can do now."""
    return _page(request, 200)


def accept(request: ConsoleRequest) -> HttpResponse:
    """Join with the account that is signed in, or with a new one."""
    token = request.http.path["invitation"]
    try:
        if request.account is not None:
            joined = request.call_once("accept_invitation", token=token)
            return redirect(_start_of(joined))
        joined = request.call_once(
            "create_invited_account",
            token=token,
            name=request.form_value("name"),
            password=request.form_value("password"),
            browser=request.http.headers.get("user-agent", ""),
            language=chosen_language(request) or request.language,
        )
    except NotFoundError:
        return _gone(request)
    except AlreadyCreatedError:  # The form was sent twice. The first response has the session.
        return redirect(f"{access.SIGN_IN}?done=account_made")
    except ConflictError:  # The address has an account since the page was opened.
        return _page(request, ConflictError.status)
    except AppError as error:
        return _page(request, error.status, _person_problem(request, error))
    return redirect(_start_of(joined), access.start_cookies(request, joined))


def _start_of(joined: dict[str, Any]) -> str:
    return f"{PREFIX}/w/{joined['slug']}?done=joined"


def _page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    try:
        invitation = request.call("get_invitation", token=request.http.path["invitation"])
    except NotFoundError:
        return _gone(request)
    return request.page(
        "invitation",
        status,
        problem=problem,
        invitation=invitation,
        path=request.path,
        typed_name=request.form_value("name"),
        sign_in_query=request.query_with(next=request.path, lang=request.http.language),
    )


def _person_problem(request: ConsoleRequest, error: AppError) -> Problem:
    problem = request.problem(error)
    if "name" not in problem.fields:
        return problem
    text = request.translate("wrong_person_name")
    return problem._replace(fields={**problem.fields, "name": text})


def _gone(request: ConsoleRequest) -> HttpResponse:
    return render.notice(
        request.http,
        404,
        icon="ban",
        title="invitation_gone",
        about="invitation_gone_about",
        link=access.TO_CONSOLE,
    )
