"""Base classes and field types of the models for inputs and outputs of operations.

Names are camelCase in JSON and snake_case in Python. Every field has a description.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, Self, get_args

from annotated_types import GroupedMetadata
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from pydantic_core import ValidationError as PydanticValidationError

from chalicelib.core.clock import iso
from chalicelib.core.errors import OR_CLEAR
from chalicelib.core.text import BIDI_CONTROL, CONTROL, has_link, is_visible


class Wire(BaseModel):
    """Base of every input and output model.

    Schemas are built on first use, to keep cold starts short.

    >>> class Rename(Wire):
    ...     new_name: str
    >>> Rename.model_validate({"newName": "Shop"}).model_dump(by_alias=True)
    {'newName': 'Shop'}
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        from_attributes=True,
        frozen=True,
        defer_build=True,
        extra="ignore",
        # Exceptions are logged, and the log must not contain what callers send.
        hide_input_in_errors=True,
    )

    REJECTED_FIELDS: ClassVar[Mapping[str, str]] = {}
    """Wire names that callers may send by mistake, with advice on what to send instead.

    These fields are refused. Other unknown fields are ignored.
    """

    SET_BY_ADDRESS: ClassVar[frozenset[str]] = frozenset()
    """Wire names of fields that the address of a request decides. No message proposes them."""

    EXACTLY_ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of optional fields. ``exactly_one`` requires exactly one field of each group."""
    AT_LEAST_ONE_OF: ClassVar[tuple[str, ...]] = ()
    """Optional fields, of which a call needs at least one. ``has_at_least_one`` checks it."""

    OWNED_BY: ClassVar[str] = ""
    """The field with the id of the resource that a record belongs to, or "". A member with the role
    *staff* gets no record of another resource (``core.own_part``)."""
    HIDDEN_FROM_STAFF: ClassVar[Mapping[str, Any]] = {}
    """Fields that a member with the role *staff* does not get, each with the value in its place."""

    @classmethod
    def from_row(cls, attributes: Mapping[str, Any], **computed: Any) -> Self:  # noqa: ANN401  fields of any type
        """Return a model of stored and computed values. Missing fields are null."""
        values = {**_nulls_by_field(cls), **attributes, **computed}
        try:
            # ``model_validate`` only adds options, which takes a fifth of its time.
            return cls.__pydantic_validator__.validate_python(values)  # type: ignore[no-any-return]
        except PydanticValidationError as failure:
            for error in failure.errors(include_url=False, include_context=False):
                failure.add_note(_unfit(cls, error["loc"], error["input"]))
            raise

    def provided(self, *excluded: str) -> dict[str, Any]:
        """Return the fields that the caller sent, by Python name, without ``excluded``."""
        submitted = self.model_fields_set
        return {
            name: getattr(self, name)
            for name in type(self).__pydantic_fields__
            if name in submitted and name not in excluded
        }


def _unfit(model: type[Wire], path: tuple[int | str, ...], value: object) -> str:
    # The value may be personal, so only its type is named.
    return (
        f"{model.__module__}.{model.__name__}.{'.'.join(map(str, path))} does not take the row's "
        f"{type(value).__name__}. Give both the same type: a date is AnyDate and DateAttribute, a "
        "moment Timestamp and UTCDateTimeAttribute."
    )


@cache
def _nulls_by_field(model: type[Wire]) -> Mapping[str, None]:
    return dict.fromkeys(model.model_fields)


class Partial(Wire):
    """Changes to a record. ``null`` clears a field that allows it. Omitted fields are unchanged."""


class Patch(Partial):
    """Changes to a record that must contain at least one change.

    A patch may inherit from the model of a new record, whose fields it then takes (ADR 78). All are
    optional. The body has what differs, and what only a patch can change.
    """

    CONDITIONS: ClassVar[frozenset[str]] = frozenset({"id", "if_version"})
    """Fields that select the record or set a condition. They change nothing."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    """Fields of a new record that the patch does not take."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401  pydantic's
        """Make the fields of a new record optional.

        A new field of the body stands before the inherited field that the body has next, or last.
        """
        fields, body = cls.__pydantic_fields__, set(cls.__annotations__)
        for name in cls.LEFT_OUT:
            fields.pop(name, None)
        bases = [base for base in cls.__bases__ if issubclass(base, Wire)]
        inherited = {name for base in bases for name in base.model_fields}
        complete = [base for base in bases if not issubclass(base, Partial)]
        for name in {name for base in complete for name in base.model_fields}:
            if name not in body | cls.CONDITIONS | cls.LEFT_OUT:
                fields[name].default = fields[name].default_factory = None
        order = [name for name in fields if name in inherited]
        place = len(order)
        for name in reversed([name for name in cls.__annotations__ if name in fields]):
            if name in inherited:
                place = order.index(name)
            else:
                order.insert(place, name)
        cls.__pydantic_fields__ = {name: fields[name] for name in order}

    @property
    def changes(self) -> dict[str, Any]:
        """The changes that the caller sent, by Python name."""
        return self.provided(*self.CONDITIONS)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.changes:
            fields = {n: i for n, i in type(self).model_fields.items() if n not in self.CONDITIONS}
            names = ", ".join(wire_name(type(self), n) for n in fields)
            clearable = any(NoneType in get_args(info.annotation) for info in fields.values())
            or_clear = OR_CLEAR if clearable else ""
            raise PydanticCustomError(
                "no_changes",
                f"nothing to change; send at least one of {{names}}{or_clear}",
                {"names": names},
            )
        return self


