"""Checks by which forms for visitors refuse programs that fill them in."""

import re
from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import RateLimitedError
from chalicelib.domains.leads.flows import form_html

# Shortest time, in milliseconds, in which a visitor can send a form that a browser fills in. The
# scripts of the service wait for this time before they send a form.
MINIMUM_FILL_MS = 1_000


class TooFastError(RateLimitedError):
    """A form was submitted faster than a person can fill it in. Try again in a moment."""

    code = "too_fast"


def is_robot(form_values: Mapping[str, Any]) -> bool:
    """Whether the honeypot is filled in. Such a form gets the usual response, but has no effect."""
    return any(form_values.get(name) for name in (form_html.HONEYPOT, *_OTHER_HONEYPOTS))


def check_fill_time(form_values: Mapping[str, Any]) -> None:
    """Raise TooFastError if, by our script's time, no visitor can have filled in the form."""
    elapsed = _integer(form_values.get(form_html.ELAPSED))
    # Only our script sends the time, so a missing one proves nothing.
    if elapsed is not None and elapsed < MINIMUM_FILL_MS:
        # The same form is accepted a moment later.
        wait = max(1, round((MINIMUM_FILL_MS - elapsed) / 1000))
        msg = (
            f"The form was completed in {elapsed} ms, which is too fast. Send the form again in "
            f"{wait} s."
        )
        raise TooFastError(msg, headers={"Retry-After": str(wait)})


def _integer(value: object) -> int | None:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return int(text) if _WHOLE.fullmatch(text) else None


_OTHER_HONEYPOTS = ("_gotcha", "_honey")  # of forms that were made for other services
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
