"""The pages on which the owner exports the workspace."""

import html
import io
import re
import zipfile

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.exports.flows.exporting import not_included
from chalicelib.domains.exports.operations import exports as operations
from chalicelib.engine import jobs
from chalicelib.lib import po_files
from chalicelib.transports.web import texts
from chalicelib.transports.web.texts import LANGUAGES
from tests.conftest import PASSWORD, Owner, call_console
from tests.factories.console import person
from tests.factories.exports import download, run_console_export

PROOF = {"currentPassword": PASSWORD}


def test_the_owner_starts_an_export_and_downloads_its_file(owner: Owner) -> None:
    path, user = f"/console/w/{owner.workspace.slug}/exports", person(owner)
    assert f'href="{path}"' in user.get(f"/console/w/{owner.workspace.slug}/settings").body.decode()
    refused = user.post(path, {"currentPassword": "another"})
    assert refused.status == 400
    assert call_console(owner.workspace.id, "list_exports")["exports"] == []
    page = user.post(path, PROOF).headers["Location"]
    shown = user.get(page).body.decode()
    assert "running" in shown
    assert "What the file does not contain" in shown
    jobs.run(JOB_HANDLERS)
    url = re.search(r'class="button" href="([^"]+)" download', user.get(page).body.decode())
    assert url is not None
    file = zipfile.ZipFile(io.BytesIO(download(html.unescape(url[1]))))
    assert "rows/workspace.jsonl" in file.namelist()
    assert f'href="{page}"' in user.get(path).body.decode()


def test_a_used_up_share_is_said_on_the_page(owner: Owner) -> None:
    for _ in range(operations.MAX_A_DAY):
        run_console_export(owner.workspace.id)
    path, user = f"/console/w/{owner.workspace.slug}/exports", person(owner)
    answer = user.post(path, PROOF)
    assert answer.status == 429
    assert "exports are used up" in html.unescape(answer.body.decode())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("has_money", [True, False])
def test_the_page_has_a_text_for_each_reason(language: str, has_money: bool) -> None:
    sentences = po_files.read(texts.LOCALE, language, "console").texts
    for name in not_included(has_money=has_money):
        assert f"export_without_{name}" in sentences
