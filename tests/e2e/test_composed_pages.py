"""Pages of sections as visitors see them, with the header and the footer of the business."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from chalicelib.transports.web import texts
from infra.local import demo
from tests.conftest import Owner, call_console
from tests.e2e.conftest import elements, markup_errors, save_screenshot
from tests.e2e.test_console import OVERFLOW

IMAGES = Path(demo.__file__).parent / "images"
SCREENS = {"narrow": (320, 640), "phone": (390, 844), "desktop": (1280, 900)}
WORDS: dict[str, dict[str, Any]] = {
    "ru": {
        "name": "Пекарня «Колосок»",
        "address": "Невский пр., 28, Санкт-Петербург",
        "phone": "+7 812 555-12-34",
        "book": "Записаться",
        "pages": ["Главная", "О пекарне", "Контакты", "Политика конфиденциальности"],
        "services": [("Ржаной хлеб: мастер-класс", 350_000), ("Дегустация", 120_000)],
        "lead": "Печём с пяти утра на **живой закваске**.\n\n- без улучшителей\n- с доставкой",
        "heads": ["Цены", "Часы работы", "Напишите нам", "Где мы"],
        "labels": ["Как вас зовут", "Телефон", "Согласен на обработку персональных данных"],
    },
    "en": {
        "name": "Corner Bakery",
        "address": "12 High Street, London",
        "phone": "+44 20 7946 0958",
        "book": "Book",
        "pages": ["Home", "About us", "Contact", "Privacy policy"],
        "services": [("Rye bread class", 3_500), ("Tasting", 1_200)],
        "lead": "We bake from five in the morning, with **live sourdough**.\n\n- no improvers",
        "heads": ["Prices", "Hours", "Write to us", "Find us"],
        "labels": ["Your name", "Phone", "I agree to the processing of my personal data"],
    },
}


def make_site(owner: Owner, language: str) -> str:
    """Create a business with a site of sections, and return the site's URL."""
    home, words = owner.workspace.id, WORDS[language]

    def call(operation: str, **arguments: Any) -> Any:
        return call_console(home, operation, account_id=owner.workspace.owner_id, **arguments)

    brand = {name: words[name] for name in ("name", "address", "phone")}
    local = {"ru": {"accent": "teal"}, "en": {"accent": "amber", "currency": "GBP"}}
    call("set_workspace", **brand, **local[language])
    body = b64encode((IMAGES / "loaf-croissant-cake-cup.jpg").read_bytes()).decode()
    photo = call("upload_file", name="hall.jpg", content=body)["file"]["id"]
    staff = call("create_resource", name="Ada")["resource"]["id"]
    rules = [{"weekdays": ["mon", "tue", "wed", "thu", "fri"], "start": "10:00", "end": "19:00"}]
    call("set_availability", resourceId=staff, rules=rules)
    services = [
        call("create_service", name=name, durationMin=60, price=price, resourceIds=[staff])
        for name, price in words["services"]
    ]
    call("set_booking_page", isOn=True, offer=[made["service"]["id"] for made in services])
    site = call("create_site", title=words["name"])["project"]
    fields = [
        {"name": name, "label": label, "type": kind, "required": True}
        for name, label, kind in zip(
            ("name", "phone", "consent"),
            words["labels"],
            ("text", "phone", "consent"),
            strict=True,
        )
    ]
    form = call("create_form", title=words["heads"][2], language=language, fields=fields)
    prices, hours, write, find = words["heads"]
    sections = [
        {"type": "hero", "title": words["name"], "text": words["lead"], "fileId": photo},
        {"type": "columns", "title": words["pages"][1], "text": words["lead"], "fileId": photo},
        {"type": "heading", "text": prices},
        {"type": "prices"},
        {"type": "heading", "text": hours},
        {"type": "hours"},
        {"type": "heading", "text": write},
        {"type": "form", "formId": form["form"]["id"]},
        {"type": "heading", "text": find},
        {"type": "map", "text": words["address"]},
    ]
    for title in words["pages"]:
        page = call("create_page", projectId=site["id"], title=title)["page"]
        call("update_page", id=page["id"], sections=sections)
    return str(site["url"])


def heads_of(words: dict[str, Any]) -> list[str]:
    """Return the names of the links that stand above the menu."""
    return [words["name"], words["phone"], words["book"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_a_composed_page_fits_the_screen_and_has_no_finding(
    service: str,
    owner: Owner,
    open_url: Callable[..., Any],
    language: str,
    screen: str,
    scheme: str,
) -> None:
    url = make_site(owner, language)
    width, height = SCREENS[screen]
    options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    with open_url(f"{url}/", **options) as page:
        save_screenshot(page, f"composed-{language}-{screen}-{scheme}")
        words = WORDS[language]
        banner, footer = page.get_by_role("banner"), page.get_by_role("contentinfo")
        expect(banner).to_contain_text(words["name"])
        expect(banner.get_by_role("link", name=words["pages"][1])).to_be_visible()
        expect(footer.get_by_role("link", name=words["address"])).to_be_visible()
        heads = [banner.get_by_role("link", name=name) for name in heads_of(words)]
        tops = [box["y"] + box["height"] / 2 for each in heads if (box := each.bounding_box())]
        assert len(tops) == len(heads)
        assert max(tops) - min(tops) < 24, "name, phone and button are one line"
        assert elements(page, OVERFLOW) == []
        violations = Axe().run(page).response["violations"]
        assert [at["html"] for each in violations for at in each["nodes"]] == []
        assert markup_errors(page) == []
        assert len(page.content().encode()) <= 60_000
