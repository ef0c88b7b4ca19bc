"""Blog and sites in a browser are accessible, and run no script from a user's input."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from chalicelib.core.errors import ValidationError
from chalicelib.core.text import CONTROL
from chalicelib.lib.markup import markdown
from infra.local.demo import posts
from tests.conftest import Api, Owner
from tests.e2e.conftest import markup_errors, save_screenshot
from tests.factories.examples import create_post
from tests.factories.scripts import PAYLOADS, payload_markdown

CHUNKS = 8
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"
WIDTHS = {"phone": 360, "desktop": 1440}

CAUGHT = """
  window.ran = [];
  for (const name of ['alert', 'confirm', 'prompt'])
    window[name] = () => window.ran.push(name);
  document.addEventListener('securitypolicyviolation', event => window.ran.push(event.blockedURI));
"""
INSIDE = """() => {
  const bad = [];
  for (const each of document.querySelectorAll('*')) {
    const tag = each.localName;
    if (/^(script|iframe|object|embed|base|form|input|button)$/.test(tag)) bad.push(tag);
    for (const {name, value} of each.attributes) {
      if (/^(on.*|style|srcdoc)$/.test(name)) bad.push(tag + ' ' + name);
      if (tag !== 'meta' && /^\\s*(javascript|vbscript|data:(?!,$))/i.test(value))
        bad.push(tag + ' ' + value);
    }
  }
  return bad.concat(window.ran);
}"""


def title_of(payload: str, limit: int) -> str:
    """Return the part of a payload that a title accepts, without control characters."""
    return CONTROL.sub("", payload)[:limit].strip() or "x"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_script_in_a_post_runs(chunk: int, service: str, browser: Browser) -> None:
    """The content security policy, which would block it as well, is switched off."""
    context = browser.new_context(bypass_csp=True)
    context.add_init_script(CAUGHT)
    context.route(
        "**/*", lambda r: r.continue_() if r.request.url.startswith(service) else r.abort()
    )
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    refused_requests: list[tuple[str, str]] = []
    for number, payload in enumerate(PAYLOADS[chunk::CHUNKS]):
        line = title_of(payload, 300)
        try:
            create_post(
                title=line,
                slug=f"p{number}",
                description=line,
                tags=[title_of(payload, 50)],
                category=title_of(payload, 100),
                author=title_of(payload, 200),
                content=payload_markdown(payload),
                coverImage=payload[:2048],
                status="published",
            )
        except ValidationError as error:  # characters that reverse text or are invisible
            refused_requests.append((payload, error.message))
            continue
        page.goto(f"{service}/blog/p{number}", wait_until="domcontentloaded")
        assert page.evaluate(INSIDE) == [], payload
        assert page.locator("h1").count() == 1
    assert len(refused_requests) <= 2, refused_requests
    for path in ("/blog", "/blog?page=2", "/blog?tag=%3Cscript%3Ealert(1)%3C/script%3E"):
        page.goto(service + path)
        assert page.evaluate(INSIDE) == []
    context.close()


def test_no_script_in_a_sites_page_titles_runs(
    service: str, browser: Browser, new_owner: Callable[..., Owner]
) -> None:
    api = new_owner().api()
    site = api.post("/api/projects/create", {"title": "S", "slug": "s"})["project"]["id"]
    api.post("/api/projects/toggle-stats", {"id": site, "enabled": False})
    home = api.post("/api/pages/create", {"projectId": site, "title": "Home"})["page"]["id"]
    api.post("/api/pages/save-html", {"id": home, "html": "<p>Hello</p>"})
    context = browser.new_context(bypass_csp=True)
    context.add_init_script(CAUGHT)
    page = context.new_page()
    tried = 0
    for payload in PAYLOADS[::2]:
        title = title_of(payload, 200)
        fields = {"id": home, "title": title, "description": title}
        if api.call("POST", "/api/pages/update", fields).status != 200:
            continue
        page.goto(f"{service}/s/s", wait_until="domcontentloaded")
        assert page.evaluate(INSIDE) == [], payload
        assert page.locator("p").inner_text() == "Hello"
        tried += 1
    assert tried >= 100
    context.close()


@pytest.fixture
def blog(service: str) -> str:
    """A blog with the demo's posts."""
    for post in reversed(posts.load("ru")):
        values = {n: v for n, v in post._asdict().items() if n != "drawings"}
        create_post(**values | {"tags": list(post.tags)})
    create_post(
        title="Ж" * 300, slug="long", status="published", content="x" * 300, author="y" * 200
    )
    return f"{service}/blog"


PAGES = {"index": "", "post": "/agent-in-five-minutes", "404": "/none", "long": "/long"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_fast_and_stable(
    width: str, scheme: Any, blog: str, browser: Browser
) -> None:
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 800}, color_scheme=scheme, locale="ru-RU"
    )
    context.add_init_script(
        "window.shift = 0; new PerformanceObserver(list => { for (const entry of"
        " list.getEntries()) window.shift += entry.value })"
        ".observe({type: 'layout-shift', buffered: true})"
    )
    for name, path in PAGES.items():
        page, responses = context.new_page(), []
        page.on("response", lambda response, responses=responses: responses.append(response))
        page.goto(blog + path)
        page.wait_for_timeout(200)
        assert page.evaluate("window.shift") == 0
        save_screenshot(
            page, f"blog-{name}-{width}-{scheme}"
        )  # Resizing the window may shift the layout.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        own_responses = [r for r in responses if not r.url.startswith("data:")]
        assert len(own_responses) <= 6
        assert sum(len(r.body()) for r in own_responses) <= 60_000
        violations = Axe().run(page).response["violations"]
        assert [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in violations] == [], name
        assert markup_errors(page) == [], name
        page.close()
    context.close()


def test_a_post_reads_without_script_or_style(blog: str, open_url: Any) -> None:
    with open_url(f"{blog}/agent-in-five-minutes", java_script_enabled=False) as page:
        assert page.locator("article h1").inner_text().startswith("Как подключить")
        assert page.locator("article table th").count() == 3
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to content"


def test_headings_of_a_post_follow_each_other() -> None:
    for post in posts.load("ru"):
        html = markdown.to_html(post.content)
        levels = [int(part[0]) for part in html.split("<h")[1:] if part[0].isdigit()]
        assert all(
            next_level - level <= 1 for level, next_level in zip([1, *levels], levels, strict=False)
        )


def test_a_visit_of_a_sites_page_is_counted(
    service: str, browser: Browser, new_owner: Callable[..., Owner]
) -> None:
    api = new_owner().api()
    site, page_id = _site(api)
    context = browser.new_context(user_agent=FIREFOX)
    page: Page = context.new_page()
    with page.expect_response("**/api/public/hit") as response:
        page.goto(f"{service}/s/s")
    assert response.value.status == 200
    assert page.evaluate("window.origin") == "null"
    stats = api.get(f"/api/projects/stats?id={site}")
    assert (stats["totals"]["views"], stats["totals"]["visitors"]) == (1, 1)
    assert stats["topPages"][0]["pageId"] == page_id
    context.close()


def _site(api: Api) -> tuple[str, str]:
    site = api.post("/api/projects/create", {"title": "S", "slug": "s"})["project"]["id"]
    page = api.post("/api/pages/create", {"projectId": site, "title": "Home"})["page"]["id"]
    api.post("/api/pages/save-html", {"id": page, "html": "<h1>Hello</h1>"})
    return site, page
