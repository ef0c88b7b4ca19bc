"""The pages of the console for leads, with concurrent changes and the export."""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.operations import lead_export
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.engine import audit
from chalicelib.engine.connection import connection
from chalicelib.engine.listing import counters, queries
from chalicelib.engine.unit import run_unit
from chalicelib.transports.console import leads
from tests.conftest import Answer, Owner, run_concurrently
from tests.factories.console import HOSTILE, Person, World
from tests.factories.examples import submit
from tests.transports.console.forms.helpers import error_beside, text, value_of

RUSSIAN = "ru-RU,ru"


def new_leads(world: World, count: int = 1, **attributes: Any) -> list[str]:
    """Create leads in one unit of work, and return their ids, oldest first."""
    home, lead_ids = world.here.workspace_id, []

    def stage(unit: Any) -> None:
        lead_ids.clear()
        for number in range(count):
            values = {"status": "new", "name": f"Person {number}", "data": {}, "day": "2026-01-01"}
            lead = LEADS.new(home, **values | {"source_name": "direct"} | attributes)
            unit.create(lead)
            lead_ids.append(lead.id)

    run_unit(home, None, stage)
    return lead_ids


def read_lead(world: World, lead_id: str) -> LeadRow:
    """Return a stored lead."""
    return LEADS.require(world.here.workspace_id, record_id=lead_id)


def listed_leads(page: Answer) -> list[str]:
    """Return the ids of the leads on a page of the list, in order."""
    return re.findall(r'class="row" href="[^"]*/leads/([0-9A-Z]+)"', page.body.decode())


def form_of(page: Answer) -> dict[str, str]:
    """Return the fields of a lead's form as a browser would send them unchanged."""
    html = page.body.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    (notes,) = re.findall(r"<textarea[^>]*>\n([^<]*)</textarea>", html)
    fields = {
        field.name: value_of(page, field.name)
        for field in leads.FORM.fields
        if field.name != "notes"
    }
    return {**{name: unescape(value) for name, value in hidden.items()}, **fields} | {
        "notes": unescape(notes)
    }


class TestList:
    def test_leads_are_listed_newest_first_page_by_page_with_the_filters_kept(
        self, world: World
    ) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/leads"
        lead_ids = new_leads(world, leads.SIZE + 3, tags=["vip"])
        first = console_owner.get(f"{path}?tag=vip&status=new")
        assert listed_leads(first) == lead_ids[:2:-1]
        assert "23 leads" in text(first)
        (following,) = re.findall(r'href="(\?[^"]*page=2[^"]*)"', text(first))
        assert {"tag=vip", "status=new", "page=2"} == set(following[1:].split("&"))
        second = console_owner.get(path + following)
        assert listed_leads(second) == lead_ids[2::-1]
        assert listed_leads(console_owner.get(f"{path}?tag=vip&page=9")) == []

    @pytest.mark.parametrize(
        ("query", "is_listed"),
        [
            ("status=rejected", True),
            ("status=completed", False),
            ("q=rye", True),
            ("q=wheat", False),
            ("tag=vip", True),
            ("tag=new", False),
            ("from=2020-01-01&to=2999-01-01&status=rejected", True),
            ("to=2020-01-01", False),
            ("from=2999-01-01", False),
        ],
    )
    def test_a_filter_selects_leads(self, query: str, is_listed: bool, world: World) -> None:
        (lead_id,) = new_leads(
            world, status="rejected", tags=["vip"], data={"message": "Rye bread"}
        )
        page = world.person("member").get(f"{world.here.path}/leads?{query}")
        assert (lead_id in listed_leads(page)) is is_listed
        assert listed_leads(page) or "Nothing found" in text(page)

    @pytest.mark.parametrize("query", ["from=yesterday", "status=odd", "tag=" + "x" * 51])
    def test_a_wrong_filter_is_reported_and_ignored(self, query: str, world: World) -> None:
        page = world.person("member").get(f"{world.here.path}/leads?{query}")
        assert page.status == 400
        assert listed_leads(page) == [world.here.lead]
        assert 'id="problem"' in text(page)

    def test_the_overview_leads_to_new_leads_and_to_each_lead(self, world: World) -> None:
        page = text(world.person("member").get(world.here.path))
        assert f'href="{world.here.path}/leads?status=new"' in page
        assert f'href="{world.here.path}/leads/{world.here.lead}"' in page
        assert f'href="{world.here.path}/dialogs/{world.here.dialog}"' in page


