"""Malformed requests to the tool server receive valid responses in both protocol versions.

Valid responses are a JSON-RPC error, a result (also of a failed call), 202 without a body, and an
envelope if the request fails before JSON-RPC. The bodies are written by hand, because
``json.dumps`` cannot repeat a key or write invalid JSON.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience
from chalicelib.transports import mcp
from chalicelib.transports.auth import authenticate
from chalicelib.transports.http import parse_json
from chalicelib.transports.mcp import CAPABILITIES_KEY, VERSION_KEY
from tests.conftest import Answer, Api
from tests.contract.conftest import World
from tests.factories.examples import Things, every_tool, example
from tests.support.effort import examples, matrix, slow_but_for

MODERN = "2026-07-28"
LONGEST_FAILURE = 20_000
"""Bytes. A failure names the problem; it does not return the whole input."""
LONGEST_HEADER = 8_000
"""Bytes. API Gateway refuses longer ones (API Gateway quotas)."""


@pytest.fixture
def fast_api(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """The API with a cached key lookup. The key is not what these tests check."""
    known: list[ApiKeyPrincipal] = []

    def remembered(headers: Mapping[str, str], client_ip: str) -> ApiKeyPrincipal:
        if not known:
            known.append(authenticate(headers, client_ip))
        return known[0]

    monkeypatch.setattr(mcp, "authenticate_tool_call", remembered)
    return api


every_era = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "stateless"])


@dataclass(frozen=True)
class Raw:
    """Text that appears in the body as it is, whether it is valid JSON or not."""

    text: str


@dataclass(frozen=True)
class RepeatedKey:
    """The value of a key that occurs twice, the second time with another value."""

    first: Any
    second: Any


RAW = {
    "a huge number": "1e400",
    "a huge negative number": "-1E+0999",
    "an absurd exponent": "1e999999999999",
    "a tiny number": "1e-400",
    "5,000 digits": "9" * 5_000,
    "4,300 digits": "9" * 4_300,
    "309 digits": "-" + "9" * 309,
    "digits with a fraction": "9" * 400 + ".5",
    "a whole float": "1.0",
    "minus zero": "-0",
    "2**63": str(2**63),
    "NaN": "NaN",
    "an infinity": "-Infinity",
    "a leading zero": "01",
    "a lone surrogate": r'"\ud800"',
    "surrogates the wrong way round": r'"\udc00\ud800"',
    "a lone surrogate as a key": r'{"\udfff": 1}',
    "a pair of surrogates": r'"\ud83d\ude00"',
    "an escaped NUL": r'"a\u0000b"',
    "an array 150 deep": "[" * 150 + "]" * 150,
    "an object 150 deep": '{"a":' * 150 + "1" + "}" * 150,
    "an array 100,000 deep": "[" * 100_000 + "]" * 100_000,
    "an object 50,000 deep": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "an open array 100,000 deep": "[" * 100_000,
    "a repeated key": '{"a": 1, "a": {"a": 2, "a": 3}}',
    "10,000 keys": "{" + ",".join(f'"k{n}":1' for n in range(10_000)) + "}",
    "a long text": '"' + "a" * 200_000 + '"',
    "an empty key": '{"": {"": ""}}',
    "a prototype": '{"__proto__": {"constructor": {"prototype": 1}}, "__class__": "x"}',
    "a word": "undefined",
    "nothing": "",
}
"""Values that ``json.dumps`` cannot write, and unusual values."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from(["", " ", "\x00", "\u202e", "😀" * 300, "svc_get_page", MODERN]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
strange = st.sampled_from(list(RAW.values())).map(Raw) | plain


def to_json(value: Any) -> str:
    """Write a value as JSON or almost-JSON."""
    match value:
        case Raw(text):
            return text
        case dict():
            pairs = [
                (name, one)
                for name, raw in value.items()
                for one in ((raw.first, raw.second) if isinstance(raw, RepeatedKey) else (raw,))
            ]
            return "{" + ",".join(f"{json.dumps(n)}:{to_json(one)}" for n, one in pairs) + "}"
        case list():
            return "[" + ",".join(map(to_json, value)) + "]"
        case RepeatedKey():
            return to_json(value.second)
    return json.dumps(value)


