"""Why an import refuses a row or a file, and what it reads differently, in each language.

A reason is made where it is found: with a code, the facts, and an English sentence for programs and
the command line. Persons read the sentence of the code in the catalogue of their language.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from chalicelib.lib import po_files
from chalicelib.lib.localized import LANGUAGES, Language

LOCALE = Path(__file__).parent / "locale"  # has one folder of PO files per language
Form = Language | None
"""Who reads reasons: a person who reads a language, or None: a program."""
FORMS: tuple[Form, ...] = (None, *LANGUAGES)
_SHOWN = 60  # characters of a value of an operation's error


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason with a stable code, an English sentence, and the facts of the code's sentence.

    The fact ``field`` is the field of the record that it is about.
    """

    code: str
    sentence: str
    facts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, code: str, sentence: str, /, **facts: Any) -> Self:  # noqa: ANN401  shown as texts
        return cls(code, sentence, {name: str(value) for name, value in facts.items()})

    def about(self, name: str) -> Self:
        """Return the reason with the field that it is about: ``price: expected a number``."""
        return replace(
            self, sentence=f"{name}: {self.sentence}", facts={**self.facts, "field": name}
        )

    def shown(self, form: Form) -> str:
        """Return the sentence for a person in a language, or for a program."""
        if form is None:
            return self.sentence
        texts = _catalogue(form).texts
        template = texts.get(self.code)
        if template is None:
            # An operation's: the field whose value it refuses, or a rare one, with its message.
            template = texts["wrong_value" if f"field_{self.code}" in texts else "other"]
        name = self.facts.get("field", self.code)
        facts = {"text": "", **self.facts, "field": str(texts.get(f"field_{name}", name))}
        return str(template).format(**facts, sentence=self.sentence)


def of_operation(code: str, message: str, item: Mapping[str, Any]) -> Reason:
    """Return the reason of an operation that refused an item: its key or code, and its message."""
    text = str(item.get(code, ""))
    return Reason.of(code, message, text=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def of_warning(detail: Mapping[str, Any]) -> Reason:
    """Return what an operation reads differently: the detail of a warning, with its facts."""
    facts = {name: fact for name, fact in detail.items() if name not in {"code", "message"}}
    return Reason.of(detail["code"], detail["message"], **facts)


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "imports")


def field_name(language: Language, name: str) -> str:
    """Return what a person calls a field of an import."""
    return str(_catalogue(language).texts[f"field_{name}"])


def report_columns(form: Form, *, has_sku: bool) -> tuple[str, ...]:
    """Return the columns that a table of refused rows has before those of the imported table."""
    if form is None:
        return ("row", "sku", "code", "reason") if has_sku else ("row", "code", "reason")
    names = ("row", "sku", "reason") if has_sku else ("row", "reason")
    texts = _catalogue(form).texts
    return tuple(str(texts[f"report_{name}"]) for name in names)
