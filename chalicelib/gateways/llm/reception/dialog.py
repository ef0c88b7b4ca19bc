"""The messages of a dialog, as the embedded model reads them."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from chalicelib.gateways.llm import facts, frame
from chalicelib.gateways.llm.facts import Facts, OfferedTimes, Proposal
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolResult
from chalicelib.gateways.llm.reception import contacts, dates, intents, wording
from chalicelib.gateways.llm.reception.contacts import Person
from chalicelib.gateways.llm.reception.dates import When
from chalicelib.gateways.llm.reception.intents import Intent
from chalicelib.gateways.llm.reception.wording import sentence
from chalicelib.lib import localized
from chalicelib.lib.localized import Language

MAX_MESSAGES = 8
"""Newest messages of the visitor that are read."""
MAX_CHARACTERS = 1_000
"""Characters that are read of a message."""

_LISTED = re.compile(
    r"^\d\. (?P<label>\w+, \d{1,2} \w+, \d\d:\d\d)(?: \((?P<staff>.+)\))?$", re.MULTILINE
)


class VisitorMessage(NamedTuple):
    """A message of the visitor, and the bot's answer to it, if there is one.

    ``text`` is the message without name and contacts.
    """

    message: str
    text: str
    person: Person
    when: When
    intent: Intent | None
    answer: str


class Offered(NamedTuple):
    """A free time that the bot has found. ``start`` is local: ``2026-11-27T10:00``."""

    id: str
    service: str
    start: str
    staff: str

    def is_listed_as(self, label: str, staff: str | None) -> bool:
        """Return whether a line of an answer names this time."""
        labels = {dates.label(self.start, language) for language in wording.LANGUAGES}
        return label in labels and staff in {None, self.staff}


class Listing(NamedTuple):
    """An answer that lists free times, its lines, and the visitor's messages after it."""

    answer: str
    lines: list[re.Match[str]]
    later: list[VisitorMessage]

    def is_of(self, services: Sequence[str]) -> bool:
        """Return whether the times are of one of the services, or no service is given."""
        return not services or any(self.answer.startswith(f"{name}: ") for name in services)


