"""A file that is replaced in the console, in a browser."""

import base64
import io
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.conftest import call_console
from tests.e2e.conftest import OpenConsole
from tests.e2e.test_console_services import check
from tests.factories.console import Place
from tests.factories.images import drawn, saved

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "locale": "ru-RU"}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "locale": "en-US"}


@pytest.mark.parametrize(("name", "screen"), [("phone", PHONE), ("desktop", DESKTOP)])
def test_an_owner_replaces_a_photo_and_sees_the_new_one(
    name: str, screen: dict[str, Any], workspace: Place, open_console: OpenConsole
) -> None:
    content = base64.b64encode(saved(drawn(size=(300, 200)), "JPEG")).decode()
    file = call_console(workspace.workspace_id, "upload_file", name="hall.jpg", content=content)[
        "file"
    ]
    new = {
        "name": "hall 2.png",
        "mimeType": "image/png",
        "buffer": saved(drawn(size=(200, 300)), "PNG"),
    }
    with open_console(**screen) as tab:
        tab.start_session()
        page = tab.page
        tab.open(f"{workspace.path}/files/{file['id']}")
        preview = page.locator(".preview img")
        # The browser loads a photo after its page.
        expect(preview).to_have_js_property("naturalWidth", 300)
        check(tab, f"file-{name}")
        page.locator("#newFile").set_input_files([new])  # type: ignore[list-item]  # a file by its content
        page.locator('form[action$="/replace"] button').click()
        expect(page.get_by_role("status")).to_be_visible()
        expect(preview).to_have_js_property("naturalWidth", 200)
        check(tab, f"file-replaced-{name}")
        # Whoever has the link sees the new photo.
        shown = page.request.get(file["url"])
        assert shown.headers["cache-control"] == "public, max-age=300"
        assert Image.open(io.BytesIO(shown.body())).size == (200, 300)
