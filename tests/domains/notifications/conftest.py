"""An inbox for e-mails of the service."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Owner, Time
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things


@pytest.fixture
def inbox(tmp_path: Path, reload_settings: Callable[[], None], things: Things, time: Time) -> Inbox:
    """Mail is on, and the workspace has one record of every type."""
    run_until_idle()
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
    return Inbox(tmp_path)


@pytest.fixture
def lead_inbox(inbox: Inbox, owner: Owner) -> Inbox:
    """The inbox of an owner who has chosen emails about leads, in English."""
    choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
    return inbox
