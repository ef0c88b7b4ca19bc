"""moto's server as a stand-in for AWS: with the API that Chalice imports, and zips to look into.

moto takes OpenAPI 3 alone, and Chalice sends API Gateway its Swagger 2.0 (shared design note
chalice.md); what moto reads of a document is the same in both, so it is relabelled.
"""

from collections.abc import Callable, Iterable
from typing import Any

from moto.apigateway.models import APIGatewayBackend
from moto.awslambda.models import lambda_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server import werkzeug_app

from infra import moto_server

CODE = "/moto-code/"
"""Below it are the zips of functions, by region and name: Lambda gives out a link to S3."""


def relabelled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a Swagger 2.0 document as one that moto imports."""
    if "swagger" not in document:
        return document
    kept = {name: value for name, value in document.items() if name != "swagger"}
    return kept | {"openapi": "3.0.1", "info": {"description": "", **document["info"]}}


def accept_swagger() -> None:
    """Have moto's API Gateway import what Chalice sends."""
    imports, puts = APIGatewayBackend.import_rest_api, APIGatewayBackend.put_rest_api

    def import_rest_api(self: Any, api_doc: Any, fail_on_warnings: bool) -> Any:
        return imports(self, relabelled(api_doc), fail_on_warnings)

    def put_rest_api(
        self: Any, function_id: str, api_doc: Any, fail_on_warnings: bool, mode: str = "merge"
    ) -> Any:
        return puts(self, function_id, relabelled(api_doc), fail_on_warnings, mode)

    APIGatewayBackend.import_rest_api = import_rest_api
    APIGatewayBackend.put_rest_api = put_rest_api


def giving_code(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Serve the zips that functions were made of beside moto's own paths."""

    def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(CODE):
            return app(environ, start)
        region, name = path.removeprefix(CODE).split("/")
        function = lambda_backends[DEFAULT_ACCOUNT_ID][region].get_function(name)
        start("200 OK", [("Content-Type", "application/zip")])
        return [function.code_bytes]

    return serve


if __name__ == "__main__":
    accept_swagger()
    stock = werkzeug_app.DomainDispatcherApplication
    moto_server.DomainDispatcherApplication = lambda *a, **k: giving_code(stock(*a, **k))
    moto_server.main()
