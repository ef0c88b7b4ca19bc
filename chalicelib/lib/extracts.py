"""Rank passages by the words that they share with a question, without a language model."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from chalicelib.core.text import fold

# Frequent words that do not show the subject of a passage.
_STOP_WORDS = frozenset(
    """about and any are can does for from have how much not our tell that the this what when where
    which who will with you your
    без был быть вам вас ваш весь вот все где для ему если есть или как какая какие какой когда кто
    меня мне можно мой мои наш нет они она оно очень под при про сколько так тебя тот что чтобы эта
    эти это этот""".split()  # noqa: SIM905  a hundred quotes would read worse
)
_MIN_WORD_LENGTH = 3
_STEM_LENGTH = 5

# The end of a sentence. A full stop after a short word does not count: it may end an abbreviation.
SENTENCE_END = re.compile(
    r"(?<=[!?…])\s+|(?<=\w{4}\.)\s+|(?<=[^\w\s]\.)\s+"
    r"|(?<=[\d:]\d\.)\s+(?=[A-ZА-ЯЁ])|\n+"  # noqa: RUF001  Cyrillic, meant
)


_MARKUP = re.compile(r"</?[a-z]|<!|&#?\w", re.IGNORECASE)
# Text for browsers without script, which visitors rarely see.
_WITHOUT_SCRIPT = re.compile(r"<noscript\b.*?(?:</noscript\s*>|\Z)", re.IGNORECASE | re.DOTALL)


def plain_text(text: str) -> str:
    """Return HTML without scripts, styles and ``noscript``, and other text unchanged."""
    if not _MARKUP.search(text):
        return text
    from turbohtml import PlainText, parse_fragment

    return parse_fragment(_WITHOUT_SCRIPT.sub("", text)).to_text(PlainText(bullet="• "))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and the list items of a passage."""
    for part in SENTENCE_END.split(text):
        if sentence := part.strip(" \t-*•#"):
            yield sentence


def most_relevant(question: str, texts: Sequence[str]) -> list[int]:
    """Return the indexes of the passages that share words with a question, best match first."""
    question_stems = stems(question)
    shared = [question_stems & stems(text) for text in texts]
    text_counts = Counter(stem for stems in shared for stem in stems)
    # The order of a set of strings changes with each process, and so does the rounding of the sum.
    # A word counts for more if fewer passages contain it.
    scores = [sum(1 / text_counts[stem] for stem in sorted(stems)) for stems in shared]
    best = max(scores, default=0.0)
    # Passages with at most half of the best score are left out.
    relevant = [index for index, score in enumerate(scores) if score and score > best / 2]
    return sorted(relevant, key=lambda index: -scores[index])


def words(text: str) -> list[str]:
    """Return the words of a passage, as written, without stop words and short words."""
    return [word for word in re.findall(r"\w+", text) if carries_meaning(fold(word))]


def carries_meaning(word: str) -> bool:
    """Whether a folded word shows the subject of a passage, unlike frequent and short words."""
    return word not in _STOP_WORDS and (len(word) >= _MIN_WORD_LENGTH or word.isdigit())


def stem(word: str) -> str:
    """Return the first letters of a word, which its inflected forms share."""
    return _beginning(fold(word))


def stems(text: str) -> set[str]:
    """Return the stems of the words of a passage."""
    return {_beginning(word) for word in re.findall(r"\w+", fold(text)) if carries_meaning(word)}


def _beginning(folded: str) -> str:
    return folded[: max(_MIN_WORD_LENGTH, min(_STEM_LENGTH, len(folded) - 1))]
