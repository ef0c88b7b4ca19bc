"""Requests to our Lambda handler, with a cached API key and without a database."""

import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import app
from chalicelib.core import clock
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.listing.query import ResultPage
from chalicelib.engine.reading import Cost
from infra.bench import first_answer

TOOL = "svc_list_sites"
TOKEN, KEY = first_answer.new_key()
KEY.last_used_at = clock.now() + timedelta(days=1)
"""A key whose last use needs no write."""


def answer_text() -> str:
    """Return the response of the measured call, which the peers have to return as well."""
    reply = call_handler("tools/call", {"name": TOOL, "arguments": {}})()
    text: str = json.loads(reply["body"])["result"]["content"][0]["text"]
    return text


def stubs() -> ExitStack:
    """Replace the two functions that read the database for the key and the list."""
    stack = ExitStack()
    stack.enter_context(patch.object(ApiKeyRow, "find", lambda *_: KEY))
    stack.enter_context(page_of_sites(10))
    log = logging.getLogger("chalicelib")
    stack.callback(log.setLevel, log.level)
    log.setLevel(logging.WARNING)
    return stack


def page_of_sites(count: int) -> AbstractContextManager[object]:
    """Replace the function that reads a page of sites by one with ``count`` records in memory."""
    moment = clock.now()
    sites = [
        SITES.new(
            "bench",
            title=f"Site {number}",
            slug=f"site-{number}",
            status="active",
            created_at=moment,
            updated_at=moment,
        )
        for number in range(count)
    ]
    page = ResultPage(sites, len(sites), "full scan", Cost())
    return patch.object(type(SITES), "page", lambda *_: page)


def call_handler(method: str, params: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Return a call of the Lambda handler with an API Gateway event for a JSON-RPC request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return lambda: app.app(event("POST", path="/api/mcp", body=body), None)


def get_handler(path: str) -> Callable[[], dict[str, Any]]:
    """Return a call of the Lambda handler with an API Gateway event for a GET request."""
    return lambda: app.app(event("GET", path=path, body=None), None)


def event(method: str, *, path: str, body: str | None) -> dict[str, Any]:
    """Return an API Gateway (REST) event."""
    return {
        "requestContext": {
            "httpMethod": method,
            "resourcePath": path,
            "identity": {"sourceIp": "127.0.0.1"},
            "requestId": "bench",
        },
        "headers": {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        "multiValueHeaders": {},
        "pathParameters": None,
        "multiValueQueryStringParameters": None,
        "stageVariables": None,
        "body": body,
        "isBase64Encoded": False,
    }
