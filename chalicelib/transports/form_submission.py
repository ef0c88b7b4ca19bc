"""Submissions of a business's forms, as JSON or by a browser without script, which gets pages."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic_core import from_json, to_json

from chalicelib.application.invoke import Reply
from chalicelib.core.errors import AppError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import Operation
from chalicelib.domains.leads.flows import form_checks, form_html
from chalicelib.domains.leads.flows.submissions import (
    PublicForm,
    SubmissionResult,
    form_with_brand,
    public_form,
)
from chalicelib.domains.leads.rules import form_fields, form_texts
from chalicelib.lib import charsets
from chalicelib.lib.markup.brands import Brand
from chalicelib.transports import form_data, rest
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import (
    HTML_TYPE,
    HttpRequest,
    HttpResponse,
    failure,
    json_object,
    media_type,
    prefers_html,
    redirect,
)

_CAMPAIGN = ("source", "medium", "campaign", "term", "content")
# Names of fields that describe the visit, or the form itself.
_OWN_NAMES = frozenset(
    {
        *(form_html.PAGE, form_html.REFERRER, form_html.ELAPSED, form_html.HONEYPOT),
        form_html.CONSENT,
        form_data.CHARSET_FIELD,
        *(f"_utm_{part}" for part in _CAMPAIGN),
    }
)
_TEXT = {"type": "string"}
# Schema of the body, for the OpenAPI document.
BODY: Mapping[str, Any] = {
    "type": "object",
    "description": (
        "The declared fields by name, as text, JSON values or lists. Names may differ in case, or "
        "be common ones such as `Phone`. Other fields are kept under their names. The fields below "
        "describe the visit."
    ),
    "properties": {
        form_html.PAGE: {**_TEXT, "description": "URL of the page with the form."},
        form_html.REFERRER: {**_TEXT, "description": "URL of the page before it."},
        **{
            f"_utm_{part}": {**_TEXT, "description": f"The campaign's {part}."}
            for part in _CAMPAIGN
        },
        form_html.ELAPSED: {
            "type": "integer",
            "minimum": 0,
            "description": "Milliseconds that the visitor took. Under 2,000 is refused.",
        },
        form_html.CONSENT: {
            **_TEXT,
            "description": "A word such as `on`, if the visitor has ticked the box for consent.",
        },
    },
    "additionalProperties": True,
}
# Statuses whose messages are shown unchanged, because visitors or developers can act on them.
_ACTIONABLE_STATUSES = frozenset({400, 415})


def submit(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Respond to a form with JSON, or with pages for a browser that sent it without script."""
    submitted: Mapping[str, Any] | None = None
    try:
        # The size and type are checked before the body is parsed.
        rest.check_input(operation, request)
        submitted = _sent_values(request)
        # Robots fill in the honeypot, a field that users do not see. The submission is not stored.
        # A robot must not learn that the honeypot has caught the submission.
        if form_checks.is_robot(submitted) or (
            "test" in submitted and _is_test(public_form(request.path["id"]), submitted)
        ):
            reply = _decoy_reply(public_form(request.path["id"]))
        else:
            form_checks.check_fill_time(submitted)
            values = _submission_input(request, submitted)
            reply = rest.call(operation, visitor(request), request, lambda: values)
        response = _success(request, reply)
    except AppError as error:
        response = _failure(request, submitted, error)
    return response.with_log_fields(operation=operation.name)


def _sent_values(request: HttpRequest) -> Mapping[str, Any]:
    if media_type(request) in form_data.TYPES:
        fields = form_data.read_fields(request)
        return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}
    encoding = charsets.text_encoding([request.body], form_data.declared_charset(request))
    return json_object(charsets.decoded(request.body, encoding).encode())


def _submission_input(request: HttpRequest, submitted: Mapping[str, Any]) -> dict[str, Any]:
    # Without script, the page is the ``Referer`` header, which is often only an origin.
    def text_of(name: str) -> str | None:
        value = submitted.get(name)
        value = value[-1] if isinstance(value, list) and value else value
        return value if isinstance(value, str) and value else None

    page = text_of(form_html.PAGE) or request.headers.get("referer")
    link = _query(page or "")
    campaign = {
        part: text_of(f"_utm_{part}") or text_of(f"utm_{part}") or link.get(f"utm_{part}")
        for part in _CAMPAIGN
    }
    return {
        "id": request.path["id"],
        "values": _visitor_values(submitted),
        "page": page,
        "referrer": text_of(form_html.REFERRER),
        "campaign": campaign,
        "consent": form_fields.is_consent(text_of(form_html.CONSENT)),
    }


def _visitor_values(submitted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in submitted.items() if name not in _OWN_NAMES}


def _is_test(form: PublicForm, submitted: Mapping[str, Any]) -> bool:
    # Tilda tests the form's URL with ``test=test``.
    names = {field.name for field in form.fields}
    return _visitor_values(submitted) == {"test": "test"} and "test" not in names


def _query(url: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(urlsplit(url).query, max_num_fields=form_data.MAX_FIELDS))
    except ValueError:
        return {}


def _decoy_reply(form: PublicForm) -> Reply:
    result = SubmissionResult(
        id=new_id(), message=form.success_message, redirect_url=form.redirect_url
    )
    return Reply(to_json({"data": {"status": True, **result.model_dump(by_alias=True)}}))


def _success(request: HttpRequest, reply: Reply) -> HttpResponse:
    if not prefers_html(request):
        return rest.success(reply)
    result = SubmissionResult.model_validate(from_json(reply.body)["data"])
    if result.redirect_url:
        return redirect(result.redirect_url)
    language = form_fields.language(result.message, [])
    form = _find_form(request)
    brand = form.brand if form else None
    html = form_html.thanks_page(
        result.message, language=language, back_url=request.headers.get("referer"), brand=brand
    )
    return _page(200, html, brand)


def _failure(
    request: HttpRequest, submitted: Mapping[str, Any] | None, error: AppError
) -> HttpResponse:
    # JSON responses also have the error code.
    form = _find_form(request)
    language = form.language if form else _language(request)
    message = form_texts.for_failure(language, code=error.code)
    if error.status not in _ACTIONABLE_STATUSES:
        error.message = message
    answer = failure(error, request.request_id)
    if not prefers_html(request):
        return answer
    if form is None or submitted is None:
        html = form_html.failure_page(
            message, language=language, back_url=request.headers.get("referer")
        )
    else:
        html = form_html.error_page(
            form.title,
            form.fields,
            language,
            message=error.message,
            values=submitted,
            errors={wrong.field: wrong.message for wrong in error.errors},
            brand=form.brand,
        )
    brand = form.brand if form and submitted is not None else None
    return _page(error.status, html, brand, **error.headers)._replace(log=answer.log)


def _find_form(request: HttpRequest) -> PublicForm | None:
    # The form may not exist, or the database may be unavailable.
    try:
        return form_with_brand(request.path["id"])
    except AppError:
        return None


def _page(status: int, html: str, brand: Brand | None, **headers: str) -> HttpResponse:
    return HttpResponse(
        status,
        html.encode(),
        {"Content-Type": HTML_TYPE, **form_html.page_headers(brand), **headers},
    )


def _language(request: HttpRequest) -> str:
    accepted = request.headers.get("accept-language", "").strip().lower()
    return "ru" if accepted.startswith("ru") else "en"