class TestLead:
    def test_a_lead_is_shown_with_labels_and_names(self, world: World) -> None:
        owner = Owner(workspaces.get(world.here.workspace_id))
        api = owner.api()
        product = api.post("/api/products/create", {"name": "Loaf", "price": 9_900})["product"]
        form = api.post(
            "/api/forms/create",
            {
                "title": "Order a cake",
                "fields": [
                    {"name": "name", "label": "Your name"},
                    {"name": "email", "label": "Your mail", "type": "email"},
                    {"name": "ok", "label": "I agree", "type": "consent"},
                ],
            },
        )["form"]["id"]
        lead = submit(
            form,
            name="Ada",
            email="ada@example.com",
            ok="on",
            items=[{"productId": product["id"], "quantity": 2}],
        )
        console_owner, path = world.person("boss"), f"{world.here.path}/leads/{lead}"
        console_owner.post(path, {"status": "completed"})
        page = text(console_owner.get(path))
        for words in ("Order a cake", "Your mail", "ada@example.com", "I agree", "Loaf", "198"):
            assert words in page
        assert "Status: new → completed" in page
        assert "boss" in page[page.index("Status: new → completed") :]
        api.post("/api/forms/delete", {"id": form})
        assert "Your mail" in text(console_owner.get(path))

    def test_a_lead_of_a_dialog_links_to_it(self, world: World) -> None:
        (lead,) = new_leads(world, dialog_id=world.here.dialog)
        member = world.person("member")
        link = f'href="{world.here.path}/dialogs/{world.here.dialog}"'
        assert link in text(member.get(f"{world.here.path}/leads/{lead}"))
        dialogs = text(member.get(f"{world.here.path}/dialogs?lead={lead}"))
        assert f"{world.here.path}/dialogs/{world.here.dialog}" in dialogs

    def test_one_click_sets_the_status_and_the_same_status_changes_nothing(
        self, world: World
    ) -> None:
        member, path = world.person("member"), f"{world.here.path}/leads/{world.here.lead}"
        for _ in range(2):
            answer = member.post(path, {"status": "in_progress"})
            assert answer.headers["Location"] == f"{path}?done=lead_status_set"
        lead = read_lead(world, world.here.lead)
        assert (lead.status, lead.revision) == ("in_progress", 2)

    def test_only_the_fields_that_a_person_changed_are_sent(self, world: World) -> None:
        member, path = world.person("member"), f"{world.here.path}/leads/{world.here.lead}"
        form = form_of(member.get(path))
        assert member.post(path, form).headers["Location"] == path
        assert read_lead(world, world.here.lead).revision == 1
        form |= {"notes": "Call back\r\non Friday", "tags": "cake, , vip,cake"}
        assert "done=lead_saved" in member.post(path, form).headers["Location"]
        lead = read_lead(world, world.here.lead)
        assert (lead.notes, lead.tags) == ("Call back\non Friday", ["cake", "vip"])
        assert lead.name == HOSTILE
        changed_fields = audit.latest(world.here.workspace_id, 1)[0].fields
        assert sorted(changed_fields) == ["ifVersion", "notes", "tags"]

    def test_wrong_values_are_shown_beside_their_fields_and_kept(self, world: World) -> None:
        member, path = world.person("member"), f"{world.here.path}/leads/{world.here.lead}"
        form = form_of(member.get(path))
        answer = member.post(path, form | {"email": "nobody", "tags": "x" * 51})
        assert answer.status == 400
        assert error_beside(answer, "email")
        assert error_beside(answer, "tags")
        assert value_of(answer, "email") == "nobody"
        assert read_lead(world, world.here.lead).revision == 1


