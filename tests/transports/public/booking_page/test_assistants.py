"""The open tools of a booking page, for the assistants of visitors."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.domains.assistants.flows.visits import TOOLS
from chalicelib.engine import limits
from chalicelib.transports import assistants
from tests.conftest import Owner, Time, all_rows, call_console
from tests.factories.payments import MERCHANT
from tests.factories.salon import Salon
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import (
    GRACE,
    BookingPage,
    links,
    text,
    value_of,
    visitor,
)


@pytest.fixture
def assistant(page: BookingPage) -> Assistant:
    return Assistant.admitted(page)


def stored_rows() -> dict[str, Any]:
    """Return all rows but counters, which count each call."""
    return {
        key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#|METRICS", key)
    }


def path_of(url: str) -> str:
    """Return the path and query of a URL."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call", "ping"])
def test_the_tools_do_not_exist_until_the_owner_switches_them_on(
    page: BookingPage, method: str
) -> None:
    params = {"name": "get_business"} if method == "tools/call" else {}
    closed = Assistant(page).send(method, **params)
    assert closed.status == 404
    assert closed.data["code"] == "not_found"
    unknown = Assistant(page, "/book/no-such-business/mcp").send(method, **params)
    assert (unknown.status, unknown.data["message"]) == (404, closed.data["message"])


@pytest.mark.parametrize("arguments", [{}, {"catalog": 5}, {"catalog": {"ids": []}}, [], "{"])
@pytest.mark.parametrize("tool", ["get_business", "lookup_catalog", "prepare_booking", "nope"])
def test_a_call_of_tools_that_are_off_is_neither_checked_nor_counted(
    page: BookingPage, tool: str, arguments: Any
) -> None:
    rows = all_rows()
    closed = Assistant(page).send("tools/call", name=tool, arguments=arguments)
    assert (closed.status, closed.data["code"]) == (404, "not_found")
    assert {key for key in all_rows().keys() - rows if "METRICS" in key} == set()


def test_the_tools_end_with_the_page_and_with_the_switch(assistant: Assistant) -> None:
    assert assistant.send("ping").status == 200
    assistant.page.set(isOn=False)
    assert assistant.send("ping").status == 404
    assistant.page.set(isOn=True)
    call_console(assistant.page.owner.workspace.id, "admit_assistants", isOn=False)
    assert assistant.send("ping").status == 404


def test_a_widget_finds_the_tools_by_the_id_of_its_bot(assistant: Assistant) -> None:
    body = {"name": "Bot", "systemPrompt": "Help.", "model": "demo"}
    api = assistant.page.salon.api
    bot = api.post("/api/agents/create", body)["agent"]["id"]
    by_bot = Assistant(assistant.page, f"/book/{bot}/mcp")
    assert by_bot.call("get_business") == assistant.call("get_business")
    by_service = Assistant(assistant.page, f"/book/{assistant.page.salon.service}/mcp")
    assert by_service.send("ping").status == 404


