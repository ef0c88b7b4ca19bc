"""A form takes the limits of its controls from the fields of a model."""

from typing import Annotated, Any

import pytest
from pydantic import Field, StringConstraints

from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.core.wire.limits import Limits, limits_by_path, limits_of
from chalicelib.core.wire.schema import Id, Patch, Title, Wire, optional
from tests.support.sweep import sweep

load_all()


class Person(Wire):
    """A person."""

    name: Title = Field(description="Name.")
    phone: Annotated[str, Field(max_length=80)] | None = optional("Phone.")


class Create(Wire):
    """A new record."""

    title: Title = Field(description="Title.")
    note: Annotated[str, StringConstraints(max_length=500)] | None = optional("Note.")
    stock: int = Field(default=0, ge=0, le=9, description="Stock.")
    tags: list[Annotated[str, StringConstraints(max_length=50)]] = optional("Tags.")
    people: list[Person] = optional("People.")


class Change(Patch, Create):
    """Changes to a record."""

    id: Id = Field(description="Id.")


@pytest.mark.parametrize(
    ("model", "path", "limits"),
    [
        (Create, "title", Limits(is_required=True, min_chars=1, max_chars=200)),
        (Create, "note", Limits(is_required=False, max_chars=500)),
        (Create, "stock", Limits(is_required=False)),
        (Create, "tags", Limits(is_required=False)),
        (Create, "people.name", Limits(is_required=True, min_chars=1, max_chars=200)),
        (Create, "people.phone", Limits(is_required=False, max_chars=80)),
        (Change, "id", Limits(is_required=True, min_chars=1, max_chars=64)),
        (Change, "title", Limits(is_required=True, min_chars=1, max_chars=200)),
        (Change, "note", Limits(is_required=False, max_chars=500)),
    ],
)
def test_the_limits_are_those_of_the_declared_type(
    model: type[Wire], path: str, limits: Limits
) -> None:
    assert limits_of(model, path) == limits
    assert dict(limits_by_path(model))[path] == limits


@pytest.mark.parametrize("path", ["colour", "title.name", "people.age"])
def test_a_field_that_the_model_lacks_has_no_limits(path: str) -> None:
    with pytest.raises(KeyError):
        limits_of(Create, path)


@sweep("operation", REGISTRY)
def test_the_lengths_are_those_that_the_contract_publishes(operation: Any) -> None:
    schema = operation.input_schema
    for name, published in schema.get("properties", {}).items():
        limits = limits_of(operation.input, name)
        is_text = "string" in published.get("type", ())
        keywords = ("minLength", "maxLength")
        expected = tuple(published.get(keyword) for keyword in keywords if is_text)
        assert (limits.min_chars, limits.max_chars) == (expected or (None, None)), name
        assert limits.is_required >= (name in schema.get("required", ())), name
