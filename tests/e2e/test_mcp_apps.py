"""Pages beside results of tools, in the code of public hosts, with the double frame of MCP Apps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from chalicelib.core import clock
from tests.conftest import Owner, call_console
from tests.e2e.conftest import ROOT, STILL, findings, save_screenshot
from tests.factories.examples import FORM
from tests.factories.salon import Salon
from tests.support.patience import PATIENCE, wait_for

HOSTS = ROOT / "build" / "hosts-js"
HOSTILE = "<img src=x onerror=alert(1)></script><b>{{7*7}}"
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
TIMES, PRODUCTS, DAY, REPORT = (
    *("find_free_times", "search_catalog"),
    *("svc_list_bookings", "svc_crm_stats"),
)

pytestmark = pytest.mark.skipif(
    not (HOSTS / "dist" / "bridge.js").exists(), reason="the hosts are bundled with npm"
)


@pytest.fixture(scope="module")
def hosts() -> Iterator[int]:
    """The port of a web server with the hosts and the sandbox."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(HOSTS)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@dataclass
class Shop:
    """A salon with hostile names, whose owner has let assistants in."""

    salon: Salon
    workspace: str
    path: str  # of its tools for visitors

    @property
    def token(self) -> str:
        return str(self.salon.api.token)

    @property
    def week(self) -> dict[str, Any]:
        """A search for free times from tomorrow on."""
        tomorrow = (clock.now() + timedelta(days=1)).date()
        last = tomorrow + timedelta(days=6)
        return {
            "serviceId": self.salon.service,
            "firstDay": str(tomorrow),
            "lastDay": str(last),
        }


@pytest.fixture
def shop(service: str, new_owner: Callable[..., Owner]) -> Shop:
    owner = new_owner(name=HOSTILE)
    api, workspace = owner.api(), owner.workspace
    api.post("/api/products/create", {"name": HOSTILE, "price": 35_000, "description": HOSTILE})
    api.post("/api/products/create", {"name": "Rye <b>bread</b>", "price": 12_050, "stock": 0})
    staff = [{"name": HOSTILE}, {"name": "Ольга"}]
    salon = Salon.opened(api, staff, name=HOSTILE, price=150_000)
    order_form = api.post("/api/forms/create", {**FORM, "title": "Order"})["form"]["id"]
    call_console(workspace.id, "set_booking_page", isOn=True, offer=[salon.service])
    call_console(workspace.id, "admit_assistants", isOn=True, orderFormId=order_form)
    return Shop(salon, workspace.id, f"/book/{workspace.slug}/mcp")


class Host:
    """A page of a host in the browser, which shows a tool's page."""

    def __init__(self, page: Page, port: int, service: str) -> None:
        self.page, self.port, self.service = page, port, service
        self.failures: list[str] = []
        page.on("pageerror", lambda error: self.failures.append(str(error)))
        page.on("dialog", lambda dialog: self.failures.append(f"a dialog: {dialog.message}"))

    def show(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        path: str = "/api/mcp",
        token: str | None = None,
        kind: str = "bridge",
        **context: Any,
    ) -> Frame:
        """Show the page of a tool's result, and return the inner frame."""
        self.page.goto(f"http://127.0.0.1:{self.port}/host.html")
        self.page.add_script_tag(url=f"/dist/{kind}.js", type="module")
        self.page.wait_for_function("() => window.host")
        self.page.evaluate(
            "options => window.host(options)",
            {
                "server": f"{self.service}{path}",
                "token": token,
                "tool": tool,
                "input": arguments,
                # Another origin than the host's, as the specification demands.
                "sandbox": f"http://sandbox.localhost:{self.port}/sandbox.html",
                "context": {"theme": "light", "locale": "en-GB", **context},
            },
        )
        inner = self.page.frame_locator("iframe").locator("iframe").element_handle()
        frame = inner.content_frame()
        assert frame is not None
        expect(frame.locator("main > :not(.muted)").first).to_be_visible()
        return frame

    @property
    def opened(self) -> list[str]:
        opened: list[str] = self.page.evaluate("() => window.opened")
        return opened


@pytest.fixture
def host(browser: Browser, hosts: int, service: str) -> Iterator[Host]:
    """A host on a narrow screen."""
    context = browser.new_context(viewport={"width": 320, "height": 700}, **STILL)
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1_000)
    shown = Host(page, hosts, service)
    yield shown
    # The AppRenderer also sends what it has before its frame is connected, and reports that.
    assert {*shown.failures} <= {"Not connected"}
    context.close()


@pytest.mark.parametrize("kind", ["bridge", "renderer"])
def test_a_time_is_chosen_and_its_page_is_opened(kind: str, host: Host, shop: Shop) -> None:
    frame = host.show(TIMES, shop.week, path=shop.path, kind=kind)
    expect(frame.locator("h1")).to_have_text(HOSTILE)
    assert frame.evaluate(OVERFLOW) <= 0
    assert findings(frame) == []
    first = frame.locator(".chips button").first
    first.focus()
    host.page.keyboard.press("Enter")
    expect(frame.locator("#open")).to_be_visible()
    wait_for(lambda: len(host.opened) == 1, pause=0.05)
    (url,) = host.opened
    assert f"/{shop.salon.service}?" in url
    expect(frame.locator(".note")).to_contain_text("₽1,500")
    assert findings(frame) == []
    save_screenshot(host.page, f"app-times-{kind}")
    # Nothing is booked until the visitor confirms on the booking page.
    assert shop.salon.api.get("/api/bookings/list")["bookings"] == []


