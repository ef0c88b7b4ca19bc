"""Bots with money, and visitors who chat through the chat's handler."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any

from chalicelib.core import clock
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.flows import proposal_tools
from chalicelib.domains.chat.flows.proposal_tools import BookingProposal
from chalicelib.domains.chat.flows.tool_calls import ToolContext
from chalicelib.domains.chat.store import chat_sessions
from chalicelib.domains.chat.store.proposals import OfferedSlot, ProposalRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, ProviderUsage, facts, frame
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec, count_input
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest, HttpResponse
from tests.conftest import Answer, Api, Owner, call_console, call_operator
from tests.factories.examples import request_to, top_up

PROMPT = "You are the assistant of a bakery. Rye bread costs 120 rubles. We open at eight."
RICH = 10_000_000


@dataclass
class Bot:
    """A bot, and the owner whose money it spends."""

    owner: Owner
    id: str

    @property
    def workspace_id(self) -> str:
        return self.owner.workspace.id

    @property
    def account_id(self) -> str:
        owner_id: str = self.owner.workspace.owner_id
        return owner_id

    @property
    def money(self) -> tuple[int, int]:
        """The available and the reserved amount."""
        wallet = ledger.wallet(self.account_id)
        return int(wallet.available), int(wallet.reserved)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the ledger's entries, oldest first."""
        return [entry.kind for entry in reversed(ledger.entries(self.account_id))]

    def change(self, **attributes: Any) -> None:
        """Change the bot as its owner would."""

        def stage(unit: UnitOfWork) -> None:
            agent = AGENTS.find(self.workspace_id, record_id=self.id)
            assert agent is not None
            for name, value in attributes.items():
                setattr(agent, name, value)
            unit.save(agent)

        run_unit(self.workspace_id, None, stage)

    def limit(self, **limits: int | None) -> None:
        """Set spending limits: ``limit(daily=100)``."""

        def stage(unit: UnitOfWork) -> None:
            budgets.set_limits(unit, budgets.budget(self.workspace_id, agent_id=self.id), limits)  # type: ignore[arg-type]

        run_unit(self.workspace_id, None, stage)


def new_bot(owner: Owner, *, money: int = RICH, **attributes: Any) -> Bot:
    """Create a bot of an owner who has money."""
    values = {"name": "Baker", "system_prompt": PROMPT, "model": "demo", **attributes}
    bot_ids: list[str] = []

    def stage(unit: UnitOfWork) -> None:
        agent = AGENTS.new(owner.workspace.id, **values)
        unit.create(agent)
        bot_ids[:] = [agent.id]

    run_unit(owner.workspace.id, None, stage)
    bot = Bot(owner, bot_ids[0])
    if money:
        top_up(bot.account_id, money)
    return bot


def new_key(bot: Bot) -> str:
    """Create a key of a bot, and return its token."""
    token: str = call_operator("create_bot_key", agentId=bot.id, name="test")["token"]
    return token


def newest_dialog(api: Api, bot: Bot) -> dict[str, Any]:
    """Return the newest dialog of a bot."""
    dialog: dict[str, Any] = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"][0]
    return dialog


def reply_to(bot: Bot, dialog_id: str, text: str) -> None:
    """Reply to a visitor as the bot's owner."""
    call_console(
        bot.workspace_id, "reply_to_visitor", account_id=bot.account_id, id=dialog_id, text=text
    )


def transcript(api: Api, bot: Bot) -> list[dict[str, Any]]:
    """Return the messages of a bot's newest dialog."""
    dialog_id = newest_dialog(api, bot)["id"]
    messages: list[dict[str, Any]] = api.get(f"/api/agents/dialog?id={dialog_id}")["messages"]
    return messages


@dataclass
class ChatReply:
    """The service's reply to a visitor: a stream, or a refusal."""

    response: HttpResponse
    raw: bytes = b""

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def answer(self) -> Answer:
        """The refusal, if nothing was streamed."""
        return Answer(self.response.status, dict(self.response.headers), self.raw)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events, parsed strictly by the published format."""
        assert self.status == 200, self.raw
        return list(read_events(self.raw))

    @property
    def session(self) -> str:
        token: str = self.events[0]["sessionId"]
        return token

    @property
    def text(self) -> str:
        return "".join(event["content"] for event in self.events if event["type"] == "chunk")

    @property
    def usage(self) -> dict[str, int]:
        usage: dict[str, int] = self.events[-1]["usage"]
        return usage


def read_events(raw: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream: ``data:`` with JSON and a blank line, with pings between."""
    assert raw.endswith(b"\n\n")
    for block in raw[:-2].split(b"\n\n"):
        if block != b": ping":
            assert block.startswith(b"data: {"), block
            assert b"\n" not in block
            yield json.loads(block.removeprefix(b"data: "))


