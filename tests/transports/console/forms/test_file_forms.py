"""Files in the console, and the photos that forms send, over HTTP."""

import re

import pytest

from chalicelib.core.ids import new_id
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Owner, Time, call_console
from tests.factories.console import Person, World, person
from tests.factories.images import drawn, saved
from tests.transports.console.forms.helpers import error_beside, text

JPEG = saved(drawn(), "JPEG")
HEIC = b"\x00\x00\x00\x18ftypheic" + bytes(40)


@pytest.fixture
def boss(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}"


def test_a_style_sheet_is_uploaded_with_a_word_where_css_belongs(boss: Person, path: str) -> None:
    answer = boss.post(f"{path}/files", {"once": "1"}, files=[("files", "a.css", b"a {}")])
    page = text(boss.get(answer.headers["Location"]))
    assert "put CSS into <style>" in page


def test_several_files_are_uploaded_once_and_shown(boss: Person, path: str, owner: Owner) -> None:
    files = [("files", "hall.jpg", JPEG), ("files", "prices.txt", b"rye 120")]
    for _ in "12":
        answer = boss.post(f"{path}/files", {"once": "1"}, files=files)
        assert answer.headers["Location"] == f"{path}/files?done=files_added"
    page = text(boss.get(answer.headers["Location"]))
    assert "The files are uploaded." in page
    assert "2 files" in page
    assert re.search(r'<img src="[^"]+/thumbnail/hall.jpg\?v=[^"]+"', page)
    file_path = re.findall(rf'href="({path}/files/\w+)"', page)[0]
    assert "prices.txt" in text(boss.get(file_path))


@pytest.mark.parametrize("files", [[], [("files", "", b"")], [("files", "a.heic", HEIC)]])
def test_a_refused_upload_says_why(
    boss: Person, path: str, files: list[tuple[str, str, bytes]]
) -> None:
    answer = boss.post(f"{path}/files", {}, files=files)
    assert answer.status == 400
    expected = "This file cannot be used" if "heic" in str(files) else "Choose a file first."
    assert expected in error_beside(answer, "files")


def test_a_file_names_the_records_that_show_it_and_leaves_them_when_deleted(
    boss: Person, path: str, owner: Owner
) -> None:
    boss.post(f"{path}/staff", {"name": "Ada"}, files=[("photoFile", "ada.jpg", JPEG)])
    (resource,) = call_console(owner.workspace.id, "list_resources")["resources"]
    file_path = f"{path}/files/{resource['photo']['fileId']}"
    page = text(boss.get(file_path))
    assert f'href="{path}/staff/{resource["id"]}"' in page
    assert "lose this photo" in text(boss.get(f"{file_path}/delete"))
    assert boss.post(f"{file_path}/delete").headers["Location"] == f"{path}/files?done=file_deleted"
    run_jobs()
    (resource,) = call_console(owner.workspace.id, "list_resources")["resources"]
    assert resource["photo"] is None


def add_photo(boss: Person, path: str) -> str:
    """Upload a photo, and return the path of its page."""
    answer = boss.post(f"{path}/files", {}, files=[("files", "hall.jpg", JPEG)])
    page = text(boss.get(answer.headers["Location"]))
    return re.findall(rf'href="({path}/files/\w+)"', page)[0]


def test_a_file_is_replaced_and_its_page_shows_the_new_one(
    time: Time, boss: Person, path: str
) -> None:
    file_path = add_photo(boss, path)
    preview = re.compile(r'<img src="([^"?]+)\?v=([^"]+)"')
    (former,) = preview.findall(text(boss.get(file_path)))
    time.pass_by(minutes=1)
    new = [("newFile", "new.png", saved(drawn(size=(30, 20)), "PNG"))]
    answer = boss.post(f"{file_path}/replace", {"once": "1"}, files=new)
    assert answer.headers["Location"] == f"{file_path}?done=file_replaced"
    page = text(boss.get(answer.headers["Location"]))
    assert "The file is replaced." in page
    assert "30 × 20" in page
    (preview_now,) = preview.findall(page)
    # The URL is the same, and a browser does not show its cached copy.
    assert (preview_now[0], preview_now[1] > former[1]) == (former[0], True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "Choose a file first."),
        ([("newFile", "a.html", b"<html>")], "Choose a photo for a photo."),
        ([("newFile", "a.heic", HEIC)], "This file cannot be used"),
    ],
)
def test_a_refused_replacement_says_why_beside_its_control(
    boss: Person, path: str, files: list[tuple[str, str, bytes]], message: str
) -> None:
    file_path = add_photo(boss, path)
    answer = boss.post(f"{file_path}/replace", {}, files=files)
    assert answer.status == 400
    assert message in error_beside(answer, "newFile")