def test_other_days_and_staff_are_found_from_the_page(host: Host, shop: Shop) -> None:
    frame = host.show(TIMES, shop.week, path=shop.path, theme="dark", locale="ru-RU")
    assert frame.evaluate("() => document.documentElement.lang") == "ru"
    assert findings(frame) == []
    first_day = frame.locator("h2").first.inner_text()
    frame.locator("#later").click()
    expect(frame.locator("h2").first).not_to_have_text(first_day)
    frame.locator("#staff").select_option(label="Ольга")
    wait_for(lambda: len(host.page.evaluate("() => window.called")) == 2, pause=0.05)
    expect(frame.locator("#staff option:checked")).to_have_text("Ольга")
    called = host.page.evaluate("() => window.called")
    assert [each["name"] for each in called] == [TIMES, TIMES]
    assert called[1]["arguments"]["staffId"] == shop.salon.resources[1]
    save_screenshot(host.page, "app-times-dark")


def test_a_link_that_the_host_does_not_open_is_shown(host: Host, shop: Shop) -> None:
    frame = host.show(TIMES, shop.week, path=shop.path)
    host.page.evaluate("() => { window.deny = true; }")
    frame.locator(".chips button").first.click()
    frame.locator("#open").click()
    expect(frame.locator(".note .muted")).to_contain_text(f"/{shop.salon.service}?")


def test_a_time_that_was_taken_meanwhile_is_said(host: Host, shop: Shop) -> None:
    frame = host.show(TIMES, shop.week, path=shop.path)
    shop.salon.api.post("/api/services/update", {"id": shop.salon.service, "status": "inactive"})
    frame.locator(".chips button").first.click()
    expect(frame.locator("[role=alert]")).to_be_visible()
    assert host.opened == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_products_become_a_prepared_order(theme: str, host: Host, shop: Shop) -> None:
    query = {"catalog": {"filters": {"price": {"min": 1}}}}
    frame = host.show(PRODUCTS, query, path=shop.path, theme=theme)
    expect(frame.locator(".card")).to_have_count(2)
    expect(frame.locator(".card strong").first).to_have_text(HOSTILE)
    expect(frame.locator(".card").last).to_contain_text("₽120.50")
    assert frame.evaluate(OVERFLOW) <= 0
    assert findings(frame) == []
    save_screenshot(host.page, f"app-products-{theme}")
    frame.locator("button[id^=more]").click(click_count=2)
    frame.locator("#order").click()
    expect(frame.locator(".note")).to_contain_text("₽700")
    wait_for(lambda: len(host.opened) == 1, pause=0.05)
    assert findings(frame) == []


@pytest.mark.parametrize("kind", ["bridge", "renderer"])
def test_members_see_bookings_by_day_and_staff(kind: str, host: Host, shop: Shop) -> None:
    day = (clock.now() + timedelta(days=1)).date()
    for hour, resource in ((10, 0), (12, 1)):
        booking = {
            **shop.salon.order(f"{day}T{hour}:00"),
            "resourceId": shop.salon.resources[resource],
            "client": {"name": HOSTILE, "phone": "+74951234567"},
            "ignoreSchedule": True,
        }
        shop.salon.api.post("/api/bookings/create", booking)
    token = shop.token
    period = {"from": str(day), "to": str(day)}
    frame = host.show(DAY, period, token=token, kind=kind, theme="dark")
    expect(frame.locator("h2")).to_have_text([HOSTILE, "Ольга"])
    expect(frame.locator("li strong").first).to_have_text(HOSTILE)
    assert frame.evaluate(OVERFLOW) <= 0
    assert findings(frame) == []
    save_screenshot(host.page, f"app-day-{kind}")


@pytest.mark.parametrize("kind", ["bridge", "renderer"])
def test_members_see_a_report(kind: str, host: Host, shop: Shop) -> None:
    shop.salon.api.post(
        "/api/bookings/create",
        {
            **shop.salon.order(clock.now().isoformat(timespec="minutes"), "Grace"),
            "ignoreSchedule": True,
        },
    )
    frame = host.show(REPORT, {}, token=shop.token, kind=kind)
    expect(frame.locator("h1").first).to_contain_text("₽1,500")
    expect(frame.locator("table").first).to_have_count(1)
    frame.locator("summary").first.click()
    assert frame.evaluate(OVERFLOW) <= 0
    assert findings(frame) == []
    save_screenshot(host.page, f"app-report-{kind}")


def test_a_key_without_bookings_sees_its_leads(
    host: Host, new_owner: Callable[..., Owner], service: str
) -> None:
    token = new_owner().token(["crm:read"])
    frame = host.show(REPORT, {}, token=token)
    expect(frame.locator("h1")).to_have_count(1)


def test_a_page_loads_nothing(host: Host, shop: Shop) -> None:
    requested: list[str] = []
    host.page.on("request", lambda request: requested.append(request.url))
    host.show(TIMES, shop.week, path=shop.path)
    own = (f"http://127.0.0.1:{host.port}/", f"http://sandbox.localhost:{host.port}/", host.service)
    assert [url for url in requested if not url.startswith((*own, "about:", "data:"))] == []
