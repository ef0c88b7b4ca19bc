"""Settings of mail, and a mail."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.gateways.mail import Mail

SENDER = "mail@notify.example.com"
MAIL = Mail(
    id="01J-1", recipient="ada@example.com", subject="Booked", text="Hi Ada", html="<p>Hi Ada</p>"
)

Configure = Callable[..., None]


def a_mail(**changes: Any) -> Mail:
    return replace(MAIL, **changes)


@pytest.fixture
def configure(reload_settings: Callable[[], None]) -> Configure:
    """Return a function that sets variables of mail: ``configure("smtp", smtp="smtp://…")``."""

    def chosen(provider: str, **variables: str) -> None:
        os.environ |= {"MAIL": provider, "MAIL_FROM": SENDER}
        os.environ |= {f"MAIL_{name.upper()}": value for name, value in variables.items()}
        reload_settings()

    return chosen
