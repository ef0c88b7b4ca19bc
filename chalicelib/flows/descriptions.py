"""Descriptions in lists, which shorten long texts (contract, Envelope)."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from chalicelib.flows.invoke import Context

MAX_LISTED = 500
"""Characters of a description in a list."""

R = TypeVar("R")
W = TypeVar("W")


def shortened(
    ctx: Context, records: Iterable[R], form: Callable[..., W], *, noun: str, remedy: str
) -> list[W]:
    """Return the wire forms of listed records; long descriptions are cut, with a warning.

    ``form`` makes the wire form of a record, a ``description`` given beside it being the one to
    show; ``remedy`` says how to get the whole of one.
    """
    shown, cut = [], 0
    for record in records:
        text = getattr(record, "description", None) or ""
        long = len(text) > MAX_LISTED
        cut += long
        made: dict[str, Any] = {"description": text[: MAX_LISTED - 1] + "…"} if long else {}
        shown.append(form(record, **made))
    if cut:
        ctx.warn(f"The description of {cut} {noun}(s) is cut to {MAX_LISTED} characters; {remedy}.")
    return shown