@dataclass(frozen=True)
class Dialog:
    """A dialog up to the visitor's question, and the tool calls for its answer.

    ``tools`` are the names of those that the bot has. If the answer ``is_final``, none is called.
    """

    messages: Sequence[Message]
    tools: Collection[str] = ()
    is_final: bool = False

    def can_call(self, tool: str) -> bool:
        """Return whether a tool may be called now."""
        return tool in self.tools and not self.is_final

    @cached_property
    def _last(self) -> int:
        """Position of the visitor's last message, or -1."""
        users = [index for index, each in enumerate(self.messages) if each.role == "user"]
        return users[-1] if users else -1

    @cached_property
    def _question(self) -> tuple[Facts, str]:
        return facts.parse(self.messages[self._last]) if self._last >= 0 else (Facts(), "")

    @property
    def facts(self) -> Facts:
        """The facts in the last message."""
        return self._question[0]

    @property
    def question(self) -> str:
        """The visitor's last message."""
        return self._question[1]

    @cached_property
    def now(self) -> datetime | None:
        """The local time, if the system message states it."""
        return next(
            (frame.local_time(each.content) for each in self.messages if each.role == "system"),
            None,
        )

    @cached_property
    def calls(self) -> list[tuple[ToolCall, ToolResult]]:
        """The tool calls for this answer, with their results."""
        later = self.messages[self._last + 1 :]
        results = {each.id: each for message in later for each in message.results}
        return [
            (call, results[call.id])
            for message in later
            for call in message.calls
            if call.id in results
        ]

    def result(self, tool: str) -> ToolResult | None:
        """Return the last result of a tool in this answer."""
        found = [result for call, result in self.calls if call.name == tool]
        return found[-1] if found else None

    @cached_property
    def language(self) -> Language:
        """The language of the visitor's last message with letters."""
        texts = (
            f"{each.text} {each.person.name or ''}" for each in reversed(self.visitor_messages)
        )
        worded = (text for text in texts if any(map(str.isalpha, text)))
        return localized.language_of_message(next(worded, ""))

    def sentence(self, key: str, **values: object) -> str:
        """Return a text in the visitor's language."""
        return sentence(self.language, key, **values)

    @cached_property
    def services(self) -> list[str]:
        """Names of services in the facts."""
        offered = [each.name for each in self.facts.offers if each.kind == "service"]
        named = [each.service for each in self.facts.dialog if isinstance(each, OfferedTimes)]
        return [name for name in dict.fromkeys([*offered, *named]) if name]

    @cached_property
    def products(self) -> list[str]:
        """Names of products in the facts."""
        names = (each.name for each in self.facts.offers if each.kind == "product")
        return [name for name in dict.fromkeys(names) if name]

    @cached_property
    def visitor_messages(self) -> list[VisitorMessage]:
        """The visitor's newest messages, oldest first. The last one is the question."""
        texts: list[tuple[str, str]] = []
        for message in self.messages[: self._last]:
            if message.role == "user":
                texts.append((message.content, ""))
            elif message.role == "assistant" and texts:
                texts[-1] = (texts[-1][0], message.content)
        newest = [*texts, (self.question, "")][-MAX_MESSAGES:]
        return [self._read(text[:MAX_CHARACTERS], answer) for text, answer in newest]

    def _read(self, text: str, answer: str) -> VisitorMessage:
        person, rest = contacts.read(text)
        now = self.now
        when = dates.read(rest, now.date() if now else None)
        intent = intents.of_text(rest, when, self.services, self.products)
        return VisitorMessage(text, rest, person, when, intent, answer)

    @cached_property
    def person(self) -> Person:
        """The visitor, from the newest messages that name something."""

        def newest(part: Callable[[Person], str | None]) -> str | None:
            return next(
                filter(None, (part(each.person) for each in reversed(self.visitor_messages))), None
            )

        return Person(
            newest(lambda each: each.name),
            newest(lambda each: each.phone),
            newest(lambda each: each.email),
        )

    @cached_property
    def proposal(self) -> str | None:
        """The state of the newest proposal in the dialog."""
        states = [each.state for each in self.facts.dialog if isinstance(each, Proposal)]
        return states[0] if states else None

    @cached_property
    def current(self) -> list[VisitorMessage]:
        """The messages since an action was last carried out, oldest first."""
        if self.proposal != "done":
            return self.visitor_messages
        cards = [
            sentence(language, key)
            for language in wording.LANGUAGES
            for key in ("check_booking", "check_order")
        ]
        ended = [
            index
            for index, each in enumerate(self.visitor_messages)
            if any(card in each.answer for card in cards)
        ]
        return self.visitor_messages[ended[-1] + 1 :] if ended else self.visitor_messages

    @cached_property
    def offered(self) -> list[Offered]:
        """The free times that the bot has found in the dialog."""
        return [
            Offered(id_, each.service, *_start_and_staff(text))
            for each in self.facts.dialog
            if isinstance(each, OfferedTimes)
            for id_, text in each.times.items()
        ]

    @cached_property
    def listing(self) -> Listing:
        """The newest answer that lists free times."""
        for index, each in reversed(list(enumerate(self.current))):
            if lines := list(_LISTED.finditer(each.answer)):
                return Listing(each.answer, lines, self.current[index + 1 :])
        return Listing("", [], [])

    def call(self, tool: str, **arguments: object) -> ToolCall:
        """Return a call to a tool, without arguments that are None."""
        given = {name: value for name, value in arguments.items() if value is not None}
        text = json.dumps(given, ensure_ascii=False).encode(errors="replace").decode()
        return ToolCall(f"call_{len(self.calls) + 1}", tool, text)


def _start_and_staff(text: str) -> tuple[str, str]:
    """Return the parts of an offered time such as ``2026-11-27T10:00 fri Anna``."""
    start, _, rest = text.partition(" ")
    return start, rest.partition(" ")[2]
