"""The routes of visitors' operations, without a key, for any origin, with small bodies.

Most accept and return JSON, as ``rest.serve`` does for any operation. Operations that declare
``served_as`` have a handler here. The handler of HTML forms returns pages to browsers without
script.

Crawlers and other programs are recognised by their ``User-Agent`` header. A booking's calendar file
is served with its own media type instead of the envelope.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pydantic_core import from_json, to_json

from chalicelib.application.invoke import Reply
from chalicelib.core.errors import AppError, ForbiddenError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import Operation, ServedAs
from chalicelib.domains.leads.flows import form_checks, form_html
from chalicelib.domains.leads.flows.submissions import PublicForm, SubmissionResult, public_form
from chalicelib.domains.leads.rules import form_fields, form_texts
from chalicelib.domains.sites.operations import visits
from chalicelib.transports import form_data, rest
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import (
    HTML_TYPE,
    HttpRequest,
    HttpResponse,
    etag,
    failure,
    json_object,
    media_type,
    prefers_html,
    redirect,
)

_BOT_NAMES = re.compile(
    r"(?<!cu)bot\b|bot[/_;)-]|crawl|spider|slurp|archiver|transcoder|monitor|preview|fetch|scan"
    r"|headless|phantomjs|puppeteer|playwright|selenium|webdriver|lighthouse|pagespeed|pingdom"
    r"|uptime|statuscake|validator|facebookexternalhit|facebot|embedly|mediapartners|google-"
    r"|bingpreview|yandex(?:\.com/bots|images|metrika|direct)|curl|wget|python|java/|okhttp"
    r"|go-http|libwww|httpclient|node-fetch|axios|ruby|perl|scrapy|postman|insomnia|http_request",
    re.IGNORECASE,
)
_MIN_LENGTH = 20
"""Characters. Every browser sends a longer ``User-Agent``."""


def is_bot(user_agent: str | None) -> bool:
    """Whether a ``User-Agent`` names a program, is missing, or is too short for a browser."""
    return (
        user_agent is None
        or len(user_agent) < _MIN_LENGTH
        or _BOT_NAMES.search(user_agent) is not None
    )


MEDIA_TYPE = "text/calendar"


def serve_calendar(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Return the file, or a failure in the envelope.

    A calendar that subscribes to this URL fetches it again and receives changes to the booking.
    """
    response = rest.serve(operation, request)
    if response.status != 200:  # noqa: PLR2004  the only success
        return response
    # A calendar program expects the bare file and cannot read the envelope.
    body = from_json(response.whole_body())["data"]["content"].encode()
    headers = {
        **response.headers,
        "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
        "Content-Disposition": 'attachment; filename="booking.ics"',
        "Cache-Control": "private, no-cache",
        "ETag": etag(body),
    }
    return response._replace(body=body, headers=headers)


_CAMPAIGN = ("source", "medium", "campaign", "term", "content")
_ACTIONABLE_STATUSES = frozenset({400, 415})
"""Statuses whose messages are shown unchanged, because visitors or developers can act on them."""


class PublicHandler(NamedTuple):
    """Handler of a public operation whose input or response is not plain JSON."""

    serve: Callable[[Operation, HttpRequest], HttpResponse]
    responses: Mapping[str, Any]
    """Responses in the OpenAPI document, added to the usual ones or replacing them."""
    body: Mapping[str, Any] | None = None
    """Schema of the body, if it is not the operation's own input."""


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Respond to a request to the route of a public operation."""
    handler = handler_of(operation)
    return (handler.serve if handler else rest.serve)(operation, request)


def handler_of(operation: Operation) -> PublicHandler | None:
    """Return the handler of an operation that is not served as JSON, or None."""
    return HANDLERS[operation.served_as] if operation.served_as else None


def submit_form(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Respond to a form with JSON, or with pages for a browser that sent it without script.

    Robots fill in the honeypot, a field that users do not see. Such a submission gets the usual
    response, but is not stored.
    """
    submitted: Mapping[str, Any] | None = None
    try:
        # The size and type are checked before the body is parsed.
        rest.check_input(operation, request)
        submitted = _sent_values(request)
        # A robot must not learn that the honeypot has caught the submission.
        if form_checks.is_robot(submitted):
            reply = _decoy_reply(public_form(request.path["id"]))
        else:
            form_checks.check_fill_time(submitted)
            values = _submission_input(request, submitted)
            reply = rest.call(operation, visitor(request), request, lambda: values)
        response = _success(request, reply)
    except AppError as error:
        response = _failure(request, submitted, error)
    return response.with_log_fields(operation=operation.name)


def list_posts(operation: Operation, request: HttpRequest) -> HttpResponse:
    """List posts for readers of the blog. Keys have a list of their own.

    Raises:
        ForbiddenError: the request has an ``Authorization`` header.
    """
    if "authorization" in request.headers:
        msg = (
            "This operation is for callers without a key. With a key, call GET "
            "/api/admin/blog/list."
        )
        raise ForbiddenError(msg)
    return rest.serve(operation, request)


