"""Drafts of pages are saved, looked at and published in the console, over HTTP."""

import re
from typing import Any

from tests.conftest import Answer, Api, call_console, run_concurrently
from tests.factories.console import HOSTILE, World
from tests.transports.console.forms.helpers import hidden_fields, text
from tests.transports.console.forms.test_site_forms import html_of, page_of, save, site_of
from tests.transports.console.test_console_pages import Markup

HEADING = [("type", "heading"), ("text-0", "Rye")]


def draft_of(world: World) -> Any:
    return call_console(world.here.workspace_id, "get_page_draft", id=world.here.page)["draft"]


def keep(world: World, html: str = "soon") -> None:
    workspace = world.here.workspace_id
    call_console(
        workspace, "save_page_draft", account_id=world.here.member, id=world.here.page, html=html
    )


def frames(answer: Answer) -> list[str]:
    return re.findall('<iframe[^>]+ loading="lazy" sandbox srcdoc="([^"]*)"', text_of(answer))


def text_of(answer: Answer) -> str:
    return answer.body.decode()


class TestSaving:
    def test_html_is_kept_as_a_draft_by_its_own_button(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/html"
        published = html_of(world)
        answer = console_owner.post(path, {"html": "<h1>Soon", "action": "draft"})
        assert answer.headers["Location"] == f"{path}?done=draft_saved"
        assert html_of(world) == published
        editor = text(console_owner.get(path))
        assert ">\n<h1>Soon</textarea>" in editor
        assert "Unpublished draft" in editor
        assert console_owner.post(path, {"html": "<h1>Soon"}).status == 303
        assert html_of(world) == "<h1>Soon"
        assert draft_of(world) is None

    def test_sections_are_kept_as_a_draft_and_published_by_one_press(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/sections"
        published = html_of(world)
        answer = console_owner.post(path, [*HEADING, ("action", "draft")])
        assert answer.headers["Location"] == f"{path}?done=draft_saved"
        assert html_of(world) == published
        editor = console_owner.get(path)
        assert 'value="Rye"' in text(editor)
        answer = console_owner.post(path, [*HEADING, ("action", "publish")])
        assert answer.headers["Location"] == f"{path}?done=page_saved"
        assert "Rye" in html_of(world)
        assert draft_of(world) is None

    def test_the_first_button_of_the_sections_which_a_key_presses_publishes_nothing(
        self, world: World
    ) -> None:
        editor = text(world.person("boss").get(f"{page_of(world)}/sections"))
        assert re.findall('<button[^>]+name="action" value="(\\w+)"', editor)[0] == "draft"

    def test_a_draft_of_somebody_else_is_shown_beside_what_was_typed(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/html"
        opened = hidden_fields(console_owner.get(path), "beganFrom", "ifDraft")
        assert opened["ifDraft"] == ""
        keep(world, "theirs")
        answer = console_owner.post(path, {"html": "mine", **opened})
        assert answer.status == 409
        assert "Someone saved another draft" in text(answer)
        assert "<mark>theirs</mark>" in text_of(answer)
        assert ">\nmine</textarea>" in text_of(answer)
        assert draft_of(world)["html"] == "theirs"
        again = hidden_fields(answer, "beganFrom", "ifDraft")
        assert console_owner.post(path, {"html": "mine", **again}).status == 303
        assert html_of(world) == "mine"

    def test_sections_of_a_draft_that_changed_meanwhile_are_not_published_unseen(
        self, world: World
    ) -> None:
        console_owner, path = world.person("boss"), f"{page_of(world)}/sections"
        keep(world, "seen")
        opened = hidden_fields(console_owner.get(path), "seen", "ifDraft")
        keep(world, "unseen")
        published = html_of(world)
        answer = console_owner.post(path, {**opened, "action": "publish"})
        assert answer.status == 409
        assert html_of(world) == published


class TestPublishing:
    def test_two_presses_at_once_publish_once(self, world: World) -> None:
        keep(world)
        boss, path = world.person("boss"), page_of(world)
        fields = hidden_fields(boss.get(path), "ifDraft")
        answers = run_concurrently(2, lambda _: boss.post(f"{path}/draft", fields))
        assert {answer.headers["Location"] for answer in answers} == {f"{path}?done=page_saved"}
        workspace_id, page = world.here.workspace_id, world.here.page
        assert html_of(world) == "soon"
        versions = call_console(workspace_id, "list_page_versions", id=page)["versions"]
        assert len(versions) == 2

    def test_an_outdated_draft_is_published_anyway_or_the_page_is_kept(self, world: World) -> None:
        boss, path = world.person("boss"), page_of(world)
        for choice, expected in (("discard", "theirs"), ("draft", "soon")):
            save(world, "before")
            keep(world)
            save(world, "theirs")
            fields = hidden_fields(boss.get(path), "ifDraft")
            answer = boss.post(f"{path}/draft", fields)
            assert answer.status == 409
            assert frames(answer) == ["theirs", "soon"]
            assert "Publish the draft anyway" in text(answer)
            assert "Keep the page, discard the draft" in text(answer)
            assert html_of(world) == "theirs"
            shown = hidden_fields(answer, "ifDraft", "ifHtml")
            assert boss.post(f"{path}/{choice}", shown).status == 303
            assert html_of(world) == expected
            assert draft_of(world) is None

    def test_a_save_after_the_comparison_was_shown_is_compared_again(self, world: World) -> None:
        boss, path = world.person("boss"), f"{page_of(world)}/draft"
        keep(world)
        save(world, "theirs")
        shown = hidden_fields(boss.get(path), "ifDraft", "ifHtml")
        save(world, "theirs again")
        assert frames(boss.post(path, shown)) == ["theirs again", "soon"]
        assert html_of(world) == "theirs again"

    def test_without_a_draft_its_page_leads_to_the_page(self, world: World) -> None:
        boss, path = world.person("boss"), page_of(world)
        for answer in (boss.get(f"{path}/draft"), boss.post(f"{path}/draft", {})):
            assert answer.headers["Location"] == f"{path}?done=no_draft"
        assert "no longer there" in text(boss.get(f"{path}?done=no_draft"))

    def test_an_undo_after_publishing_is_one_press(self, world: World) -> None:
        boss, path = world.person("boss"), page_of(world)
        save(world, "before")
        boss.post(f"{path}/html", {"html": "after"})
        answer = boss.get(f"{path}/html?done=page_saved")
        boss.post(f"{path}/undo", hidden_fields(answer, "ifVersion"))
        assert html_of(world) == "before"


class TestShowing:
    def test_pages_say_that_there_is_a_draft_who_saved_it_and_link_to_its_preview(
        self, world: World
    ) -> None:
        boss, path = world.person("boss"), page_of(world)
        keep(world)
        for shown in (path, f"{path}/html", f"{path}/sections", f"{path}/draft"):
            answer = boss.get(shown)
            assert "Unpublished draft" in text(answer)
            assert "saved by" in text(answer)
            (url,) = set(re.findall('href="([^"]+[?]_draft=[^"]+)"', text_of(answer)))
            preview = Api(None).call("GET", url.removeprefix("http://127.0.0.1:8000"))
            assert preview.body.decode().endswith("soon")
        site = text(boss.get(site_of(world)))
        assert "Unpublished draft" in site

    def test_a_draft_is_shown_in_a_sandbox_without_its_scripts(self, world: World) -> None:
        keep(world, f"<script>alert(1)</script>{HOSTILE}")
        answer = world.person("boss").get(f"{page_of(world)}/draft")
        assert Markup(answer.body).bad == []
        assert len(frames(answer)) == 2
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "<script>alert" not in text_of(answer)

    def test_the_texts_are_in_both_languages(self, world: World) -> None:
        keep(world)
        save(world, "theirs")
        answer = world.person("boss").get(f"{page_of(world)}/draft", Accept_Language="ru")
        assert "Всё равно опубликовать черновик" in text(answer)
        assert "draft_" not in re.sub('href="[^"]*"', "", text(answer))