def test_a_photo_of_a_refused_form_is_kept(boss: Person, path: str, owner: Owner) -> None:
    photo = [("imagesFile", "hands.jpg", JPEG)]
    answer = boss.post(f"{path}/services", {"name": "Manicure", "durationMin": "long"}, files=photo)
    assert answer.status == 400
    page = text(answer)
    assert "1 photo is uploaded." in page
    (file_id,) = re.findall(r'type="hidden" name="imagesFile" value="(\w+)"', page)
    fields = {"name": "Manicure", "durationMin": "60", "imagesFile": file_id}
    assert boss.post(f"{path}/services", fields).status == 303
    (service,) = call_console(owner.workspace.id, "list_services")["services"]
    assert [image["fileId"] for image in service["images"]] == [file_id]


@pytest.mark.parametrize(
    ("page", "control", "fields"),
    [
        ("services", "imagesFile", {"name": "Cut", "durationMin": "30"}),
        ("staff", "photoFile", {"name": "Ada"}),
    ],
)
def test_a_file_that_is_no_photo_is_refused_beside_its_control(
    boss: Person, path: str, page: str, control: str, fields: dict[str, str]
) -> None:
    answer = boss.post(f"{path}/{page}", fields, files=[(control, "photo.heic", HEIC)])
    assert answer.status == 400
    assert "JPEG, PNG or WebP" in error_beside(answer, control)


def test_a_photo_is_replaced_and_removed(boss: Person, path: str, owner: Owner) -> None:
    resource = call_console(owner.workspace.id, "create_resource", name="Ada")["resource"]["id"]
    seen = []
    for fields in ({}, {}, {"removePhoto": "yes"}):
        files = [] if fields else [("photoFile", "ada.jpg", JPEG)]
        form = {"name": "Ada", "type": "master", "active": "yes", "timezone": "UTC"} | fields
        assert boss.post(f"{path}/staff/{resource}", form, files=files).status == 303
        photo = call_console(owner.workspace.id, "get_resource", id=resource)["resource"]["photo"]
        seen.append(photo and photo["fileId"])
    assert seen[0] != seen[1]
    assert seen[2] is None


def test_a_source_of_a_bot_is_uploaded_with_its_form(world: World) -> None:
    boss, path = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/knowledge"
    file = [("uploadedFile", "prices.txt", b"Rye bread costs 120 rubles.")]
    answer = boss.post(path, {"kind": "file", "title": "Prices"}, files=file)
    assert answer.headers["Location"] == f"{path}?done=source_added_file"
    run_jobs()
    sources = call_console(world.here.workspace_id, "list_knowledge", id=world.here.bot)["sources"]
    assert ("Prices", "file", "ready") in [(s["title"], s["kind"], s["status"]) for s in sources]
    image = [("uploadedFile", "a.jpg", JPEG)]
    answer = boss.post(path, {"kind": "file", "title": "Photo"}, files=image)
    assert "pdf" in error_beside(answer, "uploadedFile")


def test_a_form_of_an_ended_session_keeps_its_fields_without_its_files(
    boss: Person, path: str
) -> None:
    boss.get(f"{path}/staff/new")
    token, boss.token = boss.token, "A" * 43
    answer = boss.post(f"{path}/staff", {"name": "Ada"}, files=[("photoFile", "a.jpg", JPEG)])
    boss.token = token
    assert answer.status == 403
    assert "name=Ada" in text(answer)
    assert "photoFile" not in text(answer)


def test_a_file_of_another_workspace_is_not_a_photo(boss: Person, path: str) -> None:
    fields = {"name": "Ada", "photoFile": new_id()}
    assert boss.post(f"{path}/staff", fields).status == 404
