"""The pages on which members import products, services and clients."""

import html
import re
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.imports.flows.reading import read_table
from chalicelib.domains.imports.operations.imports import FIELDS
from chalicelib.engine import jobs
from chalicelib.lib.localized import LANGUAGES, Language
from tests.conftest import Owner, call_console
from tests.factories.console import Person, person
from tests.factories.exports import download
from tests.factories.workbooks import xlsx

MAX_BYTES = 60_000
CLIENTS = [
    ["Кто", "Телефон", "Любимый цвет"],
    ["Анна", "+7 912 345-67-89", "red"],
    ["Никто", "", ""],
]


def uploaded(user: Person, path: str, name: str, body: bytes) -> str:
    answer = user.post(path, {"once": "1"}, files=[("file", name, body)])
    assert answer.status == 303, answer.body.decode()
    return answer.headers["Location"]


def text_of(user: Person, path: str, language: str = "en") -> str:
    answer = user.get(path, Accept_Language=language)
    assert answer.status == 200
    assert len(answer.body) <= MAX_BYTES
    return html.unescape(answer.body.decode())


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_workbook_is_looked_at_and_imported(owner: Owner, language: str) -> None:
    base, user = f"/console/w/{owner.workspace.slug}", person(owner)
    assert f'href="{base}/clients/import"' in text_of(user, f"{base}/clients")
    page = uploaded(user, f"{base}/clients/import", "base.xlsx", xlsx(CLIENTS))
    assert call_console(owner.workspace.id, "list_files")["total"] == 0, "no file has a public URL"
    shown = text_of(user, page, language)
    assert "Любимый цвет" in shown
    assert "Кто" in shown
    listed = call_console(owner.workspace.id, "list_clients")
    assert listed["total"] == 0
    chosen = {"column:Кто": "name", "column:Телефон": "phone", "column:Любимый цвет": "notes"}
    again = user.post(page, {**chosen, "action": "preview", "once": "1"})
    assert re.search(r"Анна", again.body.decode())
    started = user.post(page, {**chosen, "action": "import", "once": "2"})
    assert started.status == 303
    progress = started.headers["Location"]
    assert f'href="{progress}"' in text_of(user, progress), "a button refreshes the page"
    assert "http-equiv" not in text_of(user, progress)
    jobs.run(JOB_HANDLERS)
    done = text_of(user, progress, language)
    url = re.search(r'class="button" href="([^"]+)" download', done)
    assert url is not None
    report = download(url[1]).decode("utf-8-sig")
    reason = "Нет ни телефона" if language == "ru" else "neither a phone"
    assert "Никто" in report
    assert reason in report
    (client,) = call_console(owner.workspace.id, "list_clients")["clients"]
    assert (client["name"], client["notes"]) == ("Анна", "red")
    redirection = user.get(page, Accept_Language=language)
    gone = user.get(redirection.headers["Location"], Accept_Language=language)
    assert (redirection.status, gone.status) == (303, 404)
    assert (
        "Choose it again" if language == "en" else "Выберите файл ещё раз"
    ) in gone.body.decode()


def test_a_second_click_starts_no_second_import(owner: Owner) -> None:
    base, user = f"/console/w/{owner.workspace.slug}", person(owner)
    page = uploaded(user, f"{base}/clients/import", "base.xlsx", xlsx(CLIENTS))
    form = {"column:Телефон": "phone", "action": "import", "once": "2"}
    assert user.post(page, form).headers["Location"] == user.post(page, form).headers["Location"]


def test_a_file_that_is_no_table_is_refused_in_the_language_of_the_page(owner: Owner) -> None:
    base, user = f"/console/w/{owner.workspace.slug}", person(owner)
    page = uploaded(user, f"{base}/products/import", "goods.pdf", b"%PDF-1.7\n")
    answer = user.get(page, Accept_Language="ru")
    assert answer.status == 400
    assert "не таблица" in answer.body.decode()


def test_a_wide_table_stays_within_the_size_of_a_page(owner: Owner) -> None:
    base, user = f"/console/w/{owner.workspace.slug}", person(owner)
    header = ["sku", "name", "price", *[f"Характеристика товара {n}" for n in range(300)]]
    row = ["A-1", "Хлеб", "10", *["длинное значение характеристики" for _ in range(300)]]
    page = uploaded(user, f"{base}/products/import", "wide.xlsx", xlsx([header, row]))
    shown = text_of(user, page)
    assert "Характеристика товара 299" in shown
    form = {"column:Характеристика товара 1": "Description", "action": "preview", "once": "1"}
    assert "длинное значение" in user.post(page, form).body.decode()


def test_every_field_has_a_name_in_the_console(owner: Owner) -> None:
    request = person(owner)
    for noun, fields in FIELDS.items():
        base = f"/console/w/{owner.workspace.slug}/{noun}/import"
        page = uploaded(request, base, "t.csv", b"name,sku,price,phone\na,b,1,+79123456789\n")
        shown = text_of(request, page)
        for name in fields:
            assert f'value="{name}"' in shown


@pytest.mark.parametrize("language", ["en", "ru"])
def test_exported_clients_are_imported_with_their_birthdays(owner: Owner, language: str) -> None:
    base, user = f"/console/w/{owner.workspace.slug}", person(owner)
    values = {"email": "ada@example.com", "phone": "+79123456789", "externalId": "crm-1"}
    values |= {"birthday": "1985-12-24", "tags": ["vip", "new"], "notes": "Rye"}
    client = call_console(owner.workspace.id, "create_client", name="Ada", **values)["client"]
    exported = user.post(f"{base}/clients-table", Accept_Language=language)
    assert exported.status == 200
    call_console(owner.workspace.id, "erase_client", id=client["id"])
    page = uploaded(user, f"{base}/clients/import", "clients.csv", exported.body)
    shown = text_of(user, page, language)
    assert ("24 December 1985" if language == "en" else "24 декабря 1985") in shown
    user.post(page, {"action": "import", "once": "2"})
    jobs.run(JOB_HANDLERS)
    listed = call_console(owner.workspace.id, "list_clients", search="ada@example.com")
    (again,) = listed["clients"]
    assert {name: again[name] for name in values} == values


SENTENCES = [
    ("products", 'sku,name,price\n1,a,x\n2,b,"10,000"\n3,c,1.234\n,d,1\n4,e,5\n4,f,6\n'),
    ("products", "sku,name,price,currency\n1,a,5,USD\n"),
    ("products", "sku,name,price,status,barcode\n1,a,5,maybe,\n2,b,5,active,123\n"),
    ("services", "name,duration,price\na,soon,5\nb,60,from 5\n"),
    ("clients", "name,phone,email\na,,\nb,,wrong\nc,+79123456789,\nd,+79123456789,wrong\n"),
    ("clients", "phone,birthday\n+79123456789,12.04\n+79123456780,soon\n+79123456781,03/04/1985\n"),
    ("clients", "phone,birthday\n1,03/04/1985\n2,25/04/1985\n3,04/25/1985\n4,12.04.05\n"),
]


@pytest.mark.parametrize(("noun", "raw"), SENTENCES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_reader_says_has_a_sentence_in_each_language(
    noun: Any, raw: str, language: Language
) -> None:
    table = read_table(noun, raw.encode(), country="RU")
    said = [row.fault for row in table.rows if row.fault]
    said += [note for row in table.rows for note in row.notes]
    said += table.notes
    assert said
    for reason in said:
        assert reason.shown(language) != reason.sentence
        assert "{" not in reason.shown(language)
