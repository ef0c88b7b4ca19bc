"""Owners make a site, a form and a bot in the console, and visitors find them on a page."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chalicelib.transports.console.routes import BOT, FORM, ROUTES, SITE, WORKSPACE
from tests.conftest import PASSWORD, call_console, call_operator
from tests.e2e.conftest import (
    EMAIL,
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place
from tests.factories.widget import launcher

RIGHT_TO_LEFT = "مخبز الحي القديم " * 11
MADE = [
    *(f"{WORKSPACE}/{part}" for part in ("bots", "bots/new", "forms", "forms/new", "sites/new")),
    *(FORM, f"{FORM}/embed", f"{FORM}/delete", f"{BOT}/settings", f"{BOT}/embed", SITE),
    *(f"{SITE}/delete", f"{SITE}/pages", f"{SITE}/pages/{{page}}", f"{SITE}/pages/{{page}}/html"),
    f"{SITE}/pages/{{page}}/delete",
]
"""Pages on which owners make what visitors see."""


@pytest.fixture
def empty_workspace(service: str) -> dict[str, Any]:
    """A workspace without any record."""
    call_operator("create_account", email=EMAIL, password=PASSWORD, name="Анна Соколова")
    created: dict[str, Any] = call_operator("create_workspace", owner=EMAIL, name="Bakery")
    return created


def open_section(page: Page, name: str) -> None:
    """Follow a link of the menu, which a phone shows after a press."""
    link = page.locator("header nav").get_by_role("link", name=name, exact=True)
    if not link.is_visible():
        page.locator("label[for=menu]").click()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def check(page: Page) -> None:
    """Check the open page: its width, and the rules of accessibility."""
    assert elements(page, OVERFLOW) == []
    assert findings(page) == []


def make_form(page: Page) -> None:
    open_section(page, "Forms")
    page.get_by_role("link", name="Create a form").click()
    page.get_by_label("Book a visit").check()
    page.get_by_role("button", name="Create a form").click()
    expect(page.get_by_role("status")).to_contain_text("The form is created.")
    page.get_by_role("button", name="Add a field").click()
    expect(page.get_by_role("status")).to_have_text("The changes are not saved yet.")
    page.get_by_label("Label").last.fill("Allergies")
    page.get_by_role("button", name="Move up: new field").click()
    page.get_by_label("Title").fill("Order a cake")
    page.get_by_role("button", name="Save form").last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Order a cake")
    assert page.locator('[name="name"]').nth(6).get_attribute("value") == "allergies"


def make_site(page: Page) -> None:
    page.get_by_role("link", name="Embed").click()
    page.get_by_role("link", name="Create a site").click()
    page.get_by_label("Title of the site").fill("Corner bakery")
    page.get_by_role("button", name="Create a site").click()
    page.get_by_label("Title of the page").fill("Cakes to order")
    page.get_by_role("button", name="Create a page").click()
    expect(page.get_by_role("status")).to_contain_text("Visitors can see it already")
    page.get_by_role("link", name="Edit HTML").click()
    html = page.get_by_label("HTML", exact=True)
    text = html.input_value()
    html.fill(text.replace("</main>", "<p>Ready in two days.</p>\n</main>"))
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("status")).to_contain_text("Page published.")


def place(page: Page) -> None:
    page.get_by_role("link", name="Embed").click()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Done: the code is on the page.")
    expect(page.get_by_role("heading", name="Earlier versions")).to_be_visible()


def make_bot(page: Page) -> None:
    open_section(page, "Bots")
    page.get_by_role("link", name="Create a bot").click()
    page.get_by_label("Name", exact=True).fill("Anna")
    page.get_by_label("What the bot should know").fill("You answer for a bakery.")
    page.get_by_label("Model", exact=True).select_option("demo")
    page.get_by_role("button", name="Create a bot").click()
    expect(page.get_by_role("status")).to_contain_text("Bot created.")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_from_an_empty_workspace_to_a_form_and_a_bot_on_a_page(
    screen: str,
    script: bool,
    empty_workspace: dict[str, Any],
    open_console: OpenConsole,
    open_url: Callable[..., Any],
) -> None:
    view = {"viewport": SCREENS[screen]["viewport"], "java_script_enabled": script}
    with open_console(**view, locale="en-US") as tab:
        page = tab.page
        tab.start_session()
        make_form(page)
        if script:
            check(page)
        make_site(page)
        if script:
            check(page)
        open_section(page, "Forms")
        page.get_by_role("link", name="Order a cake").click()
        place(page)
        make_bot(page)
        place(page)
        url = page.get_by_role("link", name="View page").get_attribute("href")
        save_screenshot(page, f"console-making-{screen}-{'script' if script else 'plain'}")
    visit(open_url, url or "", view, screen)
    (lead,) = call_console(empty_workspace["workspaceId"], "list_leads")["collections"]
    assert (lead["name"], lead["phone"]) == ("Ada", "+79991234567")
    assert lead["data"]["allergies"] == "Nuts"


def visit(open_url: Callable[..., Any], url: str, view: dict[str, Any], screen: str) -> None:
    """Fill in the form as a visitor."""
    script = view["java_script_enabled"]
    with open_url(url, **view, locale="en-US") as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("Cakes to order")
        if script:
            expect(launcher(page)).to_be_visible()
            page.clock.fast_forward(5_000)
        form = page.locator("form.svc-form")
        form.get_by_label("Name").fill("Ada")
        form.get_by_label("Phone").fill("+7 999 123-45-67")
        form.get_by_label("Date").fill("2031-05-01")
        form.get_by_label("Allergies").fill("Nuts")
        form.get_by_label("I agree").check()
        save_screenshot(page, f"console-making-visitor-{screen}-{'script' if script else 'plain'}")
        form.get_by_role("button", name="Send").click()
        expect(page.get_by_text("Thank you")).to_be_visible()


def test_concurrent_change_of_a_page_is_compared(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS["phone"]) as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{SITE}/pages/{{page}}/html"))
        page.locator("#html").fill("<h1>Mine</h1>")
        theirs = {"id": workspace.page, "html": "<h1>Theirs</h1>"}
        call_console(workspace.workspace_id, "save_page_html", **theirs)
        page.get_by_role("button", name="Опубликовать").click()
        expect(page.locator("#problem")).to_be_focused()
        expect(page.locator("mark")).to_have_text(["<h1>Theirs</h1>", "<h1>Mine</h1>"])
        for number, words in enumerate(("Theirs", "Mine")):
            heading = page.frame_locator("iframe").nth(number).locator("h1")
            expect(heading).to_have_text(words)
        check(page)
        save_screenshot(page, "console-page-conflict-phone-light")
        tab.errors = [error for error in tab.errors if "409" not in error]


def test_the_preview_of_a_bot_is_live_and_counts_no_visit(
    workspace: Place, open_console: OpenConsole
) -> None:
    bot = {"id": workspace.bot, "isPrivate": False}
    call_console(workspace.workspace_id, "update_agent", **bot)
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{BOT}/embed"))
        page.get_by_role("link", name="Show the preview").click()
        frame = page.frame_locator("iframe")
        field = frame.get_by_label("Your message")
        field.fill("Do you sell bread?")
        field.press("Enter")
        expect(frame.locator(".panel")).to_contain_text("bread")
        save_screenshot(page, "console-bot-preview-desktop-light")
        assert not [response for response in tab.responses if "widget-event" in response.url]


@pytest.mark.parametrize("screen", SCREENS)
def test_names_from_right_to_left_fit_the_page(
    screen: str, service: str, open_console: OpenConsole
) -> None:
    call_operator("create_account", email=EMAIL, password=PASSWORD, name=RIGHT_TO_LEFT[:100])
    place = Place.made_by(EMAIL, RIGHT_TO_LEFT.strip())
    assert set(MADE) <= set(ROUTES)
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        problems = {route: width_problems(tab, place.path_of(route)) for route in MADE}
        save_screenshot(tab.page, f"console-right-to-left-{screen}-light")
    assert not any(problems.values()), problems


def width_problems(tab: ConsoleTab, path: str) -> list[str]:
    """Return what does not fit the page."""
    response = tab.open(path)
    assert response.status == 200
    problems: list[str] = elements(tab.page, OVERFLOW) + elements(tab.page, UNCUT)
    return problems
