"""Pages of products on a site, as visitors see them."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from chalicelib.transports.web import texts
from tests.conftest import Owner, call_console
from tests.e2e.conftest import elements, markup_errors, save_screenshot
from tests.e2e.test_composed_pages import IMAGES, SCREENS, make_site
from tests.e2e.test_console import OVERFLOW

NAMES: dict[str, list[tuple[str, str | None, str, int | None]]] = {
    "ru": [
        ("Ржаной хлеб на закваске с кориандром и тмином", "rye", "Печём ночью.\n600 г.", 4),
        ("Батон", "loaf", "", None),
        ("Превысокомногорассмотрительствующий", "cake", "Торт к празднику", 0),
        ("Подарочная карта", None, "", None),
    ],
    "en": [
        ("Sourdough rye bread with coriander and caraway", "rye", "Baked at night.\n600 g.", 4),
        ("Loaf", "loaf", "", None),
        ("Pneumonoultramicroscopicsilicovolcanoconiosis", "cake", "For a celebration", 0),
        ("Gift card", None, "", None),
    ],
}


def add_products(owner: Owner, language: str) -> str:
    """Create the products, of which the site shows all, and return the id of the first."""
    ids = []

    def call(operation: str, **arguments: Any) -> Any:
        return call_console(owner.workspace.id, operation, **arguments)

    (site,) = call("list_sites")["projects"]
    call("update_site", id=site["id"], showsProducts=True)
    for name, photo, description, stock in NAMES[language]:
        images = []
        if photo:
            body = b64encode((IMAGES / f"{photo}.jpg").read_bytes()).decode()
            images = [{"fileId": call("upload_file", name="p.jpg", content=body)["file"]["id"]}]
        fields = {"description": description, "stock": stock, "images": images}
        made = call("create_product", name=name, price=129_050, sku=f"S-{name[:5]}", **fields)
        ids.append(made["product"]["id"])
    return str(ids[0])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_pages_of_products_fit_the_screen_and_have_no_finding(
    service: str,
    owner: Owner,
    open_url: Callable[..., Any],
    language: str,
    screen: str,
    scheme: str,
) -> None:
    url = make_site(owner, language)
    first = add_products(owner, language)
    width, height = SCREENS[screen]
    options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    name = NAMES[language][0][0]
    for place in ("products", f"products/{first}"):
        with open_url(f"{url}/{place}", **options) as page:
            kind = "product" if first in place else "products"
            save_screenshot(page, f"{kind}-{language}-{screen}-{scheme}")
            if kind == "product":
                expect(page.get_by_role("heading", level=1)).to_have_text(name)
                expect(page.get_by_role("img", name=name)).to_be_visible()
            else:
                expect(page.get_by_role("listitem")).to_have_count(len(NAMES[language]))
                expect(page.get_by_role("link", name=name)).to_be_visible()
            menu = page.get_by_role("banner").get_by_role("navigation")
            label = texts.translate(language, "site_products")  # type: ignore[arg-type]
            expect(menu.get_by_role("link", name=label)).to_have_attribute(
                "href", f"{url}/products"
            )
            assert elements(page, OVERFLOW) == []
            violations = Axe().run(page).response["violations"]
            assert [at["html"] for each in violations for at in each["nodes"]] == []
            assert markup_errors(page) == []
            assert len(page.content().encode()) <= 60_000
