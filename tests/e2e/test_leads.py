"""Leads and dialogs in a browser, on a phone and on a desktop, with and without script."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.unit import run_unit
from tests.e2e.conftest import SCREENS, ConsoleTab, OpenConsole, elements, findings, save_screenshot
from tests.e2e.test_console import LONG, OVERFLOW, UNCUT
from tests.factories.console import Place, _dialog, _lead

ARABIC = "مخبز القمح الذهبي " * 17
NAMES = {"long": LONG, "rtl": ARABIC}
every_screen = pytest.mark.parametrize("screen", SCREENS)
with_and_without_script = pytest.mark.parametrize("script", [True, False])


def stored_lead(workspace: Place, lead: str) -> Any:
    """Return a stored lead."""
    return LEADS.require(workspace.workspace_id, record_id=lead)


def texts(screen: str) -> dict[str, str]:
    """Return the words of the pages in the language of a screen."""
    russian = {
        "leads": "Заявки",
        "next": "В работе",
        "saved": "Заявка сохранена.",
        "status": "Статус изменён.",
        "notes": "Заметки",
        "tags": "Метки",
        "save": "Сохранить заявку",
        "export": "Скачать CSV",
        "dialogs": "Диалоги",
        "found": "Имя, контакт или слова заявки",
        "show": "Показать",
    }
    english = {
        "leads": "Leads",
        "next": "In progress",
        "saved": "Lead saved.",
        "status": "Status changed.",
        "notes": "Notes",
        "tags": "Tags",
        "save": "Save lead",
        "export": "Download CSV",
        "dialogs": "Dialogs",
        "found": "Name, contact or words in the lead",
        "show": "Show",
    }
    return russian if screen == "phone" else english


@with_and_without_script
@every_screen
def test_a_person_works_a_lead_off(
    screen: str, script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    words = texts(screen)
    with open_console(**SCREENS[screen], java_script_enabled=script) as tab:
        page = tab.page
        tab.start_session()
        page.get_by_role("link", name=words["leads"]).first.click()
        page.get_by_label(words["found"]).fill("Колосок")
        page.get_by_role("button", name=words["show"], exact=True).click()
        page.locator("a.row").first.click()
        page.get_by_role("button", name=words["next"], exact=True).click()
        expect(page.get_by_role("status")).to_have_text(words["status"])
        page.get_by_label(words["notes"]).fill("Перезвонить в пятницу")
        page.get_by_label(words["tags"], exact=True).fill("торт, vip")
        page.get_by_role("button", name=words["save"]).dblclick()
        expect(page.get_by_role("status")).to_have_text(words["saved"])
        expect(page.get_by_label(words["tags"], exact=True)).to_have_value("торт, vip")
        lead = stored_lead(workspace, workspace.lead)
        assert (lead.status, lead.notes) == ("in_progress", "Перезвонить в пятницу")
        page.get_by_role("link", name=words["dialogs"]).first.click()
        page.locator("a.row").first.click()
        expect(page.locator(".said").first).to_be_visible()


@every_screen
def test_two_people_see_what_the_other_changed_and_lose_nothing(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    words, path = texts(screen), f"{workspace.path}/leads/{workspace.lead}"
    with open_console(**SCREENS[screen]) as mine, open_console(**SCREENS[screen]) as theirs:
        for tab in (mine, theirs):
            tab.start_session()
            tab.open(path)
        for tab, notes in ((theirs, "Их слова"), (mine, "Мои слова")):
            tab.page.get_by_label(words["notes"]).fill(notes)
            tab.page.get_by_role("button", name=words["save"]).click()
            tab.page.wait_for_load_state()
        note = mine.page.get_by_role("status")
        expect(note).to_contain_text("Их слова")
        expect(note).to_contain_text("Мои слова")
        expect(mine.page.get_by_label(words["notes"])).to_have_value("Мои слова")
        assert check(mine) == []
        save_screenshot(mine.page, f"console-lead-conflict-{screen}-light")
        mine.errors.clear()  # The browser logs the status 409 of the page.
        mine.page.get_by_role("button", name=words["save"]).click()
        expect(mine.page.get_by_role("status")).to_have_text(words["saved"])
        assert stored_lead(workspace, workspace.lead).notes == "Мои слова"


@with_and_without_script
def test_an_export_is_downloaded_again_and_again(
    script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(java_script_enabled=script, accept_downloads=True) as tab:
        tab.start_session()
        tab.open(f"{workspace.path}/leads?status=new")
        for _ in "12":
            with tab.page.expect_download() as started:
                tab.page.get_by_role("button", name="Download CSV").click()
            assert started.value.suggested_filename.endswith(".csv")
            raw = Path(started.value.path()).read_bytes().decode("utf-8-sig")
            rows = list(csv.DictReader(io.StringIO(raw, newline="")))
            assert "Пекарня «Колосок»" in [row["Name"] for row in rows]
            assert {row["Phone"][:2] for row in rows if row["Phone"]} == {"'+"}


@pytest.mark.parametrize("kind", NAMES)
@every_screen
def test_long_names_fit_on_every_page(
    screen: str, kind: str, workspace: Place, open_console: OpenConsole
) -> None:
    home, name = workspace.workspace_id, NAMES[kind]
    form = stored_lead(workspace, workspace.lead).form_id
    lead = _lead(home, form, workspace.client, name)
    dialog = _dialog(home, workspace.bot, name)
    row = stored_lead(workspace, lead)
    row.dialog_id = dialog
    row.email = f"{'a' * 60}@{'b' * 60}.example.com"
    run_unit(home, None, lambda unit: unit.save(row))
    problems: dict[str, list[str]] = {}
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        for part in ("/leads", f"/leads/{lead}", "/dialogs", f"/dialogs/{dialog}", ""):
            tab.open(workspace.path + part)
            if misfits := check(tab):
                problems[part] = misfits
            place = part.strip("/").partition("/")
            page_name = f"{place[0] or 'overview'}{'-one' if place[2] else ''}"
            save_screenshot(tab.page, f"console-{page_name}-{kind}-{screen}-light")
    assert not problems, problems


def check(tab: ConsoleTab) -> list[str]:
    """Return what is wrong with the open page: its width, cut names, and findings of axe."""
    page = tab.page
    problems: list[str] = elements(page, OVERFLOW) + elements(page, UNCUT) + findings(page)
    return problems
