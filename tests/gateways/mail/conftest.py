"""Settings of mail, and an example email."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.gateways.mail import Mail
from chalicelib.lib.markup.mails import RenderedMail

SENDER = "mail@notify.example.com"
CONTENT = RenderedMail(subject="Booked", text="Hi Ada", html="<p>Hi Ada</p>")
MAIL = Mail(id="01J-1", origin="w", recipient="ada@example.com", content=CONTENT)

Configure = Callable[..., None]


def example_mail(**changes: Any) -> Mail:
    of_content = {name: changes.pop(name) for name in CONTENT._fields if name in changes}
    return replace(MAIL, content=CONTENT._replace(**of_content), **changes)


@pytest.fixture
def configure(reload_settings: Callable[[], None]) -> Configure:
    """Return a function that sets variables of mail: ``configure("smtp", smtp="smtp://…")``."""

    def set_up(provider: str, **variables: str) -> None:
        os.environ |= {"MAIL": provider, "MAIL_FROM": SENDER}
        os.environ |= {f"MAIL_{name.upper()}": value for name, value in variables.items()}
        reload_settings()

    return set_up
