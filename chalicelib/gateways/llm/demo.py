"""The embedded demo model, which needs no key and no network and is reproducible.

In a chat it quotes facts; ``make dev`` lets it call tools too. A draft of a card is made from its
request. ``gateways.llm.messages`` counts exactly the tokens that the model reports, so tests can
compute the price of a chat to the kopeck.
"""

import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from chalicelib.core import retry
from chalicelib.core.text import fold
from chalicelib.gateways.llm import (
    STREAM_SECONDS,
    Event,
    FailureKind,
    ModelError,
    ProviderUsage,
    Stop,
    StopReason,
    TextDelta,
    drafts,
    facts,
)
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec, count_input, count_tokens
from chalicelib.lib import extracts, localized
from chalicelib.lib.localized import Language

MAX_TAGS = 8
MAX_LINES = 5  # sentences and offers in one answer
UNKNOWN: Mapping[Language, str] = {"en": "I do not know that.", "ru": "Этого я не знаю."}
_BEGINNING = "This answer begins well, and then"

# Message -> text of the answer, why it ends, and the failure that ends it.
ENDINGS: Mapping[str, tuple[str, StopReason, FailureKind | None]] = {
    "demo:length": (_BEGINNING, "length", None),
    "demo:filter": (_BEGINNING, "filtered", None),
    "demo:cut": (_BEGINNING, "other", "unavailable"),
    "demo:empty": ("", "end", None),
    "demo:fail": ("", "other", "unavailable"),
    "demo:timeout": ("", "other", "timeout"),
}


class DemoModel:
    """Model that answers from the system messages, and drafts cards from a ``DraftRequest``.

    In a chat it waits ``word_seconds`` after each word, which makes the streaming visible. With
    ``has_endings``, a message that is one of ``ENDINGS`` gets an answer with that ending.
    """

    def __init__(self, word_seconds: float = 0.0, *, has_endings: bool = False) -> None:
        self._word_seconds = word_seconds
        self._has_endings = has_endings

    def stream(  # noqa: PLR0913  the signature of ChatModel
        self,
        messages: Sequence[Message],
        *,
        model: str,  # noqa: ARG002  it stands in for every model
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,  # noqa: ARG002  it never takes that long
        json_object: bool = False,  # noqa: ARG002  a DraftRequest always gets JSON
        tools: Sequence[ToolSpec] = (),
        final: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Yield the answer word by word or a tool call, then the exact ``ProviderUsage``."""
        request = drafts.request_in(messages)
        reply = _draft(request) if request else respond(messages, tools, final=final)
        if isinstance(reply, ToolCall):
            if (output_tokens := count_tokens(" ".join(reply))) <= max_output_tokens:
                yield reply
                yield Stop("tools")
                yield ProviderUsage(count_input(messages, tools), output_tokens)
                return
            reply = respond(messages, tools, final=True)
        text = reply if isinstance(reply, str) else ""
        output_tokens = 0
        stop: StopReason = "end"
        failure: FailureKind | None = None
        if self._has_endings and (ending := ENDINGS.get(facts.split(messages[-1])[1])):
            text, stop, failure = ending
        for word in re.findall(r"(?<!\s)\s*\S+", text):
            tokens = count_tokens(word)
            if output_tokens + tokens > max_output_tokens:
                stop = "length"
                break
            if cancellation and cancellation.cancelled:
                reason = "The stream was cancelled."
                raise ModelError("cancelled", reason, before_first_token=not output_tokens)
            output_tokens += tokens
            yield TextDelta(word)
            if self._word_seconds and not request:
                (cancellation.pause if cancellation else retry.sleep)(self._word_seconds)
        if failure:
            raise ModelError(failure, "The message requests it.", before_first_token=not text)
        yield Stop(stop)
        yield ProviderUsage(count_input(messages, tools), output_tokens)


def quote(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),  # noqa: ARG001  it calls none
    *,
    final: bool = False,  # noqa: ARG001  as above
) -> str | ToolCall:
    """Return the facts that match the visitor's last message, or that the model does not know."""
    known_facts, question = facts.split(messages[-1]) if messages else ([], "")
    language = localized.language_of_message(question)
    hours = [_hours(data) for data in known_facts if "of" in data]
    lines = [line for data in known_facts for line in _lines(data, language)]
    relevant = sorted(extracts.most_relevant(question, lines)[:MAX_LINES])
    found = [lines[n] for n in relevant] + (hours if facts.is_about_hours(question) else [])
    return "\n".join(dict.fromkeys(found)) or UNKNOWN[language]


def _hours(data: Mapping[str, Any]) -> str:
    days = (f"{day} {data[day]}" for day in facts.DAYS if day in data)
    return f"{data['of']}: {'; '.join(days)}"


def _lines(data: Mapping[str, Any], language: Language) -> list[str]:
    """Return what an answer may quote of a passage or an offer."""
    if "text" in data:
        return list(extracts.sentences(data["text"]))
    if (amount := facts.price_in(data)) is None:
        return []
    price = localized.money(language, *amount)
    return [f"{data['name']}: {price}. {data.get('about', '')}".rstrip()]


Respond = Callable[..., str | ToolCall]
respond: Respond = quote
"""Returns the answer to the messages of a chat, or a call to a tool; ``make dev`` replaces it."""


def _draft(request: drafts.DraftRequest) -> str:
    looked_up = request.facts
    prompt = list(extracts.sentences(request.prompt or ""))
    names = [request.name, looked_up.get("name"), *(sentence.rstrip(".!?…") for sentence in prompt)]
    cleaned = (
        drafts.clean(text, lines=False)
        for text in [*names, request.barcode, request.prompt]
        if text
    )
    name = next(filter(drafts.has_visible_text, cleaned), "")
    details = [name, looked_up.get("brand"), looked_up.get("category"), request.prompt]
    product_text = " ".join(text for text in details if text)
    paths = [path for _, path in request.categories]
    category = next(
        (request.categories[index][0] for index in extracts.most_relevant(product_text, paths)),
        None,
    )
    card: dict[str, object] = {
        "name": name[: drafts.MAX_NAME],
        "description": _description(
            name, looked_up.get("brand"), fact=looked_up.get("description"), prompt=prompt
        ),
        "categoryId": category,
        "tags": _tags(product_text),
    }
    if request.kind == "service":
        card["durationMin"] = _minutes(f"{name} {request.prompt or ''}")
    return json.dumps(card, ensure_ascii=False)


def _description(name: str, brand: str | None, *, fact: str | None, prompt: Iterable[str]) -> str:
    first = f"{name} ({brand})" if brand and fold(brand) not in fold(name) else name
    details = [fact or "", *prompt]
    sentences = [text[0].upper() + text[1:].rstrip(".") + "." for text in [first, *details] if text]
    return " ".join(dict.fromkeys(sentences))


_DURATION = re.compile(r"(\d{1,4})\s*(?:-\s*)?(мин|min|час|hour)", re.IGNORECASE)


def _minutes(text: str) -> int | None:
    if not (match := _DURATION.search(text)):
        return None
    return int(match[1]) * (60 if match[2].lower() in {"час", "hour"} else 1)


def _tags(text: str) -> list[str]:
    words = (word.lower() for word in extracts.words(text) if not word.isdigit())
    return list(dict.fromkeys(word[: drafts.MAX_TAG] for word in words))[:MAX_TAGS]
