"""The routes of visitors' operations, without a key, for any origin, with small bodies.

Most accept and return JSON, as ``rest.serve`` does for any operation. Operations that declare
``served_as`` have a handler in ``HANDLERS``.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json

from chalicelib.application.invoke import Reply
from chalicelib.core.errors import AppError, ForbiddenError
from chalicelib.core.operations import Operation, ServedAs
from chalicelib.domains.sites.operations import visits
from chalicelib.lib.crawlers import is_bot
from chalicelib.transports import calendar_files, form_submission, rest
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import (
    HttpRequest,
    HttpResponse,
    failure,
    json_object,
)


class PublicHandler(NamedTuple):
    """Handler of a public operation whose input or response is not plain JSON."""

    serve: Callable[[Operation, HttpRequest], HttpResponse]
    # Responses in the OpenAPI document, added to the usual ones or replacing them.
    responses: Mapping[str, Any]
    # Schema of the body, if it is not the operation's own input.
    body: Mapping[str, Any] | None = None


def serve(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Respond to a request to the route of a public operation."""
    handler = handler_of(operation)
    return (handler.serve if handler else rest.serve)(operation, request)


def handler_of(operation: Operation) -> PublicHandler | None:
    """Return the handler of an operation that is not served as JSON, or None."""
    return HANDLERS[operation.served_as] if operation.served_as else None


def list_posts(operation: Operation, request: HttpRequest) -> HttpResponse:
    """List posts for readers, or raise ForbiddenError if there is an ``Authorization`` header."""
    # Keys have a list of their own.
    if "authorization" in request.headers:
        msg = (
            "This operation is for callers without a key. With a key, call GET "
            "/api/admin/blog/list."
        )
        raise ForbiddenError(msg, key="key_not_accepted")
    return rest.serve(operation, request)


def count_hit(operation: Operation, request: HttpRequest) -> HttpResponse:
    """Count a page view that a script in a site's page reports. Visits of bots are not counted."""
    rest.check_input(operation, request)
    hit = json_object(request.body)
    if is_bot(request.headers.get("user-agent")):
        result = visits.PageHitResult(counted=False).model_dump(by_alias=True)
        return rest.success(Reply(to_json({"data": {"status": True, **result}})))
    try:
        # A visitor's hash changes at midnight in the site's time zone. So each visitor counts once
        # for each day of the site's statistics.
        principal = visitor(request, visits.local_day(hit.get("projectId")))
        response = rest.success(rest.call(operation, principal, request, lambda: hit))
    except AppError as error:
        response = failure(error, request.request_id)
    return response.with_log_fields(operation=operation.name)


HANDLERS: Mapping[ServedAs, PublicHandler] = {
    ServedAs.HTML_FORM: PublicHandler(
        form_submission.submit,
        body=form_submission.BODY,
        responses={
            "303": {"description": "Redirect to the form's URL, if `Accept` prefers `text/html`."}
        },
    ),
    ServedAs.CALENDAR_FILE: PublicHandler(
        calendar_files.serve_file, responses=calendar_files.responses()
    ),
    ServedAs.CALENDAR_FEED: PublicHandler(
        calendar_files.serve_feed, responses=calendar_files.responses()
    ),
    ServedAs.PAGE_HIT: PublicHandler(count_hit, responses={}),
    ServedAs.WITHOUT_KEY: PublicHandler(
        list_posts, responses={"403": {"$ref": "#/components/responses/Failure403"}}
    ),
}
