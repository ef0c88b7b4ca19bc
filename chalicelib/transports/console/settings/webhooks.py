"""Pages of webhooks: the choice of events, the secret that is shown once, and deliveries."""

from collections.abc import Callable
from itertools import groupby

from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
    ConflictError,
    NotFoundError,
    ValidationError,
)
from chalicelib.core.events import EVENT_TYPES, TEST_EVENT
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

ALL, CHOSEN = "all", "chosen"
"""Values of the form field ``events``: all types of events, or those that are ticked."""
GROUPS = {
    noun: list(names)
    for noun, names in groupby(sorted(EVENT_TYPES), key=lambda name: name.partition(".")[0])
}
"""Types of events by noun, in the order of the form."""
Webhook = dict[str, object]
View = Callable[[ConsoleRequest], HttpResponse]


def _of_a_webhook(view: View) -> View:
    """Return a view that leads to the list if the webhook was deleted meanwhile."""

    def run(request: ConsoleRequest) -> HttpResponse:
        try:
            return view(request)
        except NotFoundError:
            request.require_deleted(request.http.path["webhook"])
            return redirect(f"{_list_path(request)}?done=webhook_deleted")

    return run


def index(request: ConsoleRequest) -> HttpResponse:
    """List the webhooks."""
    return request.page("webhooks", listed=request.call("list_webhooks"))


def new_webhook_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new webhook, or the list if none can be added."""
    listed = request.call("list_webhooks")
    if len(listed["webhooks"]) >= listed["most"]:
        return redirect(_list_path(request))
    return _new_webhook_form(request, 200)


def create(request: ConsoleRequest) -> HttpResponse:
    """Add a webhook and show its secret once."""
    try:
        made = request.call_once(
            "create_webhook", url=request.form_value("url"), types=_chosen_types(request)
        )
    except AlreadyCreatedError as error:
        return _secret_shown_before(request, error, "webhook_added_before")
    except AppError as error:
        problem = _problem(request, error)
        if error.code == ConflictError.code:
            most = request.call("list_webhooks")["most"]
            problem = Problem(request.translate("webhooks_full", most=most))
        return _new_webhook_form(request, error.status, problem)
    return _secret_page(request, made, "webhook_added")


@_of_a_webhook
def show(request: ConsoleRequest) -> HttpResponse:
    """Show a webhook: its deliveries and its settings."""
    return _webhook_page(request, 200)


@_of_a_webhook
def save(request: ConsoleRequest) -> HttpResponse:
    """Change a webhook's URL and types."""
    webhook = _find(request)
    try:
        request.call(
            "update_webhook",
            webhookId=webhook["id"],
            url=request.form_value("url"),
            types=_chosen_types(request),
        )
    except ValidationError as error:
        return _webhook_page(request, error.status, _problem(request, error))
    return _done(request, "webhook_saved")


@_of_a_webhook
def set_status(request: ConsoleRequest) -> HttpResponse:
    """Switch a webhook off or on. ``sendWaiting`` is ticked if what waited is to be sent."""
    status = "active" if request.form_value("status") == "active" else "off"
    request.call(
        "update_webhook",
        webhookId=_find(request)["id"],
        status=status,
        sendWaiting=bool(request.form_value("sendWaiting")),
    )
    return _done(request, f"webhook_{status}")


