"""Requests to the endpoints of OAuth, from an AI client and from a user's browser."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from chalicelib.domains.oauth.rules import registration
from tests.conftest import Answer, Api
from tests.factories.console import FORM, Person
from tests.factories.oauth import CHALLENGE, REDIRECT_URI, VERIFIER
from tests.fakes.internet import Answer as ServerAnswer
from tests.fakes.internet import http_response

BASE = "http://127.0.0.1:8000"
DOCUMENT = "https://chat.example.com/client.json"
"""The id of a client that publishes its metadata."""
AUTHORIZE = "/oauth/authorize"
CLIENT: str = registration.register({"client_name": "Claude", "redirect_uris": [REDIRECT_URI]})[
    "client_id"
]
REQUEST = {
    "response_type": "code",
    "client_id": CLIENT,
    "redirect_uri": REDIRECT_URI,
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "scope": "projects:read crm:read crm:write",
    "state": "a state+/=&%",
    "resource": f"{BASE}/api/mcp",
}
"""A valid authorization request."""


def document() -> ServerAnswer:
    """Return the response of the client's server with its metadata."""
    metadata = {"client_id": DOCUMENT, "client_name": "Chat", "redirect_uris": [REDIRECT_URI]}
    return http_response(json.dumps(metadata).encode())


def path(**changes: str | None) -> str:
    """Return the path of an authorization request. Parameters with the value None are left out."""
    parameters = {name: text for name, text in {**REQUEST, **changes}.items() if text is not None}
    return f"{AUTHORIZE}?{urlencode(parameters)}"


def allow(person: Person, at: str, slug: str, *scopes: str, **headers: str) -> Answer:
    """Send the form of the page for consent."""
    ticked = scopes or tuple(REQUEST["scope"].split())
    fields = [("workspace", slug), ("decision", "allow"), *(("scopes", scope) for scope in ticked)]
    return person.post(at, fields, **headers)


def returned(answer: Answer) -> dict[str, str]:
    """Return the parameters that the client receives by a redirect."""
    assert answer.status == 303, answer.body
    target = urlsplit(answer.headers["Location"])
    query = parse_qs(target.query, strict_parsing=True)
    assert all(len(values) == 1 for values in query.values())
    return {name: value for name, (value,) in query.items()}


def register(metadata: Any, **headers: str) -> Answer:
    """Register a client."""
    return Api(None).call("POST", "/oauth/register", metadata, headers)


def send_form(endpoint: str, **fields: str) -> Answer:
    """Send a form to an endpoint."""
    body = urlencode(fields).encode()
    return Api(None).call("POST", f"/oauth/{endpoint}", body, {"Content-Type": FORM})


def exchange_form(code: str, /, **changes: str) -> dict[str, str]:
    """Return the form that exchanges a code."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": CLIENT,
        "redirect_uri": REDIRECT_URI,
        "code_verifier": VERIFIER,
        **changes,
    }


def content(answer: Answer) -> dict[str, Any]:
    """Return the JSON object of a response."""
    content: dict[str, Any] = json.loads(answer.body)
    return content


def error_of(answer: Answer) -> str:
    """Return the code of a failure in the format of RFC 6749, 5.2."""
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    error = content(answer)
    assert set(error) == {"error", "error_description"}
    assert re.fullmatch(r"[ !#-\[\]-~]+", error["error_description"])
    return str(error["error"])
