"""Models of updates, dates of any year, and models made of rows."""

from datetime import date

import pytest
from pydantic import Field, ValidationError

from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.schema import Id, Patch, Title, Wire, optional
from chalicelib.core.wire.times import AnyDate


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
        with pytest.raises(ValidationError, match="title, price, discount") as refusal:
            Change(id="1")
        assert [error["type"] for error in refusal.value.errors()] == ["no_changes"]

    def test_a_patch_of_a_patch_keeps_its_fields_and_its_own_required_ones(self) -> None:
        schema = json_schema(SmallChange)
        assert list(schema["properties"])[-2:] == ["sortOrder", "reason"]
        assert schema["required"] == ["id", "reason"]


class Birth(Wire):
    """A date of any year."""

    born: AnyDate = Field(description="Date of birth.")


class TestAnyDate:
    @pytest.mark.parametrize("year", [1, 1815, 1970, 9999])
    def test_a_date_of_any_year_is_read_and_written_alike(self, year: int) -> None:
        text = f"{year:04}-12-10"
        birth = Birth.model_validate({"born": text}, strict=True)
        assert birth.born == date(year, 12, 10)
        assert birth.model_dump(mode="json") == {"born": text}
        assert Birth.from_row({"born": birth.born}) == birth

    @pytest.mark.parametrize("value", ["yesterday", "1815-13-10", "", 1815, True])
    def test_what_is_no_date_is_refused(self, value: object) -> None:
        with pytest.raises(ValidationError) as refusal:
            Birth.model_validate({"born": value})
        assert refusal.value.errors()[0]["type"] == "date"

    def test_its_schema_bounds_no_year(self) -> None:
        schema = json_schema(Birth)["properties"]["born"]
        assert (schema["type"], schema["format"]) == ("string", "date")
        assert "pattern" not in schema


def test_a_row_with_another_type_than_its_model_is_named_without_its_value() -> None:
    with pytest.raises(ValidationError) as failure:
        Ref.from_row({"id": date(1815, 12, 10)})
    (note,) = failure.value.__notes__
    assert f"{__name__}.Ref.id" in note
    assert "1815" not in note
