"""The embedded model: no key, no network, the same answer every time.

It is extractive. An answer quotes the facts that the system prompt states
(``gateways.llm.stated_facts``), and the offers and booking hours that the chat adds
(``gateways.llm.offers``). If nothing in them fits the question, the answer is that it does not
know. The stream is a word at a time, and its tokens are those of ``gateways.llm.messages`` exactly,
so that the price of a chat can be computed beforehand to the kopeck.
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
    drafts,
    offers,
    stated_facts,
)
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message, count_input, count_tokens
from chalicelib.gateways.llm.offers import Offer
from chalicelib.lib import extracts

MOST_SENTENCES = 3
MOST_LISTED = 10
"""Lines that are told after the line that announces them with a colon."""
MOST_TAGS = 8


class DemoModel:
    """Answers from the system messages; drafts from a request.

    In a chat it takes ``word_seconds`` for each word, so that a stream can be watched.
    """

    def __init__(self, word_seconds: float = 0.0) -> None:
        self._word_seconds = word_seconds

    def stream(  # noqa: PLR0913  as every model
        self,
        messages: Sequence[Message],
        *,
        model: str,  # noqa: ARG002  it answers for every model when there is no other
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,  # noqa: ARG002  it takes a known time
        json_object: bool = False,  # noqa: ARG002  a request says so already
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Yield the answer word by word, then its exact ``ProviderUsage``."""
        request = drafts.request_in(messages)
        text = _draft(request) if request else _answer(messages)
        spoken = 0
        for word in re.findall(r"\s*\S+", text):
            cost = count_tokens(word)
            if spoken + cost > max_output_tokens:
                break
            if cancellation and cancellation.cancelled:
                reason = "The stream was cancelled."
                raise ModelError("cancelled", reason, before_first_token=not spoken)
            spoken += cost
            yield word
            if self._word_seconds and not request:
                (cancellation.pause if cancellation else retry.sleep)(self._word_seconds)
        yield ProviderUsage(count_input(messages), spoken)


_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)  # noqa: RUF001  Cyrillic, meant
_NOTHING = {
    True: "Этого я не знаю. Спросите об услугах, товарах, ценах или часах работы.",  # noqa: RUF001  Cyrillic, meant
    False: "I do not know that. Ask about services, products, prices or opening hours.",
}
_HELLO = {
    True: "Здравствуйте! Спросите об услугах, товарах и ценах.",  # noqa: RUF001  Cyrillic, meant
    False: "Hello! Ask about services, products and prices.",
}
_LIST = {True: "Вот что есть:", False: "Here is what we have:"}
"""These three by whether the question is in Cyrillic."""
_GREETINGS = extracts.stems(
    "hello hey greetings good day morning evening привет здравствуйте добрый день вечер утро"
)
_KINDS = {
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
"""Words of questions about all there is, and which kind of offers they ask for."""
_VAGUE = extracts.stems("list all show list give покажи покажите расскажи расскажите список стоит")
"""Words that say no more of such a question."""


def _answer(messages: Sequence[Message]) -> str:
    """Return what has most to do with the last question: facts, then hours, then offers."""
    known = offers.read(messages)
    question = next((each.content for each in reversed(known.rest) if each.role == "user"), "")
    in_russian = bool(_CYRILLIC.search(question))
    if listed := _asked_for(question, known.offers):
        lines = [offers.shown(offer, in_russian=in_russian) for offer in listed[:MOST_LISTED]]
        return "\n".join([_LIST[in_russian], *lines])
    prompts = [message.content for message in known.rest if message.role == "system"]
    sentences = [fact for prompt in prompts for fact in stated_facts.sentences(prompt)]
    texts = sentences + [f"{offer.name} {offer.description}" for offer in known.offers]
    best = extracts.most_relevant(question, texts)
    answer = [line for n in sorted(_few(best, sentences)) for line in _with_list(sentences[n:])]
    if known.hours and offers.asks_for_hours(question):
        answer += offers.shown_hours(known.hours, in_russian=in_russian)
    fitting = [known.offers[n - len(sentences)] for n in best if n >= len(sentences)]
    answer += [offers.shown(offer, in_russian=in_russian) for offer in fitting[:MOST_LISTED]]
    if answer:
        return "\n".join(dict.fromkeys(answer))
    asked = extracts.stems(question)
    return (_HELLO if asked and asked <= _GREETINGS else _NOTHING)[in_russian]


def _asked_for(question: str, known: Sequence[Offer]) -> Sequence[Offer]:
    """Return the offers of the kind that a question about all there is asks for, or what there is.

    A question about something in particular asks for none.
    """
    asked = extracts.stems(question)
    kinds = {_KINDS[stem] for stem in asked & _KINDS.keys()}
    if not kinds or not asked <= _KINDS.keys() | _VAGUE:
        return ()
    return [offer for offer in known if offer.kind in kinds] or known


def _few(best: Sequence[int], sentences: Sequence[str]) -> list[int]:
    return [number for number in best if number < len(sentences)][:MOST_SENTENCES]


def _with_list(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the first sentence and, if it ends with a colon, those that it announces."""
    yield sentences[0]
    if sentences[0].endswith(":"):
        listed = takewhile(lambda sentence: not sentence.endswith(":"), sentences[1:])
        yield from islice(listed, MOST_LISTED)


def _draft(request: drafts.DraftRequest) -> str:
    """Return a card made of the request alone, as JSON."""
    facts = request.facts
    prompt = list(extracts.sentences(request.prompt or ""))
    names = [request.name, facts.get("name"), *(each.rstrip(".!?…") for each in prompt)]
    said = (
        drafts.clean(text, lines=False)
        for text in [*names, request.barcode, request.prompt]
        if text
    )
    name = next(filter(drafts.says_something, said), "")
    told = [name, facts.get("brand"), facts.get("category"), request.prompt]
    known = " ".join(text for text in told if text)
    paths = [path for _, path in request.categories]
    category = next(
        (request.categories[number][0] for number in extracts.most_relevant(known, paths)), None
    )
    card: dict[str, object] = {
        "name": name[: drafts.MAX_NAME],
        "description": _description(name, facts.get("brand"), facts.get("description"), prompt),
        "categoryId": category,
        "tags": _tags(known),
    }
    if request.kind == "service":
        card["durationMin"] = _minutes(f"{name} {request.prompt or ''}")
    return json.dumps(card, ensure_ascii=False)


def _description(name: str, brand: str | None, told: str | None, prompt: Iterable[str]) -> str:
    first = f"{name} ({brand})" if brand and fold(brand) not in fold(name) else name
    rest = [told or "", *prompt]
    sentences = [text[0].upper() + text[1:].rstrip(".") + "." for text in [first, *rest] if text]
    return " ".join(dict.fromkeys(sentences))


_LENGTH = re.compile(r"(\d{1,4})\s*(?:-\s*)?(мин|min|час|hour)", re.IGNORECASE)


def _minutes(text: str) -> int | None:
    """Return the length that a text states, in minutes."""
    if not (found := _LENGTH.search(text)):
        return None
    return int(found[1]) * (60 if found[2].lower() in {"час", "hour"} else 1)


def _tags(text: str) -> list[str]:
    words = (word.lower() for word in extracts.words(text) if not word.isdigit())
    return list(dict.fromkeys(word[: drafts.MAX_TAG] for word in words))[:MOST_TAGS]
