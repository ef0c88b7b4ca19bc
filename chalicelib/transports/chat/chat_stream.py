"""Stream the bot chat as server-sent events (ADR 25), after refusals in the envelope.

The body of the response is an iterator, which each server closes after sending it.
"""

from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from chalicelib.core.clock import iso
from chalicelib.core.wire import parsing
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.bots.rules.channels import TEST_CHANNEL
from chalicelib.domains.chat.flows import accept_message
from chalicelib.domains.chat.flows.chat_request import ACTIONS, SOURCES, Caller, ChatRequest
from chalicelib.domains.chat.flows.replays import Replay
from chalicelib.domains.chat.flows.stream_answer import (
    Answer,
    ChatEvent,
    Chunk,
    Done,
    Failed,
    Ping,
    Shown,
    Start,
    failed,
)
from chalicelib.domains.chat.rules.endings import ERRORS, error_code
from chalicelib.domains.chat.store.proposals import ProposalRow
from chalicelib.engine import visitors
from chalicelib.transports.chat.chat_route import MAX_CHAT_BODY_BYTES, STREAM_HEADERS
from chalicelib.transports.http import (
    CSRF_HEADER,
    TEXT_TYPE,
    HttpRequest,
    HttpResponse,
    check_body,
    check_sender,
    json_object,
)

PING = b": ping\n\n"


def handle(request: HttpRequest) -> HttpResponse:
    """Answer a message from a visitor, or from a workspace member who tries the bot in the console.

    Raises:
        AppError: the message is refused (``domains.chat.flows.accept_message``).
    """
    check_sender(request)
    check_body(request, TEXT_TYPE, limit=MAX_CHAT_BODY_BYTES)
    args = parsing.parse(ChatRequest, json_object(request.body), drop_empty=True)
    caller = Caller(
        visitor=visitors.visitor_hash(request.client_ip),
        network=visitors.network_hash(request.client_ip),
        request_id=request.request_id,
        idempotency_key=request.idempotency_key,
        in_console=_is_console_trial(request, args),
    )
    accepted = accept_message.accept_message(args, caller)
    events = _replay_events(accepted, args) if isinstance(accepted, Replay) else Answer(accepted)
    stream = EventStream(events, caller)
    return HttpResponse(200, stream, STREAM_HEADERS, log={"agentId": args.agent_id[:64]})


def _is_console_trial(request: HttpRequest, args: ChatRequest) -> bool:
    # A request that only claims the test channel counts as a program's.
    if args.channel != TEST_CHANNEL or not {"cookie", CSRF_HEADER} & request.headers.keys():
        return False
    from chalicelib.transports.console import access  # visitors do not need it

    return access.is_test_chat(request, args.agent_id)


def _replay_events(replay: Replay, args: ChatRequest) -> Iterator[ChatEvent]:
    yield Start(replay.session_token)
    if replay.text:
        yield Chunk(replay.text)
    if args.shows(ACTIONS):
        yield from map(Shown, replay.proposals)
    if code := error_code(replay.reason):
        yield failed(code, replay.usage)
    else:
        sources = replay.sources if args.shows(SOURCES) else ()
        yield Done(replay.usage or TokenUsage(0, 0), sources, replay.reason == "truncated")


class EventStream:
    """Encodes events as bytes. Closing it also closes the source of the events."""

    def __init__(self, events: Iterator[ChatEvent], caller: Caller) -> None:
        self._events = events
        self._caller = caller

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return encode(next(self._events))

    def close(self) -> None:
        close = getattr(self._events, "close", None)
        try:
            if close is not None:
                close()
        finally:
            accept_message.end_stream(self._caller)


def encode(event: ChatEvent) -> bytes:
    """Encode an event as ``data:`` with one line of JSON, and a blank line."""
    data: dict[str, Any]
    match event:
        case Start(session_id, last_reply):
            known = {"lastReplyId": last_reply} if last_reply else {}
            data = {"type": "start", "sessionId": session_id, **known}
        case Chunk(content):
            data = {"type": "chunk", "content": content}
        case Shown(proposal):
            data = {"type": "action", **action(proposal)}
        case Done(usage, sources, is_truncated):
            data = {"type": "done", "usage": _usage(usage)}
            if sources:
                data["sources"] = list(sources)
            if is_truncated:
                data["truncated"] = True
        case Failed(code, usage):
            data = {"type": "error", "error": ERRORS[code], "code": code}
            if usage is not None:
                data["usage"] = _usage(usage)
        case Ping():
            return PING
    return b"data: " + _one_line(to_json(data)) + b"\n\n"


def action(proposal: ProposalRow) -> dict[str, Any]:
    """Return a proposal as clients receive it, with its id, its card, and its end."""
    return {"id": str(proposal.id), **proposal.card, "expiresAt": iso(proposal.ends_at)}


# Characters that end a line in Unicode, but not in JSON or in event streams.
_LINE_ENDS = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\u0085\u2028\u2029"}


def _one_line(text: bytes) -> bytes:
    # Some clients split events at Unicode line ends.
    for end, escaped in _LINE_ENDS.items():
        text = text.replace(end, escaped)
    return text


def _usage(usage: TokenUsage) -> dict[str, int]:
    input_tokens, output_tokens = usage
    return {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": input_tokens + output_tokens,
    }
