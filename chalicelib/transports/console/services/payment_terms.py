"""The page of what clients pay in advance for a service."""

from typing import Any

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Record, length, number
from chalicelib.transports.http import HttpResponse

FORM = Form(
    number("depositPercent", label="service_deposit", required="expected a number from 1 to 100"),
    length("refundUntilMin", label="service_refund_until", required="expected a length of time"),
    changes="set_payment_terms",
)


def _find(request: ConsoleRequest) -> Record:
    terms: Record = request.call("get_payment_terms", id=request.http.path["service"])[
        "paymentTerms"
    ]
    return terms


def _arguments(terms: Record, changes: dict[str, Any]) -> dict[str, Any]:
    kept = {name: terms[name] for name in ("depositPercent", "refundUntilMin")}
    return {"id": terms["serviceId"]} | kept | changes


def _page(request: ConsoleRequest, terms: Record, state: State = STORED) -> HttpResponse:
    back = request.path.rpartition("/")[0]
    return request.page(
        "service_payment", terms=terms, back=back, **FORM.page_values(request, terms, state)
    )


show, save = FORM.editing(
    _find,
    _page,
    "service_payment_saved",
    key="",
    arguments=_arguments,
    replaces=True,
)
