"""Test a running service from outside, with a request to each of its surfaces.

It works with any base URL, such as the URL of ``make dev`` or of a deployed stage, and changes no
data. Only if a bot is given, it sends one question, and the bot's owner pays for the answer. The
probe for streaming costs nothing.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import uuid4

import requests

from chalicelib.transports.chat import stream_probe

CHAT = "/api/agents/public/chat-stream"
TIMEOUT = (5.0, 35.0)
"""Timeouts in seconds: to connect, and between two pieces. API Gateway ends requests after 29."""
AT_ONCE = 0.1
"""Seconds. Streaming cannot be judged from a response that is complete this soon."""
PROBE_FIRST = 15.0
"""Longest time, in seconds, until the probe's first event. A cold start takes a few seconds."""
PROBE_APART = stream_probe.PAUSE_SECONDS / 2
"""Least time, in seconds, between two events of the probe. A layer that buffers sends all events
together.
"""
UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
"""An id that no record has: the example of the ULID specification."""


class FailedError(Exception):
    """A response differs from the expected one, and the message quotes both."""


@dataclass(frozen=True, slots=True)
class Target:
    """The service to check: ``url`` without a trailing slash, and optional inputs.

    ``origins`` are URLs behind the edge that must refuse requests without its secret, which is
    ``edge_secret``. ``chat_url`` is the base URL of the chat, if it has one of its own.
    ``site_page`` is the URL of a page of a site.
    """

    url: str
    key: str | None = None
    agent: str | None = None
    bot_key: str | None = None
    origins: tuple[str, ...] = ()
    edge_secret: str = field(default="", repr=False)
    site_page: str | None = None
    chat_url: str | None = None

    @property
    def chat(self) -> str:
        """The URL of the chat."""
        return (self.chat_url or self.url) + CHAT


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check.

    Pass None as ``ok`` if the check's input is missing.
    """

    name: str
    ok: bool | None
    why: str


def run(target: Target, names: Collection[str] | None = None) -> Iterator[Check]:
    """Yield the result of each check, or of the checks with these names, once it is known."""
    for name, check in CHECKS.items():
        if names is not None and name not in names:
            continue
        try:
            note = check(target)
            skipped = note is not None and note.startswith("not tried")
            yield Check(name, None if skipped else True, note or "")
        except FailedError as error:
            yield Check(name, ok=False, why=str(error))
        except requests.RequestException as error:
            # The error's own text ends in an object's memory address.
            yield Check(name, ok=False, why=f"no answer: {type(error).__name__}")


def _expect(expected: str, holds: object, *, came: object) -> None:
    if not holds:
        msg = f"expected {expected}; came {str(came)[:120]!r}"
        raise FailedError(msg)


def _send(method: str, *, url: str, **options: Any) -> requests.Response:  # noqa: ANN401  requests'
    return requests.request(method, url, timeout=TIMEOUT, allow_redirects=False, **options)


def _type(answer: requests.Response) -> str:
    return answer.headers.get("Content-Type", "no Content-Type").partition(";")[0]


def _data(answer: requests.Response) -> dict[str, Any]:
    """Return ``data`` of a JSON response's envelope."""
    _expect(
        "JSON", _type(answer) == "application/json", came=f"{answer.status_code} {_type(answer)}"
    )
    try:
        data = answer.json()["data"]
    except (ValueError, KeyError, TypeError):
        data = None
    _expect("the envelope", isinstance(data, dict) and "status" in data, came=answer.text)
    assert isinstance(data, dict)  # noqa: S101  for the type checker
    return data


def _read(answer: requests.Response, what: str, part: Callable[[Any], Any]) -> Any:  # noqa: ANN401  JSON
    """Return a part of a JSON response."""
    try:
        return part(answer.json())
    except (ValueError, KeyError, IndexError, TypeError):
        msg = f"expected {what}; came {answer.text[:120]!r}"
        raise FailedError(msg) from None


