"""The page of the messages that an account gets about a workspace."""

import re
from typing import Any

import pytest

from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.mails.store import mail_log
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.transports import scheduled_functions
from tests.conftest import call_console
from tests.domains.notifications.helpers import send_text
from tests.factories.console import World
from tests.fakes.ses_reports import batch, bounced, complained, send_event
from tests.fakes.telegram import FakeTelegram

pytestmark = pytest.mark.usefixtures("database")


def choices(world: World, name: str, membership: str) -> Any:
    """Return the choices of a user, by kind."""
    notifications = call_console(
        world.here.workspace_id,
        "get_notifications",
        account_id=accounts.require_by_email(f"{name}@example.com").id,
        membership=membership,
    )
    return {choice.pop("kind"): choice for choice in notifications["choices"]} | {
        "language": notifications["language"]
    }


def test_a_member_chooses_kinds_channels_and_the_language(world: World) -> None:
    member, path = world.person("member"), f"{world.here.path}/notifications"
    html = member.get(path).body.decode()
    kinds = [name for name in MESSAGE_KINDS if not MEMBER_KINDS[name].owner_only]
    assert re.findall(r'name="mail" value="(\w+)"', html) == kinds
    assert html.count('type="checkbox" name=') == 2 * len(kinds)
    assert " checked" not in html
    fields = [("mail", "lead"), ("mail", "booking"), ("telegram", "booking"), ("language", "en")]
    answer = member.post(path, fields)
    assert answer.status == 303
    stored_choices = choices(world, "member", "member")
    assert stored_choices["lead"] == {"mail": True, "telegram": False}
    assert stored_choices["booking"] == {"mail": True, "telegram": True}
    assert stored_choices["order"] == {"mail": False, "telegram": False}
    assert stored_choices["language"] == "en"
    assert member.get(path).body.decode().count(" checked") == 3


def test_the_owner_has_all_mails_checked_at_first(world: World) -> None:
    html = world.person("boss").get(f"{world.here.path}/notifications").body.decode()
    assert html.count(" checked") == len([told for told in MEMBER_KINDS.values() if told.mailed])
    assert html.count('name="mail"') == len(MESSAGE_KINDS)


@pytest.mark.parametrize("channel", ["mail", "telegram"])
def test_all_kinds_of_a_channel_are_ticked_by_one_click(channel: str, world: World) -> None:
    member, path = world.person("member"), f"{world.here.path}/notifications"
    for action, is_on in (("all", True), ("no", False)):
        assert f'value="{action}_{channel}"' in member.get(path).body.decode()
        fields = [("action", f"{action}_{channel}"), ("language", "en")]
        assert member.post(path, fields).status == 303
        stored_choices = choices(world, "member", "member")
        assert stored_choices.pop("language") == "en"
        assert {choice[channel] for choice in stored_choices.values()} == {is_on}


def test_a_chat_is_linked_by_a_code_and_unlinked(telegram: FakeTelegram, world: World) -> None:
    console_owner, path = world.person("boss"), f"{world.here.path}/notifications"
    html = console_owner.post(path, {"action": "link"}).body.decode()
    code = html.partition("/start ")[2].partition("<")[0]
    send_text(7, f"/start {code}", username="ada")
    assert "@ada" in console_owner.get(path).body.decode()
    assert console_owner.post(path, {"action": "unlink"}).status == 303
    assert "@ada" not in console_owner.get(path).body.decode()


@pytest.mark.parametrize(
    ("make_event", "suppressed", "paused"),
    [
        (bounced, "An e-mail to your address bounced", "too many of them bounced"),
        (complained, "reported as spam", "recipients reported them as spam"),
    ],
)
def test_the_page_names_suppressed_addresses_and_paused_mails_to_visitors(
    world: World, make_event: Any, suppressed: str, paused: str
) -> None:
    member, path = world.person("member"), f"{world.here.path}/notifications"
    html = member.get(path).body.decode()
    assert suppressed not in html
    assert paused not in html
    numbers, workspace = range(50), world.here.workspace_id
    scheduled_functions.run_events(
        batch(*(send_event(f"m-{number}", workspace) for number in numbers))
    )
    scheduled_functions.run_events(
        batch(*(make_event(f"m-{number}", workspace) for number in numbers))
    )
    scheduled_functions.run_events(batch(make_event("own", recipient="member@example.com")))
    html = member.get(path).body.decode()
    assert suppressed in html
    assert paused in html
    console_owner = world.person("boss").get(path).body.decode()
    assert suppressed not in console_owner
    assert paused in console_owner


def test_the_page_says_how_many_mails_to_clients_were_withheld_and_why(world: World) -> None:
    member, path = world.person("member"), f"{world.here.path}/notifications"
    assert "not sent today" not in member.get(path).body.decode()
    for number, reason in enumerate(("by_address", "by_address", "by_plan")):
        note_withheld(world.here.workspace_id, f"mail-{number}", reason)
    html = member.get(path).body.decode()
    assert "2 e-mails were not sent today, because their addresses" in html
    assert "1 e-mail was not sent today, because the plan" in html


def note_withheld(workspace_id: str, mail_id: str, reason: Any) -> None:
    def stage(unit: UnitOfWork) -> None:
        mail_log.stage_withheld(unit, mail_id, reason)

    run_unit(workspace_id, None, stage)
