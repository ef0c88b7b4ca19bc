"""One endpoint for the assistants of visitors, for all businesses whose owners have listed them."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import ConflictError, InTestWorkspaceError
from chalicelib.core.settings import settings
from chalicelib.core.text import BIDI_CONTROL
from chalicelib.domains.assistants.flows.visits import TOOLS
from chalicelib.domains.identity.store import directory
from chalicelib.domains.identity.store.directory import BusinessEntryRow, Words
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import jobs, limits
from chalicelib.transports.scheduled_functions import run_jobs
from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, all_rows, call_console, call_operator
from tests.factories.injections import INJECTIONS
from tests.factories.salon import Salon
from tests.support.effort import examples
from tests.support.interleaving import before_request
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import NOON, BookingPage, visitor

PATH = "/assistants/mcp"
ADDRESS = "Казань, ул. Баумана, 12"
NewPage = Callable[..., BookingPage]


@pytest.fixture
def listed(page: BookingPage) -> BookingPage:
    """A page whose business is listed."""
    return list_business(page, name="Barber Ivan", address=ADDRESS)


@pytest.fixture
def new_page(new_owner: Callable[..., Owner]) -> NewPage:
    def make(**settings: Any) -> BookingPage:
        owner = new_owner()
        return list_business(BookingPage.opened(owner, Salon.opened(owner.api())), **settings)

    return make


def list_business(page: BookingPage, **settings: Any) -> BookingPage:
    home = page.owner.workspace.id
    if settings:
        call_console(home, "set_workspace", **settings)
    call_console(home, "admit_assistants", isOn=True, isListed=True)
    return page


def everybody(page: BookingPage) -> Assistant:
    """Return the assistant of a visitor at the endpoint for all."""
    return Assistant(page, PATH)


def found(page: BookingPage, **search: str) -> list[str]:
    """Return the ids of businesses that a search finds."""
    answer = everybody(page).call("find_business", **search)
    return [each["business"] for each in answer["businesses"]]


def entries() -> list[str]:
    """Return the keys of all entries of the directory."""
    return [key for key in all_rows() if "/DIRECTORY#" in key]


def own_rows(page: BookingPage) -> list[str]:
    return [key for key in all_rows() if f"W#{page.owner.workspace.id}#DIRECTORY" in key]


@pytest.mark.parametrize(
    "search",
    [
        {"name": "ivan"},
        {"name": "Barber Iv"},
        {"town": "казань"},
        {"town": "г. Казань"},
        {"trade": "HAIRCUT"},
        {"trade": "barber"},
        {"name": "Ivan", "town": "Казань", "trade": "haircut"},
    ],
)
def test_a_business_is_found_by_words_of_its_name_town_and_trade(
    listed: BookingPage, search: dict[str, str]
) -> None:
    answer = everybody(listed).call("find_business", **search)
    (business,) = answer["businesses"]
    assert answer["more"] is False
    assert business["business"] == listed.owner.workspace.slug
    assert (business["name"], business["address"]) == ("Barber Ivan", ADDRESS)
    assert business["services"] == ["Haircut"]
    assert business["bookingUrl"].endswith(listed.home)


@pytest.mark.parametrize(
    "search", [{"name": "haircut"}, {"town": "ivan"}, {"name": "Ivan", "town": "Omsk"}]
)
def test_a_word_of_another_part_finds_nothing(listed: BookingPage, search: dict[str, str]) -> None:
    assert found(listed, **search) == []


@pytest.mark.parametrize("search", [{}, {"name": " "}, {"town": "12"}, {"trade": "«»"}])
def test_a_search_needs_a_word(listed: BookingPage, search: dict[str, str]) -> None:
    error = everybody(listed).refuse("find_business", **search)
    assert error["code"] == "validation_error"


def test_the_tools_of_a_found_business_work_with_its_id(listed: BookingPage) -> None:
    assistant, slug = everybody(listed), listed.owner.workspace.slug
    at_page = Assistant(listed)
    api = listed.salon.api
    product = api.post("/api/products/create", {"name": "Comb", "price": 100})["product"]["id"]
    requests: dict[str, dict[str, Any]] = {
        "get_business": {},
        "list_services": {},
        "find_free_times": {"serviceId": listed.salon.service},
        "search_catalog": {"catalog": {"query": "comb"}},
        "lookup_catalog": {"catalog": {"ids": [product]}},
        "get_product": {"catalog": {"id": product}},
        "search_pages": {"query": "comb"},
    }
    assert {*requests, "prepare_booking", "prepare_order"} == {tool.name for tool in TOOLS}
    for tool, arguments in requests.items():
        response = assistant.call(tool, business=slug, **arguments)
        assert response == at_page.call(tool, **arguments)
    start = {"serviceId": listed.salon.service, "startAt": NOON}
    url = assistant.call("prepare_booking", business=slug, **start)["url"]
    assert f"{listed.path}?" in url
    details = call_console(listed.owner.workspace.id, "get_assistants")
    assert {"tool": "prepare_booking", "calls": 1} in details["tools"]


def test_the_version_of_ucp_follows_from_the_endpoint(listed: BookingPage) -> None:
    slug = listed.owner.workspace.slug
    older = Assistant(listed, f"{PATH}?ucp=2026-04-08")
    envelope = older.call("search_catalog", business=slug, catalog={"query": "x"})["ucp"]
    assert envelope["version"] == "2026-04-08"


def test_every_tool_but_the_search_requires_the_business(listed: BookingPage) -> None:
    tools = json.loads(everybody(listed).send("tools/list").body)["result"]["tools"]
    assert next(tool["name"] for tool in tools) == "find_business"
    for tool in tools:
        properties = tool["inputSchema"]["properties"]
        requires = "business" in tool["inputSchema"].get("required", [])
        assert requires is ("business" in properties) is (tool["name"] != "find_business")
        assert not {"workspace", "site"} & {*properties}
        assert tool["annotations"]["readOnlyHint"] is True
    assert everybody(listed).refuse("get_business")["code"] == "validation_error"


def test_both_eras_of_the_protocol_are_served(listed: BookingPage) -> None:
    assistant = everybody(listed)
    started = assistant.send("initialize", protocolVersion="2025-11-25", capabilities={})
    assert "find_business" in json.loads(started.body)["result"]["instructions"]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "find_business",
    }
    call = {"name": "find_business", "arguments": {"name": "ivan"}, "_meta": meta}
    modern = assistant.send("tools/call", headers, **call)
    assert json.loads(modern.body)["result"]["structuredContent"]["businesses"]
    wrong = assistant.send("tools/call", {**headers, "Mcp-Name": "get_business"}, **call)
    assert wrong.status == 400
    assert visitor.call("GET", PATH).status == 405


def _suspend(page: BookingPage, *, lift: bool) -> None:
    call_operator("suspend_workspace", workspaceId=page.owner.workspace.id, lift=lift)


def _close(page: BookingPage, *, lift: bool) -> None:
    call_console(page.owner.workspace.id, "reopen_workspace" if lift else "close_workspace")


def _switch(page: BookingPage, *, lift: bool) -> None:
    more: dict[str, Any] = {"isListed": True} if lift else {}
    call_console(page.owner.workspace.id, "admit_assistants", isOn=lift, **more)


def _tick(page: BookingPage, *, lift: bool) -> None:
    call_console(page.owner.workspace.id, "admit_assistants", isListed=lift)


def _page(page: BookingPage, *, lift: bool) -> None:
    page.set(isOn=lift)


ENDS = [_suspend, _close, _switch, _tick, _page]
End = Callable[..., None]


@pytest.mark.parametrize("end", ENDS)
def test_a_business_is_found_until_its_listing_ends_and_after_it_is_back(
    listed: BookingPage, end: End
) -> None:
    slug = listed.owner.workspace.slug
    end(listed, lift=False)
    assert entries() == []
    assert found(listed, name="ivan") == []
    error = everybody(listed).refuse("get_business", business=slug)
    assert (error["code"], error["key"]) == ("not_found", "business")
    end(listed, lift=True)
    assert found(listed, name="ivan") == [slug]
    assert everybody(listed).call("get_business", business=slug)["name"] == "Barber Ivan"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("late", [False, True])
def test_a_listing_that_ends_while_it_begins_leaves_nothing(
    page: BookingPage, end: End, *, late: bool
) -> None:
    home = page.owner.workspace.id
    call_console(home, "admit_assistants", isOn=True)
    for number in count(1):
        call_console(home, "admit_assistants", isOn=True, isListed=False)
        page.set(isOn=True)
        ended = False

        def act() -> None:
            nonlocal ended
            ended = True
            end(page, lift=False)

        since = [b"#DIRECTORY", b"#ASSISTANTS"]
        with (
            before_request(number, act, since=since, late=late) as seen,
            suppress(ConflictError),  # of the switch that was set off meanwhile
        ):
            call_console(home, "admit_assistants", isListed=True)
        if not ended:
            break
        state = call_console(home, "get_assistants")
        is_listed = state["isOn"] and state["isListed"] and state["pageIsOn"]
        halted = end in {_suspend, _close}
        assert bool(own_rows(page)) is is_listed
        assert bool(entries()) is (is_listed and not halted)
        if halted:
            assert found(page, trade="haircut") == []
            end(page, lift=True)
            assert bool(entries()) is is_listed
    assert len(seen) < number
    assert number > 2


def test_who_ends_a_listing_at_once_with_another_change_leaves_nothing(
    listed: BookingPage,
) -> None:
    home = listed.owner.workspace.id
    for number in count(1):
        list_business(listed)
        acted = False

        def act() -> None:
            nonlocal acted
            acted = True
            _tick(listed, lift=False)

        with before_request(number, act, since=[b"WORKSPACE#"], late=False):
            call_console(home, "set_workspace", name=f"Barber {number}")
        assert acted is not bool(entries())
        if not acted:
            break
    assert number > 2


def test_the_directory_follows_name_address_and_services(listed: BookingPage, time: Time) -> None:
    home, slug = listed.owner.workspace.id, listed.owner.workspace.slug
    call_console(home, "set_workspace", name="Salon Olga", address="Omsk, 1 Main Street")
    assert found(listed, name="ivan") == found(listed, town="Казань") == []
    assert found(listed, name="olga", town="omsk") == [slug]
    update = {"id": listed.salon.service, "name": "Shaving"}
    listed.salon.api.post("/api/services/update", update)
    time.now += timedelta(seconds=jobs.CHANGES_SECONDS)
    run_jobs()
    assert found(listed, trade="haircut") == []
    assert found(listed, trade="shaving") == [slug]
    listed.set(withdraw=[listed.salon.service])
    assert found(listed, trade="shaving") == []
    call_console(home, "set_workspace", address=None)
    assert found(listed, town="omsk") == []


def test_a_deleted_service_is_found_no_more(listed: BookingPage, time: Time) -> None:
    assert found(listed, trade="haircut") == [listed.owner.workspace.slug]
    listed.salon.api.post("/api/services/delete", {"id": listed.salon.service})
    time.now += timedelta(seconds=jobs.CHANGES_SECONDS)
    run_jobs()
    assert found(listed, trade="haircut") == []


@pytest.mark.parametrize("method", ["resources/list", "resources/read", "resources/templates/list"])
def test_the_endpoint_for_all_has_no_pages(listed: BookingPage, method: str) -> None:
    assistant = everybody(listed)
    started = assistant.send("initialize", protocolVersion="2025-11-25", capabilities={})
    assert {*json.loads(started.body)["result"]["capabilities"]} == {"tools"}
    refused = assistant.send(method, uri="ui://workspace-automation/times")
    assert json.loads(refused.body)["error"]["code"] == -32601


def test_a_business_cannot_be_listed_before_assistants_are_let_in(page: BookingPage) -> None:
    home = page.owner.workspace.id
    attempts: list[dict[str, Any]] = [{"isListed": True}, {"isOn": False, "isListed": True}]
    for switches in attempts:
        with pytest.raises(ConflictError) as failure:
            call_console(home, "admit_assistants", **switches)
        assert failure.value.key == "assistants_off"
    call_console(home, "admit_assistants", isOn=True)
    assert found(page, trade="haircut") == []
    assert call_console(home, "get_assistants")["isListed"] is False


def test_a_test_workspace_is_not_listed(tester: Owner) -> None:
    with pytest.raises(InTestWorkspaceError) as failure:
        call_console(tester.workspace.id, "admit_assistants", isOn=True, isListed=True)
    assert failure.value.key == "listing"
    assert entries() == []


def test_a_workspace_is_listed_after_an_operator_has_looked_at_it(listed: BookingPage) -> None:
    home = listed.owner.workspace.id
    workspace = WorkspaceRow.get(f"WORKSPACE#{home}", "workspace")
    workspace.awaits_review = True
    workspace.save()
    call_console(home, "set_workspace", name="Barber Ivan")
    assert entries() == []
    assert found(listed, name="ivan") == []
    call_operator("admit_workspace", workspaceId=home)
    assert found(listed, name="ivan") == [listed.owner.workspace.slug]


def test_nobody_learns_whether_a_business_that_is_not_listed_exists(
    listed: BookingPage, new_page: NewPage
) -> None:
    other = new_page()
    call_console(other.owner.workspace.id, "admit_assistants", isListed=False)
    halted = new_page()
    _suspend(halted, lift=False)
    off = new_page()
    off.set(isOn=False)
    names = [each.owner.workspace.slug for each in (other, halted, off)]
    arguments: dict[str, dict[str, Any]] = {
        "find_free_times": {"serviceId": other.salon.service},
        "prepare_booking": {"serviceId": other.salon.service, "startAt": NOON},
        "prepare_order": {"items": [{"productId": other.salon.service}]},
        "search_catalog": {"catalog": {"query": "x"}},
        "lookup_catalog": {"catalog": {"ids": ["x"]}},
        "get_product": {"catalog": {"id": "x"}},
        "search_pages": {"query": "x"},
    }
    for tool in (tool.name for tool in TOOLS):
        answers = {
            json.dumps(
                {
                    name: value
                    for name, value in everybody(listed)
                    .refuse(tool, business=business, **arguments.get(tool, {}))
                    .items()
                    if name != "requestId"
                }
            )
            for business in (*names, "no-such-business", "W#x", "X" * 3_000, other.salon.service)
        }
        assert len(answers) == 1, answers
        assert '"business"' in answers.pop()


def test_the_id_of_a_business_decides_whose_records_a_tool_reads(
    listed: BookingPage, new_page: NewPage
) -> None:
    other = new_page(name="Other salon")
    mine, theirs = (each.owner.workspace.slug for each in (listed, other))
    assistant = everybody(listed)
    product = other.salon.api.post("/api/products/create", {"name": "Comb", "price": 1})["product"]
    start = {"startAt": NOON}
    for tool, arguments in (
        ("find_free_times", {"serviceId": other.salon.service}),
        ("prepare_booking", {"serviceId": other.salon.service, **start}),
        ("prepare_order", {"items": [{"productId": product["id"]}]}),
        ("find_free_times", {"serviceId": other.salon.service, "workspace": theirs}),
        ("find_free_times", {"serviceId": other.salon.service, "site": theirs}),
    ):
        assert assistant.refuse(tool, business=mine, **arguments)["key"] != "business"
    search = {"catalog": {"query": "comb"}}
    assert assistant.call("search_catalog", business=mine, **search)["products"] == []
    assert assistant.call("search_catalog", business=theirs, **search)["products"]
    # At a page's own address, the argument is nothing.
    at_page = Assistant(listed).call("get_business", business=theirs)
    assert at_page["name"] == "Barber Ivan"


def test_names_of_businesses_stay_text(listed: BookingPage) -> None:
    home = listed.owner.workspace.id
    # Characters that change the direction of text are refused.
    texts = [text for text in INJECTIONS if not BIDI_CONTROL.search(text)]
    for number, text in enumerate(texts):
        address = f"Zagreb {number}, {text}"[:300].replace("\n", " ")
        call_console(home, "set_workspace", address=address)
        (business,) = everybody(listed).call("find_business", town="zagreb")["businesses"]
        assert business["address"] == address.strip()
        assert set(business) == {"business", "name", "address", "services", "bookingUrl"}


@examples(60, 10)
@given(
    st.text(min_size=1, max_size=40),
    st.text(max_size=60),
    st.lists(st.text(max_size=40), max_size=3),
)
def test_each_word_of_a_business_finds_it(name: str, address: str, services: list[str]) -> None:
    workspace = WorkspaceRow("WORKSPACE#1", "workspace", name=name, address=address)
    words = Words.of_business(workspace, services)
    for part, text in (("name", name), ("town", address), ("trade", " ".join(services))):
        search = Words.of_search(**{"name": "", "town": "", "trade": "", part: text})
        if max(map(len, (name, address, " ".join(services)))) < 30:
            assert search.match(words)
        assert search.beginnings().keys() <= words.beginnings().keys() | {
            word[:3] for word in " ".join(search).split()
        }


def test_a_visitor_has_one_limit_for_all_tools(
    listed: BookingPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=1))
    slug = listed.owner.workspace.slug
    for _ in range(30):
        found(listed, name="ivan")
        everybody(listed).call("get_business", business=slug)
    for tool, arguments in (
        ("find_business", {"name": "ivan"}),
        ("get_business", {"business": slug}),
    ):
        assert everybody(listed).refuse(tool, **arguments)["key"] == "assistant_calls"


def fill(number: int) -> None:
    """List many businesses: each in one of two towns and of one of three trades."""
    with BusinessEntryRow.batch_write() as batch:
        for each in range(number):
            town, trade = ("omsk", "tomsk")[each % 2], ("haircut", "massage", "yoga")[each % 3]
            words = Words(f"salon {each:04} x{each:04}", f"{town} main street", trade)
            for beginning in words.beginnings():
                at = (f"DIRECTORY#{beginning}", f"01FILL{each:020}")
                batch.save(BusinessEntryRow(*at, words=list(words)))


@pytest.mark.parametrize("businesses", [0, 1_000])
@pytest.mark.parametrize(
    ("search", "most_units"),
    [
        ({"name": "ivan"}, 3),
        ({"name": "ivan", "town": "omsk", "trade": "haircut"}, 8),
        ({"name": "salon", "town": "omsk main street", "trade": "haircut"}, 22),
    ],
)
@pytest.mark.store
def test_a_search_costs_the_same_with_a_thousand_businesses(
    listed: BookingPage,
    search: dict[str, str],
    most_units: float,
    businesses: int,
    *,
    is_dynamodb_local: bool,
) -> None:
    call_console(listed.owner.workspace.id, "set_workspace", address="Omsk, 1 Main Street")
    fill(businesses)
    latency = 0 if is_dynamodb_local else 0.05
    for _ in range(2):
        with metering(latency) as usage:
            everybody(listed).call("find_business", **search)
    queries = usage.calls.count("Query")
    assert queries <= directory.MAX_BEGINNINGS
    assert usage.round_trips <= queries + 2
    if is_dynamodb_local:
        assert usage.reads <= most_units
    else:
        # The limit, then the entries, then what is shown.
        assert usage.waves <= 3


def test_a_search_with_more_results_says_so(listed: BookingPage) -> None:
    fill(300)
    answer = everybody(listed).call("find_business", name="salon")
    assert (answer["businesses"], answer["more"]) == ([], True)
    # A word that few have is read to its end.
    for name in ("barber salon", "x0001"):
        assert everybody(listed).call("find_business", name=name)["more"] is False
