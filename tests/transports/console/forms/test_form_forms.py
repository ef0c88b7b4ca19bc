"""Forms are created, edited, placed and deleted in the console, over HTTP."""

import re
from typing import Any

import pytest

from tests.conftest import Answer, call_console
from tests.factories.console import HOSTILE, World
from tests.factories.examples import submit
from tests.transports.console.forms.helpers import error_beside, text, value_of


def path_of(world: World) -> str:
    return f"{world.here.path}/forms/{world.here.form}"


def form_of(world: World) -> Any:
    return call_console(world.here.workspace_id, "get_form", id=world.here.form)["form"]


def forms(world: World) -> list[dict[str, Any]]:
    found_forms: list[dict[str, Any]] = call_console(world.here.workspace_id, "list_forms")["forms"]
    return found_forms


def html_of(world: World) -> str:
    page = call_console(world.here.workspace_id, "get_page", id=world.here.page)["page"]
    return str(page["html"])


def rows(*fields: tuple[str, str, str, str]) -> list[tuple[str, str]]:
    """Return the form's fields for rows of name, label, type and options."""
    keys = ("name", "label", "type", "options")
    return [pair for row in fields for pair in zip(keys, row, strict=True)]


PHONE = ("phone", "Phone", "phone", "")
SIZE = ("", "Size", "select", "Small\r\n\r\nLarge")


def labels(answer: Answer) -> list[str]:
    return re.findall(r'name="label" value="([^"]*)"', answer.body.decode())


class TestCreating:
    @pytest.mark.parametrize("language", ["ru", "en"])
    def test_a_template_has_fields_in_the_language_of_the_page(
        self, language: str, world: World
    ) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/forms"
        fields = {"template": "order", "once": "1"}
        first, repeated = (
            console_owner.post(path, fields, accept_language=language) for _ in range(2)
        )
        assert first.headers["Location"] == repeated.headers["Location"]
        new_form, *others = forms(world)
        assert len(others) == 1, "a form that is sent twice creates one"
        assert new_form["fields"][0]["label"] == {"ru": "Имя", "en": "Name"}[language]
        assert new_form["title"] == {"ru": "Заказ", "en": "Order"}[language]

    def test_an_unknown_template_is_refused(self, world: World) -> None:
        answer = world.person("boss").post(f"{world.here.path}/forms", {"template": HOSTILE})
        assert answer.status == 400
        assert '<a href="#template">Choose a template.</a>' in text(answer)
        assert len(forms(world)) == 1


class TestEditing:
    def test_fields_are_saved_in_order_and_keep_their_names(self, world: World) -> None:
        console_owner, path = world.person("boss"), path_of(world)
        fields = [("title", "Cakes"), *rows(SIZE, PHONE), ("required", "1"), ("action", "save")]
        texts = [("successMessage", "Thanks!\r\nWe call you."), ("redirectUrl", "")]
        answer = console_owner.post(path, [*fields, *texts])
        assert answer.headers["Location"] == f"{path}?done=form_saved"
        form = form_of(world)
        size, phone = form["fields"]
        assert (size["name"], size["options"]) == ("size", ["Small", "Large"])
        assert (size["required"], phone["required"]) == (False, True)
        assert phone["name"] == "phone"
        assert form["successMessage"] == "Thanks!\nWe call you."

    @pytest.mark.parametrize(
        ("action", "expected"),
        [
            ("add", ["A", "B", "C", ""]),
            ("up:1", ["B", "A", "C"]),
            ("down:1", ["A", "C", "B"]),
            ("remove:0", ["B", "C"]),
            ("up:0", ["A", "B", "C"]),
            ("down:2", ["A", "B", "C"]),
            ("remove:9", ["A", "B", "C"]),
            (HOSTILE, ["A", "B", "C"]),
        ],
    )
    def test_buttons_change_the_page_and_store_nothing(
        self, action: str, expected: list[str], world: World
    ) -> None:
        form_before = form_of(world)
        fields = rows(*(("", label, "text", "") for label in "ABC"))
        answer = world.person("boss").post(
            path_of(world), [("title", "T"), *fields, ("required", "1"), ("action", action)]
        )
        assert answer.status == 200
        assert labels(answer) == expected
        assert "not saved yet" in text(answer)
        assert form_of(world) == form_before
        if "B" in expected:
            place = expected.index("B")
            assert f'name="required" value="{place}" checked' in text(answer)

    def test_wrong_values_are_reported_beside_their_fields_and_stay(self, world: World) -> None:
        form_before = form_of(world)
        bad = [("", " ", "text", ""), ("", "Size", "select", " ")]
        fields = [("title", ""), *rows(*bad), ("redirectUrl", "http://bakery.example")]
        answer = world.person("boss").post(path_of(world), fields)
        assert answer.status == 400
        assert "Enter a title" in error_beside(answer, "title")
        assert "https" in error_beside(answer, "redirectUrl")
        assert "Enter a label" in error_beside(answer, "label-0")
        assert "options, one per line" in error_beside(answer, "options-1", "textarea")
        assert value_of(answer, "redirectUrl") == "http://bakery.example"
        assert form_of(world) == form_before

    def test_a_form_needs_a_field(self, world: World) -> None:
        answer = world.person("boss").post(path_of(world), {"title": "Empty"})
        assert answer.status == 400
        assert '<a href="#add">A form needs 1 to 30 fields' in text(answer)

    def test_a_member_reads_the_fields_and_sees_no_button(self, world: World) -> None:
        page = text(world.person("member").get(path_of(world)))
        assert "phone number" in page
        assert "Save form" not in page


