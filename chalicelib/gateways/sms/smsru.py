"""SMS.RU (https://sms.ru/api).

Facts that this module depends on:

- A request is a form with ``api_id``, which stays out of the URL, and ``json=1``. The number has no
  plus sign.
- The status of the response is 200. ``status_code`` of the response and of each number is 100 for
  success, and otherwise says why the request or the number was refused.
- ``test=1`` is a test: nothing is sent and nothing is charged.
- There is no idempotency key, and an SMS can only be looked up by the id in the lost response.
"""

from collections.abc import Mapping
from datetime import datetime

from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways.json_api import JsonApiError, request_json
from chalicelib.gateways.sms import (
    SECONDS,
    Accepted,
    Delivery,
    SmsBusyError,
    SmsRefusedError,
    SmsUnknownError,
    key,
)

_SERVICE = "SMS.RU"
_DONE = 100
# The number is wrong, cannot be reached, is on a stop list, or has had too many SMS.
_NUMBER = frozenset({202, 207, 209, 213, 214, 215, 230, 231, 232, 233})
_TEXT = frozenset({203, 205, 212, 216, 217})
_BUSY = 220  # not available for a moment
_SERVER_ERROR = 500  # The request may have been carried out.

_DELIVERY: Mapping[int, Delivery] = {
    100: "waiting",
    101: "waiting",
    102: "waiting",
    103: "delivered",
    110: "delivered",  # read, in a messenger
}


class SmsRu:
    """The adapter of SMS.RU."""

    def send(self, number: str, text: str, message_id: str) -> Accepted:  # noqa: ARG002  it has no use for the id
        recipient, current = number.removeprefix("+"), settings()
        form = {"to": recipient, "msg": text, "from": current.sms_sender}
        if current.sms_test:
            form["test"] = "1"
        try:
            body = _post("sms/send", form)
        except JsonApiError as error:
            if error.is_unsent:
                raise SmsBusyError(error.reason, error.retry_after) from None
            raise SmsUnknownError(error.reason) from None
        match body:
            case {"status_code": int(code)} if code != _DONE:
                raise _refusal(code)
            case {"sms": {**by_number}}:
                match by_number.get(recipient):
                    case {"status_code": 100, "sms_id": str(provider_id)}:
                        return Accepted(provider_id)
                    case {"status_code": int(code)} if code != _DONE:
                        raise _refusal(code)
        msg = f"{_SERVICE} sent an unknown response"
        raise SmsUnknownError(msg)

    def find_lost(self, number: str, text_hash: str, since: datetime) -> Accepted | None:  # noqa: ARG002  as above
        return None

    def delivery(self, provider_id: str) -> Delivery:
        try:
            body = _post("sms/status", {"sms_id": provider_id})
        except JsonApiError as error:
            raise SmsBusyError(error.reason, error.retry_after) from None
        match body:
            case {"status_code": 100, "sms": {**by_id}}:
                match by_id.get(provider_id):
                    case {"status_code": int(code)}:
                        # All other codes are reasons why it cannot arrive.
                        return _DELIVERY.get(code, "undelivered")
        msg = f"{_SERVICE} does not tell the state of an SMS"
        raise SmsBusyError(msg)


def _post(method: str, form: Mapping[str, str]) -> object:
    return request_json(
        _SERVICE,
        method="POST",
        url=f"{settings().sms_url}/{method}",
        content={"data": {**form, "api_id": key(), "json": "1"}},
        deadline=Deadline(SECONDS),
        statuses={200},
    ).body


def _refusal(code: int) -> SmsRefusedError | SmsBusyError | SmsUnknownError:
    reason = f"{_SERVICE} refused an SMS with the code {code}"
    if code == _BUSY:
        return SmsBusyError(reason)
    if code == _SERVER_ERROR:
        return SmsUnknownError(reason)
    return SmsRefusedError(reason, by_account=code not in _NUMBER | _TEXT)