def _failure(answer: requests.Response, statuses: set[int], codes: set[str]) -> dict[str, Any]:
    """Return the data of a refusal, after checking its status, code and fields."""
    about = " or ".join(str(status) for status in sorted(statuses))
    _expect(
        f"status {about}",
        answer.status_code in statuses,
        came=f"{answer.status_code} {answer.text}",
    )
    data = _data(answer)
    is_envelope = data["status"] is False and data.get("message") and data.get("requestId")
    _expect("status false, a message and a requestId", is_envelope, came=data)
    _expect(f"code {' or '.join(sorted(codes))}", data.get("code") in codes, came=data.get("code"))
    same = answer.headers.get("X-Request-Id") == data["requestId"]
    _expect("X-Request-Id to be the requestId", same, came=answer.headers.get("X-Request-Id"))
    return data


def _shared(answer: requests.Response) -> None:
    allowed = answer.headers.get("Access-Control-Allow-Origin")
    _expect("Access-Control-Allow-Origin: *", allowed == "*", came=allowed)


def _health(target: Target) -> str:
    answer = _send("GET", url=f"{target.url}/api/health")
    _expect("status 200", answer.status_code == requests.codes.ok, came=answer.status_code)
    data = _data(answer)
    _expect(
        "status true, service, version, time", data["status"] is True and "time" in data, came=data
    )
    _expect("X-Request-Id", answer.headers.get("X-Request-Id"), came="none")
    # Without it, bots scan what they know for each question.
    _expect("SQLite with FTS5", data.get("fullTextSearch") is True, came=data.get("fullTextSearch"))
    return f"{data.get('service')} {data.get('version')}"


def _unknown_path(target: Target) -> None:
    url = f"{target.url}/api/no-such-path-{uuid4().hex[:8]}"
    _failure(_send("GET", url=url), {404}, {"not_found"})
    # On such a path, API Gateway takes a key for a signature, and its default response repeats
    # the key.
    answer = _send("GET", url=url, headers={"Authorization": "Bearer svc_live_0"})
    _failure(answer, {404, 403}, {"not_found", "forbidden"})
    _expect("the key not to be repeated", "svc_live_0" not in answer.text, came=answer.text)


def _wrong_method(target: Target) -> None:
    # API Gateway responds to this itself: it does not know the path with this method.
    answer = _send("DELETE", url=f"{target.url}/api/health")
    _failure(answer, {404, 405}, {"not_found", "method_not_allowed"})


def _no_key(target: Target) -> None:
    for headers in ({}, {"Authorization": "Bearer svc_live_nothing"}):
        answer = _send("GET", url=f"{target.url}/api/workspaces/list", headers=headers)
        _failure(answer, {401}, {"unauthorized"})
        header_names = {name.lower() for name in answer.headers}
        # API Gateway renames this header.
        remapped_names = {"www-authenticate", "x-amzn-remapped-www-authenticate"} & header_names
        _expect("WWW-Authenticate", remapped_names, came=sorted(header_names))


def _preflight(target: Target) -> None:
    preflight = {
        "Origin": "https://smoke.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,idempotency-key",
    }
    answer = _send("OPTIONS", url=target.chat, headers=preflight)
    _expect("status 200 or 204", answer.status_code in {200, 204}, came=answer.status_code)
    _shared(answer)
    methods = answer.headers.get("Access-Control-Allow-Methods", "")
    _expect("POST to be allowed", "POST" in methods, came=methods)
    headers = answer.headers.get("Access-Control-Allow-Headers", "").lower()
    headers_allowed = "content-type" in headers and "idempotency-key" in headers
    _expect("Content-Type and Idempotency-Key to be allowed", headers_allowed, came=headers)


def _no_bot(target: Target) -> None:
    answer = _send("POST", url=target.chat, json={"agentId": UNKNOWN, "message": "Hello"})
    _failure(answer, {404}, {"not_found"})
    _shared(answer)


def _chat(target: Target) -> str:
    if target.agent is None:
        return "not tried: give --agent (its owner pays for the answer)"
    body = {"agentId": target.agent, "message": "Hello", "apiKey": target.bot_key}
    began = time.monotonic()
    with requests.post(target.chat, json=body, timeout=TIMEOUT, stream=True) as answer:
        if answer.status_code != requests.codes.ok:
            msg = f"expected status 200; came {answer.status_code} {answer.text[:120]}"
            raise FailedError(msg)
        _expect("text/event-stream", _type(answer) == "text/event-stream", came=_type(answer))
        _shared(answer)
        answer.encoding = "utf-8"
        events = [
            (time.monotonic() - began, json.loads(line.removeprefix("data: ")))
            # A larger chunk would collect several events, and their times would be equal.
            for line in answer.iter_lines(chunk_size=1, decode_unicode=True)
            if line.startswith("data: ")
        ]
    kinds = [event.get("type") for _, event in events]
    _expect("start, chunks, done", kinds[:1] == ["start"] and kinds[-1:] == ["done"], came=kinds)
    _expect("the answer in chunks", "chunk" in kinds, came=kinds)
    first, last = events[0][0], events[-1][0]
    _expect(
        "the first event before the answer is whole",
        last < AT_ONCE or last - first > AT_ONCE / 2,
        came=f"all of it after {last:.2f} s",
    )
    return f"first event after {first:.2f} s, last after {last:.2f} s"


