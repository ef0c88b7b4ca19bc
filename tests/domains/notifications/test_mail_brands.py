"""E-mails to clients have the header and the colour of the business, as its pages have."""

import re

import pytest

from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.lib import accents
from chalicelib.lib.markup import brands
from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.clients import ADA, book, mails_to
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

LOGO, PHONE = "https://salon.example/logo.png", "+7 495 123-45-67"
NOON = "2027-03-03T12:00:00Z"


@pytest.fixture
def salon(api: Api, owner: Owner, inbox: Inbox) -> Salon:
    """A salon with a logo, an accent and an address, and a phone for its booking page."""
    home = owner.workspace
    details = {"accent": "teal", "phone": "+7 495 000-00-00", "address": "Arbat 1"}
    call_console(home.id, "set_workspace", account_id=home.owner_id, **details)
    workspaces.get(home.id).update([WorkspaceRow.logo_url.set(LOGO)])
    made = Salon.opened(api)
    call_console(home.id, "set_booking_page", isOn=True, offer=[made.service], phone=PHONE)
    return made


def mailed(salon: Salon, inbox: Inbox, kind: str) -> str:
    book(salon, NOON)
    run_until_idle()
    return text_of(mails_to(inbox)[0], kind)


def test_a_mail_to_a_client_has_the_header_of_the_booking_page(
    salon: Salon, inbox: Inbox, owner: Owner
) -> None:
    html = mailed(salon, inbox, "html")
    (image,) = re.findall(r"<img [^>]+>", html)
    assert f'src="{LOGO}"' in image
    assert re.search(r'alt="(Logo|Логотип)" height="40"', image)
    header = html.partition('class="card"')[0].partition("<body")[2]
    assert f">{owner.workspace.name}</a>" in header, "the name stands there without the logo"
    assert re.search(rf'href="https?://\S+/book/{owner.workspace.slug}"', header)
    assert f'href="tel:{PHONE.replace(" ", "")}"' in header
    assert not re.search(r"url\(|<link|<script", html)


def test_a_mail_to_a_client_has_the_colours_of_its_pages(salon: Salon, inbox: Inbox) -> None:
    html = mailed(salon, inbox, "html")
    light, dark = accents.colours("teal")
    assert re.search(rf'class="button"[^>]+background:{light}', html)
    sheet = html.partition("@media")[2].partition("</style>")[0]
    assert f".button {{ background: {dark}" in sheet
    _, tokens = brands.palette(None)
    assert tokens["paper"] in sheet


def test_the_plain_text_of_a_mail_says_where_the_business_is(
    salon: Salon, inbox: Inbox, owner: Owner
) -> None:
    text = mailed(salon, inbox, "plain").replace("\r\n", "\n")
    assert f"--\n{owner.workspace.name}\nArbat 1\n{PHONE}\n" in text
    assert LOGO not in text


def test_a_mail_to_a_member_keeps_the_look_of_the_platform(
    salon: Salon, inbox: Inbox, owner: Owner
) -> None:
    choose(owner, owner.workspace.owner_id, "owner", "en", booking=["mail"])
    book(salon, NOON)
    run_until_idle()
    (message,) = [each for each in inbox.mails if each["To"] != ADA]
    html = text_of(message, "html")
    assert "<img" not in html
    assert accents.colours(None)[0] in html
    assert accents.colours("teal")[0] not in html