@_of_a_webhook
def confirm_replace_secret(request: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to replace a webhook's secret."""
    return request.page("webhook_secret_replace", webhook=_find(request), path=_path(request))


@_of_a_webhook
def replace_secret(request: ConsoleRequest) -> HttpResponse:
    """Replace a webhook's secret and show the new one once."""
    try:
        made = request.call_once("rotate_webhook_secret", webhookId=_find(request)["id"])
    except AlreadyCreatedError as error:
        return _secret_shown_before(request, error, "secret_replaced_before")
    return _secret_page(request, made, "secret_replaced")


@_of_a_webhook
def send_test(request: ConsoleRequest) -> HttpResponse:
    """Send a test event."""
    return _sent(
        request, lambda: request.call_once("send_test_event", **_ids(request)), "test_sent"
    )


@_of_a_webhook
def send_again(request: ConsoleRequest) -> HttpResponse:
    """Send an event again."""
    event_id = request.form_value("eventId")
    return _sent(
        request,
        lambda: request.call("resend_webhook_delivery", **_ids(request), eventId=event_id),
        "sent_again",
    )


def _sent(request: ConsoleRequest, send: Callable[[], object], done: str) -> HttpResponse:
    """Send an event. If it cannot be sent, show the reason on the page of the webhook."""
    _find(request)
    try:
        send()
    except NotFoundError as error:  # The webhook has just been found, so it is the event.
        return _webhook_page(request, error.status, Problem(request.translate("event_gone")))
    except AppError as error:
        problem = request.problem(error)
        if error.code == ConflictError.code:
            problem = Problem(request.translate("webhook_is_off"))
        return _webhook_page(request, error.status, problem)
    return _done(request, done)


@_of_a_webhook
def confirm_delete(request: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to delete a webhook."""
    return request.page("webhook_delete", webhook=_find(request), path=_path(request))


@_of_a_webhook
def delete(request: ConsoleRequest) -> HttpResponse:
    """Delete a webhook. A second click may have deleted it already."""
    request.call("delete_webhook", **_ids(request))
    return redirect(f"{_list_path(request)}?done=webhook_deleted")


def _list_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/webhooks"


def _path(request: ConsoleRequest) -> str:
    return f"{_list_path(request)}/{request.http.path['webhook']}"


def _ids(request: ConsoleRequest) -> dict[str, str]:
    return {"webhookId": request.http.path["webhook"]}


def _done(request: ConsoleRequest, done: str) -> HttpResponse:
    return redirect(f"{_path(request)}?done={done}")


def _find(request: ConsoleRequest) -> Webhook:
    """Return the webhook of a page.

    Raises:
        NotFoundError: the workspace has no webhook with the id in the path.
    """
    for webhook in request.call("list_webhooks")["webhooks"]:
        if webhook["id"] == request.http.path["webhook"]:
            return dict(webhook)
    raise NotFoundError("No webhook of this workspace has this id.")


def _chosen_types(request: ConsoleRequest) -> list[str]:
    """Return the types of events that the form chooses. An empty list means all.

    Raises:
        ValidationError: the form chooses types, but none is ticked.
    """
    if request.form_value("events") != CHOSEN:
        return []
    if types := request.form.get("types"):
        return types
    raise ValidationError.of("types", "expected at least one type, received none")


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure. URLs of webhooks have their own text."""
    problem = request.problem(error)
    own = {"url": "wrong_webhook_url"}
    fields = {
        field: request.translate(own[field]) if field in own else text
        for field, text in problem.fields.items()
    }
    return problem._replace(fields=fields)


def _new_webhook_form(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    return request.page(
        "webhook_new", status, problem=problem, groups=GROUPS, typed=_typed(request, None)
    )


def _webhook_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    webhook = _find(request)
    return request.page(
        "webhook",
        status,
        problem=problem,
        webhook=webhook,
        path=_path(request),
        deliveries=request.call("list_webhook_deliveries", **_ids(request))["deliveries"],
        test_event=TEST_EVENT,
        groups=GROUPS,
        typed=_typed(request, webhook),
    )


def _typed(request: ConsoleRequest, webhook: Webhook | None) -> dict[str, object]:
    """Return the values of the settings: those of a refused form, or those of the webhook."""
    if "url" in request.form:
        return {
            "url": request.form_value("url"),
            "events": CHOSEN if request.form_value("events") == CHOSEN else ALL,
            "types": request.form.get("types", []),
        }
    types = webhook["types"] if webhook else []
    url = webhook["url"] if webhook else ""
    return {"url": url, "events": CHOSEN if types else ALL, "types": types}


def _secret_page(request: ConsoleRequest, made: dict[str, str], title: str) -> HttpResponse:
    """Show a secret, the only time that it is known."""
    path = f"{_list_path(request)}/{made['webhookId']}"
    return request.page("webhook_secret", title=title, secret=made["secret"], path=path)


def _secret_shown_before(
    request: ConsoleRequest, error: AlreadyCreatedError, title: str
) -> HttpResponse:
    path = f"{_list_path(request)}/{error.details['webhookId']}"
    return request.page("webhook_secret_before", 409, title=title, path=path)
