"""Input and output that all lists share: page, order and time of changes, and the total."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.core.wire.schema import NOT_IN_TOOLS, PageNumber, Wire, optional
from chalicelib.core.wire.times import Moment

MAX_WHOLE = 1000
"""Records on the page of a list that by default has all of them. No workspace has more of these."""

NO_ARGUMENT = Field(json_schema_extra={NOT_IN_TOOLS: True})
"""A mark, in ``Annotated``, of a field that tool schemas omit."""
NO_SORT_BY_UPDATE = Field(json_schema_extra={NOT_IN_TOOLS: [UPDATED_AT]})
"""A mark of a list's ``sort``, whose value ``updatedAt`` tool schemas omit."""
SortDirection = Annotated[Literal["asc", "desc"] | None, NO_ARGUMENT]
SORT_DIRECTION = "Direction; default: asc for updatedAt, else the list's own."


def _order(model: type[Wire], names: Iterable[str]) -> None:
    fields = model.__pydantic_fields__
    model.__pydantic_fields__ = {name: fields[name] for name in names if name in fields}


class PageQuery(Wire):
    """Page of a list."""

    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=20, ge=1, le=100, description="Records per page.")

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401  pydantic's
        """Put the fields of the body in its order, after those that are only inherited."""
        inherited = [name for name in cls.__pydantic_fields__ if name not in cls.__annotations__]
        _order(cls, [*inherited, *cls.__annotations__])

    @property
    def rows(self) -> slice:
        """The part of all matching records that is on the page."""
        return slice((self.page - 1) * self.size, self.page * self.size)

    def counted(self, total: int) -> dict[str, Any]:
        """Return the fields of a ``ListResult`` for a page of ``total`` records."""
        pagination = Pagination(total=total, page=self.page, size=self.size, limit=self.size)
        return {"total": total, "pagination": pagination}


class WholePageQuery(PageQuery):
    """Page of a list that by default has everything."""

    page: Annotated[PageNumber, NO_ARGUMENT] = Field(default=1, description="Page, from 1.")
    size: Annotated[int, NO_ARGUMENT] = Field(
        default=MAX_WHOLE, ge=1, le=MAX_WHOLE, description="Records per page."
    )


class ListQuery(PageQuery):
    """Page of a list of records, to which the classes of the nouns add filters or another size."""

    updated_since: Annotated[Moment | None, NO_ARGUMENT] = optional(
        "Only records changed at or after this time; ISO 8601."
    )

    @property
    def sorts_by_update(self) -> bool:
        return vars(self).get("sort") == UPDATED_AT  # Not every list has a sort.

    @model_validator(mode="after")
    def _check_one_direction(self) -> Self:
        sort, direction = map(vars(self).get, ("sort", "sort_dir"))
        if direction is not None and sort is not None and sort.endswith(("Asc", "Desc")):
            message = "expected no sortDir with the sort {sort}, which names its direction"
            raise PydanticCustomError("direction", message, {"sort": sort, "field": "sortDir"})
        return self


class SortedListQuery(ListQuery):
    """Page of a list of records in the list's own order, or by the time of changes."""

    sort: Annotated[Literal["updatedAt"] | None, NO_ARGUMENT] = optional(
        "updatedAt: by the last change; default: the list's own order."
    )
    sort_dir: SortDirection = optional(SORT_DIRECTION)


class WholeListQuery(WholePageQuery, SortedListQuery):
    """Page of a list of records that by default has all of them."""


class Pagination(Wire):
    """Page of a list."""

    total: int = Field(description="Number of matching records on all pages.")
    page: int = Field(description="The page returned.")
    size: int = Field(description="The page size used.")
    limit: int = Field(description="The page size used, as size.")


class ListResult(Wire):
    """One page of a list, to which the classes of the nouns add its records."""

    total: int = Field(description="Number of matching records on all pages.")
    pagination: Pagination = Field(description="Page, page size and total.")

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401  pydantic's
        """Put the records first."""
        _order(cls, [*cls.__annotations__, *cls.__pydantic_fields__])
