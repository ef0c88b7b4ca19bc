"""Tests of messages about money, keys and members, and of how often they are sent."""

import pytest

from chalicelib.domains.identity.store import accounts
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from tests.conftest import call_console, call_operator, run_concurrently
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.domains.webhooks.conftest import AddWebhook
from tests.factories.chat import Bot, ask, new_bot
from tests.factories.event_runs import run_until_idle
from tests.factories.event_triggers import MEMBER, World, spend_of_limit
from tests.factories.examples import top_up
from tests.factories.oauth import connect
from tests.factories.proposals import ASKED, END, call
from tests.fakes.dynamodb_faults import ALWAYS, TRANSACTION, closed, faulty
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.usefixtures("database")

OWNER_ONLY = {name for name, told in MEMBER_KINDS.items() if told.owner_only}


def links(world: World, inbox: Inbox) -> list[str]:
    """Return the links of the only e-mail to pages of the workspace, without the settings."""
    start = f"/console/w/{world.owner.workspace.slug}/"
    words = text_of(inbox.only()).split()
    paths = [word.partition(start)[2] for word in words if start in word]
    return [path for path in paths if path != "notifications"]


def address(world: World) -> str:
    """Return the owner's address."""
    members = call_operator("list_members", workspaceId=world.workspace_id)["members"]
    return str(next(member["email"] for member in members if member["role"] == "owner"))


