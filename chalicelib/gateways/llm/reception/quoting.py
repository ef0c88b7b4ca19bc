"""Answers of the embedded model that quote facts: of the owner's prompt and of the records."""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from chalicelib.core.text import fold
from chalicelib.gateways.llm import facts, frame, stated_facts
from chalicelib.gateways.llm.facts import Facts, Offer
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.reception.wording import sentence
from chalicelib.lib import extracts, localized

MAX_SENTENCES = 3
MAX_LIST_ITEMS = 10
"""Items quoted from one list, and offers in one answer."""

_GREETINGS = extracts.stems(
    "hello hey greetings good day morning evening привет здравствуйте добрый день вечер утро"
)
_THANKS = extracts.stems("thanks thank thx lot very much спасибо благодарю большое огромное")
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

_PRONOUNS = extracts.stems("does cost costs стоимость почем него неё она они оно")
"""Words of a question about the price of what an earlier message named."""


def answer(messages: Sequence[Message], found: Facts, question: str) -> str | None:
    """Return the answer to a question, or None if no fact matches it.

    A general question about the offers is answered with a list. Any other answer quotes matching
    facts, then hours, then matching offers.
    """
    language = localized.language_of_message(question)
    in_russian = language == "ru"
    if requested := _offers_for_general_question(question, found.offers):
        return "\n".join(
            [sentence(language, "list"), *format_offers(requested, in_russian=in_russian)]
        )
    prompts = [frame.owners_prompt(each.content) for each in messages if each.role == "system"]
    sentences = [fact for prompt in prompts for fact in stated_facts.factual_sentences(prompt)]
    sentences += [
        sentence for passage in found.passages for sentence in extracts.sentences(passage.text)
    ]
    texts = sentences + [f"{offer.name} {offer.description}" for offer in found.offers]
    relevant = extracts.most_relevant(question, texts)
    stated = [index for index in relevant if index < len(sentences)][:MAX_SENTENCES]
    lines = [line for index in sorted(stated) for line in _with_list(sentences[index:])]
    if found.hours and facts.is_about_hours(question):
        lines += facts.format_hours(found.hours, in_russian=in_russian)
    matching = [found.offers[n - len(sentences)] for n in relevant if n >= len(sentences)]
    lines += format_offers(matching, in_russian=in_russian)
    return "\n".join(dict.fromkeys(lines)) or None


def format_offers(offers: Sequence[Offer], *, in_russian: bool) -> list[str]:
    """Return offers as lines for a visitor."""
    return [facts.format_offer(each, in_russian=in_russian) for each in offers[:MAX_LIST_ITEMS]]


def courtesy(question: str) -> str:
    """Return the answer to a question that no fact answers: a greeting, or that it is not known."""
    stems = extracts.stems(question)
    language = localized.language_of_message(question)
    if (stems and stems <= _GREETINGS) or fold(question).strip(" !.") == "hi":
        return sentence(language, "hello")
    return sentence(language, "welcome" if stems and stems <= _THANKS else "unknown")


def subject(question: str) -> str:
    """Return the words of a question about a price that may name an offer."""
    known = _KIND_BY_STEM.keys() | _VAGUE | _PRONOUNS
    return " ".join(word for word in extracts.words(question) if extracts.stem(word) not in known)


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