def test_any_origin_may_call_and_learns_the_allowed_headers(assistant: Assistant) -> None:
    origin = {"Origin": "http://localhost:5173"}
    answer = assistant.send("ping", headers=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
    preflight = visitor.call("OPTIONS", assistant.path, None, origin)
    assert "MCP-Protocol-Version" in preflight.headers["Access-Control-Allow-Headers"]
    for method in ("GET", "DELETE"):
        assert visitor.call(method, assistant.path).status == 405


def test_the_tools_only_read_and_name_no_workspace(assistant: Assistant) -> None:
    tools = json.loads(assistant.send("tools/list").body)["result"]["tools"]
    assert {tool["name"] for tool in tools} >= {"get_business", "search_catalog", "search_pages"}
    for tool in tools:
        assert tool["annotations"]["readOnlyHint"] is True
        assert not {*tool["inputSchema"]["properties"]} & assistants.PAGE
        assert len(tool["description"]) >= 40
        for field in tool["inputSchema"]["properties"].values():
            assert field["description"]


def test_an_assistant_reads_business_services_and_free_times(assistant: Assistant) -> None:
    page = assistant.page
    business = assistant.call("get_business")
    assert business["name"] == page.owner.workspace.name
    assert business["hours"] == [{"days": "Mon-Sun", "hours": ["09:00-18:00"]}]
    assert business["bookingUrl"].endswith(page.home)
    (service,) = assistant.call("list_services")["services"]
    assert (service["name"], service["minutes"], service["price"]) == ("Haircut", 60, 150_000)
    response = assistant.call("find_free_times", serviceId=service["id"], firstDay="2027-03-03")
    assert response["times"][0]["startAt"] == "2027-03-03T09:00:00+03:00"
    assert response["times"][0]["staff"] == [{"id": page.salon.resource, "name": "Stylist 0"}]


def test_an_assistant_finds_only_what_the_page_offers(assistant: Assistant) -> None:
    hidden = assistant.page.salon.api.post(
        "/api/services/create",
        {"name": "Secret", "durationMin": 60, "resourceIds": assistant.page.salon.resources},
    )["service"]["id"]
    assert "Secret" not in json.dumps(assistant.call("list_services"))
    for tool in ("find_free_times", "prepare_booking"):
        start = {"startAt": "2027-03-03T12:00:00Z"} if tool == "prepare_booking" else {}
        error = assistant.refuse(tool, serviceId=hidden, **start)
        assert (error["code"], error["key"]) == ("not_found", "service")
        assert "list_services" in error["message"]


def test_ids_and_links_of_another_business_lead_nowhere(
    assistant: Assistant, new_owner: Callable[..., Owner]
) -> None:
    other = new_owner()
    salon = Salon.opened(other.api())
    other_page = BookingPage.opened(other, salon)
    other_assistant = Assistant.admitted(other_page)
    product = other.api().post("/api/products/create", {"name": "Comb", "price": 1})["product"][
        "id"
    ]
    start = {"startAt": "2027-03-03T12:00:00Z"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("find_free_times", {"serviceId": salon.service}),
        ("prepare_booking", {"serviceId": salon.service, **start}),
        (
            "prepare_booking",
            {"serviceId": assistant.page.salon.service, "staffId": salon.resource, **start},
        ),
        ("prepare_order", {"items": [{"productId": product}]}),
        # The address decides, whatever is sent.
        ("find_free_times", {"serviceId": salon.service, "workspace": other.workspace.slug}),
    ]
    for tool, arguments in requests:
        assert assistant.refuse(tool, **arguments)
    assert assistant.call("get_product", catalog={"id": product})["ucp"]["status"] == "error"
    assert assistant.call("lookup_catalog", catalog={"ids": [product]})["products"] == []
    assert assistant.call("search_catalog", catalog={"query": "comb"})["products"] == []
    link = other_assistant.call("prepare_booking", serviceId=salon.service, **start)["url"]
    changed_path = path_of(link).replace(other_page.path, assistant.page.path)
    assert 'name="once"' not in text(visitor.call("GET", changed_path))


def test_a_link_that_is_used_twice_books_once(assistant: Assistant) -> None:
    page = assistant.page
    request = {"serviceId": page.salon.service, "startAt": "2027-03-03T12:00:00Z"}
    link = path_of(assistant.call("prepare_booking", **request)["url"])
    # Two visitors open the link before either sends the form.
    forms = [visitor.call("GET", link) for _ in range(2)]
    for form in forms:
        fields = {name: value_of(form, name) for name in ("prepared", "staff", "once")}
        page.send(value_of(form, "at"), **fields)
    assert [booking["source"] for booking in page.bookings] == ["agent"]


def test_a_prepared_booking_opens_the_form_and_counts_as_the_assistants(
    assistant: Assistant,
) -> None:
    page = assistant.page
    rows = stored_rows()
    prepared = assistant.call(
        "prepare_booking", serviceId=page.salon.service, startAt="2027-03-03T15:00:00+03:00"
    )
    assert stored_rows() == rows
    assert prepared["startAt"] == "2027-03-03T15:00:00+03:00"
    assert "confirms" in prepared["whatNext"]
    query = parse_qs(urlsplit(prepared["url"]).query)
    assert set(query) == {"staff", "at", "price", "durationMin", "amountDue", "prepared"}
    form = visitor.call("GET", path_of(prepared["url"]))
    assert value_of(form, "prepared") == query["prepared"][0]
    fields = {name: value_of(form, name) for name in ("prepared", "staff", "once")}
    assert page.send(value_of(form, "at"), **fields).status == 200
    (booking,) = page.bookings
    assert (booking["source"], booking["client"]["name"]) == ("agent", GRACE["name"])
    details = call_console(page.owner.workspace.id, "get_assistants")
    assert (details["calls"], details["bookings"]) == (1, 1)
    assert details["tools"] == [{"tool": "prepare_booking", "calls": 1}]


@pytest.mark.parametrize("change", ["time", "signature", "start", "switch"])
def test_a_link_that_is_over_or_changed_leads_to_the_calendar(
    assistant: Assistant, time: Time, change: str
) -> None:
    page = assistant.page
    prepared = assistant.call(
        "prepare_booking", serviceId=page.salon.service, startAt="2027-03-03T15:00:00+03:00"
    )
    path = path_of(prepared["url"])
    match change:
        case "time":
            time.now = clock.now() + timedelta(minutes=31)
        case "signature":
            path = path[:-1] + ("0" if path[-1] != "0" else "1")
        case "start":
            path = path.replace("T12", "T13")
        case "switch":
            call_console(page.owner.workspace.id, "admit_assistants", isOn=False)
    opened = visitor.call("GET", path)
    assert opened.status == 200
    assert 'name="once"' not in text(opened)
    assert links(opened, at="")


def test_a_forged_token_is_no_source(assistant: Assistant) -> None:
    page = assistant.page
    assert page.send(staff=page.salon.resource, prepared="1.ff").status == 200
    assert page.bookings[0]["source"] == "public"


def test_a_time_that_is_taken_or_without_offset_is_refused(assistant: Assistant) -> None:
    page = assistant.page
    page.send()
    request = {"serviceId": page.salon.service, "startAt": "2027-03-03T12:00:00Z"}
    error = assistant.refuse("prepare_booking", **request)
    assert (error["code"], error["key"]) == ("conflict", "slot_taken")
    assert "find_free_times" in error["message"]
    local = {**request, "startAt": "2027-03-03T13:00:00"}
    assert "offset" in assistant.refuse("prepare_booking", **local)["message"]


def test_a_prepared_booking_says_that_the_price_has_changed_since(assistant: Assistant) -> None:
    page = assistant.page
    request = {"serviceId": page.salon.service, "startAt": "2027-03-03T12:00:00Z"}
    link = path_of(assistant.call("prepare_booking", **request)["url"])
    assert "have changed since" not in text(visitor.call("GET", link))
    page.salon.api.post("/api/services/update", {"id": page.salon.service, "price": 1_500_000})
    form = visitor.call("GET", link)
    assert "have changed since" in text(form)
    assert value_of(form, "price") == "1500000"


def test_a_service_that_is_paid_online_can_be_prepared_and_leads_to_the_payment(
    assistant: Assistant,
) -> None:
    page = assistant.page
    page.salon.api.post("/api/services/update", {"id": page.salon.service, "requirePayment": True})
    request = {"serviceId": page.salon.service, "startAt": "2027-03-03T12:00:00Z"}
    (service,) = assistant.call("list_services")["services"]
    assert (service["byPhone"], service["prepaid"]) == (True, False)
    assert assistant.refuse("prepare_booking", **request)["key"] == "by_phone_only"
    workspace = page.owner.workspace
    call_console(workspace.id, "set_merchant", account_id=workspace.owner_id, **MERCHANT)
    (service,) = assistant.call("list_services")["services"]
    assert (service["byPhone"], service["prepaid"]) == (False, True)
    assert (service["amountDue"], service["refundUntilMin"]) == (150_000, 1440)
    assert service["holdMinutes"] == 30
    form = visitor.call("GET", path_of(assistant.call("prepare_booking", **request)["url"]))
    fields = {name: value_of(form, name) for name in ("prepared", "staff", "once")}
    assert page.send(value_of(form, "at"), **fields).status in {200, 303}
    (booking,) = page.bookings
    assert (booking["source"], booking["status"]) == ("agent", "pending_payment")


def test_a_visitor_may_make_60_calls_a_minute(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=1))
    for _ in range(60):
        assistant.call("get_business")
    error = assistant.refuse("get_business")
    assert (error["code"], error["key"]) == ("rate_limited", "assistant_calls")


