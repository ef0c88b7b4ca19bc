"""Tests of phone numbers that visitors and callers enter together with other words."""

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.phones import find_phone
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.domains.notifications.clients import BOOK, visitor
from tests.factories.chat import ask, new_bot
from tests.factories.console import person
from tests.factories.examples import submit
from tests.factories.salon import CREATE, Salon
from tests.support.effort import slow_but_for
from tests.support.sweep import sweep
from tests.support.warned import warned

NOON = "2027-03-03T12:00:00Z"
MOBILE = "+79031112233"
ENTERED = {
    "8 903 111-22-33 mob": MOBILE,
    "8 903 111-22-33 MAX": MOBILE,
    "89031112233max": MOBILE,
    "WhatsApp: 8 (903) 111-22-33": MOBILE,
    "+49 30 1234567 (Anna)": "+49301234567",
    "+44 20 7946 0958 ask for DEF": "+442079460958",
    "8 903 111-22-33 (Viber)": MOBILE,
    "8 903 111-22-33 звонить после 18": MOBILE,
    "звонить с 10 до 18: 8 903 111 22 33, спросить Анну": MOBILE,
    "до 18 8 903 111-22-33": MOBILE,
    "8 903 111-22-33 2 этаж": MOBILE,
    "8 903 111-22-33, 8 916 123-45-67": MOBILE,
    "8 903 111-22-33 8 916 123-45-67": MOBILE,
    "+7 903 111 22 33 / 8 916 123 45 67": MOBILE,
    "8 903 111 22 33 18 00": MOBILE,
    "8 903 111-22-33 tg @anna!": MOBILE,
    "8 903 111-22-33 доб. 12 (Anna)": f"{MOBILE};ext=12",
    "\u202a+7 903 111-22-33\u202c": MOBILE,
    "+7\u202f903\u2009111\u201122\u221233": MOBILE,
    "\ufeff8\u00a0903 111\u201322\u201433\u200b": MOBILE,
    "＋７（９０３）１１１－２２－３３": MOBILE,
}
NO_NUMBERS = ["1-800-FLOWERS", "8 800 FLOWERS", "MAX", "звонить после 18", "8 903 I11 22 33"]


def clean(text: str) -> str:
    """Return an entered phone without invisible characters, with plain spaces."""
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


@sweep("text", ENTERED)
def test_words_around_a_number_are_ignored(text: str) -> None:
    assert find_phone(text, country="RU") == ENTERED[text]


@pytest.mark.parametrize("country", ["RU", "US", "DE"])
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_letters_are_not_read_as_digits(text: str, country: str) -> None:
    assert find_phone(text, country=country) is None


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("entered", slow_but_for([*ENTERED][::4], ENTERED))
class TestEveryEntrance:
    def test_a_visitor_books_with_the_number(self, entered: str, api: Api, time: Time) -> None:
        salon = Salon.opened(api)
        who = {"client": {"name": "Ada", "phone": entered}}
        for path, sender in ((BOOK, visitor), (CREATE, api)):
            booking_id = sender.post(path, salon.order(NOON) | who)["booking"]["id"]
            client = api.get(f"/api/bookings/{booking_id}")["booking"]["client"]
            expected = (ENTERED[entered], clean(entered))
            assert (client["phone"], client["phoneEntered"]) == expected
            salon.set_status(booking_id, "cancelled")

    def test_forms_chats_and_clients_accept_the_number(
        self, entered: str, api: Api, owner: Owner
    ) -> None:
        number = ENTERED[entered]
        fields = [{"name": "phone", "type": "phone", "label": "Phone"}]
        form = api.post("/api/forms/create", {"title": "Call", "fields": fields})["form"]["id"]
        lead = Api(None).post(f"/api/public/forms/{form}/submit", {"phone": entered})["id"]
        row = api.get(f"/api/forms/collection/{lead}")["lead"]
        assert (row["phone"], row["phoneEntered"]) == (number, clean(entered))
        assert row["data"]["phone"] == clean(entered)
        client = api.get(f"/api/clients/{row['clientId']}")["client"]
        assert client["phone"] == number
        ask(new_bot(owner), "Hello", contact={"phone": entered})
        (chat, _) = api.get("/api/forms/collection-list")["collections"]
        assert (chat["phone"], chat["phoneEntered"]) == (number, clean(entered))
        assert chat["clientId"] == client["id"]
        cleared = api.post("/api/forms/collection-update", {"id": lead, "phone": None})["lead"]
        assert (cleared["phone"], cleared["phoneEntered"]) == (None, None)
        update = api.post("/api/forms/collection-update", {"id": lead, "phone": entered})["lead"]
        assert (update["phone"], update["phoneEntered"]) == (number, clean(entered))
        same = api.post("/api/forms/collection-update", {"id": lead, "phone": number})["lead"]
        assert same == update
        history = api.get(f"/api/forms/collection/{lead}")["history"]
        assert history[-1]["change"] == "changed: phone"
        erased = call_operator("erase_client", workspaceId=owner.workspace.id, phone=entered)
        assert erased["leads"] == 2
        gone = api.get(f"/api/forms/collection/{lead}")["lead"]
        assert (gone["phone"], gone["phoneEntered"], gone["data"]) == (None, None, {})


