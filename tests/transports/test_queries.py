"""Decoding of query strings and repeated parameters."""

import pytest

from tests.conftest import Api
from tests.support.warned import warned
from tests.transports.conftest import LocalServer

LIST = "/api/projects/list"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("search=%ff", "search"),
        ("page=1&search=a%ED%A0%80", "search"),
        ("search=ok&search=%D0", "search"),
        ("unknown=%C3", "unknown"),
    ],
)
def test_a_parameter_that_is_not_utf8_is_refused_with_its_name(
    query: str, field: str, api: Api
) -> None:
    answer = api.call_refused("GET", f"{LIST}?{query}")
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    assert [error["field"] for error in answer.data["errors"]] == [field]
    assert "expected percent-encoded UTF-8" in answer.data["message"]


@pytest.mark.parametrize("text", ["100%", "%zz", "a%2"])
def test_a_broken_escape_in_a_query_is_refused_with_the_parameters_name(
    text: str, local_server: LocalServer, api: Api
) -> None:
    head = f"GET {LIST}?search={text} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token}"
    reply = local_server.request(f"{head}\r\n\r\n".encode())
    assert reply.status == 400
    assert [error["field"] for error in reply.data["errors"]] == ["search"]


def test_a_key_is_checked_before_the_encoding_of_a_query() -> None:
    assert Api(None).call("GET", f"{LIST}?search=%ff").status == 401


def test_a_repeated_parameter_is_a_warning_with_the_used_value(api: Api) -> None:
    for title in ("One", "Two"):
        api.post("/api/projects/create", {"title": title})
    data = api.get(f"{LIST}?size=1&search=one&search=two&size=5")
    assert [project["title"] for project in data["projects"]] == ["Two"]
    assert warned(data) == [
        {"code": "repeated_parameter", "field": name, "count": 2} for name in ("size", "search")
    ]
    assert ["number 5" in data["warnings"][0], '"two"' in data["warnings"][1]] == [True, True]


def test_a_failure_names_the_repeated_parameter(api: Api) -> None:
    data = api.call_refused("GET", f"{LIST}?page=1&page=0").data
    assert data["errors"][0]["field"] == "page"
    assert warned(data) == [{"code": "repeated_parameter", "field": "page", "count": 2}]
    assert "number 0" in data["warnings"][0]
