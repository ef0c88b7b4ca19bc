"""The pages of the console for clients, with concurrent changes and erasure."""

import re
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.domains.client_profiles.operations import erasure
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.transports.console import clients
from tests.conftest import Api, Owner, Time
from tests.factories.console import Person, person
from tests.factories.examples import FORM, submit
from tests.factories.salon import Salon
from tests.transports.console.forms.helpers import error_beside, text, value_of

ADA = {"name": "Ada", "email": "ada@example.com", "phone": "84951234567"}


@pytest.fixture
def form(api: Api) -> str:
    form_id: str = api.post("/api/forms/create", FORM)["form"]["id"]
    return form_id


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/clients"


@pytest.fixture
def ada(api: Api, form: str) -> Any:
    """A client with a lead."""
    return client_of(api, submit(form, **ADA))


def client_of(api: Api, lead_id: str) -> Any:
    lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
    return api.get(f"/api/clients/{lead['clientId']}")["client"]


def read_client(owner: Owner, client_id: str) -> ClientRow:
    row = CLIENTS.find(owner.workspace.id, record_id=client_id)
    assert row is not None
    return row


def opened(console_owner: Person, path: str) -> dict[str, str]:
    """Open a client's page, and return the fields of its form as a browser would send them."""
    html = text(console_owner.get(path))
    inputs = re.findall(r'<input [^>]*name="(\w+)"[^>]* value="([^"]*)"', html)
    notes = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", html, re.DOTALL)
    assert notes
    return {**dict(inputs), "notes": notes[1]}


def names(console_owner: Person, path: str) -> list[str]:
    return re.findall(
        r'<strong>\s*<span class="name" title="([^"]*)"', text(console_owner.get(path))
    )


class TestList:
    def test_the_row_of_a_client_leads_to_its_page(
        self, ada: Any, console_owner: Person, path: str
    ) -> None:
        page = text(console_owner.get(path))
        assert f'<a class="row" href="{path}/{ada["id"]}">' in page
        assert "1 client<" in page
        assert "1 lead · 0 bookings" in page
        assert console_owner.get(f"{path}/{ada['id']}").status == 200

    def test_the_last_page_of_a_long_list_asks_to_search(
        self, form: str, console_owner: Person, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clients.LIST, "size", 1)
        monkeypatch.setattr(clients.LIST, "last", 2)
        for name in ("Cid", "Ada", "Bob"):
            submit(form, name=name, email=f"{name}@example.com")
        page = console_owner.get(f"{path}?sort=nameAsc&page=9")
        assert names(console_owner, f"{path}?sort=nameAsc&page=9") == ["Bob"]
        assert "3 clients<" in text(page)
        assert "The list ends here" in text(page)
        assert 'rel="next"' not in text(page)


