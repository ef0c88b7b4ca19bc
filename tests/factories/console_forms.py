"""A valid form for each page of the console that accepts one."""

import re
from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.transports.console.routes import (
    BOOKING,
    BOT,
    CLIENT,
    FORGOT_PASSWORD,
    FORM,
    INVITATION,
    PREFIX,
    RESET_PASSWORD,
    ROUTES,
    SIGN_UP,
    SIGN_UP_LINK,
    SITE,
    STAFF,
    WEBHOOK,
    WORKSPACE,
)
from infra.local.demo.examples import words_in
from tests.conftest import PASSWORD, all_rows, call_console
from tests.factories.console import EVENT, HOSTILE, Place
from tests.factories.recipes import example_of
from tests.support.sweep import sweep

DATES = f"{WORKSPACE}/services/{{service}}/dates"
OTHER_FORMS: dict[str, dict[str, str]] = {
    f"{PREFIX}/sign-in": {"email": "boss@example.com", "password": PASSWORD},
    f"{PREFIX}/sign-out": {},
    INVITATION: {"once": "1"},
    FORGOT_PASSWORD: {"email": "boss@example.com"},
    RESET_PASSWORD: {"password": "a new password"},
    SIGN_UP: {"email": "newcomer@example.com"},
    SIGN_UP_LINK: {
        "name": "Grace",
        "password": PASSWORD,
        "workspace": "Salon",
        "country": "GB",
        "terms": "yes",
        "personalData": "yes",
    },
    f"{PREFIX}/account": {"name": "Ada", "language": "ru"},
    f"{PREFIX}/account/workspaces": {"name": "Second", "country": "GB", "once": "1"},
    f"{PREFIX}/account/proof/{{proof}}": {},
    f"{PREFIX}/account/password": {"current": PASSWORD, "password": "a new password"},
    f"{PREFIX}/account/test-workspaces": {"name": "Tests", "once": "1"},
    f"{PREFIX}/account/sessions": {"id": "0" * 26},
    f"{PREFIX}/account/sign-out": {},
    f"{WORKSPACE}/leads/{{lead}}": {"notes": "Call back", "once": "1"},
    CLIENT: {"name": "Anna", "email": "", "phone": "", "tags": "", "notes": "", "ifVersion": ""},
    f"{SITE}/pages/{{page}}/sections": {"type": "heading", "text-0": "Rye"},
    f"{WORKSPACE}/clients-table": {"q": ""},
    f"{CLIENT}/file": {},
    f"{WORKSPACE}/products/many": {"pick": "{product}", "do": "archive"},
    f"{WORKSPACE}/services/many": {"pick": "{service}", "do": "archive"},
    DATES: {"date": "2036-01-02", "time": "10:00", "weeks": "1", "once": "1"},
    f"{WORKSPACE}/files": {"files": "@note.txt", "once": "1"},
    f"{WORKSPACE}/files/{{file}}/replace": {"newFile": "@note.txt", "once": "1"},
    **{
        f"{WORKSPACE}/{noun}/import{path}": form
        for noun in ("products", "services", "clients")
        for path, form in {
            "": {"file": "@note.txt", "once": "1"},
            "/{table}": {"action": "import", "once": "1"},
        }.items()
    },
    f"{WORKSPACE}/keys": {"name": "Laptop", "scopes": "crm:read", "once": "1"},
    f"{WORKSPACE}/apps/{{connection}}/allow": {"scopes": "pages:write"},
    f"{BOT}/embed": {"page": "{page}"},
    f"{BOT}/limits": {"daily": "5", "weekly": "", "monthly": "70"},
    f"{BOT}/capabilities": {"capabilities": "booking", "orderFormId": "", "privacyUrl": ""},
    f"{BOT}/knowledge": {"kind": "text", "title": "Delivery", "text": "On weekdays.", "once": "1"},
    f"{WORKSPACE}/forms": {"template": "contact", "once": "1"},
    FORM: {"title": "Call me", "name": "phone", "label": "Phone", "type": "phone", "options": ""},
    f"{FORM}/embed": {"page": "{page}"},
    f"{SITE}/pages/{{page}}/{{version}}": {"ifVersion": ""},
    f"{SITE}/pages/{{page}}/undo": {"ifVersion": ""},
    f"{WORKSPACE}/booking-page": {"isOn": "1", "phone": "+7 495 123-45-67"},
    f"{WORKSPACE}/bookings/new": {
        "action": "book",
        "date": "2027-01-20",
        "exact": "10:00",
        "outside": "1",
        "name": "Eve",
        "once": "1",
    },
    f"{WORKSPACE}/bookings/waiting": {
        "serviceId": "{service}",
        "day": "2036-01-01",  # a holiday of the only resource
        "name": "Eve",
        "email": "eve@example.com",
        "once": "1",
    },
    f"{WORKSPACE}/staff/{{staff}}/absence": {
        "from": "2036-06-01",
        "timeOff": "1",
        "reason": "Sick",
        "once": "1",
    },
    BOOKING: {"action": "cancelled"},
    f"{BOOKING}/payments/{{payment}}": {"amount": "10", "once": "1"},
    f"{WORKSPACE}/payment-settings": {"shopId": "shop", "provider": "test", "vatCode": "1"},
    f"{WORKSPACE}/balance": {"amount": "500", "once": "1"},
    f"{WORKSPACE}/webhooks": {"url": "https://bakery.example", "which": "all", "once": "1"},
    WEBHOOK: {"url": "https://bakery.example", "which": "chosen", "events": "lead.created"},
    f"{WEBHOOK}/status": {"status": "off"},
    f"{WEBHOOK}/test": {"once": "1"},
    f"{WEBHOOK}/deliveries": {"eventId": EVENT},
    f"{WEBHOOK}/secret": {"once": "1"},
    STAFF: {"name": "Anna", "timezone": "Europe/Moscow", "active": "yes"},
    f"{STAFF}/hours": {"open": "mon", "start-mon": "09:00", "end-mon": "18:00"},
    f"{WORKSPACE}/client-channels": {"channels": "mail"},
    f"{WORKSPACE}/notifications": {"mail": "lead", "language": "ru"},
    f"{WORKSPACE}/settings": {"name": "Bakery", "timezone": "Asia/Tomsk", "country": "DE"},
    f"{WORKSPACE}/members": {"email": "new@example.com", "role": "member", "once": "1"},
}
"""Forms whose controls are not the fields of their operation."""
OPEN = {route: page for route, page in ROUTES.items() if not page.admin}
"""Routes that an owner of a workspace may open."""
READ = [route for route, page in OPEN.items() if page.get]
SENT = [route for route, page in OPEN.items() if page.post]