def _probe(target: Target) -> str:
    """Check that a stream passes each layer piece by piece, by the times of its events."""
    if not target.edge_secret:
        return "not tried: needs the edge's secret; give --stage"
    headers = {
        stream_probe.TOKEN_HEADER: stream_probe.token(target.edge_secret),
        "Accept-Encoding": "identity",
    }
    url, began = target.url + stream_probe.PATH, time.monotonic()
    with requests.get(url, headers=headers, timeout=TIMEOUT, stream=True) as answer:
        if answer.status_code != requests.codes.ok:
            msg = f"expected status 200; came {answer.status_code} {answer.text[:120]}"
            raise FailedError(msg)
        lines = answer.iter_lines(chunk_size=1)
        times = [time.monotonic() - began for line in lines if line.startswith(b"data: ")]
    came = ", ".join(f"{at:.2f}" for at in times)
    _expect(f"{stream_probe.EVENTS} events", len(times) == stream_probe.EVENTS, came=came)
    _expect(f"the first event within {PROBE_FIRST:.0f} s", times[0] < PROBE_FIRST, came=came)
    apart = all(later - earlier >= PROBE_APART for earlier, later in pairwise(times))
    _expect(f"{PROBE_APART} s between events (a layer buffers)", apart, came=f"after {came} s")
    return f"events after {came} s"


def _tools(target: Target) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    url, headers = f"{target.url}/api/mcp", {"Accept": "application/json, text/event-stream"}
    # The first call has no key, because clients of MCP discover the sign-in by the refusal.
    answer = _send("POST", url=url, json=message, headers=headers)
    _failure(answer, {401}, {"unauthorized"})
    _challenge(target, answer)
    if target.key is None:
        return "not tried: give --key; without one, it is refused as it should be"
    headers["Authorization"] = f"Bearer {target.key}"
    answer = _send("POST", url=url, json=message, headers=headers)
    _expect("status 200", answer.status_code == requests.codes.ok, came=answer.status_code)
    tools = _read(answer, "a list of tools", lambda body: body["result"]["tools"])
    _expect(
        "tools with an inputSchema", tools and all("inputSchema" in t for t in tools), came=tools
    )
    return f"{len(tools)} tools"


def _challenge(target: Target, refusal: requests.Response) -> None:
    """Check that a refusal leads to the authorization server, under the header's true name.

    Without the edge, API Gateway renames the header. Clients then look at the documents only.
    """
    challenge = refusal.headers.get("WWW-Authenticate", "")
    if target.origins:
        metadata = f'resource_metadata="{target.url}/.well-known/oauth-protected-resource/api/mcp"'
        _expect(
            metadata,
            challenge.startswith("Bearer ") and metadata in challenge,
            came=challenge or "none",
        )


def _sign_in(target: Target) -> str:
    """Check the documents by which an AI client discovers where users sign in."""
    document = _document(f"{target.url}/.well-known/oauth-protected-resource/api/mcp")
    _expect(
        f"{target.url}/api/mcp", document.get("resource") == f"{target.url}/api/mcp", came=document
    )
    server = str((document.get("authorization_servers") or [""])[0])
    document = _document(f"{target.url}/.well-known/oauth-authorization-server")
    # Clients compare these byte for byte (RFC 8414, 3.3).
    _expect(
        f"issuer {server}",
        document.get("issuer") == server == target.url,
        came=document.get("issuer"),
    )
    answer = _send(
        "POST", url=document["token_endpoint"], data={"grant_type": "authorization_code"}
    )
    _expect("status 400 or 401", answer.status_code in {400, 401}, came=answer.status_code)
    return server


