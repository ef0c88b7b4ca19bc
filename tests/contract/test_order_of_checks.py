"""A call with several faults returns the failure of the first check."""

import os
from collections.abc import Callable

import pytest

from tests.conftest import Api, Owner, Time, call_operator

DRAFT = {"name": "Loaf"}
PRODUCT, SERVICE = "/api/products/ai-fill", "/api/services/ai-fill"
WITH_IMAGE = {"name": "Loaf", "price": 1, "images": [{"url": "https://x.example/a.png"}]}


@pytest.fixture
def api(owner: Owner, time: Time, reload_settings: Callable[[], None]) -> Api:
    """A key that may draft products, but not services, and once a minute, which does not end."""
    key = Api(owner.token(["products:write", "products:read"]))
    os.environ["RATE_LIMIT_SCALE"] = str(1 / 60)
    reload_settings()
    return key


def refusals(api: Api, path: str, tool: str, body: object = DRAFT) -> set[tuple[int, str]]:
    """Return the status and the code of a refused call over REST and as a tool."""
    answer = api.call_refused("POST", path, body)
    assert isinstance(body, dict)
    failed, failure_data = api.tool(tool, **body)
    assert failed
    return {
        (answer.status, answer.data["code"]),
        (failure_data["httpStatus"], failure_data["data"]["code"]),
    }


def use_up(api: Api) -> None:
    api.post(PRODUCT, DRAFT)


def test_a_used_up_limit_is_reported_before_a_missing_scope(api: Api) -> None:
    for _ in range(3):  # A refused call is not counted.
        assert refusals(api, SERVICE, "svc_ai_fill_service") == {(403, "insufficient_scope")}
    use_up(api)
    assert refusals(api, SERVICE, "svc_ai_fill_service") == {(429, "rate_limited")}
    assert int(api.call_refused("POST", SERVICE, DRAFT).headers["Retry-After"]) > 0
    other = {"name": "Cut", "durationMin": 30, "images": WITH_IMAGE["images"]}
    assert refusals(api, "/api/services/create", "svc_create_service", other) == {
        (429, "rate_limited")
    }


def test_a_used_up_limit_is_reported_before_the_plan(api: Api, owner: Owner) -> None:
    use_up(api)
    call_operator("set_plan", workspaceId=owner.workspace.id, plan="start")
    assert api.call_refused("POST", PRODUCT, DRAFT).data["code"] == "rate_limited"
    assert api.call_refused("POST", "/api/products/create", {}).data["code"] == "rate_limited"
    assert api.call_refused("POST", "/api/categories/create", {}).data["code"] == "plan_required"


def test_a_used_up_limit_is_reported_before_invalid_input(api: Api) -> None:
    assert api.call_refused("POST", "/api/products/create", b"{").status == 400
    use_up(api)
    for body in ({**WITH_IMAGE, "price": "x"}, {"price": 1}):
        assert refusals(api, "/api/products/create", "svc_create_product", body) == {
            (429, "rate_limited")
        }
    assert api.call_refused("POST", "/api/products/create", b"{").status == 429
    assert api.call_refused("POST", "/api/categories/create", {}).status == 400