def valid(method: str, *, modern: bool) -> dict[str, Any]:
    """Return a valid request."""
    params: dict[str, Any] = {}
    if method == "initialize":
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        params["clientInfo"] = {"name": "fuzz", "version": "1"}
    if method == "tools/list":
        params = {"cursor": "x"}
    if method == "tools/call":
        params = {"name": "svc_list_sites", "arguments": {"search": "x", "size": 5}}
    if modern:
        params["_meta"] = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path to every value inside a message."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from places(inner, (*path, name))


def put(message: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value at a path, unless an earlier change removed its parent."""
    node: Any = message
    for name in path[:-1]:
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        return
    if value is GONE:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value


GONE = object()


@st.composite
def broken(draw: st.DrawFn, *, modern: bool) -> dict[str, Any]:
    """A valid request in which one to three parts are replaced, repeated, removed or added."""
    methods = ["initialize", "ping", "server/discover", "tools/list", "tools/call", "tools/call"]
    message = deepcopy(valid(draw(st.sampled_from(methods)), modern=modern))
    paths = [*places(message), ("result",), ("params", "odd"), ("params", "arguments")]
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True)):
        one = strange | st.just(GONE) | st.builds(RepeatedKey, strange, strange)
        put(message, path, draw(one))
    return message


def headers_for(body: str, *, modern: bool) -> dict[str, str]:
    """Return the headers that match a body, as far as it can be read."""
    if not modern:
        return {}
    try:
        message = parse_json(body.encode())
    except ValueError:
        message = None
    message = message if isinstance(message, dict) else {}
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    agreeing = {
        "MCP-Protocol-Version": meta.get(VERSION_KEY, MODERN),
        "Mcp-Method": message.get("method"),
        "Mcp-Name": params.get("name"),
    }
    sent_headers = {
        name: encoded(value) for name, value in agreeing.items() if isinstance(value, str)
    }
    return {name: value for name, value in sent_headers.items() if len(value) < LONGEST_HEADER}


def encoded(value: str) -> str:
    """Return a header's value, base64-encoded unless it is valid as it is."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def post(
    api: Api, body: str | bytes, headers: Mapping[str, str] | None = None, query: str = ""
) -> Answer:
    """Post a body, and check the response."""
    sent_body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    answer = api.call("POST", f"/api/mcp{query}", sent_body, dict(headers or {}))
    check(answer, sent_body)
    return answer


def _no_constant(text: str) -> None:
    pytest.fail(f"{text} is not JSON")


def read(body: bytes | str) -> Any:
    """Parse strict JSON in strict UTF-8."""
    text = body.decode() if isinstance(body, bytes) else body
    value = json.loads(text, parse_constant=_no_constant)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def check(answer: Answer, request: bytes) -> None:
    """Check that a response is one of the documented kinds."""
    assert answer.status < 500, answer.body
    assert answer.headers["X-Request-Id"]
    if answer.status == 202:
        assert answer.body == b""
        return
    assert answer.headers["Content-Type"] == "application/json"
    received_json = read(answer.body)
    if isinstance(received_json, list):
        assert answer.status == 200
        assert 1 <= len(received_json) <= len(parse_json(request))
        assert all(set(response) >= {"jsonrpc", "id"} for response in received_json)
        return
    if "data" in received_json:
        assert answer.status in {401, 403, 405, 413}
        check_envelope(received_json)
        return
    assert received_json["jsonrpc"] == "2.0"
    assert set(received_json) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert received_json["id"] == expected_id(request, received_json)
    if "error" in received_json:
        assert answer.status in {200, 400, 404}
        assert len(answer.body) < LONGEST_FAILURE + len(json.dumps(received_json["id"]))
        assert -32768 <= received_json["error"]["code"] <= -32000
        assert received_json["error"]["message"]
        return
    assert answer.status == 200
    if "isError" in received_json["result"]:
        check_call(received_json["result"])


def expected_id(request: bytes, received_json: dict[str, Any]) -> Any:
    """Return the id that the response must have: the request's, or null for a refused envelope."""
    if received_json.get("error", {}).get("code") in {-32700, -32600}:
        return None
    return parse_json(request)["id"]


def check_envelope(received_json: dict[str, Any]) -> None:
    """Check a failure envelope."""
    assert received_json["data"]["status"] is False
    assert received_json["data"]["message"]
    assert received_json["data"]["code"]
    assert received_json["data"]["requestId"]


