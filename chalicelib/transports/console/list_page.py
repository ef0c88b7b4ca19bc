"""Declarations of console pages that list records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse

Found = dict[str, Any]
Chosen = dict[str, str]


@dataclass
class ListPage:
    """A page that lists records; its template shows the response and the result of ``values``."""

    template: str
    operation: str
    size: int
    # Names in the page's address, and the filters of the operation.
    filters: Mapping[str, str] = field(default_factory=dict)
    values: Callable[[ConsoleRequest, Found], Found] = lambda *_: {}
    fixed: Callable[[ConsoleRequest], Found] = lambda _: {}  # other arguments
    problem: Callable[[ConsoleRequest, AppError], Problem] = ConsoleRequest.problem
    empty: Found | None = None  # response if a filter names a record that does not exist
    last: int = 999_999  # last page shown

    def index(self, request: ConsoleRequest) -> HttpResponse:
        """List the records that the filters select. A wrong filter is reported and ignored."""
        filters = {name: request.query_value(name).strip() for name in self.filters}
        return self.page(request, filters)

    def arguments(self, filters: Chosen) -> Chosen:
        return {self.filters[name]: value for name, value in filters.items() if value}

    def page(
        self,
        request: ConsoleRequest,
        filters: Chosen,
        status: int = 200,
        problem: Problem | None = None,
    ) -> HttpResponse:
        number = min(request.page_number, self.last)
        fixed = {"size": self.size, **self.fixed(request)}
        try:
            arguments = {**fixed, "page": number, **self.arguments(filters)}
            response = request.call(self.operation, **arguments)
        except AppError as error:
            if isinstance(error, NotFoundError) and self.empty is not None:
                response = dict(self.empty)
            else:
                problem, status, number = self.problem(request, error), error.status, 1
                response = request.call(self.operation, **fixed)
        response.pop("status", None)
        response.setdefault("total", response.get("pagination", {}).get("total"))
        filtered = any(filters.values())
        page_values = {
            **response,
            "page": number,
            "size": self.size,
            "chosen": filters,
            "filtered": filtered,
            "searchable": filtered or response["total"] > SEARCH_THRESHOLD,
            "base_url": settings().public_url,
        }
        page_values |= self.values(request, response)
        return request.page(self.template, status, problem=problem, **page_values)
