"""Batches whose items are validated one by one: an item that is not valid fails alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic import ValidationError as PydanticValidationError
from pydantic_core import CoreSchema, core_schema

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.parsing import refusal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InvalidItem:
    """Takes the place of an item that is not valid; ``error`` says why it is not."""

    received: Any
    error: ValidationError

    def text(self, limit: int, field: str | None = None) -> str:
        """Return the start of a text that was received, or of a field of it; "" if it is no text.

        So an outcome can name the item that it is about.
        """
        value = self.received
        if field is not None:
            value = value.get(field) if isinstance(value, dict) else None
        return value.strip()[:limit] if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class FailsAlone:
    """Marks the items of a batch: ``list[Annotated[Item | InvalidItem, FailsAlone(Item)]]``.

    The published schema is that of the item. ``name`` is what an error about the whole item calls
    it.
    """

    item: Any
    name: str = "item"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Validate as the item does, and keep what is wrong in the item's place."""
        return core_schema.no_info_wrap_validator_function(
            self._validate,
            handler.generate_schema(self.item),
            serialization=core_schema.wrap_serializer_function_ser_schema(_as_received),
        )

    def _validate(self, value: object, validate: ValidatorFunctionWrapHandler) -> object:
        try:
            return validate(value)
        except PydanticValidationError as failure:
            return InvalidItem(value, refusal(self.item, value, failure, name=self.name))


def _as_received(value: object, serialize: core_schema.SerializerFunctionWrapHandler) -> object:
    """Return an item in JSON: two calls are the same only if their invalid items are, too."""
    return value.received if isinstance(value, InvalidItem) else serialize(value)


def valid(items: Iterable[T | InvalidItem]) -> list[T]:
    """Return the items that are valid."""
    return [item for item in items if not isinstance(item, InvalidItem)]
