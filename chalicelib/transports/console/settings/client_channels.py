"""The console page of the channels by which clients are told of their bookings."""

from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import ValidationError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, Save, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.http import HttpResponse

CHANNELS = ("telegram", "max", "sms", "mail")


@dataclass(frozen=True)
class Order(Field):
    """Values in an order, each chosen in a control of its own."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        return {self.name: request.form.get(self.name, [])}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        return {self.name: self.stored_value(record)}

    def stored_value(self, record: Record) -> list[str]:
        return list(record[self.name])

    def value(self, form_values: Typed) -> list[str]:
        chosen = list(dict.fromkeys(filter(None, form_values[self.name])))
        if not chosen:
            raise ValidationError.of(self.name, message=self.required)
        return chosen

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        names = self.names(request)
        return ", ".join(names.get(each, each) for each in form_values[self.name] if each)


def _names(request: ConsoleRequest) -> dict[str, str]:
    return {name: request.translate(f"client_channel_{name}") for name in CHANNELS}


FORM = Form(
    Order("channels", "client_channels", names=_names, required="expected at least one channel"),
    changes="set_client_channels",
)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the channels in their order."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the channels and their order."""
    return FORM.save(request, HOW)


def _find(request: ConsoleRequest) -> Record:
    found: dict[str, Any] = request.call("get_client_channels")
    return found


def _page(request: ConsoleRequest, record: Record, state: State = STORED) -> HttpResponse:
    names = _names(request)
    return request.page(
        "client_channels",
        places=range(len(CHANNELS)),
        available=record["available"],
        sms=request.call("get_sms_terms"),
        choices={
            name: text
            if name in record["available"]
            else request.translate("client_channel_unavailable", channel=text)
            for name, text in names.items()
        },
        path=f"{request.current_membership.path}/client-channels",
        **FORM.page_values(request, record, state),
    )


HOW = Save(_find, _page, "client_channels_saved", "")
