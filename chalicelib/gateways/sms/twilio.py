"""Twilio's Messages (https://www.twilio.com/docs/messaging/api/message-resource).

Facts that this module depends on:

- A request is a form, and authenticates by HTTP Basic with the account's SID and its token.
- A refused request has a ``code`` (https://www.twilio.com/docs/api/errors) and the status 4xx. 429
  means that it was not carried out.
- ``num_segments`` is a string. It is "0" until a messaging service has chosen the sender.
- There is no idempotency key, but the messages to a number can be listed, newest first.
- A message stays ``sent`` if the network reports no delivery. Test credentials send nothing.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways.json_api import JsonApiError, JsonResponse, request_json
from chalicelib.gateways.sms import (
    SECONDS,
    Accepted,
    Delivery,
    SmsBusyError,
    SmsRefusedError,
    SmsUnknownError,
    hash_of,
    key,
)

_SERVICE = "Twilio"
_CREATED = 201
_REFUSED = range(400, 500)
# 429 is left out: nothing was carried out, and the response may have no JSON.
_STATUSES = frozenset({200, _CREATED, *_REFUSED}) - {429}
# The number is wrong, no mobile number, cannot be reached, or has unsubscribed.
_NUMBER = frozenset({21211, 21217, 21265, 21421, 21610, 21612, 21614})
_TEXT = frozenset({21602, 21605, 21617, 30038})
_SID = re.compile("(?:SM|MM)[0-9a-fA-F]{32}", re.ASCII)
_LISTED = 50
_CLOCK_DIFFERENCE = timedelta(minutes=5)

_DELIVERY: Mapping[str, Delivery] = {
    "delivered": "delivered",
    "read": "delivered",
    "undelivered": "undelivered",
    "failed": "undelivered",
    "canceled": "undelivered",
}


class Twilio:
    """The adapter of Twilio."""

    def send(self, number: str, text: str, message_id: str) -> Accepted:  # noqa: ARG002  it has no use for the id
        sender = settings().sms_sender
        name = "MessagingServiceSid" if sender.startswith("MG") else "From"
        try:
            response = _request(
                "POST", "Messages.json", data={"To": number, "Body": text} | {name: sender}
            )
        except JsonApiError as error:
            if error.is_unsent:
                raise SmsBusyError(error.reason, error.retry_after) from None
            raise SmsUnknownError(error.reason) from None
        match response.body:
            case {"sid": str(sid)} if response.status == _CREATED and _SID.fullmatch(sid):
                return _accepted(response.body)
            case {"code": int(code)} if response.status in _REFUSED:
                raise _refusal(code)
        if response.status in _REFUSED:
            msg = f"{_SERVICE} answered with status {response.status}"
            raise SmsRefusedError(msg, by_account=True)
        msg = f"{_SERVICE} sent an unknown response"
        raise SmsUnknownError(msg)

    def find_lost(self, number: str, text_hash: str, since: datetime) -> Accepted | None:
        try:
            response = _request("GET", "Messages.json", params={"To": number, "PageSize": _LISTED})
        except JsonApiError as error:
            raise SmsBusyError(error.reason, error.retry_after) from None
        match response.body:
            case {"messages": list(messages)}:
                earliest = since - _CLOCK_DIFFERENCE
                lost = (m for m in messages if _is_lost(m, text_hash, earliest))
                return next(map(_accepted, lost), None)
        msg = f"{_SERVICE} does not list messages"
        raise SmsBusyError(msg)

    def delivery(self, provider_id: str) -> Delivery:
        if not _SID.fullmatch(provider_id):
            return "undelivered"
        try:
            response = _request("GET", f"Messages/{provider_id}.json")
        except JsonApiError as error:
            raise SmsBusyError(error.reason, error.retry_after) from None
        match response.body:
            case {"status": str(status)}:
                return _DELIVERY.get(status, "waiting")
        msg = f"{_SERVICE} does not tell the state of an SMS"
        raise SmsBusyError(msg)


def _request(method: str, path: str, **content: Any) -> JsonResponse:  # noqa: ANN401  arguments of requests
    account = settings().sms_account
    return request_json(
        _SERVICE,
        method=method,
        url=f"{settings().sms_url}/2010-04-01/Accounts/{account}/{path}",
        content={**content, "auth": (account, key())},
        deadline=Deadline(SECONDS),
        statuses=_STATUSES,
    )


def _accepted(message: Any) -> Accepted:  # noqa: ANN401  an object of Twilio with a SID
    segments = str(message.get("num_segments", ""))
    is_number = segments.isdecimal() and len(segments) < 4  # noqa: PLR2004  a bound for int
    return Accepted(str(message["sid"]), (int(segments) or None) if is_number else None)


def _is_lost(message: object, text_hash: str, earliest: datetime) -> bool:
    match message:
        case {"sid": str(sid), "body": str(body), "date_created": str(created)}:
            try:
                made_at = parsedate_to_datetime(created)
            except (ValueError, OverflowError):
                return False
            is_same = bool(_SID.fullmatch(sid)) and hash_of(body) == text_hash
            return is_same and made_at >= earliest
    return False


def _refusal(code: int) -> SmsRefusedError:
    reason = f"{_SERVICE} refused an SMS with the code {code}"
    return SmsRefusedError(reason, by_account=code not in _NUMBER | _TEXT)
