"""Part of the account page that switches a second factor on and off."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import AppError, ConflictError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect

PART = "second-factor"
"""Value of ``do`` in the query of the account page, and in its forms."""
ACCOUNT = "/console/account"


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the secret for an app, or the question whether to switch the factor off."""
    return _page(request)


def save(request: ConsoleRequest) -> HttpResponse:
    """Switch the factor on and show the recovery codes once, or switch it off."""
    code = request.form_value("secondFactor")
    try:
        if request.form_value("ends"):
            request.call("end_second_factor", secondFactor=code)
            return redirect(f"{ACCOUNT}?done=second_factor_ended")
        salt = request.form_value("salt")
        response = request.call("set_second_factor", salt=salt, secondFactor=code)
    except ConflictError:  # It was switched on by another tab.
        return redirect(f"{ACCOUNT}?do={PART}")
    except AppError as error:
        return _page(request, error.status, problem_at_fields(request, error))
    return request.page("second_factor", codes=response["recoveryCodes"])


def _page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    new_factor: Mapping[str, Any] = {}
    if not request.account or request.account.factor_salt is None:
        # A wrong code keeps the secret that the user has already typed into the app.
        salt = {"salt": request.form_value("salt")} if request.form_value("salt") else {}
        new_factor = request.call("prepare_second_factor", **salt)
    return request.page("second_factor", status, problem=problem, new=new_factor, codes=())
