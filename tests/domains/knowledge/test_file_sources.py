"""Files that a bot answers from."""

import base64

import pytest

from chalicelib.domains.knowledge.flows import fetching
from chalicelib.domains.knowledge.rules import parsing, quotas
from chalicelib.gateways import isolation
from tests.conftest import Api
from tests.domains.knowledge.conftest import Bot
from tests.factories.pdf import pdf

SCRIPT = b"<!doctype html><script>render()</script><style>p{}</style>"


def upload(api: Api, name: str, body: bytes) -> str:
    """Upload a file, and return its id."""
    content = base64.b64encode(body).decode()
    file: str = api.post("/api/files/upload", {"name": name, "content": content})["file"]["id"]
    return file


def add_file(bot: Bot, name: str, body: bytes) -> dict[str, object]:
    """Add a file as a source, and return the source after the job has read it."""
    source = bot.add("File", fileId=upload(bot.api, name, body))
    assert (source["kind"], source["status"], source["chars"]) == ("file", "pending", 0)
    bot.run_jobs()
    return bot.source(source["id"])


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("note.txt", "Доставка в субботу.".encode()),
        ("note.txt", "Доставка в субботу.".encode("cp1251") * 9),
        ("note.md", "# Доставка\n\nВ *субботу*.".encode()),
        ("prices.csv", "день;услуга\nсуббота;доставка\n".encode("utf-8-sig")),
        ("page.html", "<!doctype html><title>T</title><p>Доставка<br>в субботу".encode()),
    ],
    ids=["utf-8", "cp1251", "markdown", "csv", "html"],
)
def test_a_file_is_read_and_found(bot: Bot, name: str, body: bytes) -> None:
    source = add_file(bot, name, body)
    assert (source["status"], source["error"]) == ("ready", None)
    assert bot.finds("Доставляете по субботам?") == ["File"]


def test_a_pdf_is_read_and_found(bot: Bot) -> None:
    source = add_file(bot, "menu.pdf", pdf("Rye bread costs 240 rubles.", "Cakes on order."))
    assert (source["status"], source["error"]) == ("ready", None)
    (passage,) = bot.find("How much does rye bread cost?")
    assert "Rye bread costs 240 rubles." in passage.text
    assert "Cakes on order." in passage.text


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("scan.pdf", pdf("", ""), "no_text_in_pdf"),
        ("secret.pdf", pdf("Secret", encrypted=True), "encrypted"),
        ("broken.pdf", b"%PDF-1.4\nnothing of a PDF", "broken_pdf"),
        ("cut.pdf", pdf("Bread")[:300], "broken_pdf"),
        (
            "long.pdf",
            pdf(*["x"] * 201),
            "too_many_pages",
        ),
        (
            "app.html",
            SCRIPT,
            "no_text",
        ),
        ("blank.txt", b" \n\t ", "no_text"),
    ],
    ids=["scanned", "encrypted", "broken", "cut", "long", "script", "blank"],
)
def test_a_file_without_readable_text_fails_with_a_reason(
    bot: Bot, name: str, body: bytes, code: str
) -> None:
    source = add_file(bot, name, body)
    assert (source["status"], source["chars"]) == ("failed", 0)
    assert bot.problem_codes(source["id"]) == [code]
    assert bot.run_jobs(days=2)["knowledge-fetch"] == 0, "a file is not read again"


@pytest.mark.parametrize(
    ("name", "body"), [("photo.bin", b"\x00\x01\x02"), ("archive.zip", b"PK\x05\x06" + bytes(18))]
)
def test_a_file_of_another_type_is_refused(bot: Bot, name: str, body: bytes) -> None:
    answer = bot.api.call_refused(
        "POST", bot.path, {"title": "T", "fileId": upload(bot.api, name, body)}
    )
    (error,) = answer.data["errors"]
    assert (answer.status, error["field"], error["key"]) == (400, "fileId", "unreadable_type")