def check_call(result: dict[str, Any]) -> None:
    """Check the result of a tool call: one text that contains the envelope."""
    (content,) = result["content"]
    assert content["type"] == "text"
    received_json = read(content["text"])
    if result["isError"]:
        check_envelope(received_json)
        assert 400 <= received_json["httpStatus"] != 500, received_json
        assert received_json["data"]["code"] != "internal_error"
        assert len(content["text"]) < LONGEST_FAILURE
    else:
        assert received_json["data"]["status"] is True


@every_era
@examples(200)
@given(data=st.data())
def test_broken_messages_get_a_valid_answer(
    modern: bool, data: st.DataObject, fast_api: Api
) -> None:
    body = to_json(data.draw(broken(modern=modern)))
    post(fast_api, body, headers_for(body, modern=modern))


@every_era
@pytest.mark.parametrize("path", list(places(valid("tools/call", modern=True))), ids="/".join)
def test_each_odd_value_in_each_place_of_a_message_gets_a_valid_answer(
    modern: bool, path: tuple[str, ...], fast_api: Api
) -> None:
    for odd in (*map(Raw, RAW.values()), None, True, -1, 1.5, "", "x", [], {}, GONE):
        message = deepcopy(valid("tools/call", modern=modern))
        put(message, path, odd)
        body = to_json(message)
        post(fast_api, body, headers_for(body, modern=modern))


@every_era
def test_each_odd_value_as_the_whole_message_gets_a_valid_answer(
    modern: bool, fast_api: Api
) -> None:
    for text in RAW.values():
        post(fast_api, text, headers_for(text, modern=modern))


@every_era
@examples(200)
@given(
    start=st.integers(0, 250),
    length=st.integers(0, 60),
    junk=st.binary(max_size=20) | st.sampled_from([b"{", b"]", b'"', b"\\", b"\xff", b"\x00"]),
)
def test_damaged_bytes_get_a_valid_answer(
    modern: bool, start: int, length: int, junk: bytes, fast_api: Api
) -> None:
    message = to_json(valid("tools/call", modern=modern))
    request = message.encode()
    post(
        fast_api,
        request[:start] + junk + request[start + length :],
        headers_for(message, modern=modern),
    )


@every_tool
@examples(20)
@given(data=st.data())
def test_strange_arguments_of_every_tool_get_a_valid_answer(
    operation: Operation, data: st.DataObject, fast_api: Api
) -> None:
    usual = example(operation, Things.unknown())
    names = st.sampled_from([*operation.input_schema["properties"], "idempotencyKey", "strange"])
    some = st.dictionaries(names, strange | st.builds(RepeatedKey, plain, plain), max_size=3)
    odd = data.draw(some | strange)
    modern = data.draw(st.booleans())
    arguments = {**usual, **odd} if isinstance(odd, dict) else odd
    body = to_json(call_of(operation, arguments, modern=modern))
    post(fast_api, body, headers_for(body, modern=modern))


def call_of(operation: Operation, arguments: Any, *, modern: bool) -> dict[str, Any]:
    """Return a request to call a tool."""
    message = valid("tools/call", modern=modern)
    message["params"] |= {"name": operation.tool, "arguments": arguments}
    return message


# Null is left out: where it is not allowed, it means omitted (test_conventions).
OF_EACH_TYPE: dict[str, list[Any]] = {
    "boolean": [True],
    "integer": [-1, 2**63, Raw("9" * 4_000)],
    "number": [1.5, Raw("1e300")],
    "string": ["", "\x00", Raw(RAW["a pair of surrogates"])],
    "array": [[], [None], Raw(RAW["an array 150 deep"])],
    "object": [{}, {"": 1}, Raw(RAW["an object 150 deep"])],
}


@every_tool
def test_a_wrong_type_of_any_argument_is_named(operation: Operation, fast_api: Api) -> None:
    usual = example(operation, Things.unknown())
    required = operation.input_schema.get("required", ())
    for name, schema in operation.input_schema["properties"].items():
        kinds = {schema.get("type")} if isinstance(schema.get("type"), str) else schema.get("type")
        for kind, values in OF_EACH_TYPE.items():
            if not kinds or kind in kinds or (kind == "integer" and "number" in kinds):
                continue
            if kind == "null" and name not in required:
                continue  # Null counts as omitted (test_conventions).
            for value in values:
                message = call_of(operation, {**usual, name: value}, modern=False)
                result = json.loads(post(fast_api, to_json(message)).body)["result"]
                received_json = json.loads(result["content"][0]["text"])
                assert received_json.get("httpStatus") == 400, (name, value, received_json)
                fields = [one["field"].partition(".")[0] for one in received_json["data"]["errors"]]
                assert name in fields, (value, received_json)


