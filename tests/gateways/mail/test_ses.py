"""Mail through the API of Amazon SES, on moto and on errors as botocore describes them."""

from collections.abc import Iterator
from email import message_from_bytes
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import ANY, Stubber
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ses.models import ses_backends

from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError, MailRefusedError, message, ses
from tests.gateways.mail.conftest import SENDER, Configure, example_mail

REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def _client_is_new() -> Iterator[None]:
    ses._client.cache_clear()
    yield
    ses._client.cache_clear()


@pytest.fixture
def stub(configure: Configure) -> Iterator[Stubber]:
    configure("ses", ses_configuration_set="events")
    with Stubber(ses._client()) as stubbed:
        yield stubbed
        stubbed.assert_no_pending_responses()


def test_ses_gets_the_whole_message(configure: Configure) -> None:
    configure("ses")
    with mock_aws():
        boto3.client("sesv2").create_email_identity(EmailIdentity="notify.example.com")
        mail.send(example_mail(subject="Вы записаны"))
        (sent_message,) = ses_backends[DEFAULT_ACCOUNT_ID][REGION].sent_messages
    assert sent_message.source == SENDER
    assert set(sent_message.destinations) == {"ada@example.com"}
    raw = sent_message.raw_data
    got = message_from_bytes(raw if isinstance(raw, bytes) else raw.encode())
    assert got["Message-ID"] == "<01J-1@notify.example.com>"
    assert got.get_content_type() == "multipart/alternative"


def test_request_has_the_configuration_set_and_the_message_id(stub: Stubber) -> None:
    expected: dict[str, Any] = {
        "FromEmailAddress": SENDER,
        "Destination": {"ToAddresses": ["ada@example.com"]},
        "Content": {"Raw": {"Data": ANY}},
        "ConfigurationSetName": "events",
        "EmailTags": [{"Name": "mail", "Value": "01J-1"}],
    }
    stub.add_response("send_email", {"MessageId": "1"}, expected)
    mail.send(example_mail())


def test_message_to_a_visitor_has_the_workspace_as_tag_and_header(stub: Stubber) -> None:
    expected: dict[str, Any] = {
        "FromEmailAddress": SENDER,
        "Destination": {"ToAddresses": ["ada@example.com"]},
        "Content": {"Raw": {"Data": ANY}},
        "ConfigurationSetName": "events",
        "EmailTags": [{"Name": "mail", "Value": "01J-1"}, {"Name": "workspace", "Value": "ws"}],
    }
    stub.add_response("send_email", {"MessageId": "1"}, expected)
    visitors = example_mail(workspace_id="ws")
    mail.send(visitors)
    built = message_from_bytes(message.build(visitors, SENDER).content)
    assert built["X-Workspace-Id"] == "ws"
    with pytest.raises(ValueError, match="workspace_id: expected"):
        mail.send(example_mail(workspace_id="ws\r\nBcc: bob@example.com"))


@pytest.mark.parametrize("code", ["MessageRejected", "BadRequestException"])
def test_message_rejected_by_ses_is_refused_permanently(code: str, stub: Stubber) -> None:
    stub.add_client_error("send_email", code, "Address ada@example.com is not verified.")
    with pytest.raises(MailRefusedError, match=code) as caught:
        mail.send(example_mail())
    assert "ada@" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        ("TooManyRequestsException", ses.SLOW_DOWN_SECONDS),
        ("LimitExceededException", ses.SLOW_DOWN_SECONDS),
        ("SendingPausedException", None),
        ("AccountSuspendedException", None),
        ("MailFromDomainNotVerifiedException", None),
        ("NotFoundException", None),
        ("AccessDeniedException", None),
        ("InternalFailure", None),
    ],
)
def test_other_errors_of_ses_delay_the_message(
    code: str, seconds: float | None, stub: Stubber
) -> None:
    stub.add_client_error("send_email", code)
    with pytest.raises(MailDelayedError) as caught:
        mail.send(example_mail())
    assert caught.value.retry_after == seconds


def test_lost_response_delays_the_message_without_an_sdk_retry(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("ses")
    attempts: list[object] = []

    def lose(request: object, **_: object) -> None:
        attempts.append(request)
        raise ReadTimeoutError(endpoint_url="https://email.example")

    ses._client().meta.events.register("before-send.sesv2.SendEmail", lose)
    with pytest.raises(MailDelayedError, match="ReadTimeoutError"):
        mail.send(example_mail())
    assert len(attempts) == 1


def test_an_address_in_another_script_is_refused_by_ses(configure: Configure) -> None:
    configure("ses")
    with pytest.raises(MailRefusedError, match="ASCII"):
        mail.send(example_mail(recipient="анна@example.com"))
