"""Conditional requests: whether a body has changed since it was downloaded (RFC 9110, 13)."""

import re
from email.message import Message
from typing import NamedTuple, Self

_SENDABLE = re.compile("[ -~]{1,500}")
"""Values of headers that may be sent back: visible ASCII."""


class Validators(NamedTuple):
    """Headers of a response by which a later request finds out whether its body has changed."""

    url: str
    etag: str = ""
    last_modified: str = ""

    @classmethod
    def of(cls, url: str, headers: Message) -> Self:
        """Return the validators of an answer, without values that cannot be sent back."""
        values = (str(headers.get(name, "")).strip() for name in ("ETag", "Last-Modified"))
        return cls(url, *(value if _SENDABLE.fullmatch(value) else "" for value in values))

    @property
    def conditions(self) -> dict[str, str]:
        """The headers that request the body only if it has changed."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}