class TestTwoPeople:
    def test_what_the_other_changed_is_shown_beside_what_was_typed_and_save_sends_it(
        self, world: World
    ) -> None:
        console_owner, member = world.person("boss"), world.person("member")
        path = f"{world.here.path}/leads/{world.here.lead}"
        mine = form_of(member.get(path)) | {"notes": "Mine", "tags": "mine"}
        theirs = form_of(console_owner.get(path)) | {"notes": "Theirs", "name": "Ada"}
        assert console_owner.post(path, theirs).status == 303
        answer = member.post(path, mine)
        assert answer.status == 409
        page = text(answer)
        assert re.search(r"Notes</dt><dd>Now: Theirs<br>You typed: Mine<", page)
        assert re.search(r"Name</dt><dd>Now: Ada<br>You typed: you have not changed it<", page)
        form = form_of(answer)
        assert (form["notes"], form["tags"], form["name"]) == ("Mine", "mine", "Ada")
        assert read_lead(world, world.here.lead).notes == "Theirs"
        assert member.post(path, form).status == 303
        lead = read_lead(world, world.here.lead)
        assert (lead.notes, lead.tags, lead.name) == ("Mine", ["mine"], "Ada")

    def test_a_form_sent_twice_is_no_conflict(self, world: World) -> None:
        path = f"{world.here.path}/leads/{world.here.lead}"
        member = world.person("member")
        form = form_of(member.get(path)) | {"notes": "Mine"}
        tabs = [Person(member.email, member.token) for _ in "123"]
        answers = run_concurrently(3, lambda number: tabs[number].post(path, form))
        assert {answer.headers["Location"] for answer in answers} == {f"{path}?done=lead_saved"}
        assert read_lead(world, world.here.lead).revision == 2


