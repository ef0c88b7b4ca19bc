"""The embedded demo model. It needs no key and no network, and its answers are reproducible.

The model is extractive. It quotes the facts that the system prompt states
(``gateways.llm.stated_facts``), and the offers and booking hours that the chat adds
(``gateways.llm.facts``). If none of them match the question, it answers that it does not know.
Each piece of the stream has one word. ``gateways.llm.messages`` counts exactly the tokens that the
model reports, so tests can compute the price of a chat to the kopeck.
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from chalicelib.core import retry
from chalicelib.core.text import fold
from chalicelib.gateways.llm import (
    STREAM_SECONDS,
    Event,
    ModelError,
    ProviderUsage,
    Stop,
    StopReason,
    TextDelta,
    drafts,
    facts,
    frame,
    stated_facts,
)
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.facts import Offer
from chalicelib.gateways.llm.messages import Message, ToolSpec, count_input, count_tokens
from chalicelib.lib import extracts

MAX_SENTENCES = 3
MAX_LIST_ITEMS = 10
"""Items quoted from one list, and offers in one answer."""
MAX_TAGS = 8


class DemoModel:
    """Model that answers from the system messages, and drafts cards from a ``DraftRequest``.

    In a chat it waits ``word_seconds`` after each word, which makes the streaming visible.
    """

    def __init__(self, word_seconds: float = 0.0) -> None:
        self._word_seconds = word_seconds

    def stream(  # noqa: PLR0913  the signature of ChatModel
        self,
        messages: Sequence[Message],
        *,
        model: str,  # noqa: ARG002  it stands in for every model
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,  # noqa: ARG002  it never takes that long
        json_object: bool = False,  # noqa: ARG002  a DraftRequest always gets JSON
        tools: Sequence[ToolSpec] = (),
        final: bool = False,  # noqa: ARG002  it calls no tools
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Yield the answer word by word, then its exact ``ProviderUsage``."""
        request = drafts.request_in(messages)
        text = _draft(request) if request else _answer(messages)
        output_tokens = 0
        stop: StopReason = "end"
        for word in re.findall(r"\s*\S+", text):
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
        yield Stop(stop)
        yield ProviderUsage(count_input(messages, tools), output_tokens)


_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)  # noqa: RUF001  Cyrillic, meant
_NO_ANSWER = {
    True: "Этого я не знаю. Спросите об услугах, товарах, ценах или часах работы.",  # noqa: RUF001  Cyrillic, meant
    False: "I do not know that. Ask about services, products, prices or opening hours.",
}
_HELLO = {
    True: "Здравствуйте! Спросите об услугах, товарах и ценах.",  # noqa: RUF001  Cyrillic, meant
    False: "Hello! Ask about services, products and prices.",
}
_LIST = {True: "Вот что есть:", False: "Here is what we have:"}
"""In the three dicts above, the key True is for questions in Cyrillic letters."""
_GREETINGS = extracts.stems(
    "hello hey greetings good day morning evening привет здравствуйте добрый день вечер утро"
)
_KIND_BY_STEM = {
    **dict.fromkeys(extracts.stems("service services услуга услуги"), "service"),
    **dict.fromkeys(extracts.stems("product products goods товар товары"), "product"),
    **dict.fromkeys(
        extracts.stems(
            "offer price prices pricelist menu catalogue assortment sell buy"
            " предлагаете цена цены цену прайс меню каталог ассортимент продаете купить"
        ),
        "",
    ),
}
"""Stem of a word in a general question -> kind of the requested offers. Empty means all kinds."""
_VAGUE = extracts.stems("list all show list give покажи покажите расскажи расскажите список стоит")
"""Words of general questions that do not name a kind."""