class TestLimits:
    @pytest.fixture
    def bot(self, inbox: Inbox, world: World) -> Bot:
        """A bot with a daily limit that is too low for any request."""
        bot = world.priced_bot("Hello.", END)
        call_console(world.workspace_id, "set_bot_limits", agentId=bot.id, daily=1)
        return bot

    def test_a_reached_limit_is_reported_once_a_day(
        self, bot: Bot, inbox: Inbox, world: World, add_webhook: AddWebhook, receiver: Receiver
    ) -> None:
        add_webhook("bot.limit_reached")
        run_until_idle()
        inbox.clear()
        for days in range(3):
            assert [ask(bot, "Hi").status for _ in range(3)] == [429] * 3
            run_until_idle()
            assert inbox.kinds == ["limit"] * (days + 1)
            assert receiver.types == ["bot.limit_reached"] * (days + 1)
            world.time.pass_by(days=1)
        assert receiver.events[0]["data"]["object"]["name"] == "Baker"

    def test_concurrent_refusals_are_reported_once(
        self, bot: Bot, inbox: Inbox, world: World, add_webhook: AddWebhook, receiver: Receiver
    ) -> None:
        add_webhook("bot.limit_reached")
        run_until_idle()
        inbox.clear()
        assert run_concurrently(6, lambda _: ask(bot, "Hi").status) == [429] * 6
        run_until_idle()
        assert receiver.types == ["bot.limit_reached"]

    def test_the_message_names_the_bot_and_links_to_its_limits(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        ask(bot, "Hi")
        run_until_idle()
        assert inbox.subjects == ["Бот достиг лимита расходов: Baker"]
        assert links(world, inbox) == [f"bots/{bot.id}/limits"]

    def test_a_bot_stopped_with_a_limit_of_0_is_not_reported(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        call_console(world.workspace_id, "set_bot_limits", agentId=bot.id, daily=0)
        assert ask(bot, "Hi").status == 429
        run_until_idle()
        assert inbox.kinds == []

    def test_an_event_that_was_not_stored_is_stored_with_the_next_refusal(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        with faulty(TRANSACTION, closed, "before", ALWAYS):
            assert ask(bot, "Hi").status == 429
        run_until_idle()
        assert inbox.kinds == []
        assert ask(bot, "Hi").status == 429
        run_until_idle()
        assert inbox.kinds == ["limit"]


class TestHalfOfALimit:
    @pytest.fixture
    def bot(self, inbox: Inbox, world: World) -> Bot:
        """A bot with a daily limit, in a workspace with a manager."""
        bot = new_bot(world.owner)
        bot.limit(daily=1_000, monthly=100_000)
        world.member("manager")
        run_until_idle()
        inbox.clear()
        return bot

    def test_owners_and_managers_are_notified_once_a_day(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        for day in range(2):
            spend_of_limit(bot, 499)
            run_until_idle()
            assert len(inbox.mails) == 2 * day
            for _ in range(3):
                spend_of_limit(bot, 10)
            run_until_idle()
            assert inbox.kinds == ["limit_half"] * 2 * (day + 1)
            world.time.pass_by(days=1)
        assert {mail["To"] for mail in inbox.mails} == {address(world), MEMBER}
        assert str(inbox.mails[0]["Subject"]) == "Бот израсходовал половину лимита: Baker"

    @pytest.mark.parametrize("window", ["weekly", "monthly"])
    def test_each_limit_counts(self, window: str, bot: Bot, inbox: Inbox) -> None:
        bot.limit(**{"daily": None, "monthly": None, window: 400})
        spend_of_limit(bot, 200)
        run_until_idle()
        assert inbox.kinds == ["limit_half"] * 2

    def test_plain_members_are_not_notified(self, bot: Bot, inbox: Inbox, world: World) -> None:
        call_operator("remove_member", workspaceId=world.workspace_id, email=MEMBER)
        world.member("member")
        run_until_idle()
        inbox.clear()
        spend_of_limit(bot, 600)
        run_until_idle()
        assert [mail["To"] for mail in inbox.mails] == [address(world)]


class TestBalance:
    def spend(self, bot: Bot) -> None:
        """Send a message that costs 6 kopecks."""
        assert ask(bot, "Hi").status == 200

    @pytest.fixture
    def bot(self, inbox: Inbox, world: World) -> Bot:
        """A bot whose owner has a little more than 100 rubles."""
        bot = world.priced_bot("Hello.", END, kopecks=0)
        top_up(bot.account_id, 10_001 - bot.money[0])
        return bot

    def test_a_low_balance_is_reported_once_until_it_has_risen(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        for _ in range(3):
            self.spend(bot)
        run_until_idle()
        assert inbox.kinds == ["balance"]
        assert links(world, inbox) == ["balance"]
        top_up(bot.account_id, 10_000 - bot.money[0])
        self.spend(bot)
        run_until_idle()
        assert inbox.kinds == ["balance"] * 2

    def test_a_balance_below_ten_rubles_is_reported_again(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        self.spend(bot)
        call_operator(
            "adjust",
            account=address(world),
            kopecks=1_000 - bot.money[0],
            reason="Test",
            idempotencyKey="one",
        )
        self.spend(bot)
        self.spend(bot)
        run_until_idle()
        assert inbox.kinds == ["balance"] * 2

    def test_a_balance_that_has_risen_again_is_not_reported(
        self, bot: Bot, inbox: Inbox, world: World
    ) -> None:
        self.spend(bot)
        top_up(bot.account_id, 10_000)
        run_until_idle()
        assert inbox.kinds == []


class TestKeysAndMembers:
    def test_a_new_key_is_reported_without_its_token(self, inbox: Inbox, world: World) -> None:
        body = {"name": "Cash desk", "scopes": ["crm:read", "crm:write"]}
        key = call_operator("create_key", workspaceId=world.workspace_id, **body)
        run_until_idle()
        text = text_of(inbox.only())
        assert inbox.subjects == ["Создан ключ API: Cash desk"]
        assert key["token"] not in text
        assert f"Ключ: {key['token'].partition('_')[0]}" in text
        assert "Число прав: 2" in text
        assert links(world, inbox) == ["keys"]

    def test_a_connected_app_is_reported_with_its_host_and_account(
        self, inbox: Inbox, world: World
    ) -> None:
        world.member("manager")
        connect(world.owner.workspace, accounts.require_by_email(MEMBER).id)
        run_until_idle()
        (reported,) = (mail for mail in inbox.mails if "Claude" in str(mail["Subject"]))
        assert (reported["To"], reported["Subject"]) == (
            address(world),
            "Подключено приложение: Claude",
        )
        text = text_of(reported)
        assert "client.example" in text
        assert "Число прав: 3" in text
        assert MEMBER in text
        assert f"/console/w/{world.owner.workspace.slug}/apps" in text

    def test_refreshes_of_a_connected_app_are_not_reported(
        self, inbox: Inbox, world: World
    ) -> None:
        world.member("manager")
        account = accounts.require_by_email(MEMBER).id
        connect(world.owner.workspace, account).refreshed().refreshed()
        run_until_idle()
        assert inbox.kinds == ["app_connected", "member_added"]

    def test_an_owner_who_has_confirmed_a_change_gets_one_mail_about_it(
        self, inbox: Inbox, world: World
    ) -> None:
        connect(world.owner.workspace)
        call_console(world.workspace_id, "create_key", name="Own", scopes=["crm:read"])
        run_until_idle()
        assert inbox.subjects == ["Подключено приложение", "Создан ключ API"]
        assert inbox.kinds == []

    def test_revoking_a_key_twice_is_reported_once(self, inbox: Inbox, world: World) -> None:
        key = world.new_key()
        for _ in range(2):
            call_operator("revoke_key", id=key)
        run_until_idle()
        assert inbox.kinds == ["key_created", "key_revoked"]

    def test_removing_a_member_with_keys_sends_one_message(
        self, inbox: Inbox, world: World
    ) -> None:
        world.member("manager")
        account = accounts.require_by_email(MEMBER).id
        call_console(
            world.workspace_id,
            "create_key",
            account_id=account,
            membership="manager",
            name="Own",
            scopes=["crm:read"],
        )
        call_operator("remove_member", workspaceId=world.workspace_id, email=MEMBER)
        run_until_idle()
        assert inbox.kinds == ["key_created", "member_added", "member_removed"]

    def test_setting_the_same_role_is_not_reported(self, inbox: Inbox, world: World) -> None:
        for _ in range(2):
            world.member("manager")
        run_until_idle()
        assert inbox.kinds == ["member_added"]
        assert "Роль: менеджер" in text_of(inbox.only())

    def test_only_the_owner_can_choose_messages_about_money_and_access(
        self, inbox: Inbox, world: World
    ) -> None:
        world.member("manager")
        account = accounts.require_by_email(MEMBER).id
        choose(world.owner, account, "manager", lead=["mail"], key_created=["mail"])
        choices = call_console(
            world.workspace_id, "get_notifications", account_id=account, membership="manager"
        )["choices"]
        assert not OWNER_ONLY & {choice["kind"] for choice in choices}
        choose(world.owner, world.owner.workspace.owner_id, "owner", key_created=[])
        world.new_key()
        run_until_idle()
        assert inbox.kinds == ["member_added"]


class TestHandover:
    @pytest.mark.parametrize("earlier", [0, 2])
    def test_a_handover_request_is_reported_at_any_point_of_a_dialog(
        self, earlier: int, inbox: Inbox, world: World, add_webhook: AddWebhook, receiver: Receiver
    ) -> None:
        add_webhook("dialog.handover_requested")
        run_until_idle()
        inbox.clear()
        choose(world.owner, world.owner.workspace.owner_id, "owner", lead=[])
        person = call("request_person", reason="A wedding cake")
        bot = world.priced_bot("Hello.", END)
        more: dict[str, str] = {}
        for _ in range(earlier):
            more = {"sessionId": ask(bot, "Hi", **more).session}
        world.script(person, END, "Done.", END)
        ask(bot, ASKED, **more)
        run_until_idle()
        assert receiver.types == ["dialog.handover_requested"]
        assert receiver.events[0]["data"]["object"]["handoverReason"] == "A wedding cake"
        assert inbox.kinds == ["handover"]  # The visitor's contact is a lead, too.
        dialog_id = receiver.events[0]["data"]["object"]["id"]
        assert links(world, inbox) == [f"dialogs/{dialog_id}"]
