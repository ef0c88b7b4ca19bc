"""A fake receiver of webhooks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from standardwebhooks.webhooks import Webhook

from chalicelib.gateways.post import PostReply

OK = PostReply(200, b"thanks", None, 12)


@dataclass(frozen=True)
class Request:
    """A request that the receiver got."""

    url: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def event(self) -> Any:
        """The event in the body."""
        return json.loads(self.body)

    @property
    def event_id(self) -> str:
        """The id of the event."""
        return self.headers["webhook-id"]

    def verify(self, secret: str) -> None:
        """Verify the signature with the library that receivers use."""
        Webhook(secret).verify(self.body, dict(self.headers))


@dataclass
class Receiver:
    """Takes the place of ``gateways.post.post``. ``answer`` gives the reply to a request."""

    answer: Callable[[Request], PostReply] = lambda _: OK
    requests: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], **_options: Any) -> PostReply:
        """Record the request, and respond."""
        request = Request(url, body, headers)
        with self._lock:
            self.requests.append(request)
        return self.answer(request)

    @property
    def events(self) -> list[Any]:
        """The events received, in order."""
        return [request.event for request in self.requests]

    @property
    def types(self) -> list[str]:
        """The types of the events received, in order."""
        return [event["type"] for event in self.events]


def status(code: int, body: bytes = b"", retry_after: int | None = None) -> PostReply:
    """Return a reply with this status."""
    return PostReply(code, body, retry_after, 7)
