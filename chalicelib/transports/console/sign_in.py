"""Signing in to the console and out."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError, UnauthorizedError, ValidationError
from chalicelib.domains.identity.flows.sign_in_proofs import MAX_COOKIE, MAX_LENGTH
from chalicelib.domains.identity.operations.sessions import MAX_CODE, MAX_DEVICE
from chalicelib.transports.console import access, kept_forms
from chalicelib.transports.console.console_request import CODE_FIELD, ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect, set_cookie
from chalicelib.transports.web import texts

PROOF = "proof"  # Field of a right password, on the page that asks for a code.


def sign_in_page(request: ConsoleRequest) -> HttpResponse:
    """Show the sign-in form, or redirect accounts that are signed in already."""
    next_path = request.query_value(access.NEXT)
    if request.account is not None:
        return redirect(next_path if access.is_consent_path(next_path) else PREFIX)
    return access.render_sign_in(request, 200, next_path)


def sign_in(request: ConsoleRequest) -> HttpResponse:
    """Start a new session, end the browser's former one, and redirect to the requested page.

    If the form carries another one, which arrived after its session had ended, a page offers to
    send that.
    """
    next_path, kept_form = request.form_value(access.NEXT), kept_forms.from_sign_in(request)
    guest, proof = ConsoleRequest(request.http, request.csrf), request.form_value(PROOF)
    browser = {
        "browser": request.http.headers.get("user-agent", ""),
        "remembered": request.http.cookies.get(access.REMEMBERED_COOKIE, "")[:MAX_COOKIE],
    }
    if proof:
        return _sign_in_by_code(request, guest=guest, proof=proof, browser=browser)
    try:
        session = guest.call(
            "sign_in",
            email=request.form_value("email"),
            password=request.form_value("password"),
            **browser,
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
    if awaited := session.get(PROOF):
        return access.render_sign_in(
            request, 200, next_path, kept_form=kept_form, proof=str(awaited)
        )
    return _begin(request, session)


def _sign_in_by_code(
    request: ConsoleRequest, *, guest: ConsoleRequest, proof: str, browser: dict[str, str]
) -> HttpResponse:
    next_path, kept_form = request.form_value(access.NEXT), kept_forms.from_sign_in(request)
    try:
        session = guest.call(
            "sign_in_by_code",
            proof=proof[:MAX_LENGTH],
            code=request.form_value(CODE_FIELD)[:MAX_CODE],
            remember=bool(request.form_value("remember")),
            **browser,
        )
    except UnauthorizedError as error:
        problem = Problem(request.translate("sign_in_too_late"))
        return access.render_sign_in(request, error.status, next_path, problem, kept_form)
    except AppError as error:
        problem = problem_at_fields(request, error)
        return access.render_sign_in(
            request, error.status, next_path, problem, kept_form, proof=proof
        )
    remembered = session["remembered"]
    cookies = [access.remembered_cookie(remembered)] if remembered else []
    return _begin(request, session, cookies)


def _begin(
    request: ConsoleRequest, session: dict[str, Any], more_cookies: Sequence[str] = ()
) -> HttpResponse:
    next_path, kept_form = request.form_value(access.NEXT), kept_forms.from_sign_in(request)
    if request.account is not None:
        end_session(request, request.session_id)
    cookies = [*access.start_cookies(request, session), *more_cookies]
    if kept_form is None:
        return redirect(access.safe_redirect_path(next_path), cookies)
    headers = {**request.http.headers, "cookie": f"{access.COOKIE}={session['token']}"}
    signed_in = access.signed_in_request(replace(request.http, headers=headers))
    if signed_in is None:  # The session has been ended at this moment.
        return redirect(access.SIGN_IN)
    return access.render_kept_form(signed_in, kept_form)._replace(cookies=cookies)


def sign_out(request: ConsoleRequest) -> HttpResponse:
    """End this session. Pages that need another account are then shown again."""
    end_session(request, request.session_id)
    next_path = request.form_value(access.NEXT)
    if access.safe_redirect_path(next_path) != next_path:
        next_path = f"{access.SIGN_IN}?done=signed_out"
    return redirect(next_path, [set_cookie(access.COOKIE, value="", max_age=0)])


def chosen_language(request: ConsoleRequest) -> texts.Language | None:
    """Return the language that a visitor has chosen on a page, if any."""
    return texts.supported(request.http.language)


def end_session(request: ConsoleRequest, session_id: str) -> None:
    """End a session. Another tab or a second click may have ended it already."""
    with suppress(NotFoundError):
        request.call("end_session", id=session_id)
