"""Functions of lazy routes are imported with the first request."""

from typing import Any, get_args, get_type_hints

import pytest

from chalicelib.transports import chalice_app, routes
from chalicelib.transports.chat import stream_runtime
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.routes import ROUTES
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.lazy import Lazy
from tests.support.sweep import sweep

HANDLERS = [Lazy[Any, Any](stream_runtime.HANDLER), *routes.PAGES.values()]
VIEWS = [view for page in ROUTES.values() for view in (page.get, page.post) if view]
OTHERS = {
    name: (lazy, module.__annotations__[name])
    for module in (chalice_app, routes)
    for name, lazy in vars(module).items()
    if isinstance(lazy, Lazy)
}


def signature(lazy: Lazy[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    """Return the types of the parameters and of the result."""
    *parameters, result = get_type_hints(lazy.resolve()).values()
    return tuple(parameters), result


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.target)
def test_a_handler_takes_a_request_and_returns_a_response(handler: Lazy[Any, Any]) -> None:
    assert signature(handler) == ((HttpRequest,), HttpResponse)


@sweep("view", VIEWS)
def test_a_view_of_the_console_takes_a_console_request_and_returns_a_response(
    view: Lazy[Any, Any],
) -> None:
    assert signature(view) == ((ConsoleRequest,), HttpResponse)


@pytest.mark.parametrize("name", OTHERS)
def test_other_lazy_functions_have_their_declared_signature(name: str) -> None:
    lazy, declared = OTHERS[name]
    assert signature(lazy) == get_args(declared)
