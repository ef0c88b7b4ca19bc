"""Declarations of deletions: a page that asks first, and the form that deletes."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

View = Callable[[ConsoleRequest], HttpResponse]


def deletion(  # noqa: PLR0913  the parts of a deletion
    template: str,
    find: Callable[[ConsoleRequest], dict[str, Any]],
    operation: str,
    *,
    notice: str,
    to: Callable[[ConsoleRequest], str] | None = None,
    conflict: str = "",
    **arguments: Any,  # noqa: ANN401  any JSON
) -> tuple[View, View]:
    """Return the functions that ask before a deletion, and delete.

    The last variable of the page's path is the record. ``find`` returns what the question shows. In
    ``arguments`` a name of a path variable stands for its value. A record that is gone, as after a
    second click, leads to the list, whose path is ``to`` or the path without the id. ``conflict``
    is the catalogue key for a record that cannot be deleted now.
    """

    def gone(request: ConsoleRequest) -> HttpResponse:
        record_id = list(request.http.path.values())[-1]
        request.require_deleted(record_id)
        path = to(request) if to else request.path.rpartition(f"/{record_id}")[0]
        return redirect(f"{path}?done={notice}")

    def confirm(request: ConsoleRequest) -> HttpResponse:
        try:
            return request.page(template, **find(request))
        except NotFoundError:
            return gone(request)

    def delete(request: ConsoleRequest) -> HttpResponse:
        variables = request.http.path
        delete_arguments = {
            name: variables.get(value, value) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        try:
            with suppress(NotFoundError):
                request.call(operation, **delete_arguments)
        except ConflictError as error:
            if not conflict:
                raise
            problem = Problem(request.translate(conflict))
            return request.page(template, error.status, problem=problem, **find(request))
        return gone(request)

    return confirm, delete