class TestEmbedding:
    def test_a_form_that_is_placed_again_is_updated_in_its_place(self, world: World) -> None:
        console_owner, path = world.person("boss"), path_of(world)
        placement = console_owner.post(f"{path}/embed", {"page": world.here.page})
        page = f"{world.here.path}/sites/{world.here.site}/pages/{world.here.page}"
        assert placement.headers["Location"] == f"{page}?done=placed"
        assert console_owner.post(f"{path}/embed", {"page": world.here.page}).headers[
            "Location"
        ] == (f"{page}?done=placed_already")
        console_owner.post(path, [("title", "Cakes"), *rows(PHONE, SIZE)])
        assert 'name="size"' not in html_of(world)
        console_owner.post(f"{path}/embed", {"page": world.here.page})
        html = html_of(world)
        assert html.count('name="size"') == html.count("<form") == 1

    def test_the_preview_cannot_send_the_form(self, world: World) -> None:
        answer = world.person("boss").get(f"{path_of(world)}/embed")
        (frame,) = re.findall(r"<iframe[^>]*>", answer.body.decode())
        assert " sandbox srcdoc=" in frame
        assert "/submit" not in frame
        assert "'sha256-" in answer.headers["Content-Security-Policy"]

    def test_a_page_of_another_workspace_is_not_found(self, world: World) -> None:
        answer = world.person("boss").post(f"{path_of(world)}/embed", {"page": world.there.page})
        assert answer.status == 404
        assert "no longer exists" in error_beside(answer, "page", "select")

    def test_an_empty_page_becomes_a_whole_document(self, world: World) -> None:
        site_fields = {"projectId": world.here.site, "title": HOSTILE}
        page = call_console(world.here.workspace_id, "create_page", **site_fields)["page"]["id"]
        world.person("boss").post(f"{path_of(world)}/embed", {"page": page})
        html = call_console(world.here.workspace_id, "get_page", id=page)["page"]["html"]
        assert html.startswith("<!doctype html>")
        assert "<form" in html
        assert "<img" not in html


class TestDeleting:
    def test_the_confirmation_says_what_stops_and_what_stays(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{path_of(world)}/delete"
        submit(world.here.form, phone="+7 999 123 45 67")
        page = text(console_owner.get(path))
        assert "that it no longer works" in page
        assert "2 leads are kept." in page
        for _ in range(2):
            assert (
                console_owner.post(path).headers["Location"]
                == f"{world.here.path}/forms?done=form_deleted"
            )
        assert forms(world) == []
        assert "No forms yet" in text(console_owner.get(f"{world.here.path}/forms"))
