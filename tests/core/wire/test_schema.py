"""Wire models: fields of an update that reuse the declarations of a new record's model."""

import pytest
from pydantic import Field, ValidationError

from chalicelib.core.wire.schema import (
    Id,
    Kopecks,
    Patch,
    Title,
    Wire,
    copy_descriptions_from,
    optional,
)


class Create(Wire):
    """A new record."""

    title: Title = Field(description="Title.")
    price: Kopecks = Field(default=0, description="In kopecks.")
    note: str | None = optional("Note.")


@copy_descriptions_from(Create)
class Change(Patch):
    """Changes to a record."""

    id: Id = Field(description="Id.")
    title: Title = optional()
    price: Kopecks = optional()
    note: str | None = optional("Note; null clears.")


class TestFieldsAsIn:
    def test_an_optional_field_has_the_description_of_the_other_model(self) -> None:
        properties = Change.model_json_schema()["properties"]
        assert [each["description"] for each in properties.values()] == [
            "Id.",
            "Title.",
            "In kopecks.",
            "Note; null clears.",
        ]

    def test_a_field_stays_optional_and_keeps_its_bounds(self) -> None:
        assert Change(id="1", price=5).changes == {"price": 5}
        with pytest.raises(ValidationError, match="at least 0"):
            Change(id="1", price=-1)

    def test_a_field_of_another_type_is_refused(self) -> None:
        class Other(Patch):
            price: int = optional()

        with pytest.raises(
            TypeError, match=r"Other.price has no field of the same name and type in Create"
        ):
            copy_descriptions_from(Create)(Other)

    def test_a_field_that_is_missing_in_the_other_model_is_refused(self) -> None:
        class Other(Patch):
            weight: Kopecks = optional()

        with pytest.raises(TypeError, match=r"Other.weight"):
            copy_descriptions_from(Create)(Other)
