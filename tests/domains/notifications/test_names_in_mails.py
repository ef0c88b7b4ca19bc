"""Names appear in emails to any address, so no name can contain a link."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import ValidationError
from chalicelib.core.text import has_link, unlinked
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.unit import run_unit
from tests.conftest import Api, Owner, call_console, call_operator
from tests.domains.notifications.clients import book, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import FORM, submit
from tests.factories.people import Account, accept_as_new, invite
from tests.factories.salon import Salon
from tests.support.effort import slow_but_for
from tests.support.sweep import sweep

pytestmark = pytest.mark.usefixtures("database")
HOSTILE = [
    "Your account is blocked http://evil.example/login",
    "Pay at evil.example",
    "Pay at EVIL.COM/now",
    "www.злодей",
    "Вход: банк.рф",
    "tg://resolve",
    "evil\u3002com",
    "evil\uff0ecom",
    "ev\u200bil.\u200bcom",
    "\uff45\uff56\uff49\uff4c\uff0e\uff43\uff4f\uff4d",
    "write to a@evil.io",
    "bit.ly/x",
    "xn--80ak6aa92e.xn--p1ai",
    "https\uff1a\uff0f\uff0fevil",
    "pay at evil.\u4e2d\u56fd",
    "evil.\u10d2\u10d4",
    "evil.\u0e44\u0e17\u0e22",
    "злодей.москва",
    "банк.дети",
]
GENUINE = [
    "Salon «Romashka»",
    "Стрижка дл.волос",
    "ул.Ленина, 5",
    "И.Петров",
    "Node.js for beginners",
    "Version 2.0, 1.5 h",
    "Dr. Smith & Co.",
    "U.S.A. tour",
    "г.Москва, м.Дети",
    "\u0393.\u03a0\u03b1\u03c0\u03ac\u03c2",
    "M.\u00c9lan",
    "24/7: cut and go",
    "👩\u200d💻 help...",
]


@sweep("name", HOSTILE)
def test_link_is_found_and_broken(name: str) -> None:
    assert has_link(name)
    assert name not in unlinked(name)


@sweep("name", GENUINE)
def test_genuine_name_has_no_link(name: str) -> None:
    assert unlinked(name) == name


@pytest.mark.parametrize("name", slow_but_for(HOSTILE[::8], HOSTILE))
class TestALink:
    def test_link_is_refused_in_names_used_in_emails(
        self, name: str, api: Api, owner: Owner
    ) -> None:
        salon = Salon.opened(api)
        bodies: dict[str, dict[str, Any]] = {
            "/api/services/create": {"name": name, "durationMin": 60, "price": 1},
            "/api/services/update": {"id": salon.service, "name": name},
            "/api/resources/create": {"name": name},
            "/api/resources/update": {"id": salon.resource, "name": name},
            "/api/forms/create": FORM | {"title": name},
        }
        for path, body in bodies.items():
            assert api.call_refused("POST", path, body).status == 400, path
        account = Account.create("ada")
        token = invite(Account(owner.workspace.owner_id, ""), owner.workspace.id, "i@example.com")
        for call in (
            lambda: call_console(
                owner.workspace.id, "set_workspace", workspaceId=owner.workspace.id, name=name
            ),
            lambda: account.call(owner.workspace.id, "update_account", name=name),
            lambda: accept_as_new(token, name),
            lambda: call_operator("create_workspace", owner=account.email, name=name),
        ):
            with pytest.raises(ValidationError):
                call()

    def test_link_in_a_stored_name_is_broken_in_emails(
        self, name: str, api: Api, owner: Owner, inbox: Inbox
    ) -> None:
        salon = Salon.opened(api)

        def rename(unit: Any) -> None:
            service = SERVICES.require(owner.workspace.id, record_id=salon.service)
            service.name = name
            unit.save(service)

        run_unit(owner.workspace.id, None, rename)
        book(salon, "2027-03-03T12:00:00Z")
        run_until_idle()
        (message,) = mails_to(inbox)
        assert unlinked(name).split()[-1] in text_of(message)
        assert name not in text_of(message)
        assert name not in str(message["Subject"])
        inbox.clear()
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        submit(form, name=name, email="a@example.com")
        run_until_idle()
        assert name not in str(inbox.only()["Subject"])


@pytest.mark.parametrize("name", slow_but_for(GENUINE[::6], GENUINE))
def test_genuine_name_is_emailed_unchanged(name: str, api: Api, inbox: Inbox) -> None:
    salon = Salon.opened(api)
    api.post("/api/services/update", {"id": salon.service, "name": name})
    book(salon, "2027-03-03T12:00:00Z")
    run_until_idle()
    assert name in text_of(mails_to(inbox)[0])


@given(st.text("ab.\u3002\uff0e:/\uff0f w-\u200bрфjs@\uff41", max_size=20))
def test_no_link_is_left(text: str) -> None:
    assert not has_link(unlinked(text))
    if not has_link(text):
        assert unlinked(text) == text
