"""The ``Prefer`` header of RFC 7240: strict calls refuse unknown arguments."""

import json
from typing import Any

import pytest

import app as application
from chalicelib.transports.preferences import is_strict
from tests.conftest import Answer, Api
from tests.factories.examples import Things
from tests.support.sweep import sweep
from tests.transports.conftest import LocalServer

STRICT = {"Prefer": "handling=strict"}
LIST = "/api/products/list"


@sweep(
    ("header", "expected"),
    [
        ("handling=strict", True),
        ("Handling = Strict", True),
        ('handling="strict"', True),
        ('handling="str\\ict"', True),
        ("handling=strict;x", True),
        ('handling=strict ; x="a, handling=lenient"', True),
        ("respond-async, wait=10,, handling=strict", True),
        ('foo="handling=lenient, b";c=d, handling=strict', True),
        ("handling=strict, handling=lenient", True),
        ("handling=lenient, handling=strict", False),
        ('foo="handling=strict"', False),
        ("foo; handling=strict", False),
        ("handling", False),
        ("handling=", False),
        ('handling=""', False),
        ("strict", False),
        ("handling=strictly", False),
        ("xhandling=strict", False),
        ("", False),
        (",;=", False),
        ('"', False),
    ],
)
def test_a_preference_is_read_as_rfc_7240_defines_it(header: str, expected: bool) -> None:
    assert is_strict(header) is expected


def test_a_long_header_of_quotes_is_read_in_linear_time() -> None:
    assert not is_strict('"\\' * 50_000)
    assert not is_strict("a;" * 50_000 + '"')


def test_a_strict_write_refuses_unknown_fields_and_changes_nothing(
    api: Api, things: Things
) -> None:
    body = {"id": things.product, "price": 1, "sku": None, "sort_order": 5}
    answer = api.call("POST", "/api/products/update", body, STRICT)
    refuse(answer, "sort_order")
    assert '"sortOrder"' in answer.data["message"]
    assert "known names: id, " in answer.data["message"]
    assert api.get(f"/api/products/{things.product}")["product"]["price"] == 9900
    del body["sort_order"]
    answer = api.call("POST", "/api/products/update", body, STRICT)
    assert (answer.status, answer.headers["Preference-Applied"]) == (200, "handling=strict")


def refuse(answer: Answer, *fields: str) -> None:
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    assert [error["field"] for error in answer.data["errors"]] == [*fields]
    assert answer.headers["Preference-Applied"] == "handling=strict"


def test_a_strict_call_refuses_unknown_fields_of_nested_objects(api: Api, things: Things) -> None:
    fields = [{"name": "a", "label": "A", "requird": True}, {"name": "b", "label": "B"}]
    answer = api.call("POST", "/api/forms/create", {"title": "F", "fields": fields}, STRICT)
    refuse(answer, "fields.0.requird")


def test_a_strict_call_of_a_visitor_accepts_its_idempotency_key(api: Api, things: Things) -> None:
    body = {"token": "x", "dryRun": True, "why": "ill"}
    path = "/api/public/bookings/cancel"
    refuse(Api(None).call("POST", path, body, STRICT), "why")
    answer = Api(None).call("POST", path, {"token": "x", "dryRun": True}, STRICT)
    assert answer.data["code"] != "validation_error"


def test_access_is_checked_before_a_strict_call_reads_its_input() -> None:
    answer = Api(None).call("GET", f"{LIST}?strange=1", headers=STRICT)
    assert answer.status == 401


@pytest.mark.parametrize("preference", ["handling=lenient", "respond-async", "return=minimal"])
def test_another_preference_changes_nothing(preference: str, api: Api) -> None:
    answer = api.call("GET", f"{LIST}?strange=1", headers={"Prefer": preference})
    assert answer.status == 200
    assert "strange" in answer.data["warnings"][0]
    assert "Preference-Applied" not in answer.headers


def test_several_lines_of_the_header_are_one_list(api: Api) -> None:
    def call(*lines: str) -> dict[str, Any]:
        # API Gateway has only the last line in ``headers``.
        headers = {"Authorization": f"Bearer {api.token}", "Prefer": lines[-1]}
        event = {
            "path": LIST,
            "headers": headers,
            "multiValueHeaders": {**{k: [v] for k, v in headers.items()}, "Prefer": [*lines]},
            "multiValueQueryStringParameters": {"strange": ["1"]},
            "requestContext": {"resourcePath": LIST, "httpMethod": "GET", "identity": {}},
        }
        reply: dict[str, Any] = application.app(event, None)
        return reply

    assert call("respond-async", "handling=strict")["statusCode"] == 400
    assert call("handling=strict", "respond-async")["statusCode"] == 400
    assert call("handling=lenient", "handling=strict")["statusCode"] == 200
    body = json.loads(call("handling=strict", "wait=1")["body"])
    assert [error["field"] for error in body["data"]["errors"]] == ["strange"]


def test_the_local_server_joins_the_lines_of_the_header(
    local_server: LocalServer, api: Api
) -> None:
    head = f"GET {LIST}?strange=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token}\r\n"
    head += "Prefer: handling=strict\r\nPrefer: wait=1"
    assert local_server.request(f"{head}\r\n\r\n".encode()).status == 400


def test_pages_of_other_origins_may_send_the_header_and_read_what_was_applied(
    things: Things,
) -> None:
    path = f"/api/public/services/{things.service}/slots"
    headers = {
        "Origin": "https://shop.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "prefer",
    }
    preflight = Api(None).call("OPTIONS", path, headers=headers)
    assert "Prefer" in preflight.headers["Access-Control-Allow-Headers"].split(", ")
    answer = Api(None).call("GET", f"{path}?strange=1", headers=STRICT)
    refuse(answer, "strange")
    exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert "Preference-Applied" in exposed
