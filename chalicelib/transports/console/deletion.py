"""Deletions of records: a page that asks first, and the form that deletes."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from chalicelib.core.errors import NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse, redirect

View = Callable[[ConsoleRequest], HttpResponse]


def deletion(
    template: str,
    find: Callable[[ConsoleRequest], dict[str, Any]],
    operation: str,
    done: str,
    **arguments: Any,  # noqa: ANN401  any JSON
) -> tuple[View, View]:
    """Return the functions that ask before a deletion, and delete.

    The last variable of the page's path is the record. ``find`` returns what the question shows.
    ``arguments`` are those of the operation; the names of variables of the path stand for them.
    A record that is gone, as after a second click, leads to the list, which confirms the deletion.
    """

    def gone(request: ConsoleRequest) -> HttpResponse:
        record_id = list(request.http.path.values())[-1]
        request.require_deleted(record_id)
        return redirect(f"{request.path.rpartition(f'/{record_id}')[0]}?done={done}")

    def confirm(request: ConsoleRequest) -> HttpResponse:
        try:
            return request.page(template, **find(request))
        except NotFoundError:
            return gone(request)

    def delete(request: ConsoleRequest) -> HttpResponse:
        variables = request.http.path
        sent = {
            name: variables.get(value, value) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        with suppress(NotFoundError):
            request.call(operation, **sent)
        return gone(request)

    return confirm, delete
