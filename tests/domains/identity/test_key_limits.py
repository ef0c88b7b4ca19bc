"""The limit of calls a minute that an owner sets for a key."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import ConflictError, ValidationError
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console, call_operator, run_concurrently

PATH = "/api/workspaces/list"


@pytest.fixture(autouse=True)
def _usual_scale(database: None, reload_settings: Callable[[], None]) -> None:
    os.environ["RATE_LIMIT_SCALE"] = "1"
    reload_settings()


@pytest.fixture
def key_id(owner: Owner, api: Api) -> str:
    return str(api.get("/api/key-errors")["key"]["id"])


def limit(owner: Owner, key_id: str, count: int | None) -> None:
    call_console(owner.workspace.id, "update_key", id=key_id, callsPerMinute=count)


def statuses(api: Api, count: int, path: str = PATH) -> Counter[int]:
    return Counter(run_concurrently(count, lambda _: api.call("GET", path).status))


def test_a_key_without_a_limit_costs_no_request_more(api: Api, key_id: str) -> None:
    with metering() as usage:
        answer = api.call("GET", PATH)
    assert "UpdateItem" not in usage.calls
    assert "RateLimit-Limit" not in answer.headers


def test_a_limit_costs_one_write_a_call(api: Api, owner: Owner, key_id: str) -> None:
    with metering() as before:
        api.get(PATH)
    limit(owner, key_id, 100)
    with metering() as usage:
        api.get(PATH)
    assert Counter(usage.calls) - Counter(before.calls) == {"UpdateItem": 1}


def test_a_response_says_how_many_calls_remain(
    api: Api, owner: Owner, key_id: str, time: Time
) -> None:
    time.now = time.now.replace(second=20)
    limit(owner, key_id, 2)
    headers = api.call("GET", PATH).headers
    names = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
    assert [headers[name] for name in names] == ["2", "1", "40"]
    api.get(PATH)
    refused = api.call_refused("GET", PATH)
    assert (refused.status, refused.data["code"]) == (429, "rate_limited")
    assert [refused.headers[name] for name in (*names, "Retry-After")] == ["2", "0", "40", "40"]


def test_the_lower_remainder_of_two_limits_is_shown(
    api: Api, owner: Owner, key_id: str, time: Time
) -> None:
    limit(owner, key_id, 5)
    headers = api.call("POST", "/api/products/ai-fill", {"name": "Loaf"}).headers
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == ("5", "4")
    limit(owner, key_id, 1000)
    headers = api.call("POST", "/api/products/ai-fill", {"name": "Loaf"}).headers
    assert int(headers["RateLimit-Limit"]) < 1000


@pytest.mark.store
def test_a_limit_is_exact_for_fifty_threads_at_the_edge_of_a_minute(
    api: Api, owner: Owner, key_id: str, time: Time
) -> None:
    limit(owner, key_id, 20)
    time.now = time.now.replace(second=59, microsecond=999_000)
    assert statuses(api, 50) == {200: 20, 429: 30}
    time.pass_by(seconds=0.001)
    assert statuses(api, 50) == {200: 20, 429: 30}
    time.pass_by(seconds=59.999)
    assert statuses(api, 1) == {429: 1}
    time.pass_by(seconds=0.001)
    assert statuses(api, 50) == {200: 20, 429: 30}


def test_calls_of_tools_are_counted_one_by_one(
    api: Api, owner: Owner, key_id: str, time: Time
) -> None:
    limit(owner, key_id, 2)
    answers = [api.tool("svc_list_sites") for _ in range(3)]
    assert [failed for failed, _ in answers] == [False, False, True]
    assert answers[2][1]["httpStatus"] == 429


def test_a_call_that_the_key_may_not_make_is_not_counted(owner: Owner, time: Time) -> None:
    api = owner.api("crm:read")
    limit(owner, str(api.get("/api/key-errors")["key"]["id"]), 1)
    assert statuses(api, 3, "/api/products/list") == {403: 3}
    assert statuses(api, 2) == {200: 1, 429: 1}


def test_a_limit_can_be_removed(api: Api, owner: Owner, key_id: str, time: Time) -> None:
    limit(owner, key_id, 1)
    assert statuses(api, 3) == {200: 1, 429: 2}
    limit(owner, key_id, None)
    assert statuses(api, 3) == {200: 3}
    (key,) = call_console(owner.workspace.id, "list_keys")["keys"]
    assert key["callsPerMinute"] is None


def test_other_keys_have_their_own_calls(api: Api, owner: Owner, key_id: str, time: Time) -> None:
    limit(owner, key_id, 1)
    assert statuses(api, 2) == {200: 1, 429: 1}
    assert statuses(owner.api(), 3) == {200: 3}


@pytest.mark.parametrize("count", [0, -1, 60_001, 1.5, "many"])
def test_a_limit_is_a_whole_number_of_calls(owner: Owner, key_id: str, count: Any) -> None:
    with pytest.raises(ValidationError):
        limit(owner, key_id, count)


def test_a_revoked_key_gets_no_limit(owner: Owner, key_id: str) -> None:
    call_operator("revoke_key", id=key_id)
    with pytest.raises(ConflictError):
        limit(owner, key_id, 1)


def test_a_limit_is_part_of_the_audit_log(owner: Owner, key_id: str) -> None:
    limit(owner, key_id, 7)
    entry = call_console(owner.workspace.id, "list_audit_log")["entries"][0]
    assert (entry["operation"], entry["resources"][0]["id"]) == ("update_key", key_id)
    assert entry["fields"] == ["callsPerMinute"]
