"""Findings and advice of the doctor's checks of SES and the Telegram bot."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from infra.deploy import doctor, published_settings, stage_facts
from infra.deploy.aws import messaging
from infra.deploy.aws.account import Account
from infra.deploy.doctor import Finding
from tests.fakes.telegram import TOKEN, FakeTelegram
from tests.infra.conftest import REGION, new_checkout

NAME = "workspace-api-dev"
ACCOUNT = {
    "SendingEnabled": True,
    "ProductionAccessEnabled": True,
    "EnforcementStatus": "HEALTHY",
    "SendQuota": {"Max24HourSend": 50_000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0},
}
DESTINATION = {
    "Name": "service",
    "Enabled": True,
    "MatchingEventTypes": ["SEND", "BOUNCE", "COMPLAINT"],
    "SnsDestination": {"TopicArn": "arn:aws:sns:eu-central-1:123456789012:topic"},
}


class Ses:
    """SES as the doctor reads it. A string is the code of an error."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "get_account": ACCOUNT,
            "get_email_identity": {"VerifiedForSendingStatus": True},
            "get_configuration_set": {"SendingOptions": {"SendingEnabled": True}},
            "get_configuration_set_event_destinations": {"EventDestinations": [DESTINATION]},
        } | answers
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            self.asked.append(request)
            answer = self.answers[name]
            if isinstance(answer, str):
                raise ClientError({"Error": {"Code": answer, "Message": "No."}}, name)
            return answer

        return call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose stage sends by SES."""
    root = new_checkout(tmp_path / "checkout")
    path = root / ".chalice" / "config.json"
    config = json.loads(path.read_text())
    mail = {"MAIL": "ses", "MAIL_FROM": "mail@notify.example.com"}
    config["stages"]["dev"]["environment_variables"] = mail
    path.write_text(json.dumps(config))
    return root


@pytest.fixture
def findings_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that returns the findings with a given SES, by name."""

    def examine(ses: Any) -> dict[str, Finding]:
        account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
        account._clients["sesv2", REGION] = ses
        monkeypatch.setattr(
            messaging, "_webhook", lambda *_: (None, "The stage has no Telegram bot.")
        )
        monkeypatch.setattr(messaging, "_webhook_of_max", lambda *_: (None, "No bot at MAX."))
        return {finding.name: finding for finding in doctor.examine_messages(account, "dev", root)}

    return examine


def test_a_stage_that_can_send_passes(findings_for: Any) -> None:
    ses = Ses()
    findings = findings_for(ses)
    assert [findings[name].ok for name in ("mail account", "mail domain", "mail reports")] == (
        [True] * 3
    )
    assert {"EmailIdentity": "notify.example.com"} in ses.asked
    assert {"ConfigurationSetName": NAME} in ses.asked


@pytest.mark.parametrize(
    ("changes", "name", "ok", "says"),
    [
        (
            {"get_account": {**ACCOUNT, "ProductionAccessEnabled": False}},
            "account",
            None,
            "sandbox",
        ),
        (
            {"get_account": {**ACCOUNT, "SendingEnabled": False, "EnforcementStatus": "SHUTDOWN"}},
            "account",
            False,
            "state SHUTDOWN",
        ),
        ({"get_account": "AccessDeniedException"}, "account", None, "Could not be found out"),
        ({"get_email_identity": "NotFoundException"}, "domain", False, "Create it as an identity"),
        ({"get_email_identity": {"VerifiedForSendingStatus": False}}, "domain", False, "DKIM"),
        ({"get_configuration_set": "NotFoundException"}, "reports", None, "make deploy creates it"),
        (
            {"get_configuration_set": {"SendingOptions": {"SendingEnabled": False}}},
            "reports",
            False,
            f"--sending-enabled --configuration-set-name {NAME}",
        ),
        (
            {"get_configuration_set_event_destinations": {"EventDestinations": []}},
            "reports",
            False,
            "does not report BOUNCE, COMPLAINT, SEND to a topic",
        ),
    ],
)
def test_each_fault_of_ses_is_found_with_advice(
    findings_for: Any, changes: dict[str, Any], name: str, ok: bool | None, says: str
) -> None:
    finding = findings_for(Ses(**changes))[f"mail {name}"]
    assert finding.ok is ok
    assert says in finding.text


def test_the_check_of_the_domain_fits_the_api_of_ses() -> None:
    """moto has identities, which are never verified, but neither accounts nor destinations."""
    account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
    with mock_aws():
        client = account._clients["sesv2", REGION] = boto3.client("sesv2", REGION)
        assert "Create it as an identity" in messaging._identity(account, "unknown.example.com")[1]
        client.create_email_identity(EmailIdentity="unknown.example.com")
        assert "has not verified" in messaging._identity(account, "unknown.example.com")[1]
        assert "does not exist" in messaging._configuration_set(account, NAME)[1]


def test_a_stage_that_does_not_send_by_ses_is_not_asked_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
    checks = messaging.checks(account, "prod", root)
    assert [name for name, _ in checks] == ["telegram", "max"]


class TestTelegram:
    @pytest.fixture
    def webhook_finding(self, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return a function that returns the finding for a token of the stage's bot."""

        class DataStack:
            def __init__(self, *_: Any) -> None: ...

            def outputs(self) -> dict[str, str]:
                return {"TelegramTokenSecretArn": "arn:secret"}

        url = {"PUBLIC_URL": "https://api.example.com"}
        monkeypatch.setattr(messaging, "Stack", DataStack)
        monkeypatch.setattr(published_settings, "published", lambda *_: url)

        def webhook(token: str = TOKEN) -> Finding:
            monkeypatch.setattr(stage_facts, "secret", lambda *_: (token, "1"))
            account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
            checks = dict(messaging.checks(account, "prod", doctor.package.ROOT))
            return doctor._finding("telegram", checks["telegram"])

        return webhook

    def test_a_stage_without_a_bot_needs_no_webhook(self, webhook_finding: Any) -> None:
        assert webhook_finding("").ok is None

    def test_a_webhook_that_is_not_the_stages_fails_with_the_command(
        self, webhook_finding: Any, telegram: FakeTelegram
    ) -> None:
        finding = webhook_finding()
        assert finding.ok is False
        assert "admin --stage prod telegram-webhook --set" in finding.text

    def test_a_registered_webhook_passes(
        self, webhook_finding: Any, telegram: FakeTelegram
    ) -> None:
        telegram.webhook = {"url": "https://api.example.com/api/telegram/webhook"}
        assert webhook_finding().ok is True
        telegram.error, telegram.pending = "Wrong response: 403", [{}, {}, {}]
        finding = webhook_finding()
        assert finding.ok is None
        assert "Wrong response: 403), and 3 wait" in finding.text

    def test_a_refused_token_is_noted_without_the_token(self, webhook_finding: Any) -> None:
        finding = webhook_finding("1:other")
        assert finding.ok is None
        assert "1:other" not in finding.text
