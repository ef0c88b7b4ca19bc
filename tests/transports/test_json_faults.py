"""Bodies that are refused as JSON, each with its reason."""

import json

import pytest

from tests.conftest import Api

TITLE = b'{"title": %b}'
DEEP = b"[" * 300 + b"]" * 300

REFUSED = [
    ("UTF-16", '{"title": "a"}'.encode("utf-16"), "NUL bytes, so it may be UTF-16 or UTF-32"),
    ("UTF-32", '{"title": "a"}'.encode("utf-32-be"), "NUL bytes, so it may be UTF-16 or UTF-32"),
    ("Latin-1", '{"title": "é"}'.encode("latin-1"), "is not UTF-8 at byte 12"),
    ("a surrogate in UTF-8", TITLE % b'"\xed\xa0\x80"', "is not UTF-8 at byte 12"),
    ("NaN", TITLE % b"NaN", "contains NaN, which is not a number in JSON"),
    ("-Infinity", TITLE % b"[1, -Infinity]", "contains -Infinity, which is not a number in JSON"),
    (
        "10,000 digits",
        TITLE % (b"9" * 10_000),
        "an integer of 10,000 digits, but the maximum is 4,300",
    ),
    ("1e400", TITLE % b"1e400", "contains a number above 1.8e308"),
    ("300 levels", TITLE % DEEP, "is nested more than 200 levels deep"),
    ("100,000 levels", TITLE % (b"[" * 100_000), "is nested more than 200 levels deep"),
    ("an unpaired surrogate", TITLE % rb'"\ud83d!"', r"an unpaired surrogate, \ud83d, which"),
    ("a surrogate as a name", rb'{"\udfff": 1}', r"an unpaired surrogate, \udfff, which"),
    ("a surrogate overwritten", rb'{"a": "\udfff", "a": 1}', r"an unpaired surrogate, \udfff"),
    ("single quotes", b"{'title': 1}", "is not valid JSON at line 1, column 2; look for"),
    ("a surrogate in malformed JSON", rb'{"a": "\udfff", "a" 1}', "is not valid JSON at line 1"),
    ("half an object", b'{"title": ', "is not valid JSON at line 1, column 10; look for"),
]


@pytest.mark.parametrize(
    ("body", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
class TestRefusedJson:
    def test_a_rest_call_explains_the_error_in_its_body(
        self, body: bytes, message: str, api: Api
    ) -> None:
        answer = api.call_refused("POST", "/api/projects/create", body)
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert answer.data["message"].startswith("The body ")
        assert message in answer.data["message"]

    def test_a_parse_error_of_the_tool_server_has_the_same_explanation(
        self, body: bytes, message: str, api: Api
    ) -> None:
        answer = api.call("POST", "/api/mcp", body)
        error = json.loads(answer.body)["error"]
        assert (answer.status, error["code"]) == (400, -32700)
        assert error["message"].startswith("Parse error: the body ")
        assert message in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'\xef\xbb\xbf{"title": "a"}',
        rb'{"title": "\ud83e\udd50"}',
        TITLE % b'"a"' + b"\n",
        b'{"title": "a", "x": %b}' % (b"[" * 150 + b"]" * 150),
        b'{"title": "a", "x": %b}' % (b"9" * 4_000),
    ],
)
def test_json_within_the_limits_is_accepted(body: bytes, api: Api) -> None:
    assert api.call("POST", "/api/projects/create", body).status == 200
