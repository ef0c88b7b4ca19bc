"""The demo bakery's site in a browser, with bookings, a form and the chat."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from infra.local.data_dir import DataDir
from infra.local.demo import bakery, school
from infra.local.demo.seed import seed
from tests.conftest import Api
from tests.e2e.conftest import markup_errors, save_screenshot
from tests.factories.widget import ask, card, chatting, last, settled

Opened = Callable[..., Any]
PHONE = {"viewport": {"width": 360, "height": 740}}
DESKTOP = {"viewport": {"width": 1440, "height": 900}}


@pytest.fixture
def api(
    service: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> Api:
    """The API with the demo's key, after the demo was created."""
    monkeypatch.setenv("DEMO_BALANCE", "100000")
    reload_settings()
    return Api(seed(DataDir(tmp_path / "data")))


@pytest.fixture
def home_url(api: Api) -> str:
    """The URL of the demo's site, as the API returns it."""
    url: str = api.get("/api/projects/list")["projects"][0]["url"]
    return url


def follow_menu_link(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_visitor_books_a_class_on_the_demo_site(
    api: Api, home_url: str, open_url: Opened
) -> None:
    with open_url(home_url, **DESKTOP) as page:
        assert page.url == f"{home_url}/"
        follow_menu_link(page, "Мастер-классы")
        assert urlsplit(page.url).path == urlsplit(f"{home_url}/classes").path
        page.get_by_role("link", name="Выбрать время").nth(1).click()
        booking_form = page.locator(".book")
        expect(booking_form.get_by_label("Занятие")).to_contain_text(
            school.load("ru").services[1].name
        )
        expect(booking_form.locator(".times label").first).to_be_visible()
        booking_form.locator(".days label").last.click()
        booking_form.locator(".times label").last.click()
        booking_form.get_by_label("Имя").fill("Ирина")
        booking_form.get_by_label("Телефон").fill("12")
        booking_form.get_by_role("button", name="Записаться").click()
        expect(booking_form.get_by_role("status")).to_contain_text("Проверьте телефон")
        booking_form.get_by_label("Телефон").fill("8 916 555-77-88")
        booking_form.get_by_role("button", name="Записаться").dblclick()
        expect(page.get_by_role("heading", name="Вы записаны!")).to_be_visible()
        save_screenshot(page, "demo-booked-desktop")
        calendar = page.get_by_role("link", name="Добавить в календарь").get_attribute("href")
        assert calendar
        assert page.request.get(calendar).text().startswith("BEGIN:VCALENDAR")
    booked = api.get("/api/bookings/list?size=100")["bookings"]
    (booking,) = [booking for booking in booked if booking["client"]["name"] == "Ирина"]
    assert booking["serviceName"] == school.load("ru").services[1].name


def test_a_visitor_finds_a_product_on_the_demo_site(home_url: str, open_url: Opened) -> None:
    with open_url(home_url, **PHONE) as page:
        follow_menu_link(page, "Товары")
        rye = bakery.load("ru").products[0].name
        page.get_by_role("link", name=rye, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(rye)
        expect(page.get_by_role("main")).to_contain_text("В наличии")
        save_screenshot(page, "demo-product-360")


def test_a_visitor_submits_a_form_and_chats_on_the_demo_site(
    api: Api, home_url: str, open_url: Opened
) -> None:
    with open_url(home_url, **DESKTOP) as page:
        chatting(page, "Сколько стоит бородинский хлеб?")
        expect(last(page)).to_contain_text("195")
        page.keyboard.press("Escape")
        follow_menu_link(page, "Контакты")
        page.clock.fast_forward(5_000)
        form = page.locator(".svc-form")
        form.get_by_label("Как к вам обращаться").fill("Ирина")
        form.get_by_label("Телефон").fill("+7 916 555-77-88")
        form.get_by_label("Согласен").check()
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).to_have_text(bakery.load("ru").form["successMessage"])
        save_screenshot(page, "demo-form-desktop")
    (lead,) = api.get("/api/forms/collection-list?search=Ирина")["collections"]
    assert lead["phone"] == "+79165557788"


def test_a_visitor_books_and_orders_in_the_chat_of_the_demo_site(
    api: Api, home_url: str, open_url: Opened
) -> None:
    with open_url(home_url, **PHONE) as page:
        chatting(page, "Запишите меня на консультацию по торту")
        settled(page)
        ask(page, "Первое время. Меня зовут Ирина, 8 916 555-77-88")
        card(page).get_by_role("button", name="Записаться").click()
        expect(card(page)).to_contain_text("Вы записаны")
        settled(page)
        ask(page, "Хочу заказать два багета и медовик")
        card(page).get_by_label("Как получить").select_option("Доставка")
        card(page).get_by_label("Адрес").fill("Невский пр., 1")
        card(page).get_by_role("button", name="Заказать").click()
        expect(card(page)).to_contain_text(bakery.load("ru").order_form["successMessage"])
    booked = api.get("/api/bookings/list?size=100")["bookings"]
    (booking,) = [booking for booking in booked if booking["client"]["name"] == "Ирина"]
    assert (booking["source"], booking["serviceName"]) == (
        "chat",
        school.load("ru").services[2].name,
    )
    leads = api.get("/api/forms/collection-list?search=Ирина")["collections"]
    orders = [api.get(f"/api/forms/collection/{lead['id']}")["lead"]["data"] for lead in leads]
    (items,) = [order["items"] for order in orders if "items" in order]
    assert [item["quantity"] for item in items] == [2, 1]


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_every_page_of_the_demo_site_fits_the_screen_and_is_accessible(
    api: Api, home_url: str, open_url: Opened, screen: dict[str, Any]
) -> None:
    (site,) = api.get("/api/projects/list")["projects"]
    slugs = [
        listed_page["slug"]
        for listed_page in api.get(f"/api/pages/list?projectId={site['id']}")["pages"]
    ]
    assert len(slugs) == 5
    for slug in slugs:
        with open_url(f"{home_url}/{slug}", **screen) as page:
            expect(page.locator("chat-widget .launcher")).to_be_visible()
            if slug == "classes":
                expect(page.locator(".times label").first).to_be_visible()
            assert (
                page.evaluate("document.documentElement.scrollWidth") == screen["viewport"]["width"]
            )
            assert markup_errors(page) == []
            violations = Axe().run(page).response["violations"]
            assert [
                f"{violation['id']}: {violation['nodes'][0]['html'][:160]}"
                for violation in violations
            ] == [], slug
            save_screenshot(page, f"demo-{slug}-{screen['viewport']['width']}")


def test_without_javascript_the_demo_site_explains_how_to_book(
    home_url: str, open_url: Opened
) -> None:
    with open_url(f"{home_url}/classes", java_script_enabled=False) as page:
        assert re.search("включите JavaScript или позвоните", page.content())
        expect(page.locator(".book")).to_be_hidden()
