"""What a visitor is shown before booking is what is booked."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.conftest import Answer, Api, Owner, call_console
from tests.domains.payments.checkout import EMAIL, FORM, PRICE, START, Checkout, visitor
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.support.warned import warned

pytestmark = pytest.mark.usefixtures("database")

TERMS = {"price": PRICE, "durationMin": 60, "amountDue": 45_000, "refundUntilMin": 120}
OTHER_TERMS = {"price": 10 * PRICE, "durationMin": 90, "amountDue": 30_000, "refundUntilMin": 60}


@pytest.fixture
def deposit(checkout: Checkout) -> Checkout:
    """A service with a deposit of 30 percent, refunded until two hours before the start."""
    set_terms(checkout)
    return checkout


def set_terms(checkout: Checkout, percent: int = 30, minutes: int = 120) -> None:
    checkout.console(
        "set_payment_terms",
        id=checkout.salon.service,
        depositPercent=percent,
        refundUntilMin=minutes,
    )


def book(checkout: Checkout, **shown: Any) -> Answer:
    client = {"name": "Grace", "email": EMAIL}
    body = {"serviceId": checkout.salon.service, "startAt": f"{START}:00+03:00", "client": client}
    return visitor.call("POST", "/api/public/bookings", body | shown)


def change(checkout: Checkout, name: str) -> None:
    """Change a value of the service, and nothing else that a visitor sees."""
    match name:
        case "price":
            body = {"id": checkout.salon.service, name: OTHER_TERMS[name]}
            checkout.salon.api.post("/api/services/update", body)
            set_terms(checkout, 3)
        case "durationMin":
            body = {"id": checkout.salon.service, name: OTHER_TERMS[name], "slotStepMin": 60}
            checkout.salon.api.post("/api/services/update", body)
        case "amountDue":
            set_terms(checkout, 20)
        case _:
            set_terms(checkout, minutes=OTHER_TERMS[name])


def form_values(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


@pytest.mark.parametrize("name", TERMS)
def test_booking_on_other_terms_than_were_shown_is_refused_with_the_new_ones(
    deposit: Checkout, name: str
) -> None:
    change(deposit, name)
    answer = book(deposit, **TERMS)
    assert (answer.status, answer.data["code"]) == (409, "changed")
    new_terms = TERMS | {name: OTHER_TERMS[name]}
    assert {key: answer.data[key] for key in TERMS} == new_terms
    assert book(deposit, **new_terms).status == 200


@pytest.mark.parametrize("shown", [{}, TERMS, {"price": PRICE}, dict.fromkeys(TERMS)])
def test_booking_on_the_terms_that_were_shown_is_made(
    deposit: Checkout, shown: dict[str, int]
) -> None:
    answer = book(deposit, **shown)
    assert answer.status == 200, answer.body
    assert deposit.booking.due == TERMS["amountDue"]


@pytest.mark.parametrize("name", ["price", "durationMin", "amountDue"])
def test_service_without_payment_is_booked_on_its_terms(deposit: Checkout, name: str) -> None:
    body = {"id": deposit.salon.service, "requirePayment": False}
    deposit.salon.api.post("/api/services/update", body)
    now = TERMS | {"amountDue": 0, "refundUntilMin": None}
    assert book(deposit, **now | {name: 7}).status == 409
    assert book(deposit, **now).data["booking"]["status"] == "confirmed"


def test_slots_carry_the_terms(deposit: Checkout) -> None:
    slots = visitor.get(f"/api/public/services/{deposit.salon.service}/slots")
    assert {name: slots[name] for name in TERMS} == TERMS
    assert (slots["holdMinutes"], slots["byPhone"]) == (30, False)


@pytest.mark.parametrize("name", TERMS)
def test_form_that_was_opened_before_a_change_is_shown_again_with_the_new_terms(
    deposit: Checkout, name: str
) -> None:
    path = f"/book/{deposit.owner.workspace.slug}/{deposit.salon.service}"
    page = visitor.call("GET", f"{path}?at={START}%3A00%2B03%3A00").body.decode()
    values = form_values(page) | {"name": "Grace", "email": EMAIL}
    change(deposit, name)
    answer = visitor.call("POST", path, urlencode(values).encode(), FORM)
    assert answer.status == 409
    page = answer.body.decode()
    assert "have changed since" in page
    assert 'value="Grace"' in page
    values |= form_values(page)
    assert visitor.call("POST", path, urlencode(values).encode(), FORM).status == 200


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ["Paid when booking: 450", "The rest, 1,050", "at least 2 h", "for 30 min"]),
        ("ru", ["Оплата при записи: 450", "Остальное, 1\xa0050", "за 2 ч", "30 мин"]),
    ],
)
def test_list_and_summary_and_button_say_the_terms(
    deposit: Checkout, language: str, texts: list[str]
) -> None:
    home = f"/book/{deposit.owner.workspace.slug}"
    for path in (home, f"{home}/{deposit.salon.service}"):
        page = visitor.call("GET", path, headers={"Accept-Language": language}).body.decode()
        assert [text for text in texts if text not in page] == []
    path = f"{home}/{deposit.salon.service}?at={START}%3A00%2B03%3A00"
    page = visitor.call("GET", path, headers={"Accept-Language": language}).body.decode()
    button = {"en": "Book and pay 450", "ru": "Записаться и оплатить 450"}
    last = {"en": "cancel before 18 January, 08:00", "ru": "отменить до 18 января, 08:00"}
    assert button[language] in page
    assert last[language] in page


def test_form_for_a_time_that_is_too_near_says_that_nothing_is_refunded(
    checkout: Checkout,
) -> None:
    set_terms(checkout, minutes=43_200)
    path = f"/book/{checkout.owner.workspace.slug}/{checkout.salon.service}"
    page = visitor.call("GET", f"{path}?at={START}%3A00%2B03%3A00").body.decode()
    assert "Not refunded if you cancel" in page


def test_service_that_nobody_can_pay_is_saved_with_a_warning(owner: Owner, api: Api) -> None:
    salon = Salon.opened(api)
    body = {"id": salon.service, "requirePayment": True}
    expected = [{"code": "payments_not_set_up", "field": "requirePayment"}]
    assert warned(api.post("/api/services/update", body)) == expected
    new_service = {"name": "Colour", "durationMin": 60, "price": 1, "requirePayment": True}
    assert warned(api.post("/api/services/create", new_service)) == expected
    assert "warnings" not in api.post("/api/services/update", body | {"price": 0})
    set_merchant(owner.workspace.id)
    assert "warnings" not in api.post("/api/services/update", body | {"price": PRICE})


def test_booking_that_cannot_be_paid_is_refused_with_the_phone(owner: Owner, api: Api) -> None:
    salon = Salon.opened(api, requirePayment=True)
    call_console(owner.workspace.id, "set_booking_page", phone="+7 495 123-45-67")
    answer = visitor.call("POST", "/api/public/bookings", salon.order("2030-01-14T10:00"))
    assert (answer.status, answer.data["code"]) == (409, "by_phone_only")
    assert answer.data["phone"] == "+7 495 123-45-67"
    assert "+7 495 123-45-67" in answer.data["message"]
    assert api.get("/api/bookings/list")["bookings"] == []
    assert visitor.get(f"/api/public/services/{salon.service}/slots")["byPhone"]


def test_service_that_costs_nothing_is_booked_without_a_payment(owner: Owner, api: Api) -> None:
    salon = Salon.opened(api, requirePayment=True, price=0)
    slot = visitor.get(f"/api/public/services/{salon.service}/slots")["slots"][0]
    booked = visitor.post("/api/public/bookings", salon.order(slot["startAt"]))
    assert (booked["booking"]["status"], booked["amountDue"]) == ("confirmed", 0)


def test_every_button_that_pays_says_how_much(deposit: Checkout) -> None:
    path = deposit.hold()
    for page in (deposit.view(path), deposit.page_of_booking()):
        assert "Pay 450 ₽" in page.replace("\u00a0", " ")
