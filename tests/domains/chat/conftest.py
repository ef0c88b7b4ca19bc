"""A bot, and a dialog in which it calls tools."""

from datetime import UTC, datetime

import pytest

from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.flows.tool_calls import ToolContext
from tests.conftest import Owner, Time
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.factories.chat import Bot, new_bot


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


@pytest.fixture
def context(owner: Owner, time: Time) -> ToolContext:
    time.now = datetime(2026, 11, 23, 9, tzinfo=UTC)  # a Monday
    agent = AGENTS.row(AGENTS.partition(owner.workspace.id), "1")
    return ToolContext(workspace=owner.workspace, agent=agent, dialog_id="1", number=2)