def table(answer: Answer, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a CSV file by the column titles."""
    assert answer.status == 200
    assert answer.body.startswith(b"\xef\xbb\xbf")
    file = io.StringIO(answer.body.decode("utf-8-sig"), newline="")
    return list(csv.DictReader(file, delimiter=delimiter, strict=True))


HOSTILE_CELLS = [
    "=1+1",
    "+79161234567",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\uff1d1",
    '=HYPERLINK("http://evil.example","x")',
    'a";=1+1;"',
    "a,=1",
    "a;=1",
    "a\r\n=1",
    HOSTILE,
    "\u202e=1",
    "Пекарня «Ёж»",
    "😀",
]
"""Cells that a spreadsheet could run, divide or show in another encoding."""


class TestExport:
    def test_a_manager_downloads_the_leads_of_the_filter(self, world: World) -> None:
        new_leads(world, 3, status="completed", data={"message": "Rye"}, tags=["a", "b"])
        manager, path = world.person("manager"), f"{world.here.path}/leads"
        answer = manager.post(path, {"status": "completed"})
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        name = re.fullmatch(
            r'attachment; filename="[\w-]+-leads-\d{4}-\d\d-\d\d\.csv"',
            answer.headers["Content-Disposition"],
        )
        assert name
        rows = table(answer)
        assert [row["Name"] for row in rows] == ["Person 2", "Person 1", "Person 0"]
        assert {(row["Status"], row["message"], row["Tags"]) for row in rows} == {
            ("completed", "Rye", "a, b")
        }
        entry = audit.latest(world.here.workspace_id, 1)[0]
        assert (entry.operation, entry.fields) == ("export_leads", ["status"])
        assert entry.resources == ["rows:3"]

    def test_a_file_for_a_russian_reader_has_russian_words_and_semicolons(
        self, world: World
    ) -> None:
        manager = world.person("manager")
        answer = manager.post(f"{world.here.path}/leads", accept_language=RUSSIAN)
        (row,) = table(answer, ";")
        assert row["Статус"] == "новая"

    @pytest.mark.parametrize(("language", "point"), [("ru", ","), ("en", ".")])
    def test_numbers_are_written_as_the_reader_writes_them(
        self, language: str, point: str, world: World
    ) -> None:
        cart = [{"name": "Loaf", "sku": None, "price": 9_750, "quantity": 2}]
        odd = {"n": -12.5, "big": 1e16, "small": 1e-7, "count": 3, "text": "1.5", "yes": True}
        new_leads(world, data={CART: cart, **odd})
        answer = world.person("boss").post(f"{world.here.path}/leads", accept_language=language)
        row, *_ = table(answer, leads.DELIMITERS[language])
        assert row["Сумма заказа" if language == "ru" else "Order total"] == f"195{point}0"
        assert (row["n"], row["small"]) == (f"-12{point}5", f"0{point}0000001")
        assert (row["big"].rstrip("0,."), row["count"], row["text"]) == ("1", "3", "1.5")

    def test_fields_that_repeat_the_contacts_have_no_column_and_heads_are_unique(
        self, world: World
    ) -> None:
        form = FORMS.new(
            world.here.workspace_id,
            title="Order",
            fields=[
                {"name": name, "label": label, "type": "text", "required": False}
                for name, label in (("who", "Name"), ("mail", "E-mail"))
            ],
        )
        run_unit(world.here.workspace_id, None, lambda unit: unit.create(form))
        data = {"who": "Ada Lovelace", "mail": "ada@example.com"}
        new_leads(world, form_id=form.id, name="Ada", email="ada@example.com", data=data)
        answer = world.person("manager").post(f"{world.here.path}/leads", {"form": form.id})
        (row,) = table(answer)
        assert (row["Name"], row["Name (who)"]) == ("Ada", "Ada Lovelace")
        assert "E-mail (mail)" not in row

    @pytest.mark.parametrize("limit", ["", "status=new"])
    def test_too_many_leads_ask_for_a_shorter_period(
        self, limit: str, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lead_export, "MAX_EXPORTED", 2)
        new_leads(world, 2)
        console_owner, path = world.person("boss"), f"{world.here.path}/leads"
        fields = dict([limit.split("=")]) if limit else {}
        for more in ({}, {"q": "e"}):
            answer = console_owner.post(path, fields | more)
            assert answer.status == 413
            assert "Choose a shorter period" in text(answer)
        assert not [
            e for e in audit.latest(world.here.workspace_id) if e.operation == "export_leads"
        ]

    @pytest.mark.parametrize("language", ["en", "ru"])
    def test_no_cell_begins_like_a_formula(self, language: str, world: World) -> None:
        for value in HOSTILE_CELLS:
            data = {"message": value, "n": -5}
            new_leads(world, name=f"{value}!", notes=value, tags=[value[:50]], data=data)
        console_owner, path = world.person("boss"), f"{world.here.path}/leads"
        answer = console_owner.post(path, accept_language=language)
        delimiter = leads.DELIMITERS[language]
        raw = answer.body.decode("utf-8-sig")
        for row in csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter, strict=True):
            for cell in row:
                assert not re.match("\\s*[=+@\uff1d-](?!5$)|[\t\r\n]", cell), cell
        # Every cell is in quotes, so another delimiter than the file's begins no new cell.
        assert re.fullmatch(rf'("(?:[^"]|"")*"({delimiter}|\r\n))+', raw)
        messages = [row["message"].removeprefix("'") for row in table(answer, delimiter)]
        assert messages[: len(HOSTILE_CELLS)] == HOSTILE_CELLS[::-1]

    def test_foreign_ids_export_nothing(self, world: World) -> None:
        form = stored_form(world)
        answer = world.person("boss").post(f"{world.here.path}/leads", {"form": form})
        assert table(answer) == []


def stored_form(world: World) -> str:
    """Return the form of the other workspace's lead."""
    lead = LEADS.require(world.there.workspace_id, record_id=world.there.lead)
    return str(lead.form_id)


def test_a_search_for_an_odd_text_is_escaped_in_the_pager(world: World) -> None:
    new_leads(world, leads.SIZE + 1, name="a&b=<c>")
    page = world.person("boss").get(f"{world.here.path}/leads?q={quote('a&b=<c>')}")
    assert "q=a%26b%3D%3Cc%3E" in text(page)


@contextmanager
def rows_read() -> Iterator[list[int]]:
    """Yield a list of the rows that each request to the database reads in the ``with`` block."""
    row_counts: list[int] = []

    def note(parsed: dict[str, Any], **_: object) -> None:
        batches = parsed.get("Responses") or {}
        rows = sum(map(len, batches.values())) if isinstance(batches, dict) else 0
        row_counts.append(parsed.get("ScannedCount", 0) + rows + ("Item" in parsed))

    events = connection().client.meta.events
    events.register("after-call.dynamodb", note)
    try:
        yield row_counts
    finally:
        events.unregister("after-call.dynamodb", note)


MOST_ROWS = 60
"""Rows that a page may read. Each is smaller than 4 KB, so it costs one read unit at most."""


@pytest.mark.parametrize(
    "query", ["", "status=new", "form={form}", "page=2", "status=new&from=2999-01-01"]
)
def test_a_page_reads_as_many_rows_however_many_leads_there_are(
    query: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of few rows are read as a whole, so the test sets thresholds that make all lists large.

    A counter has rows in up to ``SHARDS`` shards. Each write adds to a random shard.
    """
    monkeypatch.setattr(queries, "SMALL_ROWS", 0)
    member, form = world.person("member"), read_lead(world, world.here.lead).form_id
    path = f"{world.here.path}/leads?{query.format(form=form)}"
    counts = []
    new_leads(world, 45, form_id=form)
    for _ in range(2):
        new_leads(world, 45, form_id=form)
        with rows_read() as rows:
            assert member.get(path).status == 200
        counts.append(sum(rows))
    assert max(counts) <= MOST_ROWS
    assert abs(counts[0] - counts[1]) < counters.SHARDS
