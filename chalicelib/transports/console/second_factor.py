"""Part of the account page for the second factor."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import AppError, ConflictError
from chalicelib.transports.console.console_request import CODE_FIELD, ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect

PART = "second-factor"  # Value of ``do`` in the query of the account page, and in its forms.
ACCOUNT = "/console/account"
PAGE = f"{ACCOUNT}?do={PART}"


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the secret for an app, or what can be changed about the factor that is on."""
    return _page(request)


def save(request: ConsoleRequest) -> HttpResponse:
    """Switch the factor on and show the recovery codes once, or change it."""
    try:
        match request.form_value("action"):
            case "forget":
                request.call("forget_browsers")
                return redirect(f"{PAGE}&done=browsers_forgotten")
            case "ask" | "stop_asking" as action:
                request.call("set_sign_in_factor", isAsked=action == "ask")
                return redirect(f"{PAGE}&done=sign_in_factor_{action}")
            case "end":
                request.call("end_second_factor")
                return redirect(f"{ACCOUNT}?done=second_factor_ended")
        response = request.call(
            "set_second_factor",
            salt=request.form_value("salt"),
            secondFactor=request.form_value(CODE_FIELD),
            isAsked=bool(request.form_value("isAsked")),
        )
    except ConflictError:  # It was switched on or off by another tab.
        return redirect(PAGE)
    except AppError as error:
        return _page(request, error.status, problem_at_fields(request, error))
    return request.page("second_factor", codes=response["recoveryCodes"])


def _page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    new_factor: Mapping[str, Any] = {}
    if request.signed_in_account.factor_salt is None:
        # A wrong code keeps the secret that the user has already typed into the app.
        salt = {"salt": request.form_value("salt")} if request.form_value("salt") else {}
        new_factor = request.call("prepare_second_factor", **salt)
    return request.page(
        "second_factor",
        status,
        problem=problem,
        new=new_factor,
        picture=_qr_code(new_factor["url"]) if new_factor else "",
        is_asked=problem is None or bool(request.form_value("isAsked")),
        codes=(),
    )


def _qr_code(url: str) -> str:
    import segno

    # ISO 18004 requires a quiet zone of four modules.
    code = segno.make(url, error="m", micro=False)
    svg: str = code.svg_inline(
        border=4, dark="#000", light="#fff", omitsize=True, svgclass=None, lineclass=None
    )
    return svg
