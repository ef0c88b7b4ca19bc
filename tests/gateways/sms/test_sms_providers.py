"""The gateways to providers of SMS, against fake servers on loopback."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import clock, deadline, test_workspaces
from chalicelib.core.errors import InTestWorkspaceError, NotConfiguredError
from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import settings
from chalicelib.gateways import secrets_manager, sms
from chalicelib.gateways.sms import SmsBusyError, SmsRefusedError, SmsUnknownError
from tests import fakes
from tests.fakes import JsonServer, openai_api
from tests.fakes.sms import ACCOUNT, KEY, FakeSmsRu, FakeTwilio, form_of
from tests.support import aws_calls

NUMBER = "+79147001234"
HELLO = sms.hash_of("Hello")


@pytest.fixture(params=["smsru", "twilio"])
def server(request: pytest.FixtureRequest) -> JsonServer:
    """Each of the providers."""
    fake: JsonServer = request.getfixturevalue(request.param)
    return fake


def send(text: str = "Вы записаны", number: str = NUMBER) -> sms.Accepted:
    """Send an SMS of the platform."""
    return sms.send(number, text, message_id="m-1", origin=PLATFORM)


def test_sms_ru_gets_a_form_and_the_key_is_in_no_url(smsru: FakeSmsRu) -> None:
    accepted = send()
    assert accepted == sms.Accepted("202648-0000001", None)
    (request,) = smsru.requests
    assert (request.method, request.path, request.query) == ("POST", "/sms/send", {})
    assert form_of(request) == {
        "api_id": KEY,
        "to": "79147001234",
        "msg": "Вы записаны",
        "from": "Workspace",
        "json": "1",
    }


def test_sms_ru_in_test_mode_is_asked_to_send_nothing(
    smsru: FakeSmsRu, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.setenv("SMS_TEST", "1")
    reload_settings()
    send()
    assert form_of(smsru.requests[0])["test"] == "1"


@pytest.mark.parametrize(
    ("sender", "field"), [("Workspace", "From"), ("MG" + "0" * 32, "MessagingServiceSid")]
)
def test_twilio_gets_a_form_with_the_sender(
    twilio: FakeTwilio,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
    sender: str,
    field: str,
) -> None:
    monkeypatch.setenv("SMS_SENDER", sender)
    reload_settings()
    twilio.segments = "2"
    assert send() == sms.Accepted("SM" + "0" * 32, 2)
    assert form_of(twilio.requests[0]) == {"To": NUMBER, "Body": "Вы записаны", field: sender}


def test_twilio_does_not_count_segments_until_a_service_has_chosen_the_sender(
    twilio: FakeTwilio,
) -> None:
    twilio.segments = "0"
    assert send().segments is None


@pytest.mark.parametrize(
    ("code", "by_account"),
    [
        *((code, False) for code in (202, 203, 205, 207, 209, 212, 214, 215, 216, 230, 231, 232)),
        *((code, True) for code in (200, 201, 204, 206, 210, 221, 300, 301, 302, 305, 999)),
    ],
)
@pytest.mark.parametrize("of_request", [True, False])
def test_sms_ru_refuses_a_number_or_everything(
    smsru: FakeSmsRu, code: int, by_account: bool, of_request: bool
) -> None:
    if of_request:
        smsru.refusal = code
    else:
        smsru.codes = [code]
    with pytest.raises(SmsRefusedError, match=str(code)) as caught:
        send()
    assert caught.value.by_account == by_account


@pytest.mark.parametrize(
    ("status", "code", "by_account"),
    [
        *((400, code, False) for code in (21211, 21610, 21612, 21614, 21617)),
        *((400, code, True) for code in (21408, 21606, 21608, 21659)),
        (401, 20003, True),
        (403, 20003, True),
        (404, 20404, True),
    ],
)
def test_twilio_refuses_a_number_or_everything(
    twilio: FakeTwilio, status: int, code: int, by_account: bool
) -> None:
    twilio.refusals = [(status, code)]
    with pytest.raises(SmsRefusedError) as caught:
        send()
    assert caught.value.by_account == by_account


def test_a_provider_that_asks_to_wait_has_sent_nothing(twilio: FakeTwilio) -> None:
    twilio.breaks = fakes.status(429, Retry_After="7")
    with pytest.raises(SmsBusyError) as caught:
        send()
    assert caught.value.retry_after == 7


def test_sms_ru_that_is_unavailable_has_sent_nothing(smsru: FakeSmsRu) -> None:
    smsru.codes = [220]
    with pytest.raises(SmsBusyError):
        send()


def test_a_server_that_cannot_be_reached_has_sent_nothing(server: JsonServer) -> None:
    server.close()
    with pytest.raises(SmsBusyError):
        send()


@pytest.mark.parametrize(
    "misbehaviour",
    [
        fakes.cut_off,
        fakes.huge,
        fakes.status(500),
        fakes.status(502),
        fakes.status(503, Retry_After="7"),
        fakes.body(b"<html>"),
        fakes.body(b"[]"),
        fakes.body(b"{}"),
        fakes.body(b'{"status": "OK", "status_code": 100, "sms": {}}'),
        fakes.body(b'{"sid": "../Calls", "status": "queued"}', 201),
    ],
)
def test_a_lost_response_means_that_the_sms_may_have_been_sent(
    server: JsonServer, misbehaviour: Any
) -> None:
    server.breaks = misbehaviour
    with pytest.raises(SmsUnknownError):
        send()


def test_a_response_that_is_late_means_that_the_sms_may_have_been_sent(server: JsonServer) -> None:
    server.breaks = fakes.silent
    with deadline.within(0.2), pytest.raises(SmsUnknownError, match="did not answer in time"):
        send()


def test_a_server_error_of_sms_ru_means_that_the_sms_may_have_been_sent(smsru: FakeSmsRu) -> None:
    smsru.codes = [500]
    with pytest.raises(SmsUnknownError):
        send()


@pytest.mark.parametrize("misbehaviour", [fakes.cut_off, fakes.status(500), fakes.body(b"<html>")])
def test_neither_key_nor_number_nor_text_is_in_an_error_or_a_log_line(
    server: JsonServer, misbehaviour: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "chalicelib")
    server.breaks = misbehaviour
    with pytest.raises(SmsUnknownError) as caught:
        send()
    assert caught.value.__cause__ is None
    for secret in (KEY, "9147001234", "записаны"):
        assert secret not in f"{caught.value} {caplog.text}"


@pytest.mark.parametrize(
    ("code", "delivery"),
    [
        (100, "waiting"),
        (101, "waiting"),
        (102, "waiting"),
        (103, "delivered"),
        (110, "delivered"),
        *((code, "undelivered") for code in (104, 105, 106, 107, 108, 150, -1)),
    ],
)
def test_sms_ru_tells_whether_an_sms_has_arrived(
    smsru: FakeSmsRu, code: int, delivery: str
) -> None:
    provider_id = send().provider_id
    smsru.states[provider_id] = code
    assert sms.provider().delivery(provider_id) == delivery


@pytest.mark.parametrize(
    ("status", "delivery"),
    [
        *((status, "waiting") for status in ("queued", "accepted", "sending", "sent")),
        *((status, "delivered") for status in ("delivered", "read")),
        *((status, "undelivered") for status in ("undelivered", "failed", "canceled")),
    ],
)
def test_twilio_tells_whether_an_sms_has_arrived(
    twilio: FakeTwilio, status: str, delivery: str
) -> None:
    provider_id = send().provider_id
    twilio.messages[0]["status"] = status
    assert sms.provider().delivery(provider_id) == delivery


def test_a_provider_that_does_not_tell_is_asked_again(server: JsonServer) -> None:
    provider_id = send().provider_id
    for misbehaviour in (fakes.cut_off, fakes.status(500), fakes.body(b"{}")):
        server.breaks = misbehaviour
        with pytest.raises(SmsBusyError):
            sms.provider().delivery(provider_id)


def test_an_sms_whose_response_was_lost_is_found_at_twilio(twilio: FakeTwilio) -> None:
    now = clock.now()
    assert sms.provider().find_lost(NUMBER, HELLO, now) is None
    twilio.add({"To": NUMBER, "From": "Workspace", "Body": "Hello"})
    twilio.add({"To": NUMBER, "From": "Workspace", "Body": "Another"})
    twilio.add({"To": "+79147001235", "From": "Workspace", "Body": "Hello"})
    assert sms.provider().find_lost(NUMBER, HELLO, now) == sms.Accepted("SM" + "0" * 32, 1)
    # An older one with the same text is another SMS.
    assert sms.provider().find_lost(NUMBER, HELLO, now + timedelta(hours=1)) is None
    twilio.breaks = fakes.status(500)
    with pytest.raises(SmsBusyError):
        sms.provider().find_lost(NUMBER, HELLO, now)


def test_nothing_is_sent_from_a_test_workspace(server: JsonServer) -> None:
    with pytest.raises(InTestWorkspaceError):
        sms.send(NUMBER, "Hello", message_id="m-1", origin=test_workspaces.new_id())
    assert server.requests == []


def test_sms_are_off_until_they_are_set_up() -> None:
    assert not sms.is_on()
    with pytest.raises(NotConfiguredError):
        send()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"SMS": "smsc"}, "SMS:"),
        ({"SMS": "smsru", "SMS_KEY": KEY}, "SMS_SENDER"),
        ({"SMS": "smsru", "SMS_KEY": KEY, "SMS_SENDER": "Салон"}, "SMS_SENDER"),
        ({"SMS": "smsru", "SMS_KEY": KEY, "SMS_SENDER": "TwelveLetter"}, "SMS_SENDER"),
        ({"SMS": "smsru", "SMS_SENDER": "Workspace"}, "SMS_KEY"),
        ({"SMS": "twilio", "SMS_SENDER": "Workspace", "SMS_KEY": KEY}, "SMS_ACCOUNT"),
        ({"SMS": "file", "SMS_TEST": "yes"}, "SMS_TEST"),
    ],
)
def test_wrong_settings_are_refused_and_the_key_is_in_no_error(
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
    variables: dict[str, str],
    named: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    reload_settings()
    with pytest.raises(ValueError, match=named) as caught:
        settings()
    assert KEY not in str(caught.value)


def test_an_account_at_twilio_is_known_by_its_form(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    for name, value in {
        "SMS": "twilio",
        "SMS_KEY_SECRET": "arn",
        "SMS_SENDER": "+15005550006",
        "SMS_ACCOUNT": ACCOUNT,
    }.items():
        monkeypatch.setenv(name, value)
    reload_settings()
    assert settings().sms_url == "https://api.twilio.com"


def test_an_sms_in_a_folder_is_one_file_however_often_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None], tmp_path: Path
) -> None:
    monkeypatch.setenv("SMS", "file")
    monkeypatch.setenv("SMS_FOLDER", str(tmp_path))
    reload_settings()
    assert [send(), send()] == [sms.Accepted("m-1", 1)] * 2
    (file,) = tmp_path.iterdir()
    content = json.loads(file.read_text())
    assert (content["to"], content["text"]) == (NUMBER, "Вы записаны")
    assert sms.provider().find_lost(
        NUMBER, sms.hash_of("Вы записаны"), clock.now()
    ) == sms.Accepted("m-1", 1)
    assert sms.provider().delivery("m-1") == "delivered"


@pytest.fixture
def secrets(
    smsru: FakeSmsRu, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[openai_api.OpenAiApi]:
    """Secrets Manager of a deployed stage, whose settings name the secret with the key."""
    with openai_api.serving() as server:
        url = server.url.removesuffix("/v1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        monkeypatch.delenv("SMS_KEY")
        monkeypatch.setenv("SMS_KEY_SECRET", aws_calls.SMS_KEY)
        reload_settings()
        yield server
        secrets_manager._kept.cache_clear()


def test_a_deployed_stage_reads_the_key_from_its_secret(
    smsru: FakeSmsRu, secrets: openai_api.OpenAiApi
) -> None:
    value = json.dumps({"ARN": "arn", "SecretString": f"{KEY}\n"}).encode()
    secrets.answers = [openai_api.plain(value)]
    assert [send(), send()]
    assert len(secrets.asked) == 1
    assert len(smsru.sent) == 2


def test_a_secret_without_a_value_sends_nothing(
    smsru: FakeSmsRu, secrets: openai_api.OpenAiApi
) -> None:
    refusal = json.dumps({"__type": "ResourceNotFoundException", "message": "No."}).encode()
    secrets.answers = [openai_api.refusing(400, refusal)]
    with pytest.raises(SmsRefusedError) as caught:
        send()
    assert caught.value.by_account
    assert smsru.requests == []


def test_a_secret_that_cannot_be_read_sends_nothing_now(
    smsru: FakeSmsRu, secrets: openai_api.OpenAiApi
) -> None:
    secrets.answers = [openai_api.refusing(400, b'{"__type": "AccessDeniedException"}')] * 9
    with pytest.raises(SmsBusyError):
        send()
    assert smsru.requests == []