def _document(url: str) -> dict[str, Any]:
    answer = _send("GET", url=url, headers={"Origin": "https://smoke.example"})
    _expect("status 200", answer.status_code == requests.codes.ok, came=answer.status_code)
    _shared(answer)
    document: dict[str, Any] = _read(answer, "a JSON object", dict)
    return document


def _blog(target: Target) -> None:
    answer = _send("GET", url=f"{target.url}/blog")
    _page(answer, "text/html")
    policy = answer.headers.get("Content-Security-Policy")
    _expect("a Content-Security-Policy", policy, came="none")


def _widget(target: Target) -> None:
    answer = _send("GET", url=f"{target.url}/widget.js")
    _page(answer, "text/javascript")
    _expect("the script that calls the chat", CHAT.lstrip("/") in answer.text, came=answer.text)


def _site(target: Target) -> str | None:
    if target.site_page is not None:
        _page(_send("GET", url=target.site_page), "text/html")
        return None
    answer = _send("GET", url=f"{target.url}/s/no-such-site-{uuid4().hex[:8]}")
    _page(answer, "text/html", requests.codes.not_found)
    return "an unknown site has its notice; give --site-page to check a page"


def _page(answer: requests.Response, kind: str, status: int = requests.codes.ok) -> None:
    _expect(f"status {status}", answer.status_code == status, came=answer.status_code)
    _expect(kind, _type(answer) == kind, came=_type(answer))
    guard = answer.headers.get("X-Content-Type-Options")
    _expect("X-Content-Type-Options: nosniff", guard == "nosniff", came=guard)


def _openapi(target: Target) -> str:
    answer = _send("GET", url=f"{target.url}/api/openapi.json")
    _expect("status 200", answer.status_code == requests.codes.ok, came=answer.status_code)
    server, paths = _read(
        answer, "OpenAPI", lambda body: (body["servers"][0]["url"], body["paths"])
    )
    _expect(f"it to name {target.url}", server.rstrip("/") == target.url, came=server)
    return f"{len(paths)} paths"


def _files(target: Target) -> None:
    url = f"{target.url}/files/{UNKNOWN}/none.svg"
    answer = _send("GET", url=url, headers={"Origin": "https://example.com"})
    _expect("status 404", answer.status_code == requests.codes.not_found, came=answer.status_code)
    policy = answer.headers.get("Content-Security-Policy", "none")
    # An unknown file may be served by the bucket itself, whose errors need the sandbox, too.
    if _type(answer) != "application/json":
        _expect("a sandbox as Content-Security-Policy", "sandbox" in policy, came=policy)
        allowed = answer.headers.get("Access-Control-Allow-Origin")
        _expect("Access-Control-Allow-Origin: *", allowed == "*", came=allowed)


def _origins(target: Target) -> str | None:
    if not target.origins:
        return "not tried: give --origin (behind an edge)"
    for origin in target.origins:
        url = origin.rstrip("/") + (CHAT if "lambda-url" in origin else "/api/health")
        _failure(_send("GET", url=url), {403}, {"forbidden"})
    return None


CHECKS: dict[str, Callable[[Target], str | None]] = {
    "health": _health,
    "unknown path": _unknown_path,
    "wrong method": _wrong_method,
    "no key, made-up key": _no_key,
    "chat: preflight": _preflight,
    "chat: unknown bot": _no_bot,
    "chat: probe streams": _probe,
    "chat: answer streams": _chat,
    "tools/list": _tools,
    "sign-in of AI clients": _sign_in,
    "blog": _blog,
    "site page": _site,
    "widget.js": _widget,
    "openapi.json": _openapi,
    "files are sandboxed": _files,
    "origins refuse": _origins,
}
"""Checks by their name in the table."""


def sign_in(url: str) -> Check:
    """Return whether AI clients find out where users sign in to a stage behind an edge."""
    *others, last = run(Target(url, origins=(url,)), ("tools/list", "sign-in of AI clients"))
    return next((check for check in others if check.ok is False), last)


def table(checks: list[Check]) -> str:
    """Return the results as a table."""
    marks = {True: "ok", False: "FAILED", None: "-"}
    width = max(len(check.name) for check in checks)
    return "\n".join(
        f"{marks[check.ok]:6}  {check.name:{width}}  {check.why}".rstrip() for check in checks
    )
