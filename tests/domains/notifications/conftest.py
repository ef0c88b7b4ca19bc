"""Fixtures for tests of messages to members."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Time
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things


@pytest.fixture
def inbox(tmp_path: Path, reload_settings: Callable[[], None], things: Things, time: Time) -> Inbox:
    """Mail is on, and the workspace has one record of every type."""
    run_until_idle()
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
    return Inbox(tmp_path)
