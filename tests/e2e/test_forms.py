"""The embed code in pages of another origin, with and without script."""

from collections.abc import Callable
from html import escape
from typing import Any

import pytest
from playwright.sync_api import Frame, Page, expect

from tests.conftest import Api
from tests.e2e.conftest import Site, save_screenshot

FIELDS = [
    {"name": "name", "label": "Ваше имя", "required": True},
    {"name": "phone", "label": "Телефон", "type": "phone", "required": True},
    {"name": "cake", "label": "Торт", "type": "select", "options": ["Медовик", "Наполеон"]},
    {"name": "comment", "label": "Комментарий", "type": "textarea"},
    {
        "name": "agree",
        "label": "Согласен на обработку персональных данных",
        "type": "consent",
        "required": True,
    },
]
THANKS = "Спасибо! Мы получили вашу заявку."
AFTERWARDS = "https://bakery.example/thanks"
WRONG_PHONE = "Введите номер телефона"
STYLES = (
    "*{margin:0;padding:0;box-sizing:content-box}"
    "body{font:14px Georgia;background:#222;color:#eee}"
    "label{display:inline;float:left;width:90px} input,select{width:60px;display:inline}"
    "div{display:block} em{color:#333} button{font-size:9px}"
)

Opened = Callable[..., Any]


@pytest.fixture
def new_form(service: str, api: Api) -> Callable[..., Any]:
    """Return a function that creates a form."""

    def make(**more: str) -> Any:
        body = {"title": "Заявка на торт", "fields": FIELDS, **more}
        return api.post("/api/forms/create", body)["form"]

    return make


@pytest.fixture
def form(new_form: Callable[..., Any]) -> Any:
    """A form in Russian."""
    return new_form()


def document(*inside: str, head: str = "") -> str:
    return (
        '<!doctype html><html lang="ru"><head><title>Пекарня</title>'
        '<meta name="viewport" content="width=device-width">'
        f"{head}</head><body><h1>Пекарня</h1>{''.join(inside)}</body></html>"
    )


def fill(page: Page | Frame, **changes: str) -> None:
    values = {"name": "Анна <b>", "phone": "8 999 123-45-67", "comment": "Без орехов\nи мёда"}
    for name, value in (values | changes).items():
        page.locator(f"[name={name}]").fill(value)
    page.locator("[name=cake]").select_option("Наполеон")
    page.locator("[name=agree]").check()


def send(page: Page | Frame) -> None:
    page.get_by_role("button").click()


def leads(api: Api) -> list[Any]:
    leads_found: list[Any] = api.get("/api/forms/collection-list")["collections"]
    return leads_found


def is_annas(lead: Any) -> bool:
    data = lead["data"]
    return (
        data["name"] == "Анна <b>"
        and data["comment"] == "Без орехов\nи мёда"
        and data["cake"] == "Наполеон"
        and lead["phone"] == "+79991234567"
    )