class TestOneClient:
    def test_the_page_shows_contacts_leads_orders_and_bookings(
        self, ada: Any, console_owner: Person, path: str
    ) -> None:
        page = text(console_owner.get(f"{path}/{ada['id']}"))
        assert 'href="tel:+74951234567"' in page
        assert 'href="mailto:ada%40example.com"' in page
        assert "1 lead<" in page
        assert "No bookings yet" in page

    def test_a_client_without_leads_has_a_page(
        self, time: Time, api: Api, owner: Owner, path: str
    ) -> None:
        salon = Salon.opened(api)
        order = salon.order("2027-03-03T12:00:00Z") | {"client": ADA}
        client = api.post("/api/bookings/create", order)["booking"]["client"]
        page = person(owner).get(f"{path}/{client['id']}")
        assert page.status == 200
        assert "ada@example.com" in text(page)

    def test_a_form_saves_all_fields(
        self, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        page = f"{path}/{ada['id']}"
        fields = {"name": "Countess", "phone": "", "tags": " vip, ,rye ", "notes": "a\r\nb"}
        answer = console_owner.post(page, opened(console_owner, page) | fields)
        assert answer.headers["Location"] == f"{page}?done=client_saved"
        row = read_client(owner, ada["id"])
        assert (row.name, row.phone, row.email) == ("Countess", None, "ada@example.com")
        assert (list(row.tags), row.notes) == (["vip", "rye"], "a\nb")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", "x" * 300),
            ("email", "nobody"),
            ("phone", "evenings"),
            ("tags", "t" * 60),
            ("tags", ",".join(map(str, range(30)))),
        ],
    )
    def test_an_invalid_value_is_kept_and_reported_beside_its_field(
        self, field: str, value: str, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        page = f"{path}/{ada['id']}"
        answer = console_owner.post(page, opened(console_owner, page) | {field: value})
        assert answer.status == 400
        assert error_beside(answer, field)
        assert value_of(answer, field) == value
        assert read_client(owner, ada["id"]).name == "Ada"

    def test_a_client_keeps_a_name_or_a_contact(
        self, ada: Any, console_owner: Person, path: str
    ) -> None:
        page = f"{path}/{ada['id']}"
        answer = console_owner.post(
            page, opened(console_owner, page) | {"name": "", "email": "", "phone": ""}
        )
        assert answer.status == 400
        assert "erase it" in error_beside(answer, "name")

    @pytest.mark.parametrize("field", ["email", "phone"])
    def test_a_contact_of_another_client_leads_to_that_client(
        self, field: str, api: Api, form: str, ada: Any, console_owner: Person, path: str
    ) -> None:
        bob = client_of(api, submit(form, name="Bob", email="bob@example.com"))
        page = f"{path}/{bob['id']}"
        answer = console_owner.post(page, opened(console_owner, page) | {field: ADA[field].upper()})
        assert answer.status == 409
        assert "Another client" in error_beside(answer, field)
        assert f'href="{path}/{ada["id"]}"' in text(answer)
        assert value_of(answer, field) == ADA[field].upper()


class TestNewClient:
    def test_a_client_that_is_added_by_hand_has_the_typed_values(
        self, console_owner: Person, path: str, owner: Owner
    ) -> None:
        typed = {
            "name": "Eve",
            "phone": "8 (495) 123-45-67",
            "email": "",
            "birthday": "1985-12-24",
            "tags": "vip",
            "notes": "Rye",
            "once": "1",
        }
        answer = console_owner.post(path, typed)
        place, _, notice = answer.headers["Location"].partition("?")
        assert notice == "done=client_created"
        row = read_client(owner, place.rpartition("/")[2])
        assert (row.name, row.phone, row.email) == ("Eve", "+74951234567", None)
        assert (str(row.birthday), list(row.tags), row.notes) == ("1985-12-24", ["vip"], "Rye")
        assert console_owner.post(path, typed).headers["Location"] == answer.headers["Location"]
        assert "24 December 1985" in text(console_owner.get(place))

    def test_a_client_without_name_and_contacts_is_refused_beside_the_name(
        self, console_owner: Person, path: str
    ) -> None:
        answer = console_owner.post(path, {"notes": "Rye"})
        assert answer.status == 400
        assert error_beside(answer, "name")
        assert b"Rye" in answer.body

    def test_a_contact_of_another_client_leads_to_that_client(
        self, ada: Any, console_owner: Person, path: str
    ) -> None:
        answer = console_owner.post(path, {"name": "Ada", "email": ADA["email"]})
        assert answer.status == 409
        assert error_beside(answer, "email")
        assert f'href="{path}/{ada["id"]}"' in text(answer)

    def test_a_birthday_in_the_future_is_refused_beside_its_field(
        self, console_owner: Person, path: str
    ) -> None:
        answer = console_owner.post(path, {"name": "Ada", "birthday": "2999-01-01"})
        assert answer.status == 400
        assert error_beside(answer, "birthday")


class TestTwoPeople:
    def test_a_form_sent_twice_is_saved_once_without_a_conflict(
        self, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        page = f"{path}/{ada['id']}"
        form = opened(console_owner, page) | {"name": "Countess"}
        answers = [console_owner.post(page, form) for _ in "12"]
        assert {answer.headers["Location"] for answer in answers} == {f"{page}?done=client_saved"}
        assert read_client(owner, ada["id"]).name == "Countess"

    def test_a_client_erased_meanwhile_stays_erased(
        self, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        page = f"{path}/{ada['id']}"
        form = opened(console_owner, page)
        console_owner.post(f"{page}/erase")
        answer = console_owner.post(page, form | {"name": "Countess"})
        assert answer.status == 409
        assert "This client&#39;s data was erased" in answer.body.decode()
        assert b"Countess" not in answer.body
        assert read_client(owner, ada["id"]).name is None


class TestErase:
    def test_the_page_shows_what_would_go_and_removes_nothing(
        self, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        page = text(console_owner.get(f"{path}/{ada['id']}/erase"))
        assert "Erase the data of Ada?" in page
        for words in ("1 client record", "1 lead", "ada@example.com", "+74951234567"):
            assert words in page
        assert read_client(owner, ada["id"]).name == "Ada"

    def test_an_erasure_shows_what_was_removed(
        self, api: Api, ada: Any, form: str, console_owner: Person, path: str, owner: Owner
    ) -> None:
        submit(form, **ADA, idempotency_key="k")
        answer = console_owner.post(f"{path}/{ada['id']}/erase")
        assert answer.status == 200
        for words in ("1 client record", "2 leads", "1 stored response"):
            assert words in text(answer)
        assert b"Ada" not in answer.body
        assert read_client(owner, ada["id"]).is_nobody
        assert "ada@example.com" not in str(api.get("/api/forms/collection-list"))
        assert names(console_owner, path) == ["Erased client"]

    def test_an_erasure_sent_twice_does_no_harm(
        self, ada: Any, console_owner: Person, path: str
    ) -> None:
        page = f"{path}/{ada['id']}/erase"
        assert [console_owner.post(page).status for _ in "12"] == [200, 200]
        assert "Only the counts are kept" in text(console_owner.get(page))
        assert "Only the counts are kept" in text(console_owner.get(f"{path}/{ada['id']}"))
        assert b"<textarea" not in console_owner.get(f"{path}/{ada['id']}").body

    def test_an_erasure_that_takes_too_long_is_continued_by_the_next_click(
        self,
        ada: Any,
        form: str,
        console_owner: Person,
        path: str,
        owner: Owner,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        page, calls = f"{path}/{ada['id']}/erase", count()
        with monkeypatch.context() as patched:
            clock = SimpleNamespace(passed=lambda: next(calls) > 0)
            patched.setattr(erasure, "deadline", clock)
            answer = console_owner.post(page)
        assert "Press the button again" in text(console_owner.get(answer.headers["Location"]))
        assert not read_client(owner, ada["id"]).is_nobody
        assert console_owner.post(page).status == 200
        assert read_client(owner, ada["id"]).is_nobody

    def test_a_client_who_shares_a_contact_is_shown_and_kept(
        self, api: Api, form: str, ada: Any, console_owner: Person, path: str, owner: Owner
    ) -> None:
        eve = client_of(api, submit(form, name="Eve", email="eve@example.com"))["id"]
        submit(form, name="Eve", email="eve@example.com", phone=ADA["phone"])
        page = console_owner.get(f"{path}/{eve}/erase")
        assert "Possibly the same person" in text(page)
        assert f'href="{path}/{ada["id"]}"' in text(page)
        assert "Possibly the same person" in text(console_owner.post(f"{path}/{eve}/erase"))
        assert read_client(owner, ada["id"]).name == "Ada"
