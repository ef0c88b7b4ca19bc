"""Cost of what bots know and do: the facts of a question, an index, and an answer with tools."""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

from chalicelib.core.ids import new_id
from chalicelib.domains.chat.flows import chat_facts
from chalicelib.domains.knowledge.flows import index_file
from chalicelib.domains.knowledge.flows.index_file import Passage
from chalicelib.domains.knowledge.store import indexes
from chalicelib.gateways import llm
from chalicelib.gateways.llm import Event, ProviderUsage, Stop, TextDelta, facts
from chalicelib.gateways.llm.messages import Message, ToolCall
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest
from infra.bench import chat, timing
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering

COUNTS = (100, 1_000)
LATENCY = 0.005
"""Delay of each request in seconds, as in the same region of AWS. Assumed, not measured."""
QUESTIONS = 200
INDEX_BYTES = 3 * 1024 * 1024
"""The largest knowledge of a bot."""
PASSAGE_CHARACTERS = 800
WORDS = 20_000


TOOL_CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("find_products", {"query": "rye"}),
    ("opening_hours", {}),
)


class Model(NamedTuple):
    """Model that makes some tool calls, each in a request of its own, and then answers."""

    tool_calls: int

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Event]:
        """Yield the next tool call, or text."""
        number = sum(message.role == "tool" for message in messages)
        if number < self.tool_calls:
            name, arguments = TOOL_CALLS[number]
            yield ToolCall(str(number), name, json.dumps(arguments))
        else:
            yield TextDelta("Rye costs 240 rubles.")
        yield Stop("end")
        yield ProviderUsage(500, 20)


def section() -> str:
    """Measure and return this section of the page."""
    with database.seeded({"products": COUNTS}, in_memory=True):
        found = "\n".join(_facts(count) for count in COUNTS)
        answers = "\n".join(_answers())
    return f"""\
## Bots

What a message adds to find its facts: products and services of the workspace, opening hours, and
the state of the bot's index, which is empty here. CPU time is that of this process, without the
database. A request takes 1 to 2 ms of it. Requests side by side are one wave.

| active products | requests | waves | read units | CPU of reading | CPU of choosing and writing |
|---|---|---|---|---|---|
{found}

An index of {INDEX_BYTES // 1024**2} MB of text, which is the most that a bot can know:

{_index()}

An answer to a new dialog, with {LATENCY * 1000:.0f} ms for each request to the database:

| answer | requests to the model | requests to the database | waves | write units |
|---|---|---|---|---|
{answers}
"""


def _facts(count: int) -> str:
    workspace_id = database.workspace(count)
    question = "How much is product 17, and when are you open?"
    row = indexes.of_bots(workspace_id, ["bot"])["bot"]
    row.fingerprint, row.passages = "", 0
    indexes.publish(row)

    def find() -> facts.Facts:
        return chat_facts.find(workspace_id, "bot", question)

    find()
    with metering(LATENCY) as usage:
        find()
    found = find()
    reading = timing.cpu_ms(find)
    writing = timing.cpu_ms(lambda: facts.to_message(question, found))
    return (
        f"| {count:,} | {usage.round_trips} | {usage.waves} | {usage.reads:.0f} "
        f"| {reading:.1f} ms | {writing:.1f} ms |"
    )


def _index() -> str:
    rng = random.Random(7)  # noqa: S311  repeatable texts, not a secret
    words = ["".join(rng.choices("abdeiklmnorstu", k=rng.randint(3, 9))) for _ in range(WORDS)]

    def text() -> str:
        picked: list[str] = []
        while sum(map(len, picked)) + len(picked) < PASSAGE_CHARACTERS:
            picked.append(words[min(int(rng.paretovariate(0.7)), WORDS - 1)])
        return " ".join(picked)

    passages = [
        Passage(str(number % 100), "", "", text())
        for number in range(INDEX_BYTES // PASSAGE_CHARACTERS)
    ]
    began = time.process_time()
    built = index_file.build(passages)
    building = time.process_time() - began
    questions = [" ".join(rng.choices(words, k=6)) for _ in range(QUESTIONS)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        path.write_bytes(built)
        times = []
        for question in questions:
            began = time.perf_counter()
            index_file.search(path, question, 4, lambda _: True)
            times.append(time.perf_counter() - began)
    return (
        f"- {len(passages):,} passages, built in {building:.1f} s of CPU time, "
        f"{len(built) / 1024**2:.1f} MB\n"
        f"- a search of six words takes {median(times) * 1000:.1f} ms in the median, "
        f"{max(times) * 1000:.1f} ms at most"
    )


def _answers() -> Iterator[str]:
    spec = llm.resolve("demo")._replace(takes_tools=True)
    agent_id = chat.bot()
    for calls in (0, 1, 2):
        model = Model(calls)
        with (
            patch.object(llm, "resolve", lambda _: spec),
            patch.object(llm, "chat_model_for", lambda _, model=model: model),
        ):
            _answer(agent_id)
            with metering(LATENCY) as usage:
                _answer(agent_id)
        yield (
            f"| {calls} tool calls | {calls + 1} | {usage.round_trips} | {usage.waves} "
            f"| {usage.writes:.0f} |"
        )


def _answer(agent_id: str) -> None:
    body = json.dumps({"agentId": agent_id, "message": "How much is rye?"})
    request = HttpRequest(
        "POST",
        chat_route.PATH,
        {"content-type": "application/json"},
        body=body.encode(),
        client_ip="192.0.2.1",
        request_id=new_id(),
    )
    chat_stream.handle(request).whole_body()
