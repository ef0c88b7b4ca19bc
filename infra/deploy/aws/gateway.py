"""What API Gateway answers by itself, and how much it lets through: applied after Chalice.

Chalice imports the whole API on every deployment, which puts back the stock answers (chalice.md).
"""

import json
from dataclasses import dataclass
from typing import Any

import click

RATE, BURST = 500, 1000
"""Requests a second that a stage takes, and at once; an account has 10,000 and 5,000 for all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the gateway's own: code and message of the envelope.

    ``status`` is None where AWS's own status stays.
    """

    code: str
    message: str
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


_NOT_FOUND = Answer("not_found", "No such path. GET /api/openapi.json lists all there are.", 404)
_INVALID = Answer("validation_error", "The gateway could not read this request.", 400)
_FORBIDDEN = Answer("forbidden", "The gateway refused this request.")
_LATE = Answer(
    "internal_error", "The service did not answer in time. Try again; a write may be done.", 504
)
_BROKEN = Answer("internal_error", "The service could not answer. Try again in a moment.")
_BUSY = Answer(
    "rate_limited",
    "Too many requests at once. Try again in a second.",
    429,
    (("Retry-After", "1"),),
)
ANSWERS: dict[str, Answer] = {
    # An unknown path, or method of a known one; with a key, AWS takes that for its own signature.
    "MISSING_AUTHENTICATION_TOKEN": _NOT_FOUND,
    "INVALID_SIGNATURE": _NOT_FOUND,
    "RESOURCE_NOT_FOUND": _NOT_FOUND,
    "BAD_REQUEST_BODY": _INVALID,
    "BAD_REQUEST_PARAMETERS": _INVALID,
    "REQUEST_TOO_LARGE": Answer(
        "payload_too_large", "A request may have 5 MB; larger files go by an upload address.", 413
    ),
    "UNSUPPORTED_MEDIA_TYPE": Answer(
        "unsupported_media_type", "This path does not take that Content-Type.", 415
    ),
    "THROTTLED": _BUSY,
    "QUOTA_EXCEEDED": _BUSY,
    "INTEGRATION_TIMEOUT": _LATE,
    "INTEGRATION_FAILURE": _LATE,
    "DEFAULT_4XX": _FORBIDDEN,
    "DEFAULT_5XX": _BROKEN,
}
"""By the types that API Gateway distinguishes (developer guide, Gateway response types).

Its own messages are never shown: one of them repeats the Authorization header.
"""


def apply(client: Any, api: str, stage: str, about: str) -> None:  # noqa: ANN401  boto3's own
    """Give a REST API our answers and its stage the throttle, and deploy that."""
    for kind, answer in ANSWERS.items():
        client.put_gateway_response(restApiId=api, responseType=kind, **_response(answer))
    # As Chalice does: a deployment that says nothing of tracing may turn it off.
    client.create_deployment(restApiId=api, stageName=stage, description=about, tracingEnabled=True)
    client.update_stage(
        restApiId=api,
        stageName=stage,
        patchOperations=[
            {"op": "replace", "path": "/*/*/throttling/rateLimit", "value": str(RATE)},
            {"op": "replace", "path": "/*/*/throttling/burstLimit", "value": str(BURST)},
        ],
    )


def find(client: Any, name: str, function: str) -> str | None:  # noqa: ANN401  boto3's own
    """Return the REST API of a name whose requests go to a function; None if there is none.

    Raises:
        click.ClickException: there are several.
    """
    found = [
        api["id"]
        for page in client.get_paginator("get_rest_apis").paginate()
        for api in page["items"]
        if api["name"] == name and _calls(client, api["id"], function)
    ]
    if len(found) > 1:
        msg = (
            f"Several REST APIs lead to {function}: {', '.join(found)}. Delete all but the one "
            "that the edge stack leads to (aws apigateway delete-rest-api)."
        )
        raise click.ClickException(msg)
    return found[0] if found else None


def _calls(client: Any, api: str, function: str) -> bool:  # noqa: ANN401  boto3's own
    """Whether any method of an API leads to a function: all of ours lead to the same."""
    pages = client.get_paginator("get_resources").paginate(restApiId=api, embed=["methods"])
    for page in pages:
        for resource in page["items"]:
            for method in resource.get("resourceMethods", {}):
                integration = client.get_integration(
                    restApiId=api, resourceId=resource["id"], httpMethod=method
                )
                return f":function:{function}/invocations" in integration.get("uri", "")
    return False


def _response(answer: Answer) -> dict[str, Any]:
    """Return what API Gateway is told; it fills in ``$context…`` and keeps the rest."""
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "X-Request-Id, Retry-After",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **dict(answer.headers),
    }
    envelope = {
        "status": False,
        "message": answer.message,
        "code": answer.code,
        "requestId": "$context.requestId",
    }
    return {
        **({"statusCode": str(answer.status)} if answer.status else {}),
        "responseParameters": {
            **{f"gatewayresponse.header.{name}": f"'{value}'" for name, value in headers.items()},
            "gatewayresponse.header.X-Request-Id": "context.requestId",
        },
        "responseTemplates": {"application/json": json.dumps({"data": envelope})},
    }