def answer_to(request: HttpRequest) -> HttpResponse:
    """Return the response with an unread body."""
    return chat_route.serve(request, chat_stream.handle)


def ask(bot: Bot | str, message: str, **options: Any) -> ChatReply:
    """Send a message, and read the answer to its end."""
    agent_id = bot if isinstance(bot, str) else bot.id
    response = answer_to(request_to(agent_id, message, **options))
    return ChatReply(response, response.whole_body())


def propose_booking(
    agent_id: str, service_id: str, resource_id: str, start: datetime
) -> tuple[str, ProposalRow]:
    """Have a bot propose a booking; return the token of the session, and the proposal."""
    session = ask(agent_id, "I am Grace, grace@example.com. Book me a table.").session
    workspace_id = AGENTS.workspace_of(agent_id)
    assert workspace_id
    dialog = chat_sessions.find(workspace_id, agent_id=agent_id, token=session)
    assert dialog
    context = ToolContext(
        workspace=workspaces.get(workspace_id),
        agent=AGENTS.require(workspace_id, record_id=agent_id),
        dialog_id=dialog.dialog_id,
        number=2,
        visitor_texts=["I am Grace"],
        contacts=["grace@example.com"],
        offered_slots=(
            OfferedSlot("1", service_id, resource_id, clock.epoch_ms(start), "", "", ""),
        ),
    )
    person = {"name": "Grace", "email": "grace@example.com"}
    proposal_tools.propose_booking(context, BookingProposal(slot_id="1", **person))
    return session, context.proposed[0]


@dataclass
class ScriptedModel:
    """A model that follows a test's script. An event in the script makes it wait for that event.

    A string in the script stands for a ``TextDelta``. A usage ends a request. The steps after a
    usage answer the results of the previous tool calls. The last part is repeated. ``inputs`` has
    the messages of each request, ``specs`` its tools, ``tool_names`` their names, and ``final``
    whether it had to be the last. ``waiting`` is set while the model waits.
    """

    script: Sequence[llm.Event | str | Event | BaseException]
    inputs: list[list[Message]] = field(default_factory=list)
    specs: list[Sequence[ToolSpec]] = field(default_factory=list)
    output_limits: list[int] = field(default_factory=list)
    tool_names: list[list[str]] = field(default_factory=list)
    final: list[bool] = field(default_factory=list)
    waiting: Event = field(default_factory=Event)

    @property
    def input_tokens(self) -> int:
        """The input tokens of the first request."""
        return count_input(self.inputs[0], self.specs[0])

    @property
    def dialogs(self) -> list[list[tuple[str, str]]]:
        """The messages of each request, with their roles, as owner and visitor wrote them."""
        return [
            [(message.role, _format_message(message)) for message in messages]
            for messages in self.inputs
        ]

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_output_tokens: int,
        tools: Sequence[ToolSpec] = (),
        final: bool = False,
        cancellation: Cancellation | None = None,
        **_: Any,
    ) -> Iterator[llm.Event]:
        self.inputs.append(list(messages))
        self.output_limits.append(max_output_tokens)
        self.specs.append(tools)
        self.tool_names.append([tool.name for tool in tools])
        self.final.append(final)
        for step in self._part(sum(message.role == "tool" for message in messages)):
            if isinstance(step, ToolCall) and final:
                continue
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, Event):
                self.waiting.set()
                while not step.wait(0.01):
                    if cancellation and cancellation.cancelled:
                        raise ModelError("cancelled", "The stream was cancelled.")
            else:
                yield llm.TextDelta(step) if isinstance(step, str) else step

    def _part(self, number: int) -> Iterator[llm.Event | str | Event | BaseException]:
        """Yield the steps of a request that follows this number of tool results."""
        ends = [at + 1 for at, step in enumerate(self.script) if isinstance(step, ProviderUsage)]
        starts = [0, *(at for at in ends if at < len(self.script))]
        start = starts[min(number, len(starts) - 1)]
        for step in self.script[start:]:
            yield step
            if isinstance(step, ProviderUsage):
                return


def _format_message(message: Message) -> str:
    """Return a message without the additions of the service."""
    if message.role == "system":
        return message.content.partition(frame.PROMPT)[2] or message.content
    return facts.split(message)[1] if message.role == "user" else message.content
