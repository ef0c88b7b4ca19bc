"""What SMS cost, in the console."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.domains.billing.flows import sms_charging
from chalicelib.domains.billing.flows.sms_charging import SmsHold
from chalicelib.domains.identity.store import workspaces
from tests.conftest import call_operator
from tests.factories.console import World
from tests.transports.console.forms.helpers import text

ORDER = [("channels", "sms"), ("channels", "mail")]


def charge(world: World, *, segments: int | None) -> None:
    """Charge an SMS of the workspace, or release it."""
    workspace_id, now = world.here.workspace_id, clock.now()
    hold = SmsHold(
        request_id=new_id(),
        account_id=workspaces.get(workspace_id).owner_id,
        workspace_id=workspace_id,
        country="RU",
        price=850,
        segments=2,
        day=now.date(),
        due_at=now + timedelta(minutes=10),
    )
    sms_charging.reserve(hold, {}, lambda _: None)
    if segments is None:
        sms_charging.release(hold)
    else:
        sms_charging.settle(hold, segments, lambda _: None)


@pytest.fixture(autouse=True)
def _sms(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    monkeypatch.setenv("SMS", "file")
    reload_settings()


def test_the_balance_shows_what_sms_cost(world: World) -> None:
    path = f"{world.here.path}/balance"
    assert "SMS in 30 days" not in text(world.person("boss").get(path))
    charge(world, segments=2)
    charge(world, segments=1)
    charge(world, segments=None)
    page = text(world.person("boss").get(path)).replace("\u00a0", " ")
    assert "SMS in 30 days" in page
    assert "25.50 ₽" in page
    assert "2 SMS, 3 segments" in page
    assert page.count("SMS to a client") == 2
    assert "The SMS was not sent, so nothing was charged" in page
    assert text(world.person("boss").get(f"{path}?view=ledger")).count("Hold released") == 1


def test_the_price_is_shown_before_sms_are_switched_on(world: World) -> None:
    path = f"{world.here.path}/client-channels"
    assert "has no price for SMS to your country" in text(world.person("boss").get(path))
    call_operator("set_sms_price", country="RU", kopecks=850)
    page = text(world.person("boss").get(path)).replace("\u00a0", " ")
    assert "8.50 ₽ a segment" in page
    assert "Only the owner of the workspace" not in page
    assert "Only the owner of the workspace" in text(world.person("manager").get(path))


def test_only_the_owner_switches_sms_on_in_the_console(world: World) -> None:
    path = f"{world.here.path}/client-channels"
    manager, boss = world.person("manager"), world.person("boss")
    assert manager.post(path, ORDER).status == 403
    assert boss.post(path, ORDER).status == 303
    assert '<option value="sms" selected>' in text(boss.get(path))