def _answer(messages: Sequence[Message]) -> str:
    """Return the answer to the last question.

    A general question about the offers is answered with a list. Any other answer quotes matching
    facts, then hours, then matching offers.
    """
    last = next((each for each in reversed(messages) if each.role == "user"), Message("user", ""))
    found, question = facts.parse(last)
    in_russian = bool(_CYRILLIC.search(question))
    if requested := _offers_for_general_question(question, found.offers):
        lines = [
            facts.format_offer(offer, in_russian=in_russian) for offer in requested[:MAX_LIST_ITEMS]
        ]
        return "\n".join([_LIST[in_russian], *lines])
    prompts = [frame.owners_prompt(each.content) for each in messages if each.role == "system"]
    sentences = [fact for prompt in prompts for fact in stated_facts.factual_sentences(prompt)]
    sentences += [
        sentence for passage in found.passages for sentence in extracts.sentences(passage.text)
    ]
    texts = sentences + [f"{offer.name} {offer.description}" for offer in found.offers]
    relevant = extracts.most_relevant(question, texts)
    stated = [index for index in relevant if index < len(sentences)][:MAX_SENTENCES]
    answer = [line for index in sorted(stated) for line in _with_list(sentences[index:])]
    if found.hours and facts.is_about_hours(question):
        answer += facts.format_hours(found.hours, in_russian=in_russian)
    matching = [found.offers[n - len(sentences)] for n in relevant if n >= len(sentences)]
    answer += [
        facts.format_offer(offer, in_russian=in_russian) for offer in matching[:MAX_LIST_ITEMS]
    ]
    if answer:
        return "\n".join(dict.fromkeys(answer))
    stems = extracts.stems(question)
    return (_HELLO if stems and stems <= _GREETINGS else _NO_ANSWER)[in_russian]


def _offers_for_general_question(question: str, known: Sequence[Offer]) -> Sequence[Offer]:
    """Return the offers to list for a general question, such as "What services do you have?".

    If there are no offers of the requested kind, all offers are returned. If the question is about
    something specific, no offers are returned.
    """
    stems = extracts.stems(question)
    kinds = {_KIND_BY_STEM[stem] for stem in stems & _KIND_BY_STEM.keys()}
    if not kinds or not stems <= _KIND_BY_STEM.keys() | _VAGUE:
        return ()
    return [offer for offer in known if offer.kind in kinds] or known


def _with_list(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the first sentence and, if it ends with a colon, the list items that follow it."""
    yield sentences[0]
    if sentences[0].endswith(":"):
        items = takewhile(lambda sentence: not sentence.endswith(":"), sentences[1:])
        yield from islice(items, MAX_LIST_ITEMS)


def _draft(request: drafts.DraftRequest) -> str:
    """Return the draft of a product or service as JSON, made only from the request's content."""
    looked_up = request.facts
    prompt = list(extracts.sentences(request.prompt or ""))
    names = [request.name, looked_up.get("name"), *(each.rstrip(".!?…") for each in prompt)]
    cleaned = (
        drafts.clean(text, lines=False)
        for text in [*names, request.barcode, request.prompt]
        if text
    )
    name = next(filter(drafts.has_visible_text, cleaned), "")
    details = [name, looked_up.get("brand"), looked_up.get("category"), request.prompt]
    known = " ".join(text for text in details if text)
    paths = [path for _, path in request.categories]
    category = next(
        (request.categories[index][0] for index in extracts.most_relevant(known, paths)), None
    )
    card: dict[str, object] = {
        "name": name[: drafts.MAX_NAME],
        "description": _description(
            name, looked_up.get("brand"), looked_up.get("description"), prompt
        ),
        "categoryId": category,
        "tags": _tags(known),
    }
    if request.kind == "service":
        card["durationMin"] = _minutes(f"{name} {request.prompt or ''}")
    return json.dumps(card, ensure_ascii=False)


def _description(name: str, brand: str | None, fact: str | None, prompt: Iterable[str]) -> str:
    first = f"{name} ({brand})" if brand and fold(brand) not in fold(name) else name
    rest = [fact or "", *prompt]
    sentences = [text[0].upper() + text[1:].rstrip(".") + "." for text in [first, *rest] if text]
    return " ".join(dict.fromkeys(sentences))


_DURATION = re.compile(r"(\d{1,4})\s*(?:-\s*)?(мин|min|час|hour)", re.IGNORECASE)


def _minutes(text: str) -> int | None:
    """Return the duration that a text states, in minutes."""
    if not (found := _DURATION.search(text)):
        return None
    return int(found[1]) * (60 if found[2].lower() in {"час", "hour"} else 1)


def _tags(text: str) -> list[str]:
    words = (word.lower() for word in extracts.words(text) if not word.isdigit())
    return list(dict.fromkeys(word[: drafts.MAX_TAG] for word in words))[:MAX_TAGS]
