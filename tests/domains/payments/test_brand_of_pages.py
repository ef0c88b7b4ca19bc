"""The pages that a client meets for a booking show the business that takes the money."""

import re

import pytest

from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from tests.domains.payments.checkout import FORM, Checkout, visitor

pytestmark = pytest.mark.usefixtures("database")

LOGO, PHONE = "https://salon.example/logo.png", "+7 495 123-45-67"


@pytest.fixture
def branded(checkout: Checkout) -> Checkout:
    """A business with a logo, a colour, a phone and an address."""
    details = {"accent": "teal", "phone": PHONE, "address": "Arbat 1"}
    checkout.console("set_workspace", **details)
    workspaces.get(checkout.workspace).update([WorkspaceRow.logo_url.set(LOGO)])
    return checkout


def booked_page(checkout: Checkout) -> str:
    form = "at=2027-01-18T10:00:00%2B03:00&staff=&once=&name=Grace&email=grace@example.com"
    path = f"/book/{checkout.owner.workspace.slug}/{checkout.salon.service}"
    return visitor.call("POST", path, form.encode(), FORM).body.decode()


def test_every_page_for_a_booking_shows_the_same_business(branded: Checkout) -> None:
    held = booked_page(branded)
    pages = {
        "booked": held,
        "pay": branded.view(re.findall(r"/pay/[\w=-]{64}", held)[0]),
        "booking": branded.page_of_booking(),
        "cancel": branded.page_of_booking("?step=cancel"),
        "move": branded.page_of_booking("?step=move"),
    }
    home = f"/book/{branded.owner.workspace.slug}"
    for name, html in pages.items():
        header = html.partition("<header")[2].partition("</header>")[0]
        assert f'<img src="{LOGO}"' in header, name
        assert f'href="{home}"' in header, name
        assert branded.owner.workspace.name in header, name
        assert f'href="tel:{PHONE.replace(" ", "")}"' in header, name
        assert "/assets/booking-teal." in html or "/assets/times-teal." in html, name


def test_the_name_leads_nowhere_if_the_booking_page_is_off(branded: Checkout) -> None:
    path = branded.hold()
    branded.console("set_booking_page", isOn=False)
    header = branded.view(path).partition("<header")[2].partition("</header>")[0]
    assert LOGO in header
    assert "/book/" not in header


def test_what_is_due_comes_before_the_facts_of_the_booking(branded: Checkout) -> None:
    held = booked_page(branded)
    for html in (
        held,
        branded.view(re.findall(r"/pay/[\w=-]{64}", held)[0]),
        branded.page_of_booking(),
    ):
        due, facts = html.index("To pay now"), html.index('class="facts"')
        assert due < html.index("Pay ₽1,500" if "Pay ₽1,500" in html else "Pay 1,500") < facts


def test_the_confirmation_says_where_whom_to_call_and_where_the_mail_goes(
    branded: Checkout,
) -> None:
    html = booked_page(branded)
    assert "Arbat 1" in html
    assert "https://yandex.ru/maps/?text=Arbat%201" in html
    assert "The details are being sent to grace@example.com." in html
    branded.console("set_workspace", country="GB")
    assert "https://www.google.com/maps/search/?api=1&amp;query=Arbat%201" in (
        branded.page_of_booking()
    )


@pytest.mark.parametrize(
    ("step", "title"),
    [
        ("", "Your booking is awaiting payment"),
        ("?step=cancel", "Cancel this booking?"),
        ("?step=move", "Choose another time"),
    ],
)
def test_titles_name_the_step(branded: Checkout, step: str, title: str) -> None:
    branded.hold()
    name = branded.owner.workspace.name
    assert f"<title>{title} · {name}</title>" in branded.page_of_booking(step)


def test_pages_lead_to_the_privacy_policy_if_there_is_one(branded: Checkout) -> None:
    link = 'href="https://salon.example/rules"'
    slug, service = branded.owner.workspace.slug, branded.salon.service
    path = f"/book/{slug}/{service}?staff=any&at=2027-01-18T10:00:00%2B03:00"
    assert link not in visitor.call("GET", path).body.decode()
    branded.console("set_workspace", privacyUrl="https://salon.example/rules")
    form = visitor.call("GET", path).body.decode()
    assert link in form.partition("<form")[2].partition("</form>")[0]
    assert link in form.partition("<footer")[2]
    branded.hold()
    assert link in branded.page_of_booking().partition("<footer")[2]