def count_hit(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Count a page view that a script in a site's page reports. Visits of bots are not counted.

    A visitor is identified by a hash that changes at midnight in the site's time zone. So each
    visitor counts once for each day of the site's statistics.
    """
    rest.check_input(operation, request)
    hit = json_object(request.body)
    if is_bot(request.headers.get("user-agent")):
        result = visits.PageHitResult(counted=False).model_dump(by_alias=True)
        return rest.success(Reply(to_json({"data": {"status": True, **result}})))
    try:
        principal = visitor(request, visits.local_day(hit.get("projectId")))
        response = rest.success(rest.call(operation, principal, request, lambda: hit))
    except AppError as error:
        response = failure(error, request.request_id)
    return response.with_log_fields(operation=operation.name)


def _sent_values(request: HttpRequest) -> Mapping[str, Any]:
    """Return the sent values by name, including the fields that our script adds.

    Raises:
        ValidationError: the body is malformed.
    """
    if media_type(request) in form_data.TYPES:
        return form_data.last_values(request)
    return json_object(request.body)


def _submission_input(request: HttpRequest, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operation's input: the values that the visitor typed, and the visit's origin.

    Without script, the page is the ``Referer`` header, which is often only an origin.
    """

    def text_of(name: str) -> str | None:
        value = submitted.get(name)
        return value if isinstance(value, str) and value else None

    page = text_of(form_html.PAGE) or request.headers.get("referer")
    link = _query(page or "")
    campaign = {part: text_of(f"_utm_{part}") or link.get(f"utm_{part}") for part in _CAMPAIGN}
    return {
        "id": request.path["id"],
        "values": {name: value for name, value in submitted.items() if not name.startswith("_")},
        "page": page,
        "referrer": text_of(form_html.REFERRER),
        "campaign": campaign,
    }


def _query(url: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(urlsplit(url).query, max_num_fields=form_data.MAX_FIELDS))
    except ValueError:
        return {}


def _decoy_reply(form: PublicForm) -> Reply:
    """Return a response that looks like the response to a stored submission."""
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
    return _page(
        200, form_html.thanks_page(result.message, language, request.headers.get("referer"))
    )


def _failure(
    request: HttpRequest, submitted: Mapping[str, Any] | None, error: AppError
) -> HttpResponse:
    """Return the failure in the form's language.

    JSON responses also have the error code.
    """
    form = _find_form(request)
    language = form.language if form else _language(request)
    message = form_texts.for_failure(language, error.code)
    if error.status not in _ACTIONABLE_STATUSES:
        error.message = message
    answer = failure(error, request.request_id)
    if not prefers_html(request):
        return answer
    if form is None or submitted is None:
        html = form_html.failure_page(message, language, request.headers.get("referer"))
    else:
        html = form_html.error_page(
            form.title,
            form.fields,
            language,
            message=error.message,
            values=submitted,
            errors={wrong.field: wrong.message for wrong in error.errors},
        )
    return _page(error.status, html, **error.headers)._replace(log=answer.log)


def _find_form(request: HttpRequest) -> PublicForm | None:
    """Return the requested form, or None.

    The form may not exist, or the database may be unavailable.
    """
    try:
        return public_form(request.path["id"])
    except AppError:
        return None


def _page(status: int, html: str, **headers: str) -> HttpResponse:
    return HttpResponse(
        status, html.encode(), {"Content-Type": HTML_TYPE, **form_html.PAGE_HEADERS, **headers}
    )


def _language(request: HttpRequest) -> str:
    """Return the language of the visitor's browser, for a form that does not exist."""
    accepted = request.headers.get("accept-language", "").strip().lower()
    return "ru" if accepted.startswith("ru") else "en"


_TEXT = {"type": "string"}
HANDLERS: Mapping[ServedAs, PublicHandler] = {
    ServedAs.HTML_FORM: PublicHandler(
        submit_form,
        body={
            "type": "object",
            "description": (
                "The declared fields by name, as text or JSON values. Other fields are dropped. "
                "Names that begin with an underscore describe the origin of the visit."
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
            },
            "additionalProperties": True,
        },
        responses={
            "303": {"description": "Redirect to the form's URL, if `Accept` prefers `text/html`."}
        },
    ),
    ServedAs.CALENDAR_FILE: PublicHandler(
        serve_calendar,
        responses={
            "200": {
                "description": "The file.",
                "content": {MEDIA_TYPE: {"schema": _TEXT}},
            }
        },
    ),
    ServedAs.PAGE_HIT: PublicHandler(count_hit, responses={}),
    ServedAs.WITHOUT_KEY: PublicHandler(
        list_posts, responses={"403": {"$ref": "#/components/responses/Failure403"}}
    ),
}
