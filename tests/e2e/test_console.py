"""API keys, bots and layouts of the console in a browser."""

import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import api_keys
from chalicelib.transports.console.menu import GROUPS
from chalicelib.transports.console.routes import BOT, ROUTES
from tests.conftest import PASSWORD, Api, call_operator
from tests.e2e.conftest import (
    COMPANY,
    EMAIL,
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.factories.console import Place
from tests.factories.examples import top_up
from tests.factories.transfer import call_with_key

LONG = "Пекарня " + "Донаудампфшиффартсгезельшафт" * 10
OF_TESTS = "/console/w/{workspace}/wipe"  # only test workspaces have it
OF_DRAFTS = "/console/w/{workspace}/sites/{site}/pages/{page}/draft"  # only pages with a draft
OF_CLOSED = "/console/w/{workspace}/reopen"  # only closed workspaces have it
MOST_REQUESTS, MOST_BYTES, MOST_ASSETS = 6, 60_000, 2
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const out = (node) => node.getBoundingClientRect().right > width + 1;
  return [...document.querySelectorAll('body *')].filter(out).map(n => n.outerHTML.slice(0, 120));
}"""


UNCUT = """() => [...document.querySelectorAll('.name, .cut')].filter((node) => {
  const line = parseFloat(getComputedStyle(node).lineHeight);
  const lines = node.getClientRects().length && node.offsetHeight / line;
  return node.title !== node.textContent || lines > 2.5;
}).map((node) => node.outerHTML.slice(0, 120))"""
"""Names that take more than two lines, or whose full text is not available."""


BROKEN_WORDS = """() => [...document.querySelectorAll('.card th, .card td')].flatMap((cell) => {
  const words = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode());) {
    for (const {0: word, index} of text.data.matchAll(/[\\p{L}]{2,10}/gu)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
      if (lines.size > 1) words.push(word);
    }
  }
  return words;
})"""
"""Short words of tables that are broken by letters."""


def live_keys(workspace: Place, name: str) -> int:
    return sum(key.name == name for key in api_keys.live(workspace.workspace_id))


@pytest.mark.parametrize("locale", ["ru-RU", "en-US"])
def test_tables_break_no_short_word_on_the_narrowest_phone(
    locale: str, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(viewport={"width": 320, "height": 640}, locale=locale) as tab:
        tab.start_session()
        for page in ("balance", "notifications", "keys/new"):
            tab.open(f"{workspace.path}/{page}")
            assert tab.page.locator(".card table").count(), page
            assert elements(tab.page, BROKEN_WORDS) == [], page
            assert elements(tab.page, OVERFLOW) == [], page


@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_passes_the_checks_on_any_screen(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    problems: dict[str, list[str]] = {}
    visited: set[str] = set()
    with open_console(**SCREENS[screen]) as tab:
        tab.open("/console/sign-in")
        check_page(tab, screen, "/console/sign-in", problems)
        visited.add("/console/sign-in")
        tab.start_session()
        for route in [route for route, page in ROUTES.items() if page.get and not page.admin]:
            path = workspace.path_of(route)
            if route in visited:
                continue
            response = tab.open(path)
            visited.add(route)
            assert response.status == 200, path
            if tab.path == path:
                check_page(tab, screen, route, problems)
            else:
                assert route in {"/console", BOT, OF_TESTS, OF_CLOSED, OF_DRAFTS}
    assert visited == {route for route, page in ROUTES.items() if page.get and not page.admin}
    assert not problems, "\n".join(f"{path}: {text}" for path, text in problems.items())


def check_page(tab: ConsoleTab, screen: str, route: str, problems: dict[str, list[str]]) -> None:
    """Check the open page in light and dark mode: its size, its width and its headings."""
    page, bad = tab.page, []
    size = sum(len(response.body()) for response in tab.responses)
    if len(tab.responses) > MOST_REQUESTS or size > MOST_BYTES:
        bad.append(f"{len(tab.responses)} requests, {size} bytes")
    shared = [response.url for response in tab.responses if "/assets/" in response.url]
    if len(shared) > MOST_ASSETS:
        bad.append(f"more than a style sheet and a script: {shared}")
    name = re.sub(r"\W+", "-", route.removeprefix("/console")).strip("-") or "home"
    bad += [f"wider than the screen: {element}" for element in elements(page, OVERFLOW)]
    if page.locator("h1").count() != 1 or not page.title():
        bad.append("it has not one h1 and a title")
    bad += markup_errors(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        bad += findings(page, *([] if scheme == "light" else ["color-contrast"]))
        save_screenshot(page, f"console-{name}-{screen}-{scheme}")
    page.emulate_media(color_scheme="light")
    if bad:
        problems[route] = bad


def test_a_key_is_made_copied_used_and_revoked(workspace: Place, open_console: OpenConsole) -> None:
    with open_console(permissions=["clipboard-read", "clipboard-write"]) as tab:
        page = tab.page
        tab.start_session()
        page.get_by_text("For programmers").click()
        page.get_by_role("link", name="API keys").click()
        page.get_by_role("link", name="Create key").first.click()
        page.get_by_label("Name", exact=True).fill("Laptop")
        page.get_by_role("button", name="AI agent").click()
        expect(page.get_by_label("Name", exact=True)).to_have_value("Laptop")
        expect(page.get_by_label("Products: write")).to_be_checked()
        expect(page.get_by_label("Sites: write")).not_to_be_checked()
        page.locator("#currentPassword").fill(PASSWORD)
        page.get_by_role("button", name="Create key").last.dblclick()
        expect(page.get_by_role("heading", name="Key “Laptop” created")).to_be_visible()
        token = page.locator("#token").inner_text()
        assert live_keys(workspace, "Laptop") == 1
        for block in ("token", "curl", "mcp"):
            button = page.locator(f'[data-copy="{block}"]')
            button.click()
            expect(button).to_have_text("Copied")
            copied = page.evaluate("navigator.clipboard.readText()")
            assert copied == page.locator(f"#{block}").text_content()
            assert token in copied
        assert findings(page) == []
        save_screenshot(page, "console-key-made-desktop-light")
        api = Api(token)
        assert api.get("/api/projects/list")["projects"]
        page.get_by_role("link", name="Done, back to keys").click()
        assert token not in page.content()
        page.get_by_role("link", name="Revoke: Laptop").click()
        expect(page.get_by_role("heading", name="Revoke key “Laptop”?")).to_be_visible()
        page.get_by_role("button", name="Revoke key “Laptop”").click()
        expect(page.get_by_role("status")).to_have_text("Key revoked.")
        assert api.call("GET", "/api/projects/list").status == 401
        page.go_back()
        page.go_back()
        assert token not in page.content()


def test_a_key_is_created_with_the_keyboard_alone(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/keys/new")

        def tab_to(selector: str) -> None:
            for _ in range(60):
                page.keyboard.press("Tab")
                if page.evaluate("s => document.activeElement.matches(s)", selector):
                    outline = "getComputedStyle(document.activeElement).outlineStyle"
                    assert page.evaluate(outline) != "none", selector
                    return
            pytest.fail(f"{selector} cannot be reached")

        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        tab_to("#name")
        page.keyboard.type("Keyboard")
        tab_to('[value="agent"]')
        page.keyboard.press("Enter")
        expect(page.get_by_label("Products: write")).to_be_checked()
        tab_to('[value="projects:write"]')
        page.keyboard.press("Space")
        tab_to("#currentPassword")
        page.keyboard.type(PASSWORD)
        page.locator("#name").focus()
        page.keyboard.press("Enter")  # creates the key, instead of applying a preset
        expect(page.get_by_role("heading", name="Key “Keyboard” created")).to_be_visible()
        assert live_keys(workspace, "Keyboard") == 1
        (key,) = [k for k in api_keys.live(workspace.workspace_id) if k.name == "Keyboard"]
        assert "projects:write" in key.scopes
        tab_to('[data-copy="token"]')


@pytest.mark.parametrize(
    ("zone", "is_shown"), [("Asia/Vladivostok", False), ("Europe/Berlin", True)]
)
def test_a_time_shows_its_offset_to_a_reader_in_another_zone(
    zone: str, is_shown: bool, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(timezone_id=zone) as tab:
        tab.start_session()
        tab.open(f"{workspace.path}/keys")
        (offset, *_) = tab.page.locator("[data-offset]").all()
        assert offset.is_visible() is is_shown
        assert offset.text_content() == "UTC+10"


def test_the_workspace_menu_closes_as_menus_do(workspace: Place, open_console: OpenConsole) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path)
        menu, names = page.locator("details.switch summary"), page.locator("details.switch ul")
        menu.click()
        expect(names).to_be_visible()
        page.keyboard.press("Escape")
        expect(names).to_be_hidden()
        expect(menu).to_be_focused()
        menu.click()
        page.get_by_role("heading", level=1).click()
        expect(names).to_be_hidden()


def test_the_workspace_menu_is_fully_visible_beside_the_sidebar(
    workspace: Place, open_console: OpenConsole
) -> None:
    call_operator(
        "create_workspace", owner=EMAIL, name="Пекарня на длинной Булочной улице, дом семь"
    )
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/keys")
        page.locator("details.switch summary").click()
        names = page.locator("details.switch li")
        expect(names).to_have_count(2)
        save_screenshot(page, "console-menu-desktop-light")
        for name in names.all():
            box = name.bounding_box()
            assert box
            corner = [box["x"] + box["width"] - 3, box["y"] + box["height"] / 2]
            at = (
                "([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('details.switch li'))"
            )
            assert page.evaluate(at, corner)
        names.last.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Пекарня на длинной")


def test_keys_are_created_and_revoked_without_script(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(java_script_enabled=False) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/keys/new")
        page.locator("#name").fill("Plain")
        page.locator('[value="everything"]').click()
        page.locator('[value="files:write"]').uncheck()
        page.locator("#currentPassword").fill(PASSWORD)
        page.get_by_role("button", name="Create key").last.click()
        token = page.locator("#token").inner_text()
        assert Api(token).get("/api/projects/list")["projects"]
        assert page.locator("button.copy").first.is_hidden()
        page.get_by_role("link", name="Done, back to keys").click()
        page.get_by_role("link", name="Revoke: Plain").click()
        page.get_by_role("button", name="Revoke key “Plain”").click()
        assert live_keys(workspace, "Plain") == 0
        tab.open(workspace.path_of(f"{BOT}/chat"))
        assert "The test chat needs JavaScript" in page.content()
        expect(page.locator("form[data-chat]")).to_be_hidden()


def test_errors_stand_beside_their_fields_and_get_the_focus(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS["phone"]) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/keys/new")
        page.locator("#name").fill("  ")
        page.locator("#currentPassword").fill(PASSWORD)
        page.locator("button").last.scroll_into_view_if_needed()
        page.locator("main form > button.button").click()
        expect(page.locator("#problem")).to_be_focused()
        expect(page.locator("#name-error")).to_be_visible()
        page.locator('#problem a[href="#name"]').click()
        assert elements(page, OVERFLOW) == []
        assert findings(page) == []
        save_screenshot(page, "console-key-error-phone-light")
        tab.errors = [
            error for error in tab.errors if "400" not in error
        ]  # a message about the answer


def test_a_bot_has_at_most_five_keys_and_takes_limits(
    workspace: Place, open_console: OpenConsole
) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{BOT}/keys"))
        for number in range(2, 6):
            page.get_by_label("Name").fill(f"Site {number}")
            page.get_by_role("button", name="Create bot key").dblclick()
            expect(page.locator("#token")).to_contain_text("svc_bot_")
            if number == 2:
                assert findings(page) == []
                save_screenshot(page, "console-bot-key-made-desktop-light")
            page.get_by_role("link", name="Done, back to keys").click()
        expect(page.get_by_text("The bot has 5 keys, which is the limit")).to_be_visible()
        expect(page.get_by_role("button", name="Create bot key")).to_have_count(0)
        assert findings(page) == []
        page.get_by_role("link", name="Delete: Site 3").click()
        page.get_by_role("button", name="Delete key “Site 3”").click()
        expect(page.get_by_role("status")).to_have_text("Bot key deleted.")
        expect(page.get_by_role("button", name="Create bot key")).to_be_visible()
        page.get_by_role("link", name="Limits").click()
        page.get_by_label("Per day, ₽").fill("1 234,50 ₽")
        page.get_by_label("Per month, ₽").fill("ten")
        page.get_by_role("button", name="Save limits").click()
        expect(page.locator("#monthly-error")).to_be_visible()
        expect(page.get_by_label("Per day, ₽")).to_have_value("1 234,50 ₽")
        page.get_by_label("Per month, ₽").fill("")
        page.get_by_role("button", name="Save limits").click()
        expect(page.get_by_role("status")).to_have_text("Limits saved.")
        expect(page.get_by_label("Per day, ₽")).to_have_value("1234.50")
        tab.errors = [error for error in tab.errors if "400" not in error]


def test_an_owner_lets_a_bot_take_orders(workspace: Place, open_console: OpenConsole) -> None:
    with open_console(**SCREENS["phone"], java_script_enabled=False) as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{BOT}/capabilities"))
        page.get_by_label("Предлагать заказ").check()
        page.get_by_label("Форма для заказов").select_option(COMPANY)
        page.get_by_label("Ссылка на политику").fill("http://bakery.example")
        page.get_by_role("button", name="Сохранить возможности").click()
        expect(page.locator("#privacyUrl-error")).to_be_visible()
        save_screenshot(page, "console-capabilities-error-phone-light")
        page.get_by_label("Ссылка на политику").fill("https://bakery.example")
        page.get_by_role("button", name="Сохранить возможности").click()
        expect(page.get_by_role("status")).to_have_text("Возможности сохранены.")
        expect(page.get_by_label("Предлагать заказ")).to_be_checked()
        tab.errors = [error for error in tab.errors if "400" not in error]


def test_an_owner_adds_and_deletes_knowledge(workspace: Place, open_console: OpenConsole) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{BOT}/knowledge"))
        for kind, label, content in [
            ("page", "Link to the page", "https://bakery.example"),
            ("text", "Text", "On weekdays."),
        ]:
            page.get_by_role("link", name=f"Add a {kind}".replace("a page", "a web page")).click()
            page.get_by_label("Title").fill(f"My {kind}")
            page.get_by_label(label).fill(content)
            assert findings(page) == []
            save_screenshot(page, f"console-knowledge-{kind}-desktop-light")
            page.get_by_role("button", name="Add to knowledge").dblclick()
            expect(page.get_by_role("link", name=f"Delete: My {kind}")).to_have_count(1)
        page.get_by_role("link", name="Delete: My text").click()
        page.get_by_role("button", name="Delete source “My text”").click()
        expect(page.get_by_role("status")).to_have_text("Source deleted.")


def test_the_test_chat_is_streamed(
    workspace: Place, open_console: OpenConsole, reload_settings: Callable[[], None]
) -> None:
    os.environ["DEMO_WORD_SECONDS"] = "0.05"
    reload_settings()
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(workspace.path_of(f"{BOT}/chat"))
        page.evaluate(
            """() => {
              window.lengths = [];
              new MutationObserver(() => {
                const last = document.querySelector('.chat .theirs:last-child');
                if (last) window.lengths.push(last.textContent.length);
              }).observe(document.querySelector('.chat'), {childList: true, subtree: true});
            }"""
        )
        page.get_by_label("Message").fill("Do you sell bread?")
        page.keyboard.press("Enter")
        expect(page.locator(".chat .mine")).to_have_text("Do you sell bread?")
        expect(page.locator("form[data-chat]")).not_to_have_attribute("data-busy", "yes")
        lengths = page.evaluate("window.lengths")
        assert lengths == sorted(lengths)
        assert len(set(lengths)) >= 4, lengths
        page.get_by_label("Message").fill("And cakes?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".chat .theirs")).to_have_count(2)
        expect(page.locator("form[data-chat]")).not_to_have_attribute("data-busy", "yes")
        assert findings(page) == []
        save_screenshot(page, "console-chat-desktop-light")
    dialog = call_with_key(workspace.workspace_id, "list_agent_dialogs", agentId=workspace.bot)[
        "dialogs"
    ]
    tested = [dialog["messagesCount"] for dialog in dialog if dialog["channel"] == "test"]
    assert tested == [4]


def test_signing_out_closes_open_pages(workspace: Place, open_console: OpenConsole) -> None:
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/keys")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("status")).to_have_text("You are signed out.")
        page.go_back()
        assert tab.path == "/console/sign-in"
        page.get_by_label("E-mail").fill(EMAIL)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("API keys")


@pytest.mark.parametrize("screen", SCREENS)
def test_long_names_and_empty_lists_fit_the_page(
    screen: str, service: str, open_console: OpenConsole
) -> None:
    call_operator("create_account", email=EMAIL, password=PASSWORD, name=LONG[:200])
    long = Place.made_by(EMAIL, LONG[:200])
    email = f"{new_id().lower()}{'x' * 20}@a-rather-long-name-of-a-company.example.com"
    call_operator("create_account", email=email, password=PASSWORD)
    empty = call_operator("create_workspace", owner=email, name="E")["slug"]
    top_up(long.workspace_id, 1)
    problems: dict[str, list[str]] = {}
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        for route in [route for route, page in ROUTES.items() if page.get and not page.admin]:
            tab.open(long.path_of(route))
            if misfits := elements(tab.page, OVERFLOW) + elements(tab.page, UNCUT):
                problems[route] = misfits
            if route.endswith(("/keys", "/limits", "/account", "{workspace}")):
                name = re.sub(r"\W+", "-", route).strip("-")
                save_screenshot(tab.page, f"{name}-long-{screen}-light")
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session(email)
        for part in [link.path for links in GROUPS.values() for link in links]:
            tab.open(f"/console/w/{empty}{part}")
            misfits = elements(tab.page, OVERFLOW) + findings(tab.page)
            if misfits:
                problems[f"empty {part}"] = misfits
            save_screenshot(tab.page, f"console-empty{part.replace('/', '-')}-{screen}-light")
    assert not problems, problems
