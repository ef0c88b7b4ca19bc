"""Links that a program gets for its client, who sees, moves and pays with them."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from tests.conftest import Answer, Api
from tests.domains.payments.checkout import FORM, PRICE, START, Checkout, call_visitor, visitor

pytestmark = pytest.mark.usefixtures("database")


def path_of(url: str) -> str:
    return url.partition("8000")[2]


def create(checkout: Checkout, **fields: Any) -> Any:
    body = checkout.salon.order(f"{START}:00+03:00", "Grace", **fields)
    return checkout.salon.api.post("/api/bookings/create", body)


def paid(checkout: Checkout) -> str:
    """Pay a booking that a key has made, and return the path of the key's link."""
    path = path_of(create(checkout)["manageUrl"])
    managed = call_visitor("get_managed_booking", {"token": path.rpartition("/")[2]})
    checkout.click(path_of(managed["paymentUrl"]))
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"
    return path


def test_each_write_of_a_key_returns_the_links_and_no_reading_does(checkout: Checkout) -> None:
    api = checkout.salon.api
    written = create(checkout)
    booking_id = written["booking"]["id"]
    moved = api.post(
        "/api/bookings/reschedule", {"id": booking_id, "startAt": f"{START[:-5]}15:00:00+03:00"}
    )
    confirmed = api.post("/api/bookings/set-status", {"id": booking_id, "status": "confirmed"})
    for result in (written, moved, confirmed):
        assert visitor.call("GET", path_of(result["manageUrl"])).status == 200
        assert visitor.call("GET", path_of(result["icsUrl"])).status == 200
        assert "paymentUrl" not in str(result)
    assert written["holdExpiresAt"] == written["booking"]["holdExpiresAt"]
    assert confirmed["holdExpiresAt"] is None
    for read in (api.get(f"/api/bookings/{booking_id}"), api.get("/api/bookings/list")):
        assert "/booking/" not in str(read)


def test_tool_returns_the_links_only_if_it_is_asked(checkout: Checkout, api: Api) -> None:
    order = checkout.salon.order(f"{START}:00+03:00", "Grace")
    _, made = api.tool("svc_create_booking", **order)
    made = made["data"]
    assert (made["manageUrl"], made["icsUrl"]) == (None, None)
    change = {"id": made["booking"]["id"], "status": "confirmed", "includeManageUrl": True}
    _, changed = api.tool("svc_set_booking_status", **change)
    assert "/booking/" in changed["data"]["manageUrl"]


def test_link_of_a_key_moves_the_booking(checkout: Checkout) -> None:
    token = path_of(create(checkout)["manageUrl"]).rpartition("/")[2]
    start = "2027-01-18T15:00:00+03:00"
    moved = call_visitor("move_public_booking", {"token": token, "startAt": start})
    assert moved["booking"]["startLocal"] == start


@pytest.mark.parametrize("way", ["page", "api"])
def test_link_of_a_key_cancels_and_refunds_nothing(checkout: Checkout, way: str) -> None:
    path = paid(checkout)
    assert (
        "does not refund your payment" in visitor.call("GET", f"{path}?step=cancel").body.decode()
    )
    answer: Answer
    if way == "page":
        answer = visitor.call("POST", path, b"action=cancel", FORM)
    else:
        body = {"token": path.rpartition("/")[2]}
        answer = visitor.call("POST", "/api/public/bookings/cancel", body)
    assert answer.status == 200
    assert "Ask the business for the refund" in visitor.call("GET", path).body.decode()
    assert checkout.booking.status == "cancelled"
    assert checkout.refunds == []
    (payment,) = checkout.console("list_payments")["payments"]
    assert payment["refundDue"]


def test_link_of_the_client_refunds_after_the_link_of_a_key_was_made(checkout: Checkout) -> None:
    paid(checkout)
    checkout.cancel_by_link()
    assert [int(refund.amount) for refund in checkout.refunds] == [PRICE]


