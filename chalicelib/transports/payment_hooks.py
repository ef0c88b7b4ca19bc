"""The address to which payment providers send notifications, repeatedly until they get a 200."""

from pydantic_core import to_json

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import REGISTRY
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import (
    JSON_TYPE,
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_size,
)


def serve(request: HttpRequest) -> HttpResponse:
    """Receive a notification. A notification about an unknown payment changes nothing.

    Raises:
        NotFoundError: no account has this address.
        PayloadTooLargeError: the body is larger than any notification.
        RateLimitedError: the sender has sent too many notifications.
        UnavailableError: the database is unavailable. The provider repeats the notification.
        ValidationError: the body is not text.
    """
    check_size(request, MAX_PUBLIC_BODY_BYTES)
    try:
        body = request.body.decode()
    except UnicodeDecodeError:
        raise ValidationError.of(
            "body", message="expected JSON in UTF-8, received other bytes"
        ) from None
    arguments = {"merchantId": request.path["merchant"], "body": body}
    invoke(
        REGISTRY["receive_payment_hook"],
        visitor(request),
        lambda: arguments,
        request_id=request.request_id,
    )
    # The sender does not learn whether the payment is known.
    return HttpResponse(200, to_json({"data": {"status": True}}), {"Content-Type": JSON_TYPE})
