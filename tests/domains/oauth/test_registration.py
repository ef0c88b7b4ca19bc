"""Registration of clients without a row (RFC 7591)."""

import base64
import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.oauth.rules import client_metadata, registration
from chalicelib.domains.oauth.rules.errors import OAuthError

CLAUDE = "https://claude.ai/api/mcp/auth_callback"
REQUESTS: dict[str, dict[str, Any]] = {
    "claude.ai": {
        "client_name": "claudeai",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "claudeai",
        "redirect_uris": [CLAUDE],
    },
    "ChatGPT": {
        "client_name": "ChatGPT",
        "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
    },
    "VS Code": {
        "client_name": "Visual Studio Code",
        "client_uri": "https://code.visualstudio.com",
        "grant_types": ["authorization_code", "refresh_token", "device_code"],
        "response_types": ["code"],
        "redirect_uris": [
            "https://insiders.vscode.dev/redirect",
            "https://vscode.dev/redirect",
            "http://127.0.0.1/",
            "http://127.0.0.1:33418/",
        ],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    },
    "Cursor": {
        "client_name": "Cursor",
        "redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    },
}
"""Requests of clients, as documented by their vendors."""


def encoded(*parts: Any, text: str | None = None) -> str:
    data = (text or json.dumps(parts, ensure_ascii=False, separators=(",", ":"))).encode()
    return "dcr_" + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_registered_client_is_found_by_its_id(request_: dict[str, Any]) -> None:
    answer = registration.register(request_)
    assert answer["token_endpoint_auth_method"] == "none"
    assert answer["redirect_uris"] == request_["redirect_uris"]
    assert answer["client_name"] == request_["client_name"]
    assert answer["grant_types"] == ["authorization_code", "refresh_token"]
    assert answer["response_types"] == ["code"]
    client = registration.read(answer["client_id"])
    assert client.name == request_["client_name"]
    assert client.redirect_uris == tuple(request_["redirect_uris"])
    assert client.auth_method == "none"
    assert client.host == ""


def test_redirect_uris_must_be_a_list() -> None:
    with pytest.raises(ValueError, match="expected a list of at least one URI"):
        client_metadata.checked_uris(CLAUDE)


def test_a_client_may_have_twenty_redirect_uris() -> None:
    answer = registration.register({"redirect_uris": [CLAUDE] * 20})
    assert len(registration.read(answer["client_id"]).redirect_uris) == 20


def test_the_longest_id_that_is_issued_is_readable() -> None:
    def issue(length: int) -> str:
        uris = [f"{CLAUDE}?{'x' * length}", f"{CLAUDE}?{'y' * 200}"]
        answer = registration.register({"client_name": "x", "redirect_uris": uris})
        return str(answer["client_id"])

    longest = next(length for length in count(700) if len(issue(length)) == 1_500)
    assert registration.read(issue(longest)).name == "x"
    with pytest.raises(OAuthError, match="1,500 bytes together"):
        issue(longest + 1)


def test_the_same_metadata_has_the_same_id() -> None:
    first, second = (registration.register(REQUESTS["Cursor"]) for _ in range(2))
    assert first == second


def test_client_id_holds_its_name_in_two_bytes_a_letter() -> None:
    """An id with escaped letters would reach its longest length with a third of the letters."""
    answer = registration.register({"client_name": "Клод", "redirect_uris": [CLAUDE]})
    assert answer["client_id"] == encoded("Клод", CLAUDE)


def test_a_client_without_a_name_is_named_by_its_redirect() -> None:
    assert registration.register({"redirect_uris": [CLAUDE]})["client_name"] == "claude.ai"


def test_name_is_shown_without_hiding_characters() -> None:
    metadata = {
        "redirect_uris": [CLAUDE],
        "client_name": " Cla\u202eude\n\u200bof\u00adX\ue000Z " + "y" * 99,
    }
    answer = registration.register(metadata)
    assert answer["client_name"] == ("Claude ofX Z " + "y" * 99)[:100]
    assert registration.read(answer["client_id"]).name == answer["client_name"]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ([], "invalid_client_metadata"),
        (None, "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": CLAUDE}, "invalid_redirect_uri"),
        ({"redirect_uris": 5}, "invalid_redirect_uri"),
        ({"redirect_uris": {"0": CLAUDE}}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CLAUDE, "javascript:x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CLAUDE] * 21}, "invalid_redirect_uri"),
        ({"redirect_uris": [CLAUDE], "client_name": 1}, "invalid_client_metadata"),
        ({"redirect_uris": [CLAUDE], "grant_types": ["password"]}, "invalid_client_metadata"),
        ({"redirect_uris": [CLAUDE], "response_types": ["token"]}, "invalid_client_metadata"),
        *(
            ({"redirect_uris": [CLAUDE], **metadata}, "invalid_client_metadata")
            for metadata in (
                {"grant_types": "authorization_code"},
                {"grant_types": 5},
                {"response_types": "code"},
                {"response_types": {"code": True}},
            )
        ),
        ({"redirect_uris": [f"{CLAUDE}?{'x' * 900}"] * 2}, "invalid_client_metadata"),
    ],
)
def test_metadata_that_cannot_be_used_is_refused(metadata: Any, error: str) -> None:
    with pytest.raises(OAuthError) as refusal:
        registration.register(metadata)
    assert refusal.value.error == error
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "client_id",
    [
        "dcr_",
        "dcr_!!!!",
        "dcr_é",
        encoded("Claude"),
        encoded("", CLAUDE),
        encoded(" Claude", CLAUDE),
        encoded("Cla\u202eude", CLAUDE),
        encoded("x" * 101, CLAUDE),
        encoded("Claude", "javascript:alert(1)"),
        encoded("Claude", 1),
        encoded(1, CLAUDE),
        encoded(text="{}"),
        encoded(text='["Claude", "https://claude.ai/a"]'),
        encoded(text="[" * 1_000),
        encoded("Claude", CLAUDE) + "=",
        encoded("Claude", CLAUDE) + "\n",
        encoded("Claude", *[f"{CLAUDE}?{n}" for n in range(20)], "x" * 900),
        encoded("Claude", *[f"{CLAUDE}?{'x' * 900}"] * 2),
    ],
)
def test_an_id_that_registration_does_not_return_is_refused(client_id: str) -> None:
    with pytest.raises(OAuthError) as refusal:
        registration.read(client_id)
    assert refusal.value.error == "invalid_client"
    assert refusal.value.status == 401


@given(st.binary(max_size=60), st.text(max_size=60))
def test_any_unknown_id_is_refused(data: bytes, text: str) -> None:
    for candidate in ("dcr_" + base64.urlsafe_b64encode(data).decode(), "dcr_" + text):
        with pytest.raises(OAuthError):
            registration.read(candidate)
