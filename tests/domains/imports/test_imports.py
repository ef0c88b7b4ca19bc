"""Imports of products, services and clients from files, by keys and by the console."""

import ast
import base64
import csv
import io
import re
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains import imports
from chalicelib.domains.clients.operations import contact_upsert
from chalicelib.domains.files.store.files import used_bytes
from chalicelib.domains.imports.flows import runs
from chalicelib.domains.imports.flows.calls import JobCalls
from chalicelib.domains.imports.flows.sending import sender_of
from chalicelib.domains.imports.operations.imports import FIELDS
from chalicelib.domains.imports.rules import reasons
from chalicelib.domains.imports.rules.job_kinds import IMPORT_EXPIRED
from chalicelib.domains.imports.store.imports import IMPORTS
from chalicelib.engine import jobs
from chalicelib.lib.localized import LANGUAGES, Language
from tests.conftest import Api, Owner, Time, all_rows, call_console
from tests.factories import files
from tests.factories.exports import download
from tests.factories.files import list_stored_files
from tests.factories.saved_meanwhile import SavedMeanwhile

pytestmark = pytest.mark.usefixtures("database")


def upload(api: Api, name: str, body: bytes) -> str:
    content = base64.b64encode(body).decode()
    file_id: str = api.post("/api/files/upload", {"name": name, "content": content})["file"]["id"]
    return file_id


def preview(api: Api, noun: str, file_id: str, **more: Any) -> Any:
    arguments = {"fileId": file_id, "dryRun": True, **more}
    return api.post(f"/api/{noun}/import", arguments)["preview"]


def run_import(api: Api, noun: str, file_id: str, **more: Any) -> Any:
    import_id = api.post(f"/api/{noun}/import", {"fileId": file_id, **more})["importId"]
    for _ in range(50):
        jobs.run(JOB_HANDLERS)
        done = api.get(f"/api/imports/{import_id}")
        if done["state"] != "running":
            return done
    raise AssertionError("the import is still running")


def refused_of(done: Any) -> list[dict[str, str]]:
    text = download(done["refusedUrl"]).decode("utf-8-sig")
    dialect = csv.Sniffer().sniff(text.splitlines()[0], ",;")
    return list(csv.DictReader(io.StringIO(text), dialect=dialect))


def test_reasons_of_refused_rows_are_codes_for_programs_and_sentences_for_people(
    api: Api,
) -> None:
    file_id = upload(
        api, "c.csv", b"name,phone\nNobody,\nWrong,12\nAda,+79123456789\nEva,89123456789"
    )
    first, second, *_ = preview(api, "clients", file_id)["preview"]
    assert (first["reasonCode"], second["reasonCode"]) == ("no_contact", "phone")
    first_in_russian, *_ = preview(api, "clients", file_id, language="ru")["preview"]
    assert first_in_russian == {
        **first,
        "reason": "Нет ни телефона, ни адреса эл. почты, ни кода.",
    }
    done = run_import(api, "clients", file_id)
    assert [(row["row"], row["code"]) for row in refused_of(done)] == [
        ("2", "no_contact"),
        ("3", "phone"),
        ("5", "repeated_item"),
    ]
    russian = refused_of(api.get(f"/api/imports/{done['id']}?language=ru"))
    assert "code" not in russian[0]
    assert russian[0]["Строка"] == "2"
    assert russian[0]["Причина"] == "Нет ни телефона, ни адреса эл. почты, ни кода."
    assert not any(re.fullmatch(r"[ -~]+", row["Причина"]) for row in russian)
    english = refused_of(api.get(f"/api/imports/{done['id']}?language=en"))
    assert {"Row", "Reason"} <= english[0].keys()


OF_OPERATIONS = {
    *("phone", "duplicate_client", "repeated_item", "incomplete_item", "invalid_phone"),
    *("image_not_imported", "images_kept", "images_not_in_time"),
}
"""Codes of operations that have a sentence of their own in the catalogue."""