def exactly_one(model: Wire) -> None:
    """Require one field of each group of ``EXACTLY_ONE_OF``.

    Model validators call this function.
    """
    for names in model.EXACTLY_ONE_OF:
        if sum(getattr(model, name) is not None for name in names) != 1:
            wire_names = [wire_name(type(model), name) for name in names]
            raise PydanticCustomError(
                "exactly_one",
                "expected exactly one of {names}",
                {"names": " and ".join(wire_names), "field": wire_names[0]},
            )


def has_at_least_one(model: Wire) -> bool:
    """Whether a field of ``AT_LEAST_ONE_OF`` has a value that is not empty."""
    return any(getattr(model, name) for name in model.AT_LEAST_ONE_OF)


def require_ordered_bounds(model: Wire, lower: str, *, upper: str) -> None:
    """Require that a lower bound is not above the upper one. Either bound may be missing."""
    low, high = getattr(model, lower), getattr(model, upper)
    if low is not None and high is not None and low > high:
        low, high = (wire_name(type(model), name) for name in (lower, upper))
        message = "expected {low} up to {high}, received the larger one first; swap them"
        raise PydanticCustomError("bounds", message, {"low": low, "high": high, RECEIVED: True})


def optional(description: str) -> Any:  # noqa: ANN401  the default of a field of any type
    """Declare an optional field. ``null`` has the same effect as omitting the field.

    There are two exceptions. In a ``Partial``, ``null`` clears a field whose type includes None.
    In a field marked ``NULL_IS_A_VALUE``, ``null`` is a value.

    >>> class Rename(Wire):
    ...     note: str | None = optional("Why.")
    >>> Rename.model_validate({}).note is None
    True
    """
    return Field(default=None, description=description)


def only_if_set(description: str) -> Any:  # noqa: ANN401  the default of a field of any type
    """Declare a field of a result that is left out, and not null, where there is nothing to say.

    >>> class Booking(Wire):
    ...     visit_id: str | None = only_if_set("Id of the visit; else left out.")
    >>> Booking().model_dump()
    {}
    """
    return Field(default=None, description=description, exclude_if=lambda value: value is None)


IfVersion = Annotated[int, Field(ge=1)]
"""Version that a record must have for a write to succeed."""
IF_VERSION = optional("409 if the version differs.")


NULL_IS_A_VALUE: Final = "null counts"
"""A mark, in ``Annotated``, of an optional field in which ``null`` is validated like any value.

A field whose type does not include None refuses ``null``.
"""


RECEIVED: Final = "received"
"""A mark, in the context of a custom error, that its message says what was received.

Other messages get the received value at their end. A message about a secret has the mark.
"""


OPENAPI_ONLY = "x-document"
"""A keyword in a field's JSON Schema. It contains keywords for the OpenAPI document only.

Tool schemas omit these keywords, because some AI clients refuse unknown ones. They would also make
every list of the tools longer.
"""


