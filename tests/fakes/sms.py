"""Providers of SMS, with the responses that their documentation publishes."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs

import pytest

from chalicelib.core import clock
from tests.fakes import JsonServer, ReceivedRequest

KEY = "0123456789ABCDEF-secret"
ACCOUNT = "AC" + "0" * 32


def form_of(request: ReceivedRequest) -> dict[str, str]:
    """Return the fields of a request."""
    return {name: values[-1] for name, values in parse_qs(request.body.decode()).items()}


class FakeSmsRu(JsonServer):
    """SMS.RU. ``codes`` are the next status codes of numbers, and ``refusal`` one of requests.

    ``loses`` lets it send an SMS without a response.
    """

    def __init__(self) -> None:
        super().__init__()
        self.codes: list[int] = []
        self.refusal: int | None = None
        self.states: dict[str, int] = {}
        self.sent: list[dict[str, str]] = []
        self.loses: Callable[[Any], None] | None = None

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        form = form_of(request)
        if form.get("api_id") != KEY:
            return 200, {
                "status": "ERROR",
                "status_code": 200,
                "status_text": "Неправильный api_id",
            }
        if self.refusal is not None:
            return 200, {"status": "ERROR", "status_code": self.refusal, "status_text": "…"}
        if request.path == "/sms/status":
            sms_id = form["sms_id"]
            code = self.states.get(sms_id, -1)
            state = {"status": "OK", "status_code": code, "cost": 0.5, "status_text": "…"}
            return 200, {"status": "OK", "status_code": 100, "sms": {sms_id: state}, "balance": 1.0}
        code = self.codes.pop(0) if self.codes else 100
        outcome: dict[str, Any] = {"status": "ERROR", "status_code": code, "status_text": "…"}
        if code == 100:
            self.sent.append(form)
            sms_id = f"202648-{len(self.sent):07}"
            self.states[sms_id] = 102
            outcome = {"status": "OK", "status_code": 100, "sms_id": sms_id}
        return 200, {
            "status": "OK",
            "status_code": 100,
            "sms": {form["to"]: outcome},
            "balance": 4122.56,
        }


class FakeTwilio(JsonServer):
    """Twilio's Messages. ``refusals`` are the next statuses and codes of refused messages."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[tuple[int, int]] = []
        self.messages: list[dict[str, Any]] = []
        self.segments = "1"

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        token = b64encode(f"{ACCOUNT}:{KEY}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {token}":
            return _refused(401, 20003)
        root = f"/2010-04-01/Accounts/{ACCOUNT}/Messages"
        if request.method == "POST" and request.path == f"{root}.json":
            if self.refusals:
                return _refused(*self.refusals.pop(0))
            return 201, self.add(form_of(request))
        if request.path == f"{root}.json":
            listed = [m for m in reversed(self.messages) if m["to"] == request.query["To"]]
            return 200, {"messages": listed, "page": 0, "page_size": 50, "next_page_uri": None}
        sid = request.path.removeprefix(f"{root}/").removesuffix(".json")
        found = next((m for m in self.messages if m["sid"] == sid), None)
        return (200, found) if found else _refused(404, 20404)

    def add(self, form: dict[str, str]) -> dict[str, Any]:
        """Add a message, as a request without a response does."""
        message = {
            "account_sid": ACCOUNT,
            "api_version": "2010-04-01",
            "body": form["Body"],
            "date_created": format_datetime(clock.now()),
            "date_sent": None,
            "direction": "outbound-api",
            "error_code": None,
            "error_message": None,
            "from": form.get("From"),
            "messaging_service_sid": form.get("MessagingServiceSid"),
            "num_media": "0",
            "num_segments": self.segments,
            "price": None,
            "price_unit": "USD",
            "sid": f"SM{len(self.messages):032x}",
            "status": "queued",
            "to": form["To"],
        }
        self.messages.append(message)
        return message


def _refused(status: int, code: int) -> tuple[int, Any]:
    more = f"https://www.twilio.com/docs/errors/{code}"
    return status, {"code": code, "message": "…", "more_info": more, "status": status}


def _use(monkeypatch: pytest.MonkeyPatch, reload: Callable[[], None], **variables: str) -> None:
    for name, value in {"no_proxy": "127.0.0.1", **variables}.items():
        monkeypatch.setenv(name, value)
    reload()


@pytest.fixture
def smsru(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[FakeSmsRu]:
    """SMS.RU, which the service is configured for."""
    with FakeSmsRu() as server:
        variables = {"SMS": "smsru", "SMS_KEY": KEY, "SMS_SENDER": "Workspace"}
        _use(monkeypatch, reload_settings, SMS_URL=server.url, **variables)
        yield server


@pytest.fixture
def twilio(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[FakeTwilio]:
    """Twilio, which the service is configured for."""
    with FakeTwilio() as server:
        variables = {"SMS": "twilio", "SMS_KEY": KEY, "SMS_SENDER": "Workspace"}
        variables |= {"SMS_ACCOUNT": ACCOUNT, "SMS_URL": server.url}
        _use(monkeypatch, reload_settings, **variables)
        yield server
