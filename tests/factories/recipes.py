"""One record of each noun that examples name, made by the examples of the operations.

``create_product`` makes the record that ``PRODUCT_ID`` stands for, with its own example, after the
records that the example names. A new noun needs nothing here. What its example does not say is a
``make_…`` of a subclass, or stands in ``MAKERS``.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Self

from pydantic.alias_generators import to_camel

from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.wire.schema import Patch
from chalicelib.engine.listing.registry import NOUNS
from infra.local.demo.examples import ExampleRecords, Record, fill, words_in

MAKERS = {
    "EXPORT": "export_workspace",
    "FILE": "upload_file",
    "IMPORT": "import_clients",
    "POST": "create_blog_post",
    "SOURCE": "add_knowledge",
}
"""The operation that makes a noun's record, if its name is not ``create_`` and the noun."""


TABLE = "name,sku,price,duration,email\nRye loaf,R-9,70,60,{id}@example.org\n"
"""A table from which products, services and clients can be imported."""


class NoRecipeError(Exception):
    """An operation has no example, or an example names a record that nothing makes."""


class Ids(SimpleNamespace):
    """Values of words in capitals: ``ids.product`` of ``PRODUCT_ID``, ``ids.post_slug``."""

    def __getattr__(self, name: str) -> str:  # Only for the type checker: each value is a string.
        raise AttributeError(name)

    @classmethod
    def of(cls, values: Mapping[str, str], **more: Any) -> Self:
        return cls(**{name_in_ids(word): value for word, value in values.items()} | more)

    @classmethod
    def unknown_of(cls, words: Iterable[str], **more: Any) -> Self:
        """Return values that no record has."""
        return cls.of({word: unknown(word) for word in words}, **more)

    def values_of(self, words: Iterable[str]) -> dict[str, str]:
        return {word: getattr(self, name_in_ids(word)) for word in words}


def name_in_ids(word: str) -> str:
    return word.lower().removesuffix("_id")


def unknown(word: str) -> str:
    """Return a value of a word that no record has."""
    return f"{new_id().lower()}@example.com" if word.endswith("_EMAIL") else new_id()


class Recipes(ExampleRecords):
    """Records that are made when they are first asked for, each after the records that it names.

    ``call`` takes the name of an operation and its arguments, and returns the data of the response.
    """

    differences: Mapping[str, Mapping[str, Any]] = {}
    """What the records have unlike the examples that make them. None leaves a field out."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call
        self._waiting: list[str] = []

    def find(self, noun: str) -> Record:
        self._waiting.append(noun)
        recipe = getattr(self, f"make_{noun.lower()}", None)
        record: Record = recipe() if recipe else self.make(noun)
        self._waiting.remove(noun)
        return record

    def make(self, noun: str) -> Record:
        """Make the record of a noun by the operation that creates it, or raise NoRecipeError."""
        if noun.startswith("DELETED_"):
            return self._make_and_delete(noun.removeprefix("DELETED_"))
        name = MAKERS.get(noun, f"create_{noun.lower()}")
        if name not in {entry.name for entry in REGISTRY.entries()}:
            msg = (
                f"an example names a {noun}, but there is no operation {name}. Name the operation "
                f"that makes the record in MAKERS of {__file__}, or make it in make_{noun.lower()} "
                f"of {type(self).__name__} ({type(self).__module__})."
            )
            raise NoRecipeError(msg)
        return self.create(name, **self._unique_values(noun, name))

    def make_table(self) -> Record:
        content = b64encode(TABLE.replace("{id}", new_id()).encode()).decode()
        return record_in(self.call("upload_file", name="table.csv", content=content))

    def _unique_values(self, noun: str, name: str) -> dict[str, str]:
        """Return new values of unique fields, because a sweep creates the example once more."""
        lookups = NOUNS[noun].lookups if noun in NOUNS else ()
        unique = {to_camel(lookup.name) for lookup in lookups if lookup.unique}
        return {field: new_id() for field in unique & example_of(REGISTRY[name]).keys()}

    def create(self, name: str, /, **changes: Any) -> Record:
        """Call an operation with its example, and return the record that it creates."""
        return record_in(self.call(name, **self.arguments(name) | changes))

    def arguments(self, name: str) -> dict[str, Any]:
        """Return an operation's example with ids, without optional ids of records in the making.

        A folder's example names the folder that it is in, and there is no folder yet.
        """
        operation = REGISTRY[name]
        required = operation.input_schema.get("required", ())
        example = {
            field: value
            for field, value in example_of(operation).items()
            if field in required or not self._waits_for(value)
        } | self.differences.get(name, {})
        example = {field: value for field, value in example.items() if value is not None}
        return fill(example, self.values(words_in(example)))

    def _waits_for(self, value: object) -> bool:
        return any(word.rpartition("_")[0] in self._waiting for word in words_in(value))

    def _make_and_delete(self, noun: str) -> Record:
        name = MAKERS.get(noun, f"create_{noun.lower()}")
        record = self.create(name)
        deletion = REGISTRY[f"delete_{noun.lower()}"]
        confirmed = {"confirm": True} if "confirm" in deletion.input.model_fields else {}
        self.call(deletion.name, id=record["id"], **confirmed)
        return record


def example_of(operation: Operation) -> Mapping[str, Any]:
    """Return the example of an operation, which one whose input requires nothing need not have."""
    if operation.example is not None:
        return operation.example
    if issubclass(operation.input, Patch) or operation.input_schema.get("required"):
        msg = (
            f"{operation.name} has no example. Add example= to its declaration in "
            f"{operation.module}: a valid call, with words in capitals such as PRODUCT_ID for ids."
        )
        raise NoRecipeError(msg)
    return {}


def record_in(answer: Mapping[str, Any]) -> Record:
    """Return the record of a response, which has it as a whole, in one field or only its id."""
    if "id" in answer:
        return answer
    for value in answer.values():
        if isinstance(value, dict) and "id" in value:
            return value
    (record_id,) = (value for name, value in answer.items() if re.fullmatch("[a-z]+Id", name))
    return {**answer, "id": record_id}
