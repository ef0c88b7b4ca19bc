"""Models of updates inherit the fields of the new record's model."""

import pytest
from pydantic import Field, ValidationError

from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.schema import Id, Patch, Title, Wire, optional


class Ref(Wire):
    """Reference to a record."""

    id: Id = Field(description="Id.")


class Create(Wire):
    """A new record."""

    title: Title = Field(description="Title.")
    price: Kopecks = Field(default=0, description="In kopecks.")
    tags: list[str] = Field(default_factory=list, description="Tags.")
    note: str | None = optional("Note.")


class Change(Patch, Create, Ref):
    """Changes to a record."""

    discount: Kopecks = optional("Kopecks off.")
    tags: list[str] = optional("Replaces all.")
    sort_order: int = optional("Position.")


class SmallChange(Change):
    """Changes to a record, of which a call may make fewer."""

    reason: str = Field(description="Reason.")


class TestPatchOfANewRecord:
    def test_the_fields_have_the_order_and_the_descriptions_of_the_new_record(self) -> None:
        properties = json_schema(Change)["properties"]
        assert [f"{name}: {schema['description']}" for name, schema in properties.items()] == [
            "id: Id.",
            "title: Title.",
            "price: In kopecks.",
            "discount: Kopecks off.",
            "tags: Replaces all.",
            "note: Note.",
            "sortOrder: Position.",
        ]

    def test_only_what_selects_the_record_is_required_and_defaults_are_gone(self) -> None:
        assert json_schema(Change)["required"] == ["id"]
        assert Change(id="1", note=None).changes == {"note": None}
        assert "default" not in str(json_schema(Change))

    def test_a_new_record_still_requires_its_fields_and_has_its_defaults(self) -> None:
        assert json_schema(Create)["required"] == ["title"]
        assert Create(title="Bread").model_dump() == {
            "title": "Bread",
            "price": 0,
            "tags": [],
            "note": None,
        }

    def test_a_field_keeps_its_bounds_and_refuses_null_if_its_type_does(self) -> None:
        assert Change(id="1", price=5).changes == {"price": 5}
        with pytest.raises(ValidationError, match="at least 0"):
            Change(id="1", price=-1)
        with pytest.raises(ValidationError, match="kopecks"):
            Change.model_validate({"id": "1", "price": None})

    def test_a_change_of_nothing_names_what_can_change(self) -> None:
        with pytest.raises(ValidationError, match=r"send at least one of title, price, discount"):
            Change(id="1")

    def test_a_patch_of_a_patch_keeps_its_fields_and_its_own_required_ones(self) -> None:
        schema = json_schema(SmallChange)
        assert list(schema["properties"])[-2:] == ["sortOrder", "reason"]
        assert schema["required"] == ["id", "reason"]
