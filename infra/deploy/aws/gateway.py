"""API Gateway's own responses and its throttle, applied after Chalice.

Chalice imports the whole API at every deployment, which restores the default responses.
"""

import json
from dataclasses import dataclass
from typing import Any

import click

RATE, BURST = 500, 1000
"""Requests per second of a stage, and its burst. The account's limits are 10,000 and 5,000."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the gateway itself, with the code and message of the envelope.

    Pass None as ``status`` to keep AWS's own status.
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
    # An unknown path, or a wrong method. AWS takes a key in such a request for a signature.
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
"""Responses by API Gateway's response types (developer guide, Gateway response types).

Its own messages are never shown, because one message repeats the Authorization header.
"""


def apply(client: Any, api: str, *, stage: str, about: str) -> None:  # noqa: ANN401  boto3's own
    """Set the responses of a REST API and the throttle of its stage, and deploy them."""
    for kind, answer in ANSWERS.items():
        client.put_gateway_response(restApiId=api, responseType=kind, **_response(answer))
    # As Chalice does. A deployment without this option may turn tracing off.
    client.create_deployment(restApiId=api, stageName=stage, description=about, tracingEnabled=True)
    client.update_stage(
        restApiId=api,
        stageName=stage,
        # Chalice has no setting for the throttle, so the stage is patched after each deployment.
        patchOperations=[
            {"op": "replace", "path": "/*/*/throttling/rateLimit", "value": str(RATE)},
            {"op": "replace", "path": "/*/*/throttling/burstLimit", "value": str(BURST)},
        ],
    )


def find(client: Any, name: str, *, function: str) -> str | None:  # noqa: ANN401  boto3's own
    """Return the id of the REST API with this name that calls a function; None without one.

    Raises:
        click.ClickException: there are several.
    """
    apis = [
        api["id"]
        for page in client.get_paginator("get_rest_apis").paginate()
        for api in page["items"]
        if api["name"] == name and _calls(client, api["id"], function=function)
    ]
    if len(apis) > 1:
        msg = (
            f"Several REST APIs lead to {function}: {', '.join(apis)}. Delete all but the one "
            "that the edge stack leads to (aws apigateway delete-rest-api)."
        )
        raise click.ClickException(msg)
    return apis[0] if apis else None


def _calls(client: Any, api: str, *, function: str) -> bool:  # noqa: ANN401  boto3's own
    """Whether an API calls a function, which all methods of a stage's API do."""
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
    """Return the response as parameters for API Gateway, which replaces ``$context…``."""
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
            # API Gateway replaces a variable only where it is not quoted.
            "gatewayresponse.header.X-Request-Id": "context.requestId",
        },
        "responseTemplates": {"application/json": json.dumps({"data": envelope})},
    }