def _names_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_reason_has_a_sentence_with_its_facts_and_no_sentence_is_unused(
    language: Language,
) -> None:
    texts = {key: str(text) for key, text in reasons._catalogue(language).texts.items()}
    sentences = {key for key in texts if not key.startswith(("field_", "report_"))}
    words: set[str] = set()
    for file in Path(imports.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Constant(value=str(word)):
                    words.add(word)
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name(id="Reason" | "CellError" | "TableError" | "UnitError"),
                        attr="of",
                    ),
                    args=[ast.Constant(value=str(code)), _],
                ):
                    facts = {keyword.arg for keyword in node.keywords} | {"field"}
                    assert _names_of(texts[code]) <= facts, code
    assert sentences <= words | OF_OPERATIONS
    fields = {f"field_{name}" for names in FIELDS.values() for name in names}
    assert fields <= texts.keys()


class KilledError(BaseException):
    """Ends a run as the end of its process does."""


def table_of_clients(count: int) -> bytes:
    lines = [f"Client {n},c{n}@example.com,+7912{n:07d}" for n in range(count)]
    return "\n".join(["name,email,phone", *lines, "Nobody,,"]).encode()


@pytest.mark.parametrize("place", ["before the position is saved", "within a range"])
def test_an_import_that_is_killed_and_run_twice_doubles_nothing(
    api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(runs, "MAX_ITEMS", 30)
    file_id = upload(api, "clients.csv", table_of_clients(70))
    import_id = api.post("/api/clients/import", {"fileId": file_id})["importId"]
    job = next(job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == "import")
    stopped = [0]

    def kill(*_: Any, **__: Any) -> None:
        stopped[0] += 1
        if stopped[0] == 2:
            raise KilledError

    with monkeypatch.context() as broken:
        if place == "within a range":
            real = contact_upsert._commit
            broken.setattr(contact_upsert, "_commit", lambda *a: (kill(), real(*a))[1])
        else:
            saved = runs._is_warned
            count = iter(range(10_000))
            broken.setattr(
                runs, "_is_warned", lambda each: kill() if next(count) == 45 else saved(each)
            )
            stopped[0] = 1
        with pytest.raises(KilledError):
            runs.continue_import(job)
    assert api.get(f"/api/imports/{import_id}")["state"] == "running"
    jobs.run(JOB_HANDLERS)
    runs.continue_import(job)  # Nothing is left to do.
    done = api.get(f"/api/imports/{import_id}")
    assert done["counts"] == {"created": 70, "updated": 0, "unchanged": 0, "refused": 1}
    assert (done["state"], done["done"], done["rows"]) == ("finished", 71, 71)
    assert api.get("/api/clients/list")["total"] == 70


def test_two_runs_at_once_send_each_row_once(api: Api, owner: Owner) -> None:
    file_id = upload(api, "clients.csv", table_of_clients(25))
    import_id = api.post("/api/clients/import", {"fileId": file_id})["importId"]
    job = next(job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == "import")
    before = IMPORTS.require(owner.workspace.id, record_id=import_id)
    runs.continue_import(job)
    # A run that read the position before the other one has saved it.
    calls = JobCalls(owner.workspace.id, import_id, "")
    sender = sender_of("clients", calls, owner.workspace.id, dry_run=False)
    with pytest.raises(AppError):
        runs._send_range(before, sender, list(runs.rows_store.read_rows(before, 0)))
    assert api.get("/api/clients/list")["total"] == 25


def test_a_large_import_continues_in_further_runs(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RUN_SECONDS", 0.0)
    monkeypatch.setattr(runs, "MAX_ITEMS", 12)
    done = run_import(api, "clients", upload(api, "c.csv", table_of_clients(30)))
    assert done["counts"]["created"] == 30
    assert len(refused_of(done)) == 1


def test_nothing_is_stored_by_a_preview_and_the_rows_go_after_the_import(
    api: Api, owner: Owner
) -> None:
    file_id = upload(api, "clients.csv", table_of_clients(3))
    rows, stored = all_rows(), list_stored_files()
    shown = preview(api, "clients", file_id)
    assert (shown["checked"], shown["rows"], len(shown["preview"])) == (4, 4, 4)
    changed = {key for key in all_rows().keys() ^ rows.keys() if "LIMIT" not in str(key)}
    assert not changed
    assert list_stored_files() == stored
    done = run_import(api, "clients", file_id, deleteFile=True)
    kept = [key for key in list_stored_files() if f"/imports/{done['id']}/" in key]
    assert {key.rpartition("/")[2] for key in kept} == {
        *("refused.csv", "refused.en.csv", "refused.ru.csv")
    }
    assert api.call_refused("GET", f"/api/files/{file_id}").status == 404


@pytest.mark.parametrize("language", [None, "en", "ru"])
@pytest.mark.parametrize("noun", ["clients", "products"])
def test_a_corrected_report_can_be_imported_like_the_table(
    api: Api, noun: str, language: str | None
) -> None:
    table = table_of_clients(1) if noun == "clients" else b"sku,name,price,stock\nA-1,Nobody,,\n"
    done = run_import(api, noun, upload(api, "c.csv", table))
    query = f"?language={language}" if language else ""
    report = download(api.get(f"/api/imports/{done['id']}{query}")["refusedUrl"])
    right = b"Nobody,n@example.com," if noun == "clients" else b"Nobody,10,"
    report = report.replace(b"Nobody,,", right)
    again = run_import(api, noun, upload(api, "again.csv", report))
    assert again["counts"]["created"] == 1


def test_what_a_client_has_stays_and_empty_fields_are_filled(api: Api) -> None:
    stored = {"name": "Anna", "email": "anna@example.com", "tags": ["vip"], "notes": "Rye"}
    client = api.post("/api/clients/create", stored)["client"]
    raw = "name,email,phone,tags,notes,id\nOther,ANNA@example.com,+79123456789,new,White,crm-1\n"
    assert run_import(api, "clients", upload(api, "c.csv", raw.encode()))["counts"]["updated"] == 1
    found = api.get(f"/api/clients/{client['id']}")["client"]
    assert (found["name"], found["email"]) == ("Anna", "anna@example.com")
    assert (found["phone"], found["externalId"]) == ("+79123456789", "crm-1")
    assert (found["tags"], found["notes"]) == (["vip", "new"], "Rye\nWhite")


def test_a_key_needs_the_scope_of_what_it_imports(api: Api, owner: Owner) -> None:
    file_id = upload(api, "clients.csv", table_of_clients(1))
    done = run_import(api, "clients", file_id)
    other = owner.api("products:write", "files:read")
    answer = other.call_refused("POST", "/api/clients/import", {"fileId": file_id})
    assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")
    answer = other.call_refused("GET", f"/api/imports/{done['id']}")
    assert (answer.status, answer.data["scope"]) == (403, "crm:write")


def test_a_file_that_is_no_table_is_refused_before_anything_is_written(api: Api) -> None:
    file_id = upload(api, "a.csv", b"%PDF-1.7\n")
    for dry_run in (True, False):
        answer = api.call_refused(
            "POST", "/api/products/import", {"fileId": file_id, "dryRun": dry_run}
        )
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "fileId")
    file_id = upload(api, "b.csv", b"colour,taste\nred,sweet\n")
    assert preview(api, "clients", file_id)["problem"]
    answer = api.call_refused("POST", "/api/clients/import", {"fileId": file_id})
    assert (answer.status, answer.data["errors"][0]["field"]) == (400, "columns")


def test_an_import_and_its_report_are_deleted_after_seven_days(
    api: Api, owner: Owner, time: Time
) -> None:
    done = run_import(api, "clients", upload(api, "c.csv", table_of_clients(1)))
    time.pass_by(days=7, seconds=1)
    jobs.run(JOB_HANDLERS)
    assert api.call_refused("GET", f"/api/imports/{done['id']}").status == 404
    assert not [key for key in list_stored_files() if "/imports/" in key]


def test_an_import_is_deleted_although_a_run_saves_it_meanwhile(
    api: Api, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_import(api, "clients", upload(api, "c.csv", table_of_clients(1)))
    time.pass_by(days=7, seconds=1)
    store = SavedMeanwhile(IMPORTS, owner.workspace.id, done["id"])
    monkeypatch.setattr(runs, "object_store", lambda: store)
    assert jobs.run(JOB_HANDLERS)[IMPORT_EXPIRED] == 1
    assert store.has_saved
    assert api.call_refused("GET", f"/api/imports/{done['id']}").status == 404


def test_a_table_of_clients_arrives(api: Api) -> None:
    raw = "Имя;Телефон;Email;Любимый цвет\nАнна;8 912 345-67-89;anna@example.com;red\n"
    raw += "Без контактов;;;blue\n"
    file_id = upload(api, "clients.csv", raw.encode())
    shown = preview(api, "clients", file_id)
    assert shown["counts"] == {"created": 1, "updated": 0, "unchanged": 0, "refused": 1}
    assert shown["notRead"] == ["Любимый цвет"]
    assert api.get("/api/clients/list")["total"] == 0
    done = run_import(api, "clients", file_id)
    assert done["counts"] == shown["counts"]
    assert [row["row"] for row in refused_of(done)] == ["3"]
    (client,) = api.get("/api/clients/list")["clients"]
    assert (client["name"], client["phone"]) == ("Анна", "+79123456789")
    again = run_import(api, "clients", file_id)
    assert again["counts"]["unchanged"] == 1


def test_a_table_of_services_arrives(api: Api) -> None:
    raw = "Название;Категория;Цена от;Цена до;Длительность\n"
    raw += "Стрижка;Волосы;от 1 500;2000;1 ч 30 мин\nБез времени;;10;;\n"
    file_id = upload(api, "services.csv", raw.encode("cp1251"))
    done = run_import(api, "services", file_id)
    assert done["counts"] == {"created": 1, "updated": 0, "unchanged": 0, "refused": 1}
    (service,) = api.get("/api/services/list")["services"]
    assert (service["name"], service["durationMin"], service["price"]) == ("Стрижка", 90, 150_000)
    assert run_import(api, "services", file_id)["counts"]["unchanged"] == 1


def test_a_table_of_products_arrives(api: Api) -> None:
    raw = "Название;Цена;Категория\nРжаной хлеб;120;Хлеб\nБелый хлеб;99;Хлеб\n"
    file_id = upload(api, "goods.csv", raw.encode())
    shown = preview(api, "products", file_id)
    assert shown["problem"] is None
    assert [row["outcome"] for row in shown["preview"]] == ["created", "created"]
    assert api.get("/api/categories/list")["total"] == 0
    done = run_import(api, "products", file_id)
    assert done["counts"]["created"] == 2
    assert len(api.get("/api/categories/list")["categories"]) == 1
    assert run_import(api, "products", file_id)["counts"]["unchanged"] == 2


def announce(api: Api, body: bytes) -> str:
    announced = files.announce(api, len(body))
    assert files.put(announced, body)
    upload_id: str = announced["id"]
    return upload_id


def test_an_upload_is_imported_without_becoming_a_public_file(api: Api, owner: Owner) -> None:
    upload_id = announce(api, table_of_clients(2))
    stored = set(list_stored_files())
    assert preview(api, "clients", upload_id)["counts"]["created"] == 2
    assert set(list_stored_files()) == stored
    done = run_import(api, "clients", upload_id, deleteFile=True)
    assert done["counts"]["created"] == 2
    assert not [key for key in list_stored_files() if "/uploads/" in key]
    assert used_bytes(owner.workspace.id) == 0
    again = api.call_refused("POST", "/api/clients/import", {"fileId": upload_id})
    assert again.status == 404


def test_an_upload_whose_bytes_were_not_sent_is_refused(api: Api) -> None:
    upload_id = files.announce(api, 9)["id"]
    answer = api.call_refused("POST", "/api/clients/import", {"fileId": upload_id})
    assert (answer.status, answer.data["errors"][0]["key"]) == (400, "not_sent")


def test_a_private_table_that_is_never_imported_is_deleted_after_a_day(
    owner: Owner, time: Time
) -> None:
    content = base64.b64encode(table_of_clients(2)).decode()
    call_console(owner.workspace.id, "upload_privately", name="c.csv", content=content)
    (key,) = list_stored_files()
    assert "/uploads/" in key
    time.pass_by(hours=23)
    jobs.run(JOB_HANDLERS)
    assert list_stored_files()
    time.pass_by(hours=1, seconds=1)
    jobs.run(JOB_HANDLERS)
    assert not list_stored_files()
    assert used_bytes(owner.workspace.id) == 0
