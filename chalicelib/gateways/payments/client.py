"""Requests to the API of a payment provider, with the errors of ``gateways.payments``."""

from typing import Any, NamedTuple
from urllib.parse import quote

from chalicelib.core.deadline import Deadline
from chalicelib.gateways.json_api import JsonApiError, JsonResponse, request_json
from chalicelib.gateways.payments import (
    PaymentUnknownError,
    ProviderError,
    UnknownOutcomeError,
)

SECONDS = 10.0  # API Gateway ends a call of a client after 29 seconds.

_OK, _UNKNOWN = 200, 404
# Final refusals. The status is 409 or 429 if the same request may succeed later.
_REFUSALS = {400, 401, 402, 403, 404, 405, 415, 422}
_REASONS = {
    401: "does not accept the credentials. Copy the shop id and the secret key again.",
    403: "does not allow this with the given key. Create a key with the rights to take payments.",
    404: "does not have this payment.",
}


class Client(NamedTuple):
    """Access to the API of a provider. ``service`` is the provider's name in errors."""

    service: str
    base_url: str
    user: str
    password: str

    def call(self, method: str, *path: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401  arguments of ``requests``
        """Send a request, and return the JSON object of a response with status 200.

        Raises ProviderError if it was refused, UnknownOutcomeError without a usable response in
        ``SECONDS``.
        """
        url = "/".join((self.base_url, *(quote(part, safe="") for part in path)))
        # Bytes, because ``requests`` cannot encode a string outside Latin-1.
        content["auth"] = (self.user.encode(), self.password.encode())
        try:
            response = request_json(
                self.service,
                method=method,
                url=url,
                content=content,
                deadline=Deadline(SECONDS),
                statuses={_OK, *_REFUSALS},
            )
        except JsonApiError as error:
            raise UnknownOutcomeError(error.reason) from None
        if response.status in _REFUSALS:
            msg = f"{self.service} {_reason(response)}"
            raise PaymentUnknownError(msg) if response.status == _UNKNOWN else ProviderError(msg)
        if not isinstance(response.body, dict):
            raise self.unusable()
        return response.body

    def unusable(self) -> UnknownOutcomeError:
        """Return the error for a response that does not have the documented form."""
        return UnknownOutcomeError(f"{self.service} sent an unknown response")


def _reason(response: JsonResponse) -> str:
    # The provider's message is left out, because it may repeat data of the client.
    if response.status in _REASONS:
        return _REASONS[response.status]
    body = response.body if isinstance(response.body, dict) else {}
    # Stripe nests the error.
    error = body["error"] if isinstance(body.get("error"), dict) else body
    parts = (error.get("code") or error.get("type"), error.get("parameter") or error.get("param"))
    words = [str(part)[:60] for part in parts if part]
    return f"refused the request ({', '.join(words) or response.status})."
