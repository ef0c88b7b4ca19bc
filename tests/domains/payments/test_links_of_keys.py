"""Links that a program gets for its client, who sees, moves and pays with them."""

from typing import Any

import pytest

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