BELARUS = "8 029 123-45-67"
"""A mobile number as it is dialled in Belarus. In Russia there is no such number."""


@pytest.mark.usefixtures("database")
class TestNumbersOfNoPlan:
    def test_a_required_phone_is_refused_with_an_example(
        self, api: Api, time: Time, owner: Owner
    ) -> None:
        salon = Salon.opened(api)
        who = {"client": {"name": "Ada", "phone": BELARUS}}
        fields = [{"name": "phone", "type": "phone", "label": "Phone", "required": True}]
        form = api.post("/api/forms/create", {"title": "Call", "fields": fields})["form"]["id"]
        contact = {
            "agentId": new_bot(owner).id,
            "message": "Call me",
            "contact": {"phone": BELARUS},
        }
        for sender, path, body, field in (
            (api, CREATE, salon.order(NOON) | who, "client.phone"),
            (visitor, BOOK, salon.order(NOON) | who, "client.phone"),
            (visitor, f"/api/public/forms/{form}/submit", {"phone": BELARUS}, "phone"),
            (visitor, "/api/agents/public/contact", contact, "contact.phone"),
        ):
            answer = sender.call_refused("POST", path, body)
            assert answer.status == 400
            (error,) = answer.data["errors"]
            assert (error["field"], error["key"]) == (field, "phone")
            assert "+7 912 345-67-89" in error["message"].replace("\u00a0", " ")

    def test_an_optional_phone_is_kept_as_entered(self, api: Api, time: Time, owner: Owner) -> None:
        salon = Salon.opened(api)
        for path, sender in ((BOOK, visitor), (CREATE, api)):
            email = "ada@example.com" if sender is api else "bob@example.com"
            who = {"client": {"name": "Ada", "email": email, "phone": BELARUS}}
            booking_id = sender.post(path, salon.order(NOON) | who)["booking"]["id"]
            client = api.get(f"/api/bookings/{booking_id}")["booking"]["client"]
            assert (client["phone"], client["phoneEntered"]) == (None, BELARUS)
            row = api.get(f"/api/clients/{client['id']}")["client"]
            assert (row["phone"], row["phoneEntered"]) == (None, BELARUS)
            salon.set_status(booking_id, "cancelled")
        fields = [{"name": "name", "label": "Name"}, {"name": "tel", "type": "phone"}]
        form = api.post("/api/forms/create", {"title": "Call", "fields": fields})["form"]["id"]
        lead_id = visitor.post(f"/api/public/forms/{form}/submit", {"tel": BELARUS})["id"]
        lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
        assert (lead["phone"], lead["phoneEntered"], lead["data"]) == (
            None,
            BELARUS,
            {"tel": BELARUS},
        )
        assert lead["clientId"] is None
        ask(new_bot(owner), "Hello", contact={"phone": BELARUS})
        (chat, *_) = api.get("/api/forms/collection-list")["collections"]
        assert (chat["phone"], chat["phoneEntered"]) == (None, BELARUS)
        for name, path in (
            ("leads", "/api/forms/collection-list"),
            ("clients", "/api/clients/list"),
        ):
            for search in ("8%20029", "029", "80291234567", "8%20(029)%20123-45-67"):
                assert api.get(f"{path}?search={search}")["total"] == 2, (name, search)
        assert api.get("/api/forms/collection-find?phone=%2B70291234567")["total"] == 0

    def test_the_console_shows_the_phone_as_entered(
        self, api: Api, time: Time, owner: Owner
    ) -> None:
        salon = Salon.opened(api)
        who = {"client": {"name": "Ada", "email": "ada@example.com", "phone": BELARUS}}
        booking = api.post(CREATE, salon.order(NOON) | who)["booking"]
        lead = api.post(
            "/api/forms/create",
            {"title": "Call", "fields": [{"name": "tel", "type": "phone", "label": "Phone"}]},
        )["form"]["id"]
        lead_id = visitor.post(f"/api/public/forms/{lead}/submit", {"tel": BELARUS})["id"]
        for path in (
            f"bookings/{booking['id']}",
            f"clients/{booking['client']['id']}",
            f"leads/{lead_id}",
            "leads",
            "clients",
        ):
            page = person(owner).get(f"/console/w/{owner.workspace.slug}/{path}")
            assert BELARUS in page.body.decode(), path

    def test_a_member_sets_only_valid_numbers_and_is_told(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada", phone=MOBILE)
        answer = api.post("/api/forms/collection-update", {"id": lead_id, "phone": BELARUS})
        assert (answer["lead"]["phone"], answer["lead"]["phoneEntered"]) == (None, BELARUS)
        assert warned(answer) == [{"code": "invalid_phone", "field": "phone"}]
        client = api.get("/api/clients/list")["clients"][0]["id"]
        refused = api.call_refused("POST", "/api/clients/update", {"id": client, "phone": BELARUS})
        (error,) = refused.data["errors"]
        assert (error["field"], error["key"]) == ("phone", "phone")
        assert "+7 912 345-67-89" in refused.data["message"]
        entered = "8 903 111-22-33 (Viber)"
        updated = api.post("/api/clients/update", {"id": client, "phone": entered})["client"]
        assert (updated["phone"], updated["phoneEntered"]) == (MOBILE, entered)
        cleared = api.post("/api/clients/update", {"id": client, "phone": None})["client"]
        assert (cleared["phone"], cleared["phoneEntered"]) == (None, None)

    def test_an_erasure_removes_what_was_entered(self, api: Api, time: Time, owner: Owner) -> None:
        salon = Salon.opened(api)
        who = {"client": {"name": "Ada", "email": "ada@example.com", "phone": BELARUS}}
        api.post(CREATE, salon.order(NOON) | who)
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        rows = json.dumps(all_rows(), default=repr)
        assert "029 123" not in rows
        assert "0291234" not in rows

    def test_former_lead_with_an_invalid_phone_is_read(self, api: Api, form: str) -> None:
        lead_id = submit(form, name="Ada")
        workspace_id = api.get("/api/workspaces/list")["activeWorkspaceId"]
        unit = UnitOfWork(workspace_id)
        row = LEADS.require(workspace_id, record_id=lead_id)
        row.phone = BELARUS
        unit.save(row)
        unit.commit()
        lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
        assert (lead["phone"], lead["phoneEntered"]) == (None, BELARUS)


def digits(text: Any) -> str:
    return re.sub("[^0-9]", "", "".join(str(unicodedata.decimal(c, "")) for c in text))


PARTS = st.sampled_from(
    [
        *ENTERED,
        *NO_NUMBERS,
        *"0123456789+-() ",
        "ABC",
        "max",
        "доб. ",
        "8 903",
        "111-22-33",
        "+49 30",
        "²",
        "٣",
    ]
)


@given(st.lists(PARTS, min_size=1, max_size=4).map("".join), st.sampled_from(["RU", "US", "DE"]))
def test_a_number_has_only_digits_of_the_text(text: str, country: str) -> None:
    phone = find_phone(text, country=country)
    if phone is None:
        return
    number, _, extension = phone.partition(";ext=")
    codes = ("7", "1", "49")
    bare = [number[1:], *(number[1:].removeprefix(code) for code in codes)]
    assert any(bare_number in digits(text) for bare_number in bare)
    assert extension in digits(text)