class TestWithScript:
    def test_errors_are_shown_beside_the_fields_of_the_form(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        site.pages["/order"] = document(form["embedHtml"])
        url = f"{site.url}/order?utm_source=mail&utm_medium=cpc"
        with open_url(url, viewport={"width": 360, "height": 800}) as page:
            fill(page, phone="позвоните")
            save_screenshot(page, "embed-360")
            posts: list[str] = []
            page.on(
                "request", lambda request: request.method == "POST" and posts.append(request.url)
            )
            send(page)
            # The script waits, so that a form filled in by a browser is not taken for a robot's.
            assert posts == []
            page.clock.fast_forward(5_000)
            expect(page.locator("label", has_text="Телефон")).to_contain_text(WRONG_PHONE)
            expect(page.get_by_role("status")).to_contain_text("Проверьте поля: Телефон")
            expect(page.locator("[name=phone]")).to_be_focused()
            expect(page.locator("[name=comment]")).to_have_value("Без орехов\nи мёда")
            save_screenshot(page, "embed-error-360")
            assert leads(api) == []
            page.locator("[name=phone]").fill("8 999 123-45-67")
            send(page)
            expect(page.get_by_role("status")).to_have_text(THANKS)
            expect(page.get_by_role("status")).to_be_focused()
            expect(page.get_by_role("button")).to_have_count(0)
            save_screenshot(page, "embed-thanks-360")
            assert page.url == url
        (lead,) = leads(api)
        assert is_annas(lead)
        assert lead["source"]["page"] == f"{site.url}/order"
        assert lead["source"]["campaign"]["source"] == "mail"

    def test_the_browser_asks_for_what_is_required(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(form["embedHtml"])
        with open_url(site.url) as page:
            page.clock.fast_forward(5_000)
            send(page)
            expect(page.locator("[name=name]")).to_be_focused()
        assert leads(api) == []

    def test_two_forms_on_a_page_under_its_styles_do_not_affect_each_other(
        self, new_form: Callable[..., Any], api: Api, site: Site, open_url: Opened
    ) -> None:
        first, second = new_form(), new_form()
        head = f"<style>{STYLES}</style>"
        site.pages["/"] = document(first["embedHtml"], second["embedHtml"], head=head)
        with open_url(site.url) as page:
            page.clock.fast_forward(5_000)
            forms = page.locator("form")
            for trap in page.locator("[name=_url]").all():
                expect(trap).to_be_hidden()
            forms.nth(1).locator("[name=name]").fill("Анна")
            forms.nth(1).locator("[name=phone]").fill("1")
            forms.nth(1).locator("[name=agree]").check()
            forms.nth(1).get_by_role("button").click()
            expect(forms.nth(1).locator("em")).to_contain_text(WRONG_PHONE)
            expect(forms.nth(0).locator("em")).to_have_count(0)
            save_screenshot(page, "embed-under-styles")
            forms.nth(1).locator("[name=phone]").fill("+7 999 123-45-67")
            forms.nth(1).get_by_role("button").click()
            expect(forms.nth(1).get_by_role("status")).to_have_text(THANKS)
            expect(forms.nth(0).get_by_role("button")).to_be_visible()
        assert [lead["formId"] for lead in leads(api)] == [second["id"]]

    def test_the_form_works_in_a_sandboxed_frame(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        inside = escape(document(form["embedHtml"]))
        frame = f'<iframe sandbox="allow-scripts allow-forms" srcdoc="{inside}"></iframe>'
        site.pages["/"] = document(frame)
        with open_url(site.url) as page:
            page.clock.fast_forward(5_000)
            sandbox = page.frames[1]
            assert sandbox.evaluate("origin") == "null"
            fill(sandbox, phone="нет")
            send(sandbox)
            expect(sandbox.locator("em")).to_contain_text(WRONG_PHONE)
            sandbox.locator("[name=phone]").fill("8 999 123-45-67")
            send(sandbox)
            expect(sandbox.get_by_role("status")).to_have_text(THANKS)
        (lead,) = leads(api)
        assert is_annas(lead)
        assert lead["source"]["page"] == f"{site.url}/"

    def test_the_owners_redirect_is_followed(
        self, new_form: Callable[..., Any], api: Api, site: Site, open_url: Opened
    ) -> None:
        form = new_form(redirectUrl=AFTERWARDS)
        site.pages["/"] = document(form["embedHtml"])
        with open_url(site.url) as page:
            page.clock.fast_forward(5_000)
            fill(page)
            with page.expect_request(AFTERWARDS):
                send(page)
        assert len(leads(api)) == 1

    def test_the_entered_values_are_kept_without_a_connection(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(form["embedHtml"])
        with open_url(site.url) as page:
            page.clock.fast_forward(5_000)
            fill(page)
            page.context.set_offline(True)
            send(page)
            expect(page.get_by_role("status")).to_have_text("Нет связи. Попробуйте ещё раз.")
            page.context.set_offline(False)
            send(page)
            expect(page.get_by_role("status")).to_have_text(THANKS)
        assert is_annas(leads(api)[0])


class TestWithoutScript:
    @pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
    def test_a_visitor_is_led_through_the_services_pages_and_back(
        self, form: Any, api: Api, site: Site, open_url: Opened, width: int, scheme: str
    ) -> None:
        site.pages["/order"] = document(form["embedHtml"])
        options = {
            "java_script_enabled": False,
            "viewport": {"width": width, "height": 800},
            "color_scheme": scheme,
        }
        with open_url(f"{site.url}/order", **options) as page:
            fill(page, phone="позвоните")
            send(page)
            expect(page.get_by_role("alert")).to_contain_text("Проверьте поля: Телефон")
            expect(page.locator("label", has_text="Телефон")).to_contain_text(WRONG_PHONE)
            expect(page.locator("[name=name]")).to_have_value("Анна <b>")
            expect(page.locator("[name=comment]")).to_have_value("Без орехов\nи мёда")
            expect(page.locator("[name=cake]")).to_have_value("Наполеон")
            expect(page.locator("[name=agree]")).to_be_checked()
            expect(page.locator("[name=_url]")).to_be_hidden()
            save_screenshot(page, f"error-page-{width}-{scheme}")
            assert leads(api) == []
            page.locator("[name=phone]").fill("8 999 123-45-67")
            send(page)
            expect(page.get_by_role("heading")).to_have_text(THANKS)
            save_screenshot(page, f"thanks-page-{width}-{scheme}")
        (lead,) = leads(api)
        assert is_annas(lead)

    def test_the_link_back_leads_to_the_site(self, form: Any, site: Site, open_url: Opened) -> None:
        site.pages["/"] = document(form["embedHtml"])
        with open_url(site.url, java_script_enabled=False) as page:
            fill(page)
            send(page)
            page.get_by_role("link").click()
            assert page.url == f"{site.url}/"

    def test_the_form_works_in_a_sandboxed_frame(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        inside = escape(document(form["embedHtml"]))
        site.pages["/"] = document(f'<iframe sandbox="allow-forms" srcdoc="{inside}"></iframe>')
        with open_url(site.url) as page:
            frame = page.frames[1]
            fill(frame, phone="нет")
            send(frame)
            expect(frame.get_by_role("alert")).to_contain_text("Проверьте поля: Телефон")
            frame.locator("[name=phone]").fill("8 999 123-45-67")
            send(frame)
            expect(frame.get_by_role("heading")).to_have_text(THANKS)
        assert is_annas(leads(api)[0])

    def test_the_owners_redirect_is_followed_even_from_an_error_page(
        self, new_form: Callable[..., Any], api: Api, site: Site, open_url: Opened
    ) -> None:
        form = new_form(redirectUrl=AFTERWARDS)
        site.pages["/"] = document(form["embedHtml"])
        with open_url(site.url, java_script_enabled=False) as page:
            fill(page, phone="нет")
            send(page)
            page.locator("[name=phone]").fill("8 999 123-45-67")
            with page.expect_request(AFTERWARDS):
                send(page)
        assert len(leads(api)) == 1

    def test_a_deleted_form_shows_a_message(
        self, form: Any, api: Api, site: Site, open_url: Opened
    ) -> None:
        site.pages["/"] = document(form["embedHtml"])
        api.post("/api/forms/delete", {"id": form["id"]})
        with open_url(site.url, java_script_enabled=False, locale="ru-RU") as page:
            fill(page)
            send(page)
            expect(page.get_by_role("alert")).to_contain_text("больше не принимает")
            save_screenshot(page, "gone-page")