NOT_IN_TOOLS = "x-not-in-tools"
"""A keyword in a field's JSON Schema: true if tool schemas omit the field, or the values of an
enumeration that they omit. Tools accept what they omit: a program needs it, and a model does not.
"""


class NoInput(Wire):
    """Empty input, for an operation without arguments."""


# Field types. The schemas publish every bound.
MAX_ID = 64
Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID)]
"""An opaque id."""


def printable(text: str) -> str:
    """Refuse control characters, bidirectional controls, and text without a visible character."""
    if CONTROL.search(text):
        raise PydanticCustomError("control_characters", "expected no control characters")
    if BIDI_CONTROL.search(text):
        raise PydanticCustomError(
            "bidi_controls", "expected no characters that change the direction of text"
        )
    if text and not is_visible(text):
        raise PydanticCustomError("invisible", "expected at least one visible character")
    return text


def refuse_link(text: str) -> str:
    """Refuse a name with a web address. The service writes names into e-mail to any address."""
    if has_link(text):
        raise PydanticCustomError(
            "has_link",
            "expected a name without a web address",
            {"advice": "remove :// and www., and put a space after each dot"},
        )
    return text


MAX_TITLE = 200
Title = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE),
    AfterValidator(printable),
]
MailedTitle = Annotated[Title, AfterValidator(refuse_link)]
"""A title for use in e-mail."""
SearchText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pattern(GroupedMetadata):
    """A regular expression, for ``Annotated``. Errors contain ``expected`` instead of the pattern.

    The JSON Schema publishes the pattern with anchors at both ends.
    """

    pattern: str
    expected: str

    def __iter__(self) -> Iterator[object]:
        """Yield the validator and the JSON Schema keyword."""
        yield AfterValidator(self._check)
        yield Field(json_schema_extra={"pattern": f"^{self.pattern}$"})

    def _check(self, text: str) -> str:
        # A pattern that ends in ``$`` would accept a line break at the end.
        if not re.fullmatch(self.pattern, text):
            raise PydanticCustomError("pattern", "expected {what}", {"what": self.expected})
        return text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unique(GroupedMetadata):
    """A list without duplicate strings, for ``Annotated``. Errors contain ``expected``.

    Items of other types, such as invalid items of a batch, are not compared.
    """

    expected: str

    def __iter__(self) -> Iterator[object]:
        """Yield the validator and the JSON Schema keyword."""
        yield AfterValidator(self._check)
        yield Field(json_schema_extra={OPENAPI_ONLY: {"uniqueItems": True}})

    def _check(self, items: list[Any]) -> list[Any]:
        texts = [item for item in items if isinstance(item, str)]
        if len(set(texts)) < len(texts):
            raise PydanticCustomError("not_unique", "expected {what}", {"what": self.expected})
        return items


Slug = Annotated[
    str,
    Pattern(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lower-case Latin letters, digits and hyphens, without a hyphen at the "
        "start or end",
    ),
]


def _must_be_true(value: bool) -> bool:  # noqa: FBT001  a validator
    if not value:
        raise PydanticCustomError("not_true", "expected true")
    return value


LiteralTrue = Annotated[
    bool,
    AfterValidator(_must_be_true),
]
"""A flag that can only be true. It must be JSON's ``true``, not a number that equals it.

Its schema has no ``const``: client generators turn a constant boolean into the string "true". The
field's description says "Only true."
"""


Minutes = Annotated[int, Field(ge=0)]
SortOrder = Annotated[int, Field(ge=-(10**12), le=10**12)]
PageNumber = Annotated[int, Field(ge=1, le=10**9)]


Timestamp = Annotated[
    datetime,
    PlainSerializer(iso, return_type=str, when_used="always"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A moment, written as ISO 8601 in UTC with milliseconds."""


class DeletedResult(Wire):
    """Result of a deletion. With ``dryRun``, ``deleted`` is false and nothing has changed."""

    id: Id = Field(description="Id of the record.")
    deleted: bool = Field(description="Whether it was deleted; false for a dry run.")


def wire_name(model: type[BaseModel], field: str) -> str:
    """Return the wire name of a model's field."""
    return model.__pydantic_fields__[field].alias or field
