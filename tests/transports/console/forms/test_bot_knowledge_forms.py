"""A bot's knowledge in the console, over HTTP."""

import re
from typing import Any

import pytest

from chalicelib.domains.knowledge.rules import problems
from chalicelib.domains.knowledge.rules.problems import Problem, ProblemCode
from chalicelib.domains.knowledge.store.sources import SOURCES
from chalicelib.transports.scheduled_functions import run_jobs
from chalicelib.transports.web import texts
from tests.conftest import call_console, call_operator
from tests.factories.console import HOSTILE, World
from tests.transports.console.forms.helpers import error_beside, text, value_of

PROBLEMS = [
    *(problem for problem in vars(problems).values() if isinstance(problem, Problem)),
    problems.not_fetched("the server sent 404"),
    problems.wrong_type("image/png"),
    problems.too_many_pages(201, maximum=200),
    problems.too_much_text(30, used=15, maximum=20),
]


def path_of(world: World) -> str:
    return f"{world.here.path}/bots/{world.here.bot}/knowledge"


def sources_of(world: World) -> list[Any]:
    sources = call_console(world.here.workspace_id, "list_knowledge", id=world.here.bot)["sources"]
    return [source for source in sources if source["id"] != world.here.source]


def test_a_text_that_is_sent_twice_is_added_once(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    form = {"kind": "text", "title": "Delivery", "text": "On weekdays.\r\nFrom 9.", "once": "1"}
    for _ in "12":
        answer = console_owner.post(path, form)
        assert answer.headers["Location"] == f"{path}?done=source_added_text"
    (source,) = sources_of(world)
    assert (source["title"], source["kind"], source["status"]) == ("Delivery", "text", "ready")
    answer = console_owner.get(answer.headers["Location"])
    page = text(answer)
    assert "Text added." in page
    assert "2 of 100 sources" in page
    titles = re.findall(r'<strong><span class="name" title="([^"]*)', answer.body.decode())
    assert titles[0] == "Delivery", "the newest source comes first"


def test_a_page_waits_to_be_read(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    url = "https://bakery.example/delivery"
    answer = console_owner.post(path, {"kind": "url", "title": "Delivery", "url": url})
    assert answer.headers["Location"] == f"{path}?done=source_added_url"
    assert [source["status"] for source in sources_of(world)] == ["pending"]
    assert "not read yet" in text(console_owner.get(path))


def test_a_file_of_any_folder_is_added(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    image = {"name": "photo.svg", "folder": "F", "content": "PHN2Zy8+"}
    call_operator("add_file", workspaceId=world.here.workspace_id, **image)
    page = text(console_owner.get(f"{path}?add=file"))
    names = dict(re.findall(r'<option value="(\w+)">([^<]*)', page))
    (file,) = (file for file, name in names.items() if "table.csv" not in name)
    assert "photo" not in page
    answer = console_owner.post(path, {"kind": "file", "title": "Prices", "fileId": file})
    assert answer.headers["Location"] == f"{path}?done=source_added_file"
    run_jobs()
    assert [(s["kind"], s["status"], s["chars"]) for s in sources_of(world)] == [
        ("file", "ready", 2)
    ]


@pytest.mark.parametrize(
    ("kind", "field", "tag", "wrong"),
    [
        ("text", "text", "textarea", " \r\n "),
        ("url", "url", "input", "http://127.0.0.1/"),
        ("url", "url", "input", "ftp://bakery.example"),
        ("url", "url", "input", ""),
        ("file", "uploadedFile", "input", ""),
        ("file", "fileId", "select", "0" * 26),
    ],
)
def test_a_wrong_field_is_reported_beside_it_and_the_rest_is_kept(
    kind: str, field: str, tag: str, wrong: str, world: World
) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    answer = console_owner.post(path, {"kind": kind, "title": "Delivery", field: wrong})
    assert answer.status in {400, 404}
    assert error_beside(answer, field, tag)
    assert value_of(answer, "title") == "Delivery"
    assert sources_of(world) == []


def test_a_source_needs_a_title(world: World) -> None:
    answer = world.person("boss").post(path_of(world), {"kind": "text", "title": " ", "text": "x"})
    assert answer.status == 400
    assert "1 to 200" in error_beside(answer, "title")
    assert ">\nx</textarea>" in text(answer)


def test_the_reason_of_a_failure_is_shown_with_its_source(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    empty = {"name": "empty.html", "folder": "F", "content": "PGh0bWw+PC9odG1sPg=="}
    file = call_operator("add_file", workspaceId=world.here.workspace_id, **empty)["file"]["id"]
    console_owner.post(path, {"kind": "file", "title": "Empty", "fileId": file})
    run_jobs()
    page = text(console_owner.get(path))
    assert "failed" in page
    assert problems.NO_TEXT.message in page
    assert "Текст не нашёлся." in text(console_owner.get(path, accept_language="ru"))
    # A row of an earlier release has only the sentence, and one of a later release has a new code.
    (added,) = sources_of(world)
    source = SOURCES.require(world.here.workspace_id, record_id=added["id"])
    for details in (None, [{"code": "lost", "message": "The file was lost.", "file": "a"}]):
        source.error, source.error_details = "The file was lost.", details
        source.save()
        assert "The file was lost." in text(console_owner.get(path, accept_language="ru"))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.code)
def test_a_problem_of_a_source_has_a_translation(problem: Problem) -> None:
    key = f"reason_{problem.code}"
    assert texts.translate("en", key, **problem.facts) == problem.message
    assert texts.language_of(texts.translate("ru", key, **problem.facts)) == "ru"


def test_every_problem_of_a_source_is_tested() -> None:
    assert {problem.code for problem in PROBLEMS} == {*ProblemCode}


def test_a_source_is_deleted_after_a_confirmation(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    (confirmation,) = re.findall(rf'href="({path}/\w+)"', text(console_owner.get(path)))
    page = text(console_owner.get(confirmation))
    assert f"Delete the source “{HOSTILE}”?" in page
    deleted_path = f"{path}?done=source_deleted"
    assert console_owner.post(confirmation).headers["Location"] == deleted_path
    for response in (console_owner.get(confirmation), console_owner.post(confirmation)):
        assert response.headers["Location"] == deleted_path
    assert "Source deleted." in text(console_owner.get(deleted_path))
    listing = call_console(world.here.workspace_id, "list_knowledge", id=world.here.bot)
    assert listing["sources"] == []
