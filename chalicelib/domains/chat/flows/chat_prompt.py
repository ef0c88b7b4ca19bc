"""The prompt of a chat: the model, and as much of the dialog as fits its context."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chalicelib.core import clock, deadline
from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.bots.rules.capabilities import PROPOSING, Capability
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.flows import chat_facts, chat_history, toolbox
from chalicelib.domains.chat.flows.chat_history import Count, MessageTooLongError, Turn
from chalicelib.domains.chat.flows.tools import Tool
from chalicelib.domains.chat.rules import call_budget, links
from chalicelib.domains.chat.rules.call_budget import RESULT_TOKENS, TOOL_PREAMBLE
from chalicelib.domains.chat.store import messages, proposals
from chalicelib.domains.chat.store.chat_sessions import SessionRow
from chalicelib.domains.chat.store.messages import ASSISTANT, USER
from chalicelib.domains.chat.store.proposals import Actions
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways import llm
from chalicelib.gateways.llm import facts, frame, models
from chalicelib.gateways.llm.facts import Facts, OfferedTimes, Passage, Proposal
from chalicelib.gateways.llm.frame import Business
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.models import ModelSpec

_ABILITIES: Mapping[Capability, str] = {
    "booking": (
        "To book, find free times, then propose one of them with its slotId. The visitor sees a"
        " card and confirms it: until then nothing is booked, and you must not say that it is."
    ),
    "order": (
        "To take an order, propose it. The visitor sees a card and confirms it: until then nothing"
        " is ordered, and you must not say that it is."
    ),
    "handover": "If the visitor wants a person, or you cannot help, request a person.",
}


class Prompt(NamedTuple):
    """The model, the messages to send, their tokens, and the maximum tokens of the answer.

    ``message_without_tools`` is the system message that promises no tools.
    ``tools`` are those that the model may call. Their tokens are not in ``input_tokens``.
    ``actions`` are those of the dialog, and ``said`` are the visitor's messages that are sent.
    ``sources`` are passages in the facts. ``link_hosts`` are named in them or in the bot's prompt.
    """

    spec: ModelSpec
    messages: list[Message]
    message_without_tools: Message
    input_tokens: int
    max_output: int
    tools: list[Tool]
    actions: Actions
    said: list[str]
    sources: list[Passage]
    link_hosts: set[str]

    @property
    def planned(self) -> TokenUsage:
        """The usage of an answer with tools that money is held for."""
        of_tools = _count_tools(self.tools, chat_history.counter(self.spec.provider))
        return call_budget.planned(self.input_tokens + of_tools, self.max_output)


def fit(
    agent: AgentRow,
    workspace: WorkspaceRow,
    session: SessionRow | None,
    text: str,
    *,
    can_confirm: bool,
) -> Prompt:
    """Return the prompt for a visitor's message.

    ``can_confirm`` is whether the client shows proposals.

    Raises:
        MessageTooLongError: the message alone is too long.
        NotConfiguredError: the provider of the bot's model is not configured.
    """
    problem: NotConfiguredError | None = None
    try:
        spec = llm.resolve(agent.model)
    except NotConfiguredError as error:
        problem, spec = error, models.find(agent.model) or _unknown_model(agent.model)
    turns: Iterator[Turn] = _turns(workspace.id, session)
    found, actions = Facts(), Actions()
    every = toolbox.of_bot(agent, can_confirm=can_confirm) if spec.takes_tools else []
    if problem is None:
        with deadline.side_by_side() as start:
            newest = start(lambda: list(islice(turns, 1)))
            known = start(partial(_find_actions, workspace.id, session, every))
            found = chat_facts.find(workspace.id, agent.id, text)
        turns = chain(newest.result(), turns)
        actions = known.result()
        found = found._replace(dialog=_dialog_facts(actions))
    now = clock.now().astimezone(ZoneInfo(workspace.timezone))
    business = Business(workspace.name, now, workspace.timezone)
    count = chat_history.counter(spec.provider)
    # What does not fit the context of a small model is left out: tools first, then facts.
    for chosen, tools in ((found, every), (found, []), (Facts(), [])):
        before = [frame.to_message(business, agent.system_prompt, _abilities(tools))]
        question = facts.to_message(text, chosen)
        context = spec.context_tokens
        if tools:
            context -= _count_tools(tools, count) + RESULT_TOKENS
        max_output = chat_history.room_for_answer(
            [*before, question], count, context, spec.max_output_tokens
        )
        if max_output is not None:
            break
    if max_output is None:
        raise MessageTooLongError.of("message", "too long for this bot's model; shorten it")
    if problem is not None:
        raise problem
    sent, input_tokens = chat_history.fit(before, turns, question, count, context - max_output)
    said = [*(each.content for each in sent[:-1] if each.role == "user"), text]
    passages = list(facts.parse(question)[0].passages)
    quoted = [part for each in passages for part in (each.text, each.url or "")]
    return Prompt(
        spec,
        sent,
        frame.to_message(business, agent.system_prompt, _abilities([])),
        input_tokens,
        max_output,
        tools,
        actions,
        said,
        passages,
        links.hosts_in([settings().public_url, agent.system_prompt, *quoted]),
    )


def _find_actions(
    workspace_id: str, session: SessionRow | None, tools: Collection[Tool]
) -> Actions:
    """Return the actions of a dialog, if the bot has tools that need them."""
    if session is None or not any(each.capability in {"slots", *PROPOSING} for each in tools):
        return Actions()
    return proposals.find_actions(workspace_id, session.dialog_id)


def _dialog_facts(actions: Actions) -> list[OfferedTimes | Proposal]:
    """Return the facts about the free times that the bot has named, and about its proposals."""
    services = dict.fromkeys(each.service for each in actions.offered)
    times = [
        OfferedTimes(
            service,
            {
                each.id: f"{each.local} {each.staff}"
                for each in actions.offered
                if each.service == service
            },
        )
        for service in services
    ]
    states = [
        Proposal(each.card["title"], proposals.state_of(each, actions.latest))
        for each in actions.proposals
    ]
    return [*times, *states]


def _abilities(tools: Collection[Tool]) -> str:
    """Return sentences about what the bot can do, so that it promises nothing else."""
    offered = {each.capability for each in tools}
    sentences = [text for capability, text in _ABILITIES.items() if capability in offered]
    if not offered & PROPOSING:
        sentences.append("You cannot make, change or cancel bookings or orders.")
    return " ".join(sentences)


def _count_tools(tools: Sequence[Tool], count: Count) -> int:
    """Return the input tokens that tools add to a call."""
    return count([], [each.spec for each in tools]) + TOOL_PREAMBLE


def _turns(workspace_id: str, session: SessionRow | None) -> Iterator[Turn]:
    """Yield the dialog's earlier exchanges, newest first."""
    if session is None:
        return
    answer = None
    for message in messages.latest(workspace_id, session.dialog_id, 4 * chat_history.MAX_TURNS):
        if message.role == ASSISTANT:
            answer = message
        elif message.role == USER and answer and answer.number == message.number + 1:
            yield Turn(message.content, answer.content)


def _unknown_model(name: str) -> ModelSpec:
    current = settings()
    limits = current.llm_unknown_context, current.llm_unknown_output
    return ModelSpec(name, "demo", name, 0, 0, *limits, known=False)
