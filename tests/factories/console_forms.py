"""A valid form for each page of the console that accepts one."""

import re
from typing import Any

import pytest

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
    SERVICE,
    SITE,
    STAFF,
    WEBHOOK,
    WORKSPACE,
)
from tests.conftest import PASSWORD, all_rows
from tests.factories.console import EVENT
from tests.support.sweep import sweep

FORMS: dict[str, dict[str, str]] = {
    f"{PREFIX}/sign-in": {"email": "boss@example.com", "password": PASSWORD},
    f"{PREFIX}/sign-out": {},
    INVITATION: {"once": "1"},
    FORGOT_PASSWORD: {"email": "boss@example.com"},
    RESET_PASSWORD: {"password": "a new password"},
    f"{PREFIX}/account": {"name": "Ada", "language": "ru"},
    f"{PREFIX}/account/proof/{{proof}}": {},
    f"{PREFIX}/account/password": {"current": PASSWORD, "password": "a new password"},
    f"{PREFIX}/account/sessions": {"id": "0" * 26},
    f"{PREFIX}/account/sign-out": {},
    f"{WORKSPACE}/leads": {"status": "new"},
    f"{WORKSPACE}/dialogs/{{dialog}}": {"text": "Hello"},
    f"{WORKSPACE}/leads/{{lead}}": {"notes": "Call back", "once": "1"},
    CLIENT: {"name": "Anna", "email": "", "phone": "", "tags": "", "notes": "", "ifVersion": ""},
    f"{CLIENT}/erase": {},
    f"{SITE}/domain": {"domain": "www.bakery.example"},
    f"{SITE}/pages/{{page}}/sections": {"type": "heading", "text-0": "Rye"},
    f"{WORKSPACE}/products": {"name": "Bread", "price": "120", "once": "1"},
    f"{WORKSPACE}/products/{{product}}": {"name": "Rye", "price": "130", "row": ""},
    f"{WORKSPACE}/products/{{product}}/delete": {},
    f"{WORKSPACE}/files": {"files": "@note.txt", "once": "1"},
    f"{WORKSPACE}/files/{{file}}/delete": {},
    f"{WORKSPACE}/keys": {"name": "Laptop", "scopes": "crm:read", "once": "1"},
    f"{WORKSPACE}/keys/{{id}}/revoke": {},
    f"{WORKSPACE}/apps/{{connection}}/allow": {"scopes": "pages:write"},
    f"{WORKSPACE}/apps/{{connection}}/disconnect": {},
    f"{WORKSPACE}/bots": {"name": "Anna", "systemPrompt": "x", "model": "demo", "once": "1"},
    f"{BOT}/settings": {"name": "Anna", "systemPrompt": "You bake bread.", "model": "demo"},
    f"{BOT}/embed": {"page": "{page}"},
    f"{BOT}/keys": {"name": "Site", "once": "1"},
    f"{BOT}/keys/{{key}}/delete": {},
    f"{BOT}/limits": {"daily": "5", "weekly": "", "monthly": "70"},
    f"{BOT}/capabilities": {"capabilities": "booking", "orderFormId": "", "privacyUrl": ""},
    f"{BOT}/knowledge": {"kind": "text", "title": "Delivery", "text": "On weekdays.", "once": "1"},
    f"{BOT}/knowledge/{{source}}": {},
    f"{WORKSPACE}/forms": {"template": "contact", "once": "1"},
    FORM: {"title": "Call me", "name": "phone", "label": "Phone", "type": "phone", "options": ""},
    f"{FORM}/embed": {"page": "{page}"},
    f"{FORM}/delete": {},
    f"{WORKSPACE}/sites": {"title": "Bakery", "once": "1"},
    SITE: {"title": "Bakery", "active": "on"},
    f"{SITE}/delete": {},
    f"{SITE}/pages": {"title": "Menu", "once": "1"},
    f"{SITE}/pages/{{page}}/html": {"html": "<h1>Menu</h1>"},
    f"{SITE}/pages/{{page}}/delete": {},
    f"{WORKSPACE}/deleted-sites/{{deleted_site}}": {},
    f"{SITE}/deleted-pages/{{deleted_page}}": {},
    f"{SITE}/pages/{{page}}/{{version}}": {"ifVersion": ""},
    f"{SITE}/pages/{{page}}/undo": {"ifVersion": ""},
    f"{WORKSPACE}/booking-page": {"isOn": "1", "phone": "+7 495 123-45-67"},
    f"{WORKSPACE}/booking-page/assistants": {"isOn": "1"},
    f"{WORKSPACE}/bookings/new": {
        "action": "book",
        "date": "2027-01-20",
        "exact": "10:00",
        "outside": "1",
        "name": "Eve",
        "once": "1",
    },
    BOOKING: {"action": "cancelled"},
    f"{BOOKING}/payments/{{payment}}": {"amount": "10", "once": "1"},
    f"{WORKSPACE}/payment-settings/former/{{merchant}}": {},
    f"{WORKSPACE}/payment-settings": {"shopId": "shop", "provider": "test", "vatCode": "1"},
    f"{WORKSPACE}/payment-settings/receipts": {"closedBy": "register"},
    f"{SERVICE}/payment": {"depositPercent": "50", "refundUntilMin": "1:00"},
    f"{WORKSPACE}/balance": {"amount": "500", "once": "1"},
    f"{WORKSPACE}/webhooks": {"url": "https://bakery.example", "events": "all", "once": "1"},
    WEBHOOK: {"url": "https://bakery.example", "events": "chosen", "types": "lead.created"},
    f"{WEBHOOK}/status": {"status": "off"},
    f"{WEBHOOK}/test": {"once": "1"},
    f"{WEBHOOK}/deliveries": {"eventId": EVENT},
    f"{WEBHOOK}/secret": {"once": "1"},
    f"{WEBHOOK}/delete": {},
    f"{WORKSPACE}/services": {"name": "Haircut", "durationMin": "1:30", "once": "1"},
    SERVICE: {"name": "Haircut", "durationMin": "90", "active": "yes"},
    f"{SERVICE}/delete": {},
    f"{WORKSPACE}/staff": {"name": "Anna", "once": "1"},
    STAFF: {"name": "Anna", "timezone": "Europe/Moscow", "active": "yes"},
    f"{STAFF}/delete": {},
    f"{STAFF}/hours": {"open": "mon", "start-mon": "09:00", "end-mon": "18:00"},
    f"{STAFF}/time-off": {"startAt": "2027-05-01", "once": "1"},
    f"{WORKSPACE}/closed-days": {"startAt": "2027-05-01", "once": "1"},
    f"{WORKSPACE}/notifications": {"mail": "lead", "language": "ru"},
    f"{WORKSPACE}/settings": {"name": "Bakery", "timezone": "Asia/Tomsk", "country": "DE"},
    f"{WORKSPACE}/members": {"email": "new@example.com", "role": "member", "once": "1"},
    f"{WORKSPACE}/members/{{member}}": {},
}
"""A valid form for each page that accepts one. ``Place.filled`` puts in the ids of records."""
OPEN = {route: page for route, page in ROUTES.items() if not page.admin}
"""Routes that an owner of a workspace may open."""
READ = [route for route, page in OPEN.items() if page.get]
SENT = [route for route, page in OPEN.items() if page.post]

every_route = pytest.mark.parametrize("route", OPEN)
sweep_of_routes = sweep("route", OPEN)
sweep_of_pages = sweep("route", READ)
every_form = pytest.mark.parametrize("route", SENT)


def read_rows() -> dict[str, Any]:
    """Return the stored rows, except counters of visitors."""
    return {key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#", key)}
