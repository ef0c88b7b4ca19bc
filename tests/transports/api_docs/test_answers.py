"""Properties of every response, and data that never leaves the service."""

import json
import logging
import re
from threading import Barrier, Thread
from typing import Any

import pytest
from chalice.app import Response
from chalice.test import Client

from chalicelib.core import logs
from chalicelib.engine import tables
from chalicelib.engine.connection import connection
from chalicelib.transports import chalice_app, rest
from tests.conftest import Api, Owner, all_rows
from tests.factories.examples import Things
from tests.support.patience import PATIENCE


def test_health_needs_no_key() -> None:
    answer = Api(None).call("GET", "/api/health")
    assert answer.status == 200
    assert set(answer.data) == {"status", "service", "version", "time", "fullTextSearch"}
    assert answer.data["fullTextSearch"] is True


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/health"), ("GET", "/api/projects/list"), ("PUT", "/api/projects/list")],
)
def test_every_answer_has_a_request_id(method: str, path: str) -> None:
    answer = Api(None).call(method, path)
    assert answer.headers["X-Request-Id"]
    if answer.status != 200:
        assert answer.data["requestId"] == answer.headers["X-Request-Id"]


def test_a_wrong_method_is_answered_with_the_right_ones() -> None:
    answer = Api(None).call_refused("PUT", "/api/projects/list")
    assert (answer.status, answer.data["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"


def test_an_unknown_path_is_404_without_repeating_it() -> None:
    import app

    event = {
        "requestContext": {"httpMethod": "GET", "resourcePath": "/api/nope", "identity": {}},
        "headers": {},
        "multiValueHeaders": {},
        "pathParameters": {},
        "multiValueQueryStringParameters": None,
        "body": None,
        "stageVariables": {},
        "isBase64Encoded": False,
    }
    for _ in range(2):
        answer = app.app(event, None)
        assert answer["statusCode"] == 404
        assert json.loads(answer["body"])["data"]["code"] == "not_found"
    assert "/api/nope" not in app.app.routes


def test_a_crash_is_a_500_without_details(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(rest, "invoke", crash)
    answer = api.call_refused("GET", "/api/projects/list")
    assert (answer.status, answer.data["code"]) == (500, "internal_error")
    assert "secret detail" not in answer.body.decode()
    assert "ZeroDivision" not in answer.body.decode()


def test_texts_are_utf8_and_never_escaped(api: Api) -> None:
    answer = api.call("POST", "/api/projects/create", {"title": "Пекарня 🥐"})
    assert "Пекарня 🥐".encode() in answer.body
    assert b"\\u" not in answer.body


def test_an_answer_over_lambdas_limit_is_413(
    api: Api, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chalicelib.application import invoke

    monkeypatch.setattr(invoke, "MAX_ANSWER_BYTES", 200)
    answer = api.call_refused("GET", "/api/projects/list")
    assert (answer.status, answer.data["code"]) == (413, "payload_too_large")


def test_a_token_is_never_in_tables_or_logs(
    owner: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(logging.DEBUG)
    token = owner.token()
    api = Api(token)
    Things.made_with(api)
    api.call_refused("POST", "/api/pages/create", {"projectId": "nope", "title": token[:5]})
    Api(token + "x").call_refused("GET", "/api/projects/list")
    secret = token.removeprefix("svc_live_")
    assert secret not in json.dumps(all_rows(), default=repr)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 5
    assert not any(secret in line for line in lines)
    for line in lines:
        assert json.loads(line)["level"]


def test_a_request_is_logged_once_with_its_request_id(
    owner: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure()
    answer = owner.api().call("GET", "/api/projects/list")
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["requestId"] == answer.headers["X-Request-Id"]
    assert (line["operation"], line["status"]) == ("list_sites", 200)
    assert line["workspaceId"] == owner.workspace.id
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])


def test_tables_are_created_once_with_every_index_and_time_to_live(database: None) -> None:
    assert tables.ensure_tables() == []
    description = tables.ContentRow.describe_table()
    indexes = {i["IndexName"]: i["Projection"] for i in description["LocalSecondaryIndexes"]}
    assert set(indexes) == {"by_row", "by_o1", "by_o2", "by_o3", "by_o4"}
    assert indexes["by_o1"]["ProjectionType"] == "KEYS_ONLY"
    for row in (tables.ContentRow, tables.ControlRow):
        ttl = connection().client.describe_time_to_live(TableName=row.Meta.table_name)
        assert ttl["TimeToLiveDescription"]["AttributeName"] == "expires"


def test_concurrent_requests_each_see_their_own_data() -> None:
    """Plain Chalice keeps one current request for all threads. Callers would get each other's."""
    seen: dict[str, str] = {}
    app = chalice_app.App(app_name="echo", configure_logs=False)
    both = Barrier(2)

    @app.middleware("http")
    def wait(event: Any, get_response: Any) -> Any:
        both.wait(PATIENCE)
        return get_response(event)

    @app.route("/echo", methods=["GET"])
    def echo() -> Response:
        assert app.current_request
        return Response(app.current_request.headers["x-name"])

    def get_echo(name: str) -> None:
        with Client(app) as client:
            seen[name] = client.http.get("/echo", headers={"x-name": name}).body.decode()

    threads = [Thread(target=get_echo, args=(name,)) for name in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"ada": "ada", "bob": "bob"}
