"""Imports of the console in a browser, with and without script."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.engine import jobs
from tests.conftest import call_console
from tests.e2e.conftest import OpenConsole, elements, findings, save_screenshot
from tests.e2e.test_console import OVERFLOW
from tests.factories.console import Place
from tests.factories.workbooks import xlsx

NARROW = {"viewport": {"width": 320, "height": 640}}
CLIENTS = [
    ["Кто это", "Как с ней связаться", "E-mail", "Дата рождения", "Любимый цвет"],
    ["Анна Каренина", "+7 912 345-67-89", "anna@bakery.example", "03/04/1985", "красный"],
    ["Без контактов", "", "", "", "синий"],
    ["Левин", "8 912 345-67-80", "не почта", "--04-12", ""],
]
LANGUAGES = {"en": "en-US", "ru": "ru-RU"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_an_owner_imports_clients_of_a_workbook_on_a_phone(
    script: bool, language: str, workspace: Place, open_console: OpenConsole, tmp_path: Path
) -> None:
    book = tmp_path / "база.xlsx"
    book.write_bytes(xlsx(CLIENTS))
    jobs.run(JOB_HANDLERS)  # The workspace has an import that has not run yet.
    before = call_console(workspace.workspace_id, "list_clients")["total"]
    is_english = language == "en"
    with open_console(**NARROW, locale=LANGUAGES[language], java_script_enabled=script) as tab:
        page = tab.page
        tab.start_session()

        def look(name: str) -> None:
            if script:
                assert findings(page) == []
                assert elements(page, OVERFLOW) == []
            save_screenshot(page, f"console-import-{name}-{language}")

        page.goto(f"{page.url.partition('/console')[0]}{workspace.path}/clients")
        page.get_by_role("link", name="Import" if is_english else "Импорт", exact=True).click()
        look("file")
        page.set_input_files("#file", book)
        page.locator("main form button").click()
        expect(page.get_by_text("Любимый цвет").first).to_be_visible()
        look("preview")
        assert call_console(workspace.workspace_id, "list_clients")["total"] == before
        page.get_by_label("Кто это").select_option("name")
        page.get_by_label("Как с ней связаться").select_option("phone")
        page.get_by_label("Любимый цвет").select_option("notes")
        page.locator('button[value="preview"]').click()
        expect(page.get_by_text("Анна Каренина").last).to_be_visible()
        look("chosen")
        page.locator('button[value="import"]').click()
        refresh = page.get_by_role("link", name="Refresh" if is_english else "Обновить")
        expect(refresh).to_be_visible()
        look("running")
        jobs.run(JOB_HANDLERS)
        refresh.click()
        expect(page.locator("a[download]")).to_be_visible()
        look("finished")
    after = call_console(workspace.workspace_id, "list_clients")["total"]
    assert after == before + 2
