"""The records that examples name by words in capitals, such as ``PRODUCT_ID``.

A word is a noun and the field of its record. The reference of ``make dev`` shows records of the
demo's lists. The tests make one record of each noun (``tests/factories/recipes.py``).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic.alias_generators import to_camel, to_pascal

from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience

Record = Mapping[str, Any]
WORD = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
OTHER_NAMES = {"SITE": "project", "LEAD": "collection"}
"""What the API calls the records of a noun, if not as the words do."""


def words_in(value: object) -> set[str]:
    """Return the words in capitals of a JSON value."""
    match value:
        case str():
            return {value} if WORD.fullmatch(value) else set()
        case Mapping():
            return set().union(*map(words_in, value.values()))
        case list():
            return set().union(*map(words_in, value))
        case _:
            return set()


def words_of(*audiences: Audience) -> list[str]:
    """Return the words in the examples of the operations for some callers."""
    operations = REGISTRY.select(*audiences)
    return sorted(set().union(*(words_in(operation.example) for operation in operations)))


def fill(value: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401  any JSON
    """Return a JSON value in which words are replaced."""
    match value:
        case str():
            return values.get(value, value)
        case Mapping():
            return {name: fill(inner, values) for name, inner in value.items()}
        case list():
            return [fill(inner, values) for inner in value]
        case _:
            return value


def name_of(noun: str) -> str:
    """Return the name of a noun's records in fields: ``timeOff`` for ``TIME_OFF``."""
    return OTHER_NAMES.get(noun) or to_camel(noun.lower())


class ExampleRecords(ABC):
    """One record of each noun. A record comes after the records that its call names."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def record(self, noun: str) -> Record:
        """Return the record of a noun, which is found or made once."""
        if noun not in self._records:
            self._records[noun] = self.find(noun)
        return self._records[noun]

    def value(self, word: str) -> Any:  # noqa: ANN401  any JSON
        """Return what a word stands for, or None."""
        noun, _, field = word.rpartition("_")
        return self.record(noun).get(to_camel(field.lower()))

    def values(self, words: Iterable[str]) -> dict[str, Any]:
        """Return what each word stands for, without words that stand for nothing."""
        values = {word: self.value(word) for word in words}
        return {word: value for word, value in values.items() if value}

    @abstractmethod
    def find(self, noun: str) -> Record:
        """Find or make the record of a noun. An empty record stands for none."""


class ListedRecords(ExampleRecords):
    """The first record of each list. ``call`` takes the name of an operation and its arguments."""

    def __init__(self, call: Callable[..., dict[str, Any]]) -> None:
        super().__init__()
        self._call = call

    def find(self, noun: str) -> Record:
        for operation, name in _lists(noun):
            try:
                records = self._call(operation.name, **self.arguments(operation))[name]
            except AppError:  # No record that the call names, or the blog without an ADMIN account.
                continue
            return next(iter(records), {})
        return {}

    def arguments(self, operation: Operation) -> dict[str, Any]:
        """Return the arguments of an example that a call needs."""
        example, needed = operation.example or {}, operation.input_schema.get("required", ())
        arguments = {field: example[field] for field in needed}
        return dict(fill(arguments, self.values(words_in(arguments))))


def _lists(noun: str) -> Iterator[tuple[Operation, str]]:
    """Yield the operations that list the records of a noun, and the name of the list.

    Any plural is found by the model of the records, such as ``TaxOut`` in ``taxes``.
    """
    name = name_of(noun)
    plurals = {name, f"{name}s", re.sub("y$", "ies", name)}
    model = f"{to_pascal(noun.lower())}Out"
    for operation in REGISTRY.select(Audience.KEY):
        if operation.name.startswith("list_"):
            for field, info in operation.output.model_fields.items():
                # The list of a page's versions has the page, too, which is no list.
                if get_origin(info.annotation) is not list:
                    continue
                (record,) = get_args(info.annotation)
                if to_camel(field) in plurals or getattr(record, "__name__", "") == model:
                    yield operation, to_camel(field)


def example_ids(call: Callable[..., dict[str, Any]]) -> dict[str, str]:
    """Return the value of each word of which the demo lists a record."""
    return ListedRecords(call).values(words_of(Audience.KEY, Audience.PUBLIC))