def test_token_of_a_calendar_file_opens_nothing_else(checkout: Checkout) -> None:
    token = path_of(create(checkout)["icsUrl"]).rpartition("/")[2].removesuffix(".ics")
    assert visitor.call("GET", f"/booking/{token}").status == 404
    body = {"token": token}
    assert visitor.call("POST", "/api/public/bookings/cancel", body).status == 404


TOKEN = re.compile(r"(?<![\w=-])[\w=-]{64}(?![\w=-])")
BY_TOKEN = [
    operation
    for operation in REGISTRY.select(Audience.PUBLIC)
    if {"token", "file"} & operation.input.model_fields.keys()
]
"""What anyone can call with a token."""
LATER = "2027-01-18T15:00:00+03:00"


def tokens_in(*parts: object) -> set[str]:
    return {token for part in parts for token in TOKEN.findall(str(part))}


def requests_with(token: str) -> Iterable[tuple[str, str, Any]]:
    """Return the requests to all routes and pages that take a token, cancellations last."""
    routes = [operation for operation in BY_TOKEN if operation.path]
    for operation in sorted(routes, key=lambda operation: operation.destructive):
        body = {"token": token, "startAt": LATER, "refund": None, "messenger": "telegram"}
        path = operation.path.replace("{file}", f"{token}.ics")
        yield operation.method, path, None if operation.reads_query else body
    for page in ("booking", "pay", "booking/confirm", "unsubscribe"):
        yield "GET", f"/{page}/{token}?step=cancel&back=1", None
        for form in (b"", b"action=move&at=2027-01-18T16:00:00Z", b"action=cancel"):
            yield "POST", f"/{page}/{token}", form


def follow(found: set[str]) -> set[str]:
    """Send all requests with tokens, and with those of the responses, and return all of them."""
    followed = set[str]()
    while found - followed:
        token = min(found - followed)
        followed.add(token)
        for method, path, body in requests_with(token):
            headers = FORM if isinstance(body, bytes) else {}
            answer = visitor.call(method, path, body, headers)
            assert answer.status < 500, (path, answer.body)
            found |= tokens_in(answer.body.decode(), answer.headers)
    return followed


def test_every_operation_with_a_token_is_followed() -> None:
    with_route = {operation.name for operation in BY_TOKEN if operation.path}
    assert with_route == {
        *("cancel_public_booking", "get_booking_calendar", "get_managed_booking"),
        *("get_calendar_feed", "leave_waiting_list"),  # Their tokens are of no booking.
        *("move_public_booking", "pay_booking", "link_client_chat"),
    }


def test_no_token_in_a_result_of_a_key_leads_to_a_refund(checkout: Checkout, api: Api) -> None:
    """Each token is followed to each route and page, and so is each token that is found there."""
    paid(checkout)
    booking_id = checkout.booking.id
    change = {"id": booking_id, "status": "confirmed", "includeManageUrl": True}
    move = {"id": booking_id, "startAt": f"{START[:-5]}13:00:00+03:00"}
    results = [
        api.post("/api/bookings/reschedule", move),
        api.post("/api/bookings/set-status", change),
        api.tool("svc_set_booking_status", **change),
        api.get(f"/api/bookings/{booking_id}"),
        api.get("/api/bookings/list"),
        create(checkout),  # which is not paid
    ]
    found = tokens_in(*results)
    assert len(found) == 4
    followed = follow(found)
    assert len(followed) == 5, "with the link that pays"
    checkout.run_after(minutes=5)
    assert checkout.find(booking_id).status == "cancelled"
    assert checkout.refunds == []
    payments = checkout.console("list_payments", bookingIds=[booking_id])["payments"]
    assert [(payment["refunded"], payment["refundDue"]) for payment in payments] == [(0, True)]


def test_token_of_the_client_leads_to_the_refund(checkout: Checkout) -> None:
    made = checkout.book_on_page()
    checkout.click(path_of(made["paymentUrl"]))
    checkout.shop.pay()
    checkout.hook()
    follow(tokens_in(made["manageUrl"]))
    assert [int(refund.amount) for refund in checkout.refunds] == [PRICE]
