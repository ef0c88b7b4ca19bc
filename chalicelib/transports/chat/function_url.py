"""Adapter that converts events of a Lambda function URL to requests."""

import base64
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from chalicelib.core.errors import NotFoundError
from chalicelib.transports import edge
from chalicelib.transports.chat import chat_route, stream_probe
from chalicelib.transports.chat.chat_route import Handler
from chalicelib.transports.http import HttpRequest, HttpResponse

_PATHS = (chat_route.PATH, stream_probe.PATH)


def respond(event: dict[str, Any], handler: Handler) -> HttpResponse:
    """Return the response to an event (Lambda developer guide, payload format 2.0)."""

    def answer(request: HttpRequest) -> HttpResponse:
        edge.check(request.headers)
        if request.route == chat_route.PATH:
            return chat_route.answer(request, handler)
        if request.route == stream_probe.PATH:
            return stream_probe.handle(request)
        raise NotFoundError("This path does not exist.", key="path")

    response = chat_route.POLICY.handle(_request(event), answer)
    # CloudFront has been observed to wait for the body of a streamed 204 until the function timed
    # out (nitro issue 4417, aws-lambda-web-adapter issue 499).
    return response if response.body else response._replace(status=HTTPStatus.OK, body=b"\n")


def buffered(event: dict[str, Any], handler: Handler) -> dict[str, Any]:
    """Return the complete response to an event, for Lambda's own runtime, which cannot stream."""
    response = respond(event, handler)
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "cookies": list(response.cookies),
        "body": response.whole_body().decode(),
        "isBase64Encoded": False,
    }


def _request(event: dict[str, Any]) -> HttpRequest:
    request_context = event.get("requestContext") or {}
    http = request_context.get("http") or {}
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    if cookies := event.get("cookies"):
        headers["cookie"] = "; ".join(cookies)
    path, body = event.get("rawPath"), event.get("body") or ""
    return HttpRequest(
        method=http.get("method", ""),
        route=path if path in _PATHS else "unrouted",
        headers=headers,
        query=parse_qs(event.get("rawQueryString") or "", keep_blank_values=True),
        body=base64.b64decode(body)
        if event.get("isBase64Encoded")
        else body.encode(errors="surrogatepass"),
        client_ip=edge.client_ip(headers, http.get("sourceIp", "")),
        request_id=request_context["requestId"],
    )
