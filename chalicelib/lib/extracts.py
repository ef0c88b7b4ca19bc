"""Which texts have to do with a question, by the words that they share. No language model."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from chalicelib.core.text import fold

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

_END = re.compile(
    r"(?<=[!?…])\s+|(?<=\w{4}\.)\s+|(?<=[^\w\s]\.)\s+"
    r"|(?<=[\d:]\d\.)\s+(?=[A-ZА-ЯЁ])|\n+"  # noqa: RUF001  Cyrillic, meant
)
"""Of a sentence. A full stop after a short word may be that of an abbreviation."""


_MARKUP = re.compile(r"</?[a-z]|<!|&#?\w", re.IGNORECASE)


def plain_text(text: str) -> str:
    """Return a text without its HTML: tags, scripts and styles dropped, entities decoded.

    A text without any is returned as it is.
    """
    if not _MARKUP.search(text):
        return text
    from turbohtml import PlainText, parse_fragment  # noqa: PLC0415  slow to load

    return parse_fragment(text).to_text(PlainText(bullet="• "))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text and the items of its lists."""
    for part in _END.split(text):
        if sentence := part.strip(" \t-*•#"):
            yield sentence


def nearest(question: str, texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that share words with a question, the nearest first.

    A word counts the more, the fewer texts have it; texts of no more than half the best score are
    left out.
    """
    asked = stems(question)
    shared = [asked & stems(text) for text in texts]
    spread = Counter(stem for each in shared for stem in each)
    scores = [sum(1 / spread[stem] for stem in sorted(each)) for each in shared]
    best = max(scores, default=0.0)
    near = [number for number, score in enumerate(scores) if score and score > best / 2]
    return sorted(near, key=lambda number: -scores[number])


def words(text: str) -> list[str]:
    """Return the words of a text that say what it is about, as they are written."""
    return [
        word
        for word in re.findall(r"\w+", text)
        if fold(word) not in _COMMON and (len(word) >= _SHORTEST or word.isdigit())
    ]


def stem(word: str) -> str:
    """Return the beginning of a word, so that its forms meet."""
    folded = fold(word)
    return folded[: max(_SHORTEST, min(_STEM, len(folded) - 1))]


def stems(text: str) -> set[str]:
    """Return the beginnings of a text's words."""
    return {stem(word) for word in words(text)}
