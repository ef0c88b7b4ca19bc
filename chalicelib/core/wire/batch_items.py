"""Batches whose items are validated separately, so that one invalid item fails only itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic import ValidationError as PydanticValidationError
from pydantic_core import CoreSchema, core_schema

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.parsing import to_validation_error

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InvalidItem:
    """Takes the place of an invalid item, with the reason in ``error``."""

    received: Any
    error: ValidationError

    def text(self, limit: int, field: str | None = None) -> str:
        """Return the start of a received string, or of one of its fields, to identify the item.

        Returns an empty string for other types.
        """
        value = self.received
        if field is not None:
            value = value.get(field) if isinstance(value, dict) else None
        return value.strip()[:limit] if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class FailsAlone:
    """Marks the items of a batch: ``list[Annotated[Item | InvalidItem, FailsAlone(Item)]]``.

    The published schema is the item's. ``name`` is the item's name in errors about it as a whole.
    """

    item: Any
    name: str = "item"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Validate like the item, but return an ``InvalidItem`` instead of failing."""
        return core_schema.no_info_wrap_validator_function(
            self._validate,
            handler.generate_schema(self.item),
            serialization=core_schema.wrap_serializer_function_ser_schema(_serialize_item),
        )

    def _validate(self, value: object, validate: ValidatorFunctionWrapHandler) -> object:
        try:
            return validate(value)
        except PydanticValidationError as failure:
            return InvalidItem(
                value, to_validation_error(self.item, value, failure, name=self.name)
            )


def _serialize_item(value: object, serialize: core_schema.SerializerFunctionWrapHandler) -> object:
    # Invalid items are included, so that fingerprints of calls cover them.
    return value.received if isinstance(value, InvalidItem) else serialize(value)


def valid(items: Iterable[T | InvalidItem]) -> list[T]:
    """Return the items that are valid."""
    return [item for item in items if not isinstance(item, InvalidItem)]
