"""Fixtures with an attack on a database with two workspaces."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import operations
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.notifications.flows import messenger_chats
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import max_messenger, photos, telegram
from tests.conftest import OBJECTS, Api, Owner, Time, call_console, call_operator
from tests.contract.conftest import IMAGES, ExampleRunner, World, _more
from tests.factories import console
from tests.factories.examples import Things
from tests.fakes.openverse import answer_with
from tests.fakes.telegram import update
from tests.proof.call_sites import Seams
from tests.proof.error_paths import Attack
from tests.proof.job_requests import JobRequests
from tests.proof.observers import Log
from tests.proof.service_requests import every_request, operation_requests
from tests.proof.simulated_time import SimulatedTime
from tests.proof.stored_state import StoredState

TELEGRAM_TOKEN = "123456:AAE-a_token_of_the_proof"
MAX_TOKEN = "f9LH-a_token_of_the_proof_at_max"
MASTER_KEY = "a-master-key-of-the-proof-0123456789"


@pytest.fixture
def runner(time: Time, owner: Owner, api: Api) -> ExampleRunner:
    """A user of the examples, whose records are as old as ``time`` and so can be restored."""
    assert api.token is not None
    things = Things.made_with(api)
    world = World(owner.workspace.id, api.token, things)
    return ExampleRunner("", world, {**things.placeholders, **_more(world)})


@pytest.fixture
def gateways(
    tmp_path: Path, reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every gateway is set up. Gateways that are not replaced need no network.

    It comes before the records, of which some are sealed with the master key.
    """
    os.environ |= {
        "MAIL": "file",
        "MAIL_FOLDER": str(tmp_path),
        "TELEGRAM_BOT_TOKEN": TELEGRAM_TOKEN,
        "MAX_TOKEN": MAX_TOKEN,
        "SMS": "file",
        "SMS_FOLDER": str(tmp_path / "sms"),
        "MASTER_KEY": MASTER_KEY,
        "SITE_HOSTS": "local",
    }
    reload_settings()
    operations.load_all()

    def get(_service: str, *, query: dict[str, Any], **_: object) -> Any:
        return answer_with(IMAGES, query["page"], query["page_size"])[1]

    monkeypatch.setattr(telegram, "_call", lambda *_, **__: {"username": "bot"})
    monkeypatch.setattr(max_messenger, "_call", lambda *_, **__: {"username": "bot"})
    monkeypatch.setattr(photos, "get_json", get)
    monkeypatch.setattr(photos, "services", lambda _: {"openverse": "http://openverse"})


@contextmanager
def attacking(runner: ExampleRunner, people: console.World | None, time: Time) -> Iterator[Attack]:
    """Intercept all that leaves the process. Without ``people``, only operations are requested."""
    requests = list(operation_requests(runner))
    secrets = [
        runner.world.token,
        runner.placeholders["CANCEL_TOKEN"],
        runner.placeholders["SESSION_ID"],
        TELEGRAM_TOKEN,
        MAX_TOKEN,
        MASTER_KEY,
    ]
    if people is not None:
        here = people.here
        requests = every_request(runner, people)
        secrets += [here.token, here.bot_token, here.invitation, here.reset]
    simulated, log = SimulatedTime(), Log(secrets)
    seams = Seams(simulated, StoredState(OBJECTS))
    with simulated.installed(), log.installed(), seams.installed():
        yield Attack(requests, seams, log, time, JobRequests(seams.state, time))


def _link_telegram(workspace_id: str) -> None:
    """Let the owner of a workspace have all messages, by mail and in a chat."""
    account_id = workspaces.get(workspace_id).owner_id

    def call(operation: str, **arguments: Any) -> Any:
        return call_console(workspace_id, operation, account_id=account_id, **arguments)

    code = call("link_telegram")["code"]
    messenger_chats.receive("telegram", update(1, 77, f"/start {code}"))
    choices = [{"kind": kind, "mail": True, "telegram": True} for kind in MESSAGE_KINDS]
    call("set_notifications", language="en", choices=choices)


def _let_clients_get_sms(workspace_id: str) -> None:
    """Let clients get SMS first, then messages in chats, then mail."""
    workspace = workspaces.get(workspace_id)

    def credit(unit: UnitOfWork) -> None:
        wallet = ledger.wallet(workspace.owner_id)
        ledger.post(unit, wallet, ledger.ADJUST, amount=1_000_000)

    run_unit(workspace_id, None, credit)
    call_operator("set_sms_price", country=workspace.country, kopecks=800)
    call_console(
        workspace_id,
        "set_client_channels",
        account_id=workspace.owner_id,
        channels=["sms", "telegram", "max", "mail"],
    )


@pytest.fixture
def attack(gateways: None, runner: ExampleRunner, time: Time) -> Iterator[Attack]:
    """Every kind of requests, on two workspaces with webhooks."""
    people = console.World.create()
    _link_telegram(runner.world.workspace_id)
    _let_clients_get_sms(runner.world.workspace_id)
    for workspace in (runner.world.workspace_id, people.here.workspace_id):
        call_operator("create_webhook", workspaceId=workspace, url="https://receiver.example/")
    with attacking(runner, people, time) as attack:
        yield attack


@pytest.fixture
def small_attack(gateways: None, runner: ExampleRunner, time: Time) -> Iterator[Attack]:
    """Only the operations."""
    with attacking(runner, None, time) as attack:
        yield attack
