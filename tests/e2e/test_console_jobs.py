"""Count taps and pages of an owner who has only a phone, in both languages."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from chalicelib.transports.console.routes import FORM, SITE, WORKSPACE
from tests.conftest import PASSWORD, call_console, call_operator
from tests.e2e.conftest import (
    EMAIL,
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place
from tests.factories.images import drawn, saved

PHONE: Mapping[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
WORDS = {
    "en": {
        "forms": "Forms",
        "create": "Create a form",
        "copy": "Copy",
        "copied": "Copied",
        "products": "Products",
        "add": "Add a product",
        "save": "Add the product",
        "name": "Name",
        "photo": "Add photos",
        "price": "Price",
        "done": "The product is added.",
        "sites": "Sites",
        "site": "Create a site",
        "title": "Title of the site",
        "trade": "First page",
        "salon": "Beauty salon or barber",
        "publish": "Publish",
        "saved": "Page published.",
        "map": "Map",
        "address": "Address",
        "booking": "Booking",
        "undo": "Undo last change",
        "undone": "The last change is undone.",
    },
    "ru": {
        "forms": "Формы",
        "create": "Создать форму",
        "copy": "Копировать",
        "copied": "Скопировано",
        "products": "Товары",
        "add": "Добавить товар",
        "save": "Добавить товар",
        "name": "Название",
        "photo": "Добавить фотографии",
        "price": "Цена",
        "done": "Товар добавлен.",
        "sites": "Сайты",
        "site": "Создать сайт",
        "title": "Название сайта",
        "trade": "Первая страница",
        "salon": "Салон красоты или барбершоп",
        "publish": "Опубликовать",
        "saved": "Страница опубликована.",
        "map": "Карта",
        "address": "Адрес",
        "booking": "Запись",
        "undo": "Отменить последнее изменение",
        "undone": "Последнее изменение отменено.",
    },
}
PHOTO = {
    "name": "photo.jpg",
    "mimeType": "image/jpeg",
    "buffer": saved(drawn(size=(3_000, 2_000)), "JPEG", quality=95),
}
READ_FILES = """async (input) => {
  const entries = [...input.files].map(async (file) => {
    const image = await createImageBitmap(file).catch(() => null);
    if (!image) return [file.name, [file.type, 0, 0, 0, file.size]];
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const alpha = canvas.getImageData(0, 0, 1, 1).data[3];
    return [file.name, [file.type, image.width, image.height, alpha, file.size]];
  });
  return Object.fromEntries(await Promise.all(entries));
}"""
"""Returns type, width, height, opacity of the first pixel, and bytes of each file of a control."""
JOBS = [
    *(f"{WORKSPACE}/files", f"{WORKSPACE}/files/{{file}}", f"{WORKSPACE}/files/{{file}}/delete"),
    *(f"{WORKSPACE}/products", f"{WORKSPACE}/products/new", f"{WORKSPACE}/products/{{product}}"),
    *(f"{WORKSPACE}/products/{{product}}/delete", SITE, FORM, f"{WORKSPACE}/services/{{service}}"),
    *(f"{SITE}/pages/{{page}}/sections", f"{WORKSPACE}/staff/{{staff}}"),
]
"""Pages for jobs that had none."""


SECONDS_A_TAP, SECONDS_A_LETTER, SECONDS_A_PAGE = 2.5, 0.3, 1.5
"""Time of a user of a phone who looks for each control, types with two thumbs, and waits."""


@dataclass
class Walk:
    """A walk on a phone. Each press and each field that is filled in is a tap."""

    page: Page
    taps: int = 0
    pages: int = 0
    letters: int = 0

    @property
    def seconds(self) -> float:
        """The time that a user needs, by the constants."""
        return (
            self.taps * SECONDS_A_TAP
            + self.letters * SECONDS_A_LETTER
            + self.pages * SECONDS_A_PAGE
        )

    def __post_init__(self) -> None:
        """Count the pages that open."""
        self.page.on("load", self._count)

    def _count(self, _: Page) -> None:
        self.pages += 1

    def tap(self, target: Locator) -> None:
        """Press an element."""
        self.taps += 1
        target.click()

    def fill(self, target: Locator, text: str) -> None:
        """Tap a field, and type a string."""
        self.taps += 1
        self.letters += len(text)
        target.fill(text)

    def choose(self, target: Locator, label: str) -> None:
        """Open a list of options, and press one."""
        self.taps += 2
        target.select_option(label=label)

    def section(self, name: str) -> None:
        """Open a page of the menu, which a phone shows after a press."""
        link = self.page.locator("header nav").get_by_role("link", name=name, exact=True)
        if not link.is_visible():
            self.tap(self.page.locator("label[for=menu]"))
        self.tap(link)


@pytest.fixture
def empty(service: str) -> dict[str, Any]:
    """A workspace without any record."""
    call_operator("create_account", email=EMAIL, password=PASSWORD, name="Анна Соколова")
    workspace: dict[str, Any] = call_operator("create_workspace", owner=EMAIL, name="Bakery")
    return workspace


@pytest.mark.parametrize("language", WORDS)
def test_a_form_is_in_use_after_six_taps(
    language: str,
    empty: dict[str, Any],
    open_console: OpenConsole,
    open_url: Callable[..., Any],
) -> None:
    words = WORDS[language]
    phone = {**PHONE, "locale": language}
    grants = {"permissions": ["clipboard-read", "clipboard-write"]}
    with open_console(**phone, **grants) as tab:
        tab.start_session()
        walk = Walk(tab.page)
        walk.section(words["forms"])
        walk.tap(tab.page.get_by_role("link", name=words["create"]))
        walk.tap(tab.page.get_by_role("button", name=words["create"]))
        walk.tap(tab.page.get_by_role("button", name=words["copy"]).first)
        expect(tab.page.get_by_role("button", name=words["copied"])).to_be_visible()
        assert walk.taps <= 6
        assert walk.pages <= 4
        save_screenshot(tab.page, f"form-link-{language}")
        link = tab.page.evaluate("navigator.clipboard.readText()")
    for scheme in ("light", "dark"):
        with open_url(link, **phone, color_scheme=scheme) as page:
            assert elements(page, OVERFLOW) == []
            assert findings(page) == []
            assert page.locator("html").get_attribute("lang") == language
            save_screenshot(page, f"form-page-{language}-{scheme}")
    with open_url(link, **phone) as page:
        for control in page.locator("input:visible, textarea:visible").all():
            kind = control.get_attribute("type")
            entered_text = {"tel": "+74951234567", "email": "ada@example.com"}.get(
                kind or "", "Ada"
            )
            control.check() if kind == "checkbox" else control.fill(entered_text)
        page.clock.run_for(3_000)
        page.get_by_role("button").click()
        expect(page.locator("[role=status]")).not_to_be_empty()
    leads = call_console(empty["workspaceId"], "list_leads")["collections"]
    assert len(leads) == 1
    assert leads[0]["source"]["page"] == link


@pytest.mark.parametrize("language", WORDS)
def test_a_product_with_a_photo_takes_eight_taps(
    language: str, empty: dict[str, Any], open_console: OpenConsole
) -> None:
    words = WORDS[language]
    with open_console(**PHONE, locale=language) as tab:
        tab.start_session()
        walk = Walk(tab.page)
        walk.section(words["products"])
        walk.tap(tab.page.get_by_role("link", name=words["add"]))
        walk.fill(tab.page.get_by_label(words["name"], exact=True), "Rye bread")
        with tab.page.expect_file_chooser() as chooser:
            walk.tap(tab.page.get_by_label(words["photo"]))
        chooser.value.set_files([PHOTO])  # type: ignore[list-item]  # a file by its content
        walk.fill(tab.page.get_by_label(words["price"]), "120")
        walk.tap(tab.page.get_by_role("button", name=words["save"]))
        expect(tab.page.get_by_role("status")).to_have_text(words["done"])
        assert walk.taps <= 8
        assert walk.pages <= 3
        save_screenshot(tab.page, f"product-{language}")
        walk.section(words["products"])
        save_screenshot(tab.page, f"products-{language}")
    (product,) = call_console(empty["workspaceId"], "list_products")["products"]
    assert len(product["images"]) == 1


@pytest.mark.parametrize("language", WORDS)
def test_a_site_with_six_sections_takes_eleven_taps_and_its_undo_one(
    language: str, empty: dict[str, Any], open_console: OpenConsole
) -> None:
    words = WORDS[language]
    with open_console(**PHONE, locale=language) as tab:
        tab.start_session()
        page, walk = tab.page, Walk(tab.page)
        walk.section(words["sites"])
        walk.tap(page.get_by_role("link", name=words["site"]))
        walk.fill(page.get_by_label(words["title"]), "Salon Anna")
        walk.choose(page.get_by_label(words["trade"]), words["salon"])
        walk.tap(page.get_by_role("button", name=words["site"]))
        expect(page.locator("fieldset.sections")).to_have_count(4)
        walk.tap(page.get_by_role("button", name=words["map"], exact=True))
        walk.fill(page.get_by_label(words["address"]), "Arbat 1, Moscow")
        walk.tap(page.get_by_role("button", name=words["booking"], exact=True))
        walk.tap(page.get_by_role("button", name=words["publish"]).last)
        expect(page.get_by_role("status")).to_contain_text(words["saved"])
        assert walk.taps <= 11
        assert walk.seconds <= 60
        expect(page.locator("fieldset.sections")).to_have_count(6)
        undo = Walk(page)
        undo.tap(page.get_by_role("button", name=words["undo"]))
        expect(page.get_by_role("status")).to_contain_text(words["undone"])
        assert undo.taps == 1
    (site,) = call_console(empty["workspaceId"], "list_sites")["projects"]
    (listed,) = call_console(empty["workspaceId"], "list_pages", projectId=site["id"])["pages"]
    made = call_console(empty["workspaceId"], "get_page", id=listed["id"])["page"]
    assert len(made["sections"]) == 4


def test_a_booking_of_today_opens_from_the_overview_with_one_tap(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS["phone"]) as tab:
        tab.start_session()
        walk = Walk(tab.page)
        walk.tap(tab.page.locator(f'main a.row[href^="{workspace.path}/bookings/"]').first)
        expect(tab.page.locator("h1")).to_be_visible()
        assert f"{workspace.path}/bookings/" in tab.path
        assert walk.taps == 1


def test_the_page_reduces_large_photos_before_they_are_sent(
    workspace: Place, open_console: OpenConsole
) -> None:
    noise = Image.effect_noise((3_000, 1_500), 60)
    alpha = Image.new("L", noise.size, 255)
    alpha.paste(0, (0, 0, 100, 100))
    transparent = Image.merge("LA", (noise, alpha))
    contents = {
        "photo.jpg": ("image/jpeg", saved(noise, "JPEG", quality=95)),
        "mark.png": ("image/png", saved(transparent, "PNG")),
        "mark.webp": (
            "image/webp",
            saved(transparent.convert("RGBA"), "WEBP", lossless=True, method=0),
        ),
        "broken.heic": ("image/heic", bytes(1_100_000)),
        "small.jpg": ("image/jpeg", saved(drawn(), "JPEG")),
    }
    assert all(len(body) > 1_000_000 or "small" in name for name, (_, body) in contents.items())
    with open_console(**SCREENS["phone"]) as tab:
        tab.start_session()
        tab.open(f"{workspace.path}/files")
        field, button = tab.page.locator("[type=file]"), tab.page.locator("form.card .button")
        field.set_input_files(
            [
                {"name": name, "mimeType": mime_type, "buffer": body}
                for name, (mime_type, body) in contents.items()
            ]
        )
        expect(button).to_be_enabled()
        chosen_files = field.evaluate(READ_FILES)
    assert list(chosen_files) == list(contents)
    for name, mime_type in (("photo.jpg", "jpeg"), ("mark.png", "webp"), ("mark.webp", "webp")):
        assert chosen_files[name][:3] == [f"image/{mime_type}", 2_048, 1_024], name
    assert [chosen_files[name][3] for name in ("photo.jpg", "mark.png", "mark.webp")] == [255, 0, 0]
    for name in ("broken.heic", "small.jpg"):
        assert chosen_files[name][4] == len(contents[name][1])


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_page_of_sections_is_made_without_html(
    script: bool, empty: dict[str, Any], open_console: OpenConsole, open_url: Callable[..., Any]
) -> None:
    view = {"viewport": SCREENS["phone"]["viewport"], "java_script_enabled": script}
    with open_console(**view, locale="en-US") as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"/console/w/{empty['slug']}/sites/new")
        page.get_by_label("Title of the site").fill("Corner bakery")
        page.get_by_role("button", name="Create a site").click()
        page.get_by_label("Title of the page").fill("Welcome")
        page.get_by_role("button", name="Create a page").click()
        page.get_by_role("button", name="Text", exact=True).click()
        page.get_by_label("What it says").fill("We bake at **eight**.")
        page.get_by_role("button", name="Photo", exact=True).click()
        page.get_by_label("Photo", exact=True).set_input_files([PHOTO])  # type: ignore[list-item]
        page.get_by_role("button", name="Map", exact=True).click()
        page.get_by_label("Address").fill("Arbat 1, Moscow")
        page.get_by_role("button", name="Move up: Map, 3").click()
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_role("status")).to_contain_text("Page published.")
        assert elements(page, OVERFLOW) == []
        if script:
            assert findings(page) == []
            save_screenshot(page, "sections-made")
        url = page.get_by_role("link", name="View page").get_attribute("href") or ""
    with open_url(url, java_script_enabled=script) as visit:
        assert visit.locator("strong").inner_text() == "eight"
        visit.locator("img").scroll_into_view_if_needed()
        expect(visit.locator("img")).not_to_have_js_property("naturalWidth", 0)
        assert visit.get_by_role("link", name="Arbat 1, Moscow").is_visible()
        if script:
            save_screenshot(visit, "sections-page")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [*SCREENS, "narrow"])
def test_pages_of_jobs_have_no_finding(
    screen: str, scheme: str, workspace: Place, open_console: OpenConsole
) -> None:
    options = SCREENS.get(screen, {"viewport": {"width": 320, "height": 640}, "locale": "ru-RU"})
    image = {"name": "hall.jpg", "content": b64encode(PHOTO["buffer"]).decode()}
    file = call_console(workspace.workspace_id, "upload_file", **image)["file"]["id"]
    photos = {"images": [{"fileId": file}]}
    call_console(workspace.workspace_id, "update_product", id=workspace.product, stock=7, **photos)
    call_console(workspace.workspace_id, "update_service", id=workspace.service, **photos)
    kinds = ("prices", "booking", "hours")
    sections = [
        {"type": "heading", "text": "Hello"},
        {"type": "text", "text": "Some **text**."},
        {"type": "photo", "fileId": file, "text": "Our hall"},
        *({"type": kind} for kind in kinds),
        {"type": "form", "formId": workspace.form},
        {"type": "map", "text": "Arbat 1"},
    ]
    call_console(workspace.workspace_id, "update_page", id=workspace.page, sections=sections)
    call_console(
        workspace.workspace_id, "set_site_domain", id=workspace.site, domain="www.bakery.example"
    )
    with open_console(**options, color_scheme=scheme) as tab:
        tab.start_session()
        for route in JOBS:
            path = workspace.path_of(route).replace(f"/files/{workspace.file}", f"/files/{file}")
            response = tab.open(path)
            assert response.status == 200
            assert len(response.body()) <= 60_000
            assert elements(tab.page, OVERFLOW) == [], path
            assert elements(tab.page, UNCUT) == [], path
            assert findings(tab.page) == [], path
            assert markup_errors(tab.page) == [], path
            name = route.removeprefix(WORKSPACE).strip("/").replace("/", "-")
            save_screenshot(
                tab.page, f"job-{name}-{screen}-{scheme}".replace("{", "").replace("}", "")
            )