header_values = st.text(
    st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=40
) | st.sampled_from(["=?base64??=", "=?base64?/w==?=", "=?base64?" + "A" * 999 + "?=", MODERN, ","])
MCP_HEADERS = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Last-Event-Id"]
MCP_HEADERS += ["X-MCP-Toolsets", "X-MCP-Tools", "X-MCP-Exclude-Tools", "X-MCP-Readonly"]
MCP_HEADERS += ["Origin", "Accept", "Content-Type", "Authorization"]


@every_era
@examples(150)
@given(
    method=st.sampled_from(["initialize", "server/discover", "tools/list", "tools/call"]),
    odd=st.dictionaries(st.sampled_from(MCP_HEADERS), header_values, max_size=4),
)
def test_strange_headers_get_a_valid_answer(
    modern: bool, method: str, odd: dict[str, str], api: Api
) -> None:
    body = to_json(valid(method, modern=modern))
    answer = post(api, body, {**headers_for(body, modern=modern), **odd})
    if "Authorization" in odd:
        assert answer.status == 401


@examples(100)
@given(
    query=st.lists(
        st.tuples(
            st.sampled_from(["toolsets", "tools", "exclude", "readonly", "odd", ""]),
            st.sampled_from(["pages", "all", "svc_get_page", "true", "%00", "%ff", ",,", "%", "=&"])
            | st.integers(0, 255).map("%{:02x}".format),
        ),
        max_size=5,
    )
)
def test_strange_query_parameters_only_narrow_the_list(
    query: list[tuple[str, str]], api: Api
) -> None:
    query_string = "?" + "&".join(f"{name}={value}" for name, value in query)
    answer = post(api, to_json(valid("tools/list", modern=False)), query=query_string)
    tool_names = [tool["name"] for tool in json.loads(answer.body)["result"]["tools"]]
    in_order = [o.tool for o in REGISTRY.select(Audience.KEY) if o.tool]
    assert tool_names == sorted(tool_names, key=in_order.index)


@pytest.mark.parametrize(
    "path",
    slow_but_for([("method",), ("params", "arguments")], places(valid("tools/call", modern=True))),
    ids="/".join,
)
def test_five_megabytes_in_each_place_get_a_valid_answer(
    path: tuple[str, ...], fast_api: Api
) -> None:
    message = valid("tools/call", modern=True)
    headers = headers_for(to_json(message), modern=True)
    put(message, path, Raw('"' + "a" * 4_999_000 + '"'))
    assert post(fast_api, to_json(message), headers).status < 413


@matrix("modern, size", [False, True], [1_048_576, 2_400_000])
def test_large_pages_are_answered(modern: bool, size: int, world: World) -> None:
    api, page = world.api, world.things.page
    html = "ж" * (size // 2)
    for name, arguments in (("save_page_html", {"html": html}), ("get_page", {})):
        message = call_of(REGISTRY[name], {"id": page, **arguments}, modern=modern)
        body = json.dumps(message, ensure_ascii=False)
        post(api, body, headers_for(body, modern=modern))


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD"])
def test_other_http_methods_are_405_whatever_their_body(method: str, api: Api) -> None:
    for body in (b"", b"{", RAW["an open array 100,000 deep"].encode()):
        answer = api.call(method, "/api/mcp", body)
        assert answer.status == 405


@pytest.mark.parametrize("character", slow_but_for(["\\"], ['"', "\\", "\n", "ж", "a"]))
def test_an_answer_fits_the_limit_of_a_lambda_response(character: str, world: World) -> None:
    """Lambda allows responses of 6 MB. Each layer around a result escapes its content once more."""
    api, page = world.api, world.things.page
    html = character * (1_048_576 // len(character.encode()))
    for name, arguments in (("save_page_html", {"html": html}), ("get_page", {})):
        call = call_of(REGISTRY[name], {"id": page, **arguments}, modern=False)
        answer = post(api, to_json(call))
        reply = {"statusCode": 200, "headers": answer.headers, "body": answer.body.decode()}
        assert len(json.dumps(reply, ensure_ascii=False).encode()) < 6_000_000
