"""Tests of bots in the console, with their keys and their spending."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.ids import new_id
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.factories.examples import AGENT, top_up


class Console:
    """The console as a workspace's owner uses it."""

    def __init__(self, owner: Owner) -> None:
        self.workspace_id, self.account_id = owner.workspace.id, owner.workspace.owner_id

    def call(self, operation: str, /, **arguments: Any) -> Any:
        return call_console(self.workspace_id, operation, account_id=self.account_id, **arguments)


@pytest.fixture
def console(owner: Owner) -> Console:
    return Console(owner)


@pytest.fixture
def agent(console: Console) -> str:
    """The id of a bot."""
    agent_id: str = console.call("create_agent", **AGENT)["agent"]["id"]
    return agent_id


class TestBots:
    def test_the_console_manages_bots_as_a_key_does(
        self, console: Console, api: Api, agent: str
    ) -> None:
        console.call("update_agent", id=agent, name="Miller", isPrivate=True)
        reply = console.call("get_agent", id=agent)
        assert (reply["agent"]["name"], reply["agent"]["isPrivate"]) == ("Miller", True)
        listing = console.call("list_agents")
        for path, answer in ((f"/api/agents/{agent}", reply), ("/api/agents/list", listing)):
            assert api.get(path) == {"status": True, **answer}


class TestListBotKeys:
    def test_the_list_shows_every_field_of_a_key_except_its_token(
        self, console: Console, agent: str, time: Time
    ) -> None:
        keys = []
        for name in ("Site", "App"):
            keys.append(console.call("create_bot_key", agentId=agent, name=name))
            time.pass_by(minutes=1)
        assert console.call("list_bot_keys", agentId=agent) == {
            "keys": [
                {
                    "id": keys[1]["keyId"],
                    "name": "App",
                    "masked": f"svc_bot_…{keys[1]['token'][-4:]}",
                    "createdAt": "2027-01-15T12:01:00.000Z",
                },
                {
                    "id": keys[0]["keyId"],
                    "name": "Site",
                    "masked": f"svc_bot_…{keys[0]['token'][-4:]}",
                    "createdAt": "2027-01-15T12:00:00.000Z",
                },
            ],
            "most": 5,
        }

    def test_deleted_keys_are_not_listed(self, console: Console, agent: str) -> None:
        key = console.call("create_bot_key", agentId=agent, name="Site")["keyId"]
        console.call("delete_bot_key", agentId=agent, keyId=key)
        assert console.call("list_bot_keys", agentId=agent)["keys"] == []


class Money:
    """Amounts that a bot's visitors spend, at one kopeck per token."""

    def __init__(self, owner: Owner, agent_id: str) -> None:
        place = owner.workspace
        top_up(place.owner_id, 10_000)
        prices = Prices(10**6, 10**6)
        self.terms = Terms(place.owner_id, place.id, agent_id, place.timezone, prices, "model")

    def hold(self, tokens: int) -> Hold:
        """Reserve money for at most this many tokens, ten of which are input."""
        return charging.reserve(self.terms, new_id(), 10, max_output_tokens=tokens - 10)

    def spend(self, tokens: int) -> None:
        charging.settle(self.hold(tokens), TokenUsage(10, tokens - 10))


@pytest.fixture
def money(owner: Owner, agent: str) -> Iterator[Money]:
    return Money(owner, agent)


class TestLimitsByManagers:
    @pytest.mark.parametrize("limits", [{"daily": 900}, {"daily": 0}, {"weekly": 10**6}])
    def test_a_manager_may_lower_or_set_a_limit(
        self, limits: dict[str, Any], owner: Owner, agent: str
    ) -> None:
        place = owner.workspace.id
        call_console(place, "set_bot_limits", agentId=agent, daily=1_000, weekly=None)
        call_console(place, "set_bot_limits", membership="manager", agentId=agent, **limits)
        stored_limits = call_console(place, "get_bot_limits", membership="manager", agentId=agent)
        assert {name: stored_limits[name]["limit"] for name in limits} == limits

    @pytest.mark.parametrize("limits", [{"daily": 1_001}, {"daily": None}])
    def test_a_manager_may_not_raise_or_remove_a_limit(
        self, limits: dict[str, Any], owner: Owner, agent: str
    ) -> None:
        place = owner.workspace.id
        call_console(place, "set_bot_limits", agentId=agent, daily=1_000)
        with pytest.raises(ForbiddenError, match="only the owner"):
            call_console(place, "set_bot_limits", membership="manager", agentId=agent, **limits)

    def test_a_member_may_not_read_or_set_limits(self, owner: Owner, agent: str) -> None:
        for operation in ("get_bot_limits", "set_bot_limits"):
            with pytest.raises(ForbiddenError):
                call_console(owner.workspace.id, operation, membership="member", agentId=agent)


