"""A model that writes and calls anything, for a bot that may do everything."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage, cost
from chalicelib.domains.chat.flows import chat_tools
from chalicelib.domains.chat.rules import call_budget
from chalicelib.gateways.llm import ModelError, ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import ToolCall
from tests.conftest import Api, Owner
from tests.factories.bot_world import SECRET, World
from tests.factories.chat import ask, transcript
from tests.support.linkable import linked_hosts
from tests.transports.chat.endpoint.conftest import IN, OUT, Script

pytestmark = pytest.mark.usefixtures("database", "model_takes_tools", "monday")

MEGABYTE = 2**20
TOOLS = [tool.name for tool in chat_tools.TOOLS]
ENDLESS = ToolCall("1", "find_free_times", '{"service": "haircut"}')


@pytest.fixture
def world(api: Api, owner: Owner, new_owner: Callable[..., Owner]) -> World:
    return World.create(api, owner, new_owner)


IDS = st.sampled_from(["1", "2", "<service>", "<slot>", "<form>", "<workspace>", "", "9" * 30])
NAMES = st.sampled_from(["haircut", "Rye bread", "Anna", f"{SECRET} cut", f"{SECRET} rye", "я", ""])
CONTACTS = st.sampled_from(["Mallory", "+74951234567", "m@example.com", "\0", " "])
VALUES = st.one_of(
    IDS,
    NAMES,
    CONTACTS,
    st.none(),
    st.booleans(),
    st.integers(-1, 2**70),
    st.floats(allow_nan=False),
    st.dates().map(str),
    st.lists(st.fixed_dictionaries({"product": NAMES, "quantity": st.integers(-1, 5)}), max_size=3),
)
FIELDS = st.sampled_from(
    [
        *("slotId", "items", "name", "phone", "email", "reason", "service", "staff", "query"),
        *("firstDay", "lastDay", "workspaceId", "formId", "confirmed", "sessionId", "__class__"),
    ]
)
LIKELY = st.one_of(
    st.fixed_dictionaries({"slotId": IDS}, optional={"name": CONTACTS, "phone": CONTACTS}),
    st.fixed_dictionaries({"items": st.just([{"product": "Rye bread"}])}),
    st.fixed_dictionaries({"service": NAMES}, optional={"staff": NAMES}),
    st.fixed_dictionaries({"reason": NAMES | CONTACTS}),
)
ARGUMENTS = st.one_of(
    LIKELY.map(json.dumps),
    st.dictionaries(FIELDS, VALUES, max_size=5).map(json.dumps),
    st.sampled_from(["", "{}", "[]", "null", "{", '{"slotId": NaN}', "[" * 2_000, '{"a":' * 2_000]),
    st.sampled_from(["reason", "query", "name"]).map(
        lambda name: json.dumps({name: "x" * MEGABYTE})
    ),
)
CALLS = st.builds(
    ToolCall,
    st.text("ab1", min_size=1, max_size=3),
    st.sampled_from([*TOOLS, "create_booking", "confirm", "", "x" * 1_000]),
    ARGUMENTS,
)
PROPOSALS = st.one_of(
    st.builds(
        lambda slot, name: ToolCall(
            "1", "propose_booking", json.dumps({"slotId": slot, "name": name})
        ),
        st.sampled_from(["1", "1", "2", "<slot>"]),
        CONTACTS,
    ),
    st.just(ToolCall("2", "propose_order", '{"items": [{"product": "Rye bread"}]}')),
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["https://evil", ".example/x", "[x](", "http", ")", "www.", "://", "\n"]),
)
FAILURES = st.sampled_from([ModelError("unavailable", "x"), ModelError("timeout", "x")])
STEPS = st.lists(st.one_of(TEXTS, st.builds(Reasoning, TEXTS), CALLS, PROPOSALS), max_size=8)
KNOWING = st.sampled_from([[], [ENDLESS]]).flatmap(lambda first: STEPS.map(lambda s: first + s))
LAST = st.one_of(STEPS, STEPS, FAILURES.map(lambda error: [error]))
TURNS = st.tuples(KNOWING, STEPS, STEPS, LAST).map(list)


@settings(suppress_health_check=list(HealthCheck))
@example([[ENDLESS] * 20], 100, 100, "Book me a haircut")
@example([["See ", "https://evil", ".example/x"]], 1, 1, "Где?")
@given(
    TURNS,
    st.integers(0, 500),
    st.integers(0, 300),
    st.sampled_from(["Rye?", "I am Ada, +7 495 123-45-67. A haircut, please.", "Запишите меня"]),
)
def test_whatever_a_model_does_nothing_is_carried_out_and_the_ledger_is_exact(
    world: World,
    script: Script,
    turns: list[list[Any]],
    tokens_in: int,
    tokens_out: int,
    question: str,
) -> None:
    bot = world.bot
    others, money, kinds = world.others_rows(), bot.money[0], len(bot.kinds)
    usage = ProviderUsage(tokens_in, tokens_out)
    steps = [_filled(world, step) for turn in turns for step in [*turn, usage]]
    model = script(*(steps or [usage]))
    reply = ask(bot, question, features=["actions", "sources"])
    last = reply.events[-1]
    assert last["type"] in {"done", "error"}
    assert len(model.inputs) <= call_budget.MAX_CALLS
    assert bot.money[1] == 0
    charged = money - bot.money[0]
    if last["type"] == "done":
        used = TokenUsage(reply.usage["inputTokens"], reply.usage["outputTokens"])
        assert charged == cost(Prices(IN, OUT), used)
        assert bot.kinds[kinds:] == ["reserve", "settle"]
    else:
        assert bot.kinds[kinds:] in (
            ["reserve", "settle"],
            ["reserve", "empty"],
            ["reserve", "release"],
        )
    assert world.carried_out() == []
    assert world.others_rows() == others
    assert "evil.example" not in linked_hosts(reply.text)
    answer = transcript(world.api, bot)[-1]
    assert reply.text == (answer["content"] if answer["role"] == "assistant" else "")
    results = [result for messages in model.inputs for part in messages for result in part.results]
    assert all(len(result.content.encode()) <= call_budget.MAX_RESULT_BYTES for result in results)
    assert sum(SECRET in result.content for result in results if not result.is_error) == 0


def _filled(world: World, step: Any) -> Any:
    """Return a step with the ids of the other workspace."""
    if not isinstance(step, ToolCall):
        return step
    arguments = step.arguments
    for name, value in world.ids.items():
        arguments = arguments.replace(name, value)
    return ToolCall(step.id, step.name, arguments)