def _form(route: str) -> dict[str, str]:
    """Return a valid form of a page: the example of its operation, as a user would type it."""
    if route in OTHER_FORMS:
        return OTHER_FORMS[route]
    operation = ROUTES[route].posts
    assert operation, f"the page {route} has no operation. Add its form to OTHER_FORMS."
    verb, _, noun = operation.partition("_")
    # The form of a change has the fields of the whole record.
    makers = [f"create_{noun}"] if verb == "update" and f"create_{noun}" in NAMES else []
    examples = [example_of(REGISTRY[name]) for name in (*makers, operation)]
    fields = {name: value for example in examples for name, value in example.items()}
    typed = {
        name: "on" if value is True else str(value)
        for name, value in fields.items()
        if isinstance(value, str | int) and value is not False and not words_in(value)
    }
    return typed | ({"once": "1"} if verb in {"create", "add"} else {})


NAMES = {entry.name for entry in REGISTRY.entries()}
FORMS = {route: _form(route) for route in SENT}
"""A valid form for each page that accepts one. ``Place.filled`` puts in the ids of records."""

every_route = pytest.mark.parametrize("route", OPEN)
sweep_of_routes = sweep("route", OPEN)
sweep_of_pages = sweep("route", READ)
every_form = pytest.mark.parametrize("route", SENT)


DRAFTS = {f"{SITE}/pages/{{page}}/{part}" for part in ("draft", "discard")}
"""Pages about the draft of a page, which editors would show instead of the page."""


def prepare(route: str, place: Place) -> None:
    """Bring about what the page of a route is about, if other pages would look different then.

    Drafts have a hostile text.
    """
    if route in DRAFTS:
        call_console(place.workspace_id, "save_page_draft", id=place.page, html=HOSTILE)
    if route == DATES:
        call_console(place.workspace_id, "update_service", id=place.service, fixedStarts=True)


def read_rows() -> dict[str, Any]:
    """Return the stored rows, except counters of visitors."""
    return {key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#", key)}


GUESTS = (f"{PREFIX}/sign-in", FORGOT_PASSWORD, RESET_PASSWORD, INVITATION)
"""Pages that are shown to people who are not signed in."""
VIEWS = {
    f"{PREFIX}/account": ("", "?do=second-factor"),
    BOOKING: ("", "?do=move", "?do=cancel"),
    f"{WORKSPACE}/bookings/new": ("", "?service={service}", "?service={service}&then={service}"),
    f"{BOT}/knowledge": ("", "?add=text", "?add=url", "?add=file"),
    f"{WORKSPACE}/bookings": ("", "?view=week", "?view=list"),
}
"""Queries of the pages that show other parts and forms then."""