class TestGetBotLimits:
    def read(self, console: Console, agent: str, window: str) -> tuple[Any, ...]:
        budget = console.call("get_bot_limits", agentId=agent)[window]
        names = ("window", "limit", "spent", "held", "remaining", "endsAt")
        return tuple(budget[name] for name in names)

    def test_a_new_bot_has_a_daily_limit_and_has_spent_nothing(
        self, console: Console, agent: str, time: Time
    ) -> None:
        nothing = {"limit": None, "spent": 0, "held": 0, "remaining": None}
        assert console.call("get_bot_limits", agentId=agent) == {
            "agentId": agent,
            "timezone": "Europe/Moscow",
            "daily": nothing
            | {"window": "2027-01-15", "endsAt": "2027-01-15T21:00:00.000Z"}
            | {"limit": 10_000, "remaining": 10_000},
            "weekly": nothing | {"window": "2027-W02", "endsAt": "2027-01-17T21:00:00.000Z"},
            "monthly": nothing | {"window": "2027-01", "endsAt": "2027-01-31T21:00:00.000Z"},
        }

    def test_each_limit_shows_the_amounts_spent_and_held(
        self, console: Console, agent: str, time: Time, money: Money
    ) -> None:
        console.call("set_bot_limits", agentId=agent, daily=500, monthly=2000)
        money.spend(120)
        money.hold(200)
        ends = {"daily": "15", "weekly": "17", "monthly": "31"}
        limits: dict[str, tuple[Any, ...]] = {
            "daily": ("2027-01-15", 500, 320, 200, 180),
            "weekly": ("2027-W02", None, 320, 200, None),
            "monthly": ("2027-01", 2000, 320, 200, 1680),
        }
        for window, expected in limits.items():
            end = f"2027-01-{ends[window]}T21:00:00.000Z"
            assert self.read(console, agent, window) == (*expected, end)

    def test_each_window_starts_at_zero(
        self, console: Console, agent: str, time: Time, money: Money
    ) -> None:
        console.call("set_bot_limits", agentId=agent, daily=500, weekly=1000, monthly=1000)
        money.spend(120)
        time.now = datetime(2027, 1, 15, 21, tzinfo=UTC)  # midnight in Moscow
        read = [self.read(console, agent, window) for window in ("daily", "weekly", "monthly")]
        assert [limit[:3] for limit in read] == [
            ("2027-01-16", 500, 0),
            ("2027-W02", 1000, 120),
            ("2027-01", 1000, 120),
        ]

    def test_a_limit_below_the_spending_leaves_zero(
        self, console: Console, agent: str, money: Money
    ) -> None:
        money.spend(120)
        console.call("set_bot_limits", agentId=agent, daily=100)
        daily = console.call("get_bot_limits", agentId=agent)["daily"]
        assert (daily["spent"], daily["remaining"]) == (120, 0)

    def test_a_window_that_began_on_another_machine_counts(
        self, console: Console, agent: str, time: Time, money: Money
    ) -> None:
        time.now = datetime(2027, 1, 15, 21, tzinfo=UTC)
        money.spend(120)
        time.pass_by(minutes=-1)
        daily = self.read(console, agent, "daily")
        assert (daily[0], daily[2], daily[5]) == ("2027-01-16", 120, "2027-01-16T21:00:00.000Z")

    def test_limits_are_read_in_three_requests(
        self, console: Console, agent: str, money: Money
    ) -> None:
        with metering() as usage:
            console.call("get_bot_limits", agentId=agent)
        assert usage.round_trips == 3, usage.calls


@pytest.mark.store
class TestListHeldBackBots:
    def held_back(self, console: Console) -> list[dict[str, str]]:
        bots: list[dict[str, str]] = console.call("list_held_back_bots")["bots"]
        return bots

    def test_a_bot_with_a_limit_of_zero_is_listed_as_stopped(
        self, console: Console, agent: str
    ) -> None:
        assert self.held_back(console) == []
        console.call("set_bot_limits", agentId=agent, daily=500, weekly=0)
        assert self.held_back(console) == [{"agentId": agent, "reason": "stopped"}]
        console.call("set_bot_limits", agentId=agent, weekly=None)
        assert self.held_back(console) == []

    def test_a_bot_is_held_back_until_its_exhausted_window_ends(
        self, console: Console, agent: str, time: Time, money: Money
    ) -> None:
        money.spend(120)
        console.call("set_bot_limits", agentId=agent, daily=120)
        assert self.held_back(console) == [{"agentId": agent, "reason": "limit_reached"}]
        time.pass_by(days=1)
        assert self.held_back(console) == []

    def test_bots_of_another_workspace_are_left_out(
        self, console: Console, agent: str, new_owner: Callable[..., Owner]
    ) -> None:
        console.call("set_bot_limits", agentId=agent, daily=0)
        assert call_console(new_owner().workspace.id, "list_held_back_bots") == {"bots": []}


def test_the_operator_reads_the_same_limits(console: Console, agent: str) -> None:
    console.call("create_bot_key", agentId=agent, name="Site")
    for operation in ("list_bot_keys", "get_bot_limits"):
        here = console.call(operation, agentId=agent)
        assert call_operator(operation, agentId=agent) == here
