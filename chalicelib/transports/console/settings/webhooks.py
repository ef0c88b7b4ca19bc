"""Pages of webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
    NotFoundError,
    ValidationError,
)
from chalicelib.core.events import EVENT_TYPES, TEST_EVENT
from chalicelib.transports.console.console_request import ConsoleRequest, Problem, find_by_id
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.http import HttpResponse, redirect

# Values of the control ``which``: all types of events, or the ticked types.
ALL, CHOSEN = "all", "chosen"
# Types of events by noun, in the order of the form.
GROUPS = {
    noun: list(names)
    for noun, names in groupby(sorted(EVENT_TYPES), key=lambda name: name.partition(".")[0])
}
Webhook = dict[str, Any]
View = Callable[[ConsoleRequest], HttpResponse]


@dataclass(frozen=True)
class Types(Field):
    """The types of events. An empty list means all types."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        choice = CHOSEN if request.form_value("which") == CHOSEN else ALL
        return {"which": choice, self.name: request.form.get(self.name, [])}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        types = self.stored_value(record)
        return {"which": CHOSEN if types else ALL, self.name: types}

    def stored_value(self, record: Record) -> list[str]:
        return sorted(record.get(self.name, ()))

    def value(self, form_values: Typed) -> list[str]:
        if form_values["which"] == CHOSEN and not form_values[self.name]:
            raise ValidationError.of(self.name, message="expected at least one type, received none")
        return sorted(form_values[self.name]) if form_values["which"] == CHOSEN else []

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        return ", ".join(self.value(form_values)) or request.translate("all_events")


FORM = Form(
    Field("url", "webhook_url", empty="", wrong="wrong_webhook_url"),
    Types("events", "events"),
    creates="create_webhook",
    changes="update_webhook",
)


def _redirect_if_deleted(view: View) -> View:
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
    response = request.call("list_webhooks")
    if len(response["webhooks"]) >= response["most"]:
        return redirect(_list_path(request))
    return _new_webhook_form(request, None)


def create(request: ConsoleRequest) -> HttpResponse:
    """Add a webhook and show its secret once."""
    try:
        return _create(request)
    except AlreadyCreatedError as error:
        return _secret_shown_before(request, error, "webhook_added_before")


@_redirect_if_deleted
def set_status(request: ConsoleRequest) -> HttpResponse:
    """Switch a webhook off or on. ``sendWaiting`` is ticked to send the waiting events."""
    status = "active" if request.form_value("status") == "active" else "off"
    request.call(
        "update_webhook",
        id=_find(request)["id"],
        status=status,
        sendWaiting=bool(request.form_value("sendWaiting")),
    )
    return _redirect_to_webhook(request, f"webhook_{status}")


@_redirect_if_deleted
def confirm_replace_secret(request: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to replace a webhook's secret."""
    return request.page("webhook_secret_replace", webhook=_find(request), path=_path(request))


@_redirect_if_deleted
def replace_secret(request: ConsoleRequest) -> HttpResponse:
    """Replace a webhook's secret and show the new one once."""
    try:
        response = request.call_once("rotate_webhook_secret", id=_find(request)["id"])
    except AlreadyCreatedError as error:
        return _secret_shown_before(request, error, "secret_replaced_before")
    return _secret_page(request, response, "secret_replaced")


@_redirect_if_deleted
def send_test(request: ConsoleRequest) -> HttpResponse:
    """Send a test event."""
    return _send_event(
        request, lambda: request.call_once("send_test_event", **_ids(request)), "test_sent"
    )


@_redirect_if_deleted
def send_again(request: ConsoleRequest) -> HttpResponse:
    """Send an event again."""
    # The path names the webhook, so the form names only the event.
    delivery_id = f"{request.http.path['webhook']}.{request.form_value('eventId')}"
    return _send_event(
        request,
        lambda: request.call("resend_webhook_delivery", deliveryId=delivery_id),
        "sent_again",
    )


def _send_event(request: ConsoleRequest, send: Callable[[], object], notice: str) -> HttpResponse:
    webhook = _find(request)
    try:
        send()
    except AppError as error:
        # The webhook has just been found, so it is the event that is not.
        problem = request.problem(error)
        if isinstance(error, NotFoundError):
            problem = Problem(request.translate("event_gone"))
        return _webhook_page(request, webhook, State(error.status, problem))
    return _redirect_to_webhook(request, notice)


def _list_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/webhooks"


def _path(request: ConsoleRequest) -> str:
    return f"{_list_path(request)}/{request.http.path['webhook']}"


def _ids(request: ConsoleRequest) -> dict[str, str]:
    return {"id": request.http.path["webhook"]}


def _redirect_to_webhook(request: ConsoleRequest, notice: str) -> HttpResponse:
    return redirect(f"{_path(request)}?done={notice}")


def _find(request: ConsoleRequest) -> Webhook:
    return find_by_id(request.call("list_webhooks")["webhooks"], request.http.path["webhook"])


def _new_webhook_form(request: ConsoleRequest, _: None, state: State = STORED) -> HttpResponse:
    return request.page("webhook_new", groups=GROUPS, **FORM.page_values(request, None, state))


def _webhook_page(request: ConsoleRequest, webhook: Webhook, state: State = STORED) -> HttpResponse:
    return request.page(
        "webhook",
        webhook=webhook,
        path=_path(request),
        deliveries=request.call("list_webhook_deliveries", **_ids(request))["deliveries"],
        test_event=TEST_EVENT,
        groups=GROUPS,
        **FORM.page_values(request, webhook, state),
    )


def _secret_page(request: ConsoleRequest, response: dict[str, Any], title: str) -> HttpResponse:
    path = f"{_list_path(request)}/{response['webhook']['id']}"
    return request.page("webhook_secret", title=title, secret=response["secret"], path=path)


def _secret_shown_before(
    request: ConsoleRequest, error: AlreadyCreatedError, title: str
) -> HttpResponse:
    path = f"{_list_path(request)}/{error.details['webhook']['id']}"
    return request.page("webhook_secret_before", 409, title=title, path=path)


def _show_new_secret(request: ConsoleRequest, response: dict[str, Any]) -> HttpResponse:
    return _secret_page(request, response, "webhook_added")


_, _create = FORM.creation(_new_webhook_form, _show_new_secret)
_show, _save = FORM.editing(_find, _webhook_page, "webhook_saved")
show, save = _redirect_if_deleted(_show), _redirect_if_deleted(_save)
confirm_delete, delete = deletion(
    "webhook_delete",
    lambda request: {"webhook": _find(request), "path": _path(request)},
    "delete_webhook",
    notice="webhook_deleted",
    id="webhook",
)
