"""Fixture for tests of all events, with webhook receivers and an inbox."""

import pytest

from chalicelib.gateways import mail
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.webhooks.conftest import add_webhook, receiver  # noqa: F401  fixtures
from tests.factories.event_runs import run_until_idle
from tests.factories.event_triggers import MEMBER, World
from tests.factories.examples import Things
from tests.fakes.receiver import Receiver


@pytest.fixture
def world(
    owner: Owner,
    api: Api,
    things: Things,
    time: Time,
    receiver: Receiver,  # noqa: F811  the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    """A workspace with one record of every type."""
    call_operator("create_account", email=MEMBER, password="correct horse")
    with monkeypatch.context() as without_mail:
        without_mail.setattr(mail, "is_on", lambda: False)
        call_operator("delete_webhook", id=things.webhook)  # It would receive events, too.
        run_until_idle()
    return World(owner, api, things, time, receiver, monkeypatch)