def test_a_file_above_10_mb_is_refused(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalicelib.domains.knowledge.operations.sources.MAX_BYTES", 3)
    answer = bot.api.call_refused(
        "POST", bot.path, {"title": "T", "fileId": upload(bot.api, "a.txt", b"four")}
    )
    (error,) = answer.data["errors"]
    assert (answer.status, error["field"], error["key"]) == (400, "fileId", "too_large")


def test_file_beyond_the_quota_fails(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_BOT_BYTES", 20)
    bot.add(text="a" * 15)
    source = add_file(bot, "a.txt", b"bread and cake")
    assert source["status"] == "failed"
    (detail,) = source["errorDetails"]
    facts = {"code": "too_much_text", "bytes": 14, "used": 15, "maximum": 20}
    assert detail == {**facts, "message": source["error"]}


def test_a_parser_that_takes_too_long_is_ended(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "SECONDS", 0.01)
    source = add_file(bot, "a.txt", b"bread")
    assert source["status"] == "failed"
    assert bot.problem_codes(source["id"]) == ["too_slow"]


def test_parser_beyond_the_memory_limit_fails_only_its_file(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_PARSER", "tests.factories.isolated:take_memory")
    source = add_file(bot, "a.txt", b"bread")
    assert source["status"] == "failed"
    assert bot.problem_codes(source["id"]) == ["not_read"]


def test_file_in_use_is_deleted_only_by_force(bot: Bot) -> None:
    file = upload(bot.api, "a.txt", b"We deliver bread.")
    source = bot.add("File", fileId=file)
    bot.run_jobs()
    assert bot.finds("bread") == ["File"]
    answer = bot.api.call_refused("POST", "/api/files/delete", {"id": file})
    assert answer.data["code"] == "file_in_use"
    assert answer.data["usedBy"] == [{"type": "knowledge", "id": source["id"], "name": "File"}]
    bot.api.post("/api/files/delete", {"id": file, "force": True})
    assert bot.find("bread") == []
    stored_source = bot.source(source["id"])
    assert (stored_source["status"], stored_source["chars"]) == ("failed", 0)
    assert bot.problem_codes(source["id"]) == ["file_deleted"]


def test_file_deleted_before_parsing_fails(bot: Bot) -> None:
    file = upload(bot.api, "a.txt", b"We deliver bread.")
    source = bot.add("File", fileId=file)
    for path in bot.store.glob("files/*/*"):
        path.unlink()
    bot.run_jobs()
    assert bot.problem_codes(source["id"]) == ["missing_file"]


def test_source_deleted_during_parsing_is_not_restored(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = bot.add("File", fileId=upload(bot.api, "a.txt", b"We deliver bread."))
    call = isolation.call

    def delete_and_call(*arguments: str) -> str:
        bot.delete(source["id"])
        return call(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(isolation, "call", delete_and_call)
    bot.run_jobs()
    assert (bot.sources, bot.find("bread")) == ([], [])
    bot.run_jobs(hours=2)
    assert bot.stored_files == []


def replace(api: Api, body: bytes) -> None:
    """Replace the only file of the workspace."""
    (file,) = api.get("/api/files/list")["files"]
    content = base64.b64encode(body).decode()
    api.post("/api/files/replace", {"id": file["id"], "content": content})


def test_a_replaced_file_is_read_again(bot: Bot) -> None:
    source = add_file(bot, "prices.txt", b"Rye bread costs 240 rubles.")
    replace(bot.api, b"Rye bread costs 310 rubles.")
    bot.run_jobs()  # reads the file
    bot.run_jobs()  # brings the index up to date
    assert bot.source(source["id"])["status"] == "ready"
    (passage,) = bot.find("How much does rye bread cost?")
    assert "310" in passage.text


def test_after_a_replacement_without_text_the_bot_answers_from_the_former_one(bot: Bot) -> None:
    source = add_file(bot, "prices.txt", b"Rye bread costs 240 rubles.")
    replace(bot.api, b" \n ")
    bot.run_jobs()
    codes = [each["code"] for each in bot.source(source["id"])["errorDetails"]]
    assert codes == ["no_text", "still_answers"]
    (passage,) = bot.find("How much does rye bread cost?")
    assert "240" in passage.text


def test_a_source_that_failed_is_ready_after_its_file_is_replaced(bot: Bot) -> None:
    source = add_file(bot, "prices.txt", b" \n ")
    assert source["status"] == "failed"
    replace(bot.api, b"Rye bread costs 240 rubles.")
    bot.run_jobs()
    assert (bot.source(source["id"])["status"], bot.source(source["id"])["error"]) == (
        "ready",
        None,
    )


def test_a_replacement_larger_than_a_source_may_be_is_not_read(
    bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = add_file(bot, "prices.txt", b"Rye bread costs 240 rubles.")
    monkeypatch.setattr(parsing, "MAX_BYTES", 40)
    replace(bot.api, b"x" * 41)
    bot.run_jobs()
    codes = [each["code"] for each in bot.source(source["id"])["errorDetails"]]
    assert codes == ["not_read", "still_answers"]
