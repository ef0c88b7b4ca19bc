"""Write the prompt of a chat with instructions, facts, and as much of the dialog as fits."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
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
from chalicelib.domains.chat.flows.chat_history import (
    MAX_TURNS,
    Count,
    MessageTooLongError,
    Turn,
    counter,
    fit_history,
    room_for_answer,
)
from chalicelib.domains.chat.flows.tool_calls import Tool
from chalicelib.domains.chat.rules import call_budget, links
from chalicelib.domains.chat.rules.call_budget import RESULT_TOKENS, TOOL_PREAMBLE
from chalicelib.domains.chat.store import messages, proposals
from chalicelib.domains.chat.store.chat_sessions import SessionRow
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.chat.store.messages import ASSISTANT, USER
from chalicelib.domains.chat.store.proposals import Actions
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.gateways import llm
from chalicelib.gateways.llm import facts, frame, models
from chalicelib.gateways.llm.facts import Facts, OfferedTimes, Passage, Proposal
from chalicelib.gateways.llm.frame import Business
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.models import ModelSpec

# How the model sees a reply of a member. It must not take the reply for its own words.
_REPLY = "[{author}, a person of the business, wrote to the visitor: {text}]"
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
    """The model, the messages to send, their tokens, and the maximum tokens of the answer."""

    spec: ModelSpec
    messages: list[Message]
    message_without_tools: Message  # the system message that promises no tools
    input_tokens: int  # without ``tools``
    max_output: int
    tools: list[Tool]
    actions: Actions  # of the dialog
    visitor_texts: list[str]  # the visitor's messages that are sent
    sources: list[Passage]  # passages in the facts
    link_hosts: set[str]  # named in the facts or in the bot's prompt

    @property
    def planned(self) -> TokenUsage:
        """The usage of an answer with tools that money is held for."""
        of_tools = _count_tools(self.tools, counter(self.spec.provider))
        return call_budget.planned(self.input_tokens + of_tools, max_output_tokens=self.max_output)


def fit(  # noqa: PLR0913  the parts of a prompt
    agent: AgentRow,
    workspace: WorkspaceRow,
    text: str,
    *,
    session: SessionRow | None,
    dialog: Future[DialogRow | None],
    found_facts: Future[Facts],
    can_confirm: bool,
) -> Prompt:
    """Return the prompt for a visitor's message.

    ``dialog`` and ``found_facts`` are read in the meantime. ``can_confirm`` is whether the client
    shows proposals.

    Raises:
        MessageTooLongError: the message without history is too long.
        NotConfiguredError: the provider of the bot's model is not configured.
    """
    problem: NotConfiguredError | None = None
    try:
        spec = llm.resolve(agent.model, tenant=workspace.id)
    except NotConfiguredError as error:
        problem, spec = error, models.find(agent.model) or _unknown_model(agent.model)
    turns: Iterator[Turn] = _turns(workspace.id, session, dialog)
    prompt_facts, actions = Facts(), Actions()
    every = _list_tools(agent, can_confirm=can_confirm) if spec.takes_tools else []
    if problem is None:
        with deadline.side_by_side() as start:
            newest = start(lambda: list(islice(turns, 1)))
            actions_task = start(partial(_find_actions, workspace.id, session, every))
            prompt_facts = found_facts.result()
        turns = chain(newest.result(), turns)
        actions = actions_task.result()
        prompt_facts = prompt_facts._replace(dialog=_dialog_facts(actions))
    now = clock.now().astimezone(ZoneInfo(workspace.timezone))
    business = Business(workspace.name, now, workspace.timezone, workspace.currency)
    count = counter(spec.provider)
    # What does not fit the context of a small model is left out: tools first, then facts.
    for included_facts, tools in ((prompt_facts, every), (prompt_facts, []), (Facts(), [])):
        preamble = [frame.to_message(business, agent.system_prompt, abilities=_abilities(tools))]
        question = facts.to_message(text, included_facts)
        context = spec.context_tokens
        if tools:
            context -= _count_tools(tools, count) + RESULT_TOKENS
        max_output = room_for_answer(
            [*preamble, question], count, context, max_output_tokens=spec.max_output_tokens
        )
        if max_output is not None:
            break
    if max_output is None:
        raise MessageTooLongError.of(
            "message",
            message=(
                "expected a message that fits the context of this bot's model, received a longer "
                "one; shorten it"
            ),
        )
    if problem is not None:
        raise problem
    messages, input_tokens = fit_history(preamble, turns, question, count, context - max_output)
    visitor_texts = [
        *(message.content for message in messages[:-1] if message.role == "user"),
        text,
    ]
    passages = facts.passages_in(question)
    quoted = [part for passage in passages for part in (passage.text, passage.url or "")]
    return Prompt(
        spec,
        messages,
        frame.to_message(business, agent.system_prompt, abilities=_abilities([])),
        input_tokens,
        max_output,
        tools,
        actions,
        visitor_texts,
        passages,
        links.hosts_in([settings().public_url, agent.system_prompt, *quoted]),
    )


def _list_tools(agent: AgentRow, *, can_confirm: bool) -> list[Tool]:
    if not agent.capabilities:
        return []
    from chalicelib.domains.chat.flows import chat_tools  # a bot without tools does not need it

    return chat_tools.list_tools(agent, can_confirm=can_confirm)


def _find_actions(
    workspace_id: str, session: SessionRow | None, tools: Collection[Tool]
) -> Actions:
    if session is None or not any(tool.capability in {"slots", *PROPOSING} for tool in tools):
        return Actions()
    return proposals.find_actions(workspace_id, dialog_id=session.dialog_id)


def _dialog_facts(actions: Actions) -> list[OfferedTimes | Proposal]:
    services = dict.fromkeys(slot.service for slot in actions.offered_slots)
    times = [
        OfferedTimes(
            service,
            {
                slot.id: f"{slot.local} {slot.staff}"
                for slot in actions.offered_slots
                if slot.service == service
            },
        )
        for service in services
    ]
    states = [
        Proposal(proposal.card["title"], proposals.state_of(proposal, actions.latest))
        for proposal in actions.proposals
    ]
    return [*times, *states]


def _abilities(tools: Collection[Tool]) -> str:
    capabilities = {tool.capability for tool in tools}
    sentences = [text for capability, text in _ABILITIES.items() if capability in capabilities]
    if not capabilities & PROPOSING:
        sentences.append("You cannot make, change or cancel bookings or orders.")
    return " ".join(sentences)


def _count_tools(tools: Sequence[Tool], count: Count) -> int:
    return count([], [tool.spec for tool in tools]) + TOOL_PREAMBLE


def _turns(
    workspace_id: str, session: SessionRow | None, dialog: Future[DialogRow | None]
) -> Iterator[Turn]:
    if session is None:
        return
    answer, until = None, clock.now()
    for message in messages.latest(workspace_id, dialog_id=session.dialog_id, limit=4 * MAX_TURNS):
        if message.role == ASSISTANT:
            answer = message
        elif message.role == USER and answer and answer.number == message.number + 1:
            since = message.created_at
            replies = _replies(dialog.result(), since, until=until)
            yield Turn(message.content, "\n\n".join(filter(None, [answer.content, *replies])))
            until = since


def _replies(dialog: DialogRow | None, since: datetime, *, until: datetime) -> Iterator[str]:
    for reply in (dialog and dialog.replies) or []:
        if since <= datetime.fromisoformat(reply["at"]) < until:
            yield _REPLY.format(author=reply["author"], text=reply["text"])


def _unknown_model(name: str) -> ModelSpec:
    current = settings()
    limits = current.llm_unknown_context, current.llm_unknown_output
    return ModelSpec(name, "demo", name, 0, 0, *limits, known=False)