UNKNOWN = "01KDVDNA00ZZZZZZZZZZZZZZZZ"
FAILING = {
    "find_free_times": {"serviceId": UNKNOWN},
    "get_product": {"catalog": {"id": UNKNOWN}},
    "prepare_booking": {"serviceId": UNKNOWN, "startAt": "2027-03-08T12:00:00Z"},
    "prepare_order": {"items": [{"productId": UNKNOWN, "quantity": 1}]},
}
"""Calls with ids that do not exist."""


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS.entries()])
@pytest.mark.parametrize("arguments", [{}, {"cake": 1, "site": "x"}, None])
def test_a_message_names_only_tools_and_arguments_that_the_visitor_has(
    name: str, arguments: dict[str, Any] | None, assistant: Assistant
) -> None:
    result = assistant.result(name, **(FAILING.get(name, {}) if arguments is None else arguments))
    message = result["content"][0]["text"]
    assert not re.search(
        r"svc_|/api/|\b(READ|CALL|GET|POST) |workspace, |, site\b|fields: \.", message
    )
    assert r"\"booking_page\"" not in message
    if arguments and "ucp" not in message:
        assert r"\"cake\"" in message


def test_a_warning_of_a_visitors_tool_names_the_tool_and_its_visible_arguments(
    assistant: Assistant,
) -> None:
    answer = assistant.call("list_services", query="cake")
    facts = {"code": "unknown_field", "field": "query", "suggestion": None}
    assert answer["warningDetails"] == [{**facts, "message": answer["warnings"][0]}]
    assert '"query" is not an argument of list_services;' in answer["warnings"][0]
    (warning,) = assistant.call("search_pages", query="cake", cake=1)["warnings"]
    assert '"cake" is not an argument of search_pages;' in warning
    assert warning.endswith(": query.")
