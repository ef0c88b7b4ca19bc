"""The embedded model: no key, no network, the same answer every time.

It is extractive: it says what stands in what it was given, in the words it was given, and says so
when there is nothing. It speaks a word at a time, and its tokens are those of ``rules.chat``
exactly, so that what a chat costs can be told beforehand to the kopeck.
"""

import json
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from chalicelib.core.text import fold
from chalicelib.gateways.llm import STREAM_SECONDS, ModelError, Usage
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.rules import drafts
from chalicelib.rules.chat import Message, count_input, count_tokens

MOST_SENTENCES = 3
MOST_LISTED = 10
"""Lines that are told after the line that announces them with a colon."""
MOST_TAGS = 8


class DemoModel:
    """Answers from the system messages and the visitor's earlier words; drafts from a request."""

    def stream(  # noqa: PLR0913  as every model
        self,
        messages: Sequence[Message],
        *,
        model: str,  # noqa: ARG002  it answers for every model when there is no other
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,  # noqa: ARG002  it takes no time
        json_object: bool = False,  # noqa: ARG002  a request says so already
        cancellation: Cancellation | None = None,
    ) -> Generator[str | Usage, None, None]:
        """Yield the answer word by word, then its exact ``Usage``."""
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
        yield Usage(count_input(messages), spoken)


_NOTHING = {
    True: "В том, что мне известно, ответа на этот вопрос нет. Спросите иначе или о другом.",  # noqa: RUF001  Cyrillic, meant
    False: "What I know holds no answer to this. Ask in other words, or about something else.",
}
"""By whether the question is in Cyrillic."""


def _answer(messages: Sequence[Message]) -> str:
    """Return the sentences that have most to do with the last question, in their order."""
    said = [message.content for message in messages if message.role == "user"]
    question = said.pop() if said else ""
    known = [message.content for message in messages if message.role == "system"] + said
    sentences = list(_sentences("\n".join(known)))
    best = _nearest(question, sentences)[:MOST_SENTENCES]
    if not best:
        return _NOTHING[bool(re.search("[а-яё]", question.lower()))]  # noqa: RUF001  Cyrillic, meant
    told = dict.fromkeys(line for number in sorted(best) for line in _with_list(sentences[number:]))
    return "\n".join(told)


def _with_list(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the first sentence and, if it ends with a colon, those that it announces."""
    yield sentences[0]
    if sentences[0].endswith(":"):
        listed = takewhile(lambda sentence: not sentence.endswith(":"), sentences[1:])
        yield from islice(listed, MOST_LISTED)


_END = re.compile(r"(?<=[!?…])\s+|(?<=\w{4}\.)\s+|(?<=[^\w\s]\.)\s+|\n+")
"""Of a sentence. A full stop after a short word may be that of an abbreviation."""


def _sentences(text: str) -> Iterator[str]:
    for part in _END.split(text):
        if sentence := part.strip(" \t-*•#"):
            yield sentence


def _nearest(question: str, texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that share words with a question, the nearest first.

    A word counts the more, the fewer texts have it; texts of no more than half the best score are
    left out.
    """
    asked = _stems(question)
    shared = [asked & _stems(text) for text in texts]
    spread = Counter(stem for stems in shared for stem in stems)
    scores = [sum(1 / spread[stem] for stem in sorted(stems)) for stems in shared]
    best = max(scores, default=0.0)
    near = [number for number, score in enumerate(scores) if score and score > best / 2]
    return sorted(near, key=lambda number: -scores[number])


_COMMON = frozenset(
    """about and any are can does for from have how much not our tell that the this what when where
    which who will with you your
    без был быть вам вас ваш весь вот все где для ему если есть или как какая какие какой когда кто
    меня мне можно мой мои наш нет они она оно очень под при про сколько так тебя тот что чтобы эта
    эти это этот""".split()  # noqa: SIM905  a hundred quotes would read worse
)
"""Words that say nothing of what a text is about."""
_SHORTEST = 3
_STEM = 5


def _words(text: str) -> list[str]:
    return [
        word
        for word in re.findall(r"\w+", text)
        if fold(word) not in _COMMON and (len(word) >= _SHORTEST or word.isdigit())
    ]


def _stems(text: str) -> set[str]:
    """Return the beginnings of a text's words, so that the forms of a word meet."""
    folded = (fold(word) for word in _words(text))
    return {word[: max(_SHORTEST, min(_STEM, len(word) - 1))] for word in folded}


def _draft(request: drafts.DraftRequest) -> str:
    """Return a card made of the request alone, as JSON."""
    facts = request.facts
    prompt = list(_sentences(request.prompt or ""))
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
    category = next((request.categories[number][0] for number in _nearest(known, paths)), None)
    card = {
        "name": name[: drafts.MAX_NAME],
        "description": _description(name, facts.get("brand"), facts.get("description"), prompt),
        "categoryId": category,
        "tags": _tags(known),
    }
    return json.dumps(card, ensure_ascii=False)


def _description(name: str, brand: str | None, told: str | None, prompt: Iterable[str]) -> str:
    first = f"{name} ({brand})" if brand and fold(brand) not in fold(name) else name
    rest = [told or "", *prompt]
    sentences = [text[0].upper() + text[1:].rstrip(".") + "." for text in [first, *rest] if text]
    return " ".join(dict.fromkeys(sentences))


def _tags(text: str) -> list[str]:
    words = (word.lower() for word in _words(text) if not word.isdigit())
    return list(dict.fromkeys(word[: drafts.MAX_TAG] for word in words))[:MOST_TAGS]
