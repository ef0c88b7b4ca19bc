"""Output and questions of the deployment commands."""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner
from moto import mock_aws

from chalicelib.core.settings import read, settings
from infra.deploy import (
    check_commands,
    commands,
    deployed_stage,
    destruction,
    doctor,
    published_settings,
    smoke,
    stage_config,
)
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Change
from infra.deploy.deployment import Deployment, DeployOptions
from infra.deploy.smoke import Check
from infra.deploy.stage_config import StageFacts
from infra.operator.admin import connect
from tests.infra.conftest import REGION

RESULT: dict[str, Any] = {
    "stage": "dev",
    "apiUrl": "https://a.execute-api.eu-central-1.amazonaws.com/dev/",
    "chatUrl": "https://c.lambda-url.eu-central-1.on.aws/",
    "baseUrl": "https://d1.cloudfront.example",
    "distributionId": "D1",
    "records": [],
    "stopped": [],
}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with mock_aws():
        account_in_use = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
        monkeypatch.setattr("infra.deploy.aws.account.sign_in", lambda _: account_in_use)
        monkeypatch.setattr(doctor, "examine_machine", lambda *_: iter(()))
        monkeypatch.setattr(doctor, "examine_account", lambda *_: iter(()))
        monkeypatch.setattr(deployed_stage, "wait_until_healthy", lambda _: None)
        yield account_in_use


def run(command: click.Command, *arguments: str) -> tuple[int, Any, str]:
    """Run a command without a terminal, and return its status, JSON and messages."""
    outcome = CliRunner().invoke(command, arguments)
    return outcome.exit_code, json.loads(outcome.stdout) if outcome.stdout else None, outcome.stderr


class TestDeploy:
    @pytest.fixture
    def deployed_options(self, monkeypatch: pytest.MonkeyPatch) -> list[DeployOptions]:
        all_options: list[DeployOptions] = []

        def deploy(deployment: Deployment, options: DeployOptions) -> dict[str, Any]:
            all_options.append(options)
            deployment.confirm([Change("Add", "AWS::S3::Bucket", "Bucket")])
            return dict(RESULT)

        monkeypatch.setattr(Deployment, "deploy", deploy)
        return all_options

    def look(self, monkeypatch: pytest.MonkeyPatch, *, ok: bool) -> list[smoke.Target]:
        targets: list[smoke.Target] = []

        def look(target: smoke.Target) -> Iterator[Check]:
            targets.append(target)
            yield Check("health", ok, "")

        monkeypatch.setattr(smoke, "run", look)
        return targets

    def test_deploy_prints_one_object_that_ends_with_the_base_url(
        self, monkeypatch: pytest.MonkeyPatch, deployed_options: list[DeployOptions]
    ) -> None:
        targets = self.look(monkeypatch, ok=True)
        status, printed, stderr = run(commands.deploy, "--stage", "dev", "--yes", "--domain", "")
        assert (status, printed) == (0, RESULT | {"smoke": "ok"})
        assert stderr.splitlines()[-1] == "https://d1.cloudfront.example"
        (options,) = deployed_options
        assert options.choices == {"Domain": ""}
        assert targets[0].origins == (RESULT["apiUrl"], RESULT["chatUrl"])

    def test_deploy_fails_if_the_smoke_test_fails(
        self, monkeypatch: pytest.MonkeyPatch, deployed_options: list[DeployOptions]
    ) -> None:
        self.look(monkeypatch, ok=False)
        status, printed, stderr = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, printed["smoke"]) == (1, "failed")
        assert "FAILED  health" in stderr
        assert "There is no earlier release to go back to" in stderr

    @pytest.fixture
    def rolled_back(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The releases that were put back. The release R1 is before the deployed one."""
        names: list[str] = []

        def rollback(_: Deployment, name: str, **__: Any) -> dict[str, Any]:
            names.append(name)
            return RESULT | {"release": name}

        monkeypatch.setattr(Deployment, "rollback", rollback)
        monkeypatch.setattr(deployed_stage, "earlier_release", lambda _: "R1")
        return names

    def test_a_failed_smoke_test_names_the_command_that_rolls_back(
        self,
        monkeypatch: pytest.MonkeyPatch,
        deployed_options: list[DeployOptions],
        rolled_back: list[str],
    ) -> None:
        self.look(monkeypatch, ok=False)
        status, printed, stderr = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, printed, rolled_back) == (1, RESULT | {"smoke": "failed"}, [])
        command = "python -m infra rollback --stage dev --region eu-central-1 --release R1"
        assert stderr.splitlines()[-1].endswith(command)

    def test_a_failed_smoke_test_rolls_back_if_that_was_requested(
        self,
        monkeypatch: pytest.MonkeyPatch,
        deployed_options: list[DeployOptions],
        rolled_back: list[str],
    ) -> None:
        self.look(monkeypatch, ok=False)
        options = ("--stage", "dev", "--yes", "--rollback-on-failure")
        status, printed, stderr = run(commands.deploy, *options)
        assert (status, rolled_back) == (1, ["R1"])
        outcome = {"smoke": "failed", "rolledBackTo": "R1", "smokeAfterRollback": "failed"}
        assert printed == RESULT | outcome
        assert "The release R1 was put back; its smoke test: failed." in stderr

    @pytest.mark.parametrize("answer", ["y", "n", ""])
    def test_a_failed_smoke_test_offers_the_rollback_at_a_terminal(
        self,
        monkeypatch: pytest.MonkeyPatch,
        deployed_options: list[DeployOptions],
        rolled_back: list[str],
        answer: str,
    ) -> None:
        self.look(monkeypatch, ok=False)
        questions: list[str] = []

        def confirm(question: str, **_: Any) -> bool:
            questions.append(question)
            return answer == "y"

        monkeypatch.setattr(commands, "_is_at_terminal", lambda: True)
        monkeypatch.setattr(click, "confirm", confirm)
        status, _, _ = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, rolled_back) == (1, ["R1"] if answer == "y" else [])
        assert questions == ["Put the release R1 back now? Data stays as it is."]

    def test_a_rollback_that_fails_leaves_the_result_of_the_deployment(
        self,
        monkeypatch: pytest.MonkeyPatch,
        deployed_options: list[DeployOptions],
        rolled_back: list[str],
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise click.ClickException("AWS refused.")

        self.look(monkeypatch, ok=False)
        monkeypatch.setattr(Deployment, "rollback", refuse)
        options = ("--stage", "dev", "--yes", "--rollback-on-failure")
        status, printed, stderr = run(commands.deploy, *options)
        assert (status, printed) == (1, RESULT | {"smoke": "failed"})
        assert "AWS refused." in stderr

    def test_deploy_skips_checks_of_stopped_functions(
        self, monkeypatch: pytest.MonkeyPatch, deployed_options: list[DeployOptions]
    ) -> None:
        monkeypatch.setitem(RESULT, "stopped", ["api_handler"])
        targets = self.look(monkeypatch, ok=False)
        status, printed, stderr = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, printed["smoke"], targets) == (0, "skipped", [])
        assert "kept from running" in stderr

    @pytest.mark.parametrize("records_exist", [True, False])
    def test_deploy_skips_smoke_checks_until_dns_records_exist(
        self,
        monkeypatch: pytest.MonkeyPatch,
        deployed_options: list[DeployOptions],
        records_exist: bool,
    ) -> None:
        record = {"name": "api.example.com", "type": "CNAME", "value": "d1.cloudfront.example"}
        url = "https://api.example.com"
        monkeypatch.setitem(RESULT, "records", [record])
        monkeypatch.setitem(RESULT, "baseUrl", url)
        monkeypatch.setattr(deployed_stage, "is_in_dns", lambda host: records_exist and host == url)
        targets = self.look(monkeypatch, ok=True)
        status, printed, stderr = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, printed["smoke"]) == (0, "ok" if records_exist else "skipped")
        assert "DNS record: api.example.com CNAME d1.cloudfront.example" in stderr
        assert bool(targets) is records_exist
        command = "python -m infra smoke --stage dev --region eu-central-1"
        assert (command in stderr) is not records_exist

    def test_deploy_requires_confirmation(self, deployed_options: list[DeployOptions]) -> None:
        status, printed, stderr = run(commands.deploy, "--stage", "dev")
        assert (status, printed) == (1, None)
        assert "Nobody is there to be asked. Give --yes." in stderr

    def test_deploy_without_an_edge_prints_the_url_of_the_chat(
        self, monkeypatch: pytest.MonkeyPatch, deployed_options: list[DeployOptions]
    ) -> None:
        monkeypatch.setitem(RESULT, "distributionId", None)
        monkeypatch.setitem(RESULT, "baseUrl", RESULT["apiUrl"].rstrip("/"))
        targets = self.look(monkeypatch, ok=True)
        status, _, stderr = run(commands.deploy, "--stage", "dev", "--yes", "--no-edge")
        assert (status, deployed_options[0].choices) == (0, {"Edge": "false"})
        assert f"Chat: {RESULT['chatUrl']}" in stderr
        chat_url = RESULT["chatUrl"].rstrip("/")
        assert targets == [smoke.Target(RESULT["baseUrl"], chat_url=chat_url)]

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (("--yes",), "2 resources were changed outside of CloudFormation"),
            ((), "Nobody is there to be asked. Give --yes."),
            (("--yes", "--accept-drift"), None),
        ],
    )
    def test_deploy_continues_with_drift_only_if_it_is_accepted(
        self, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], reason: str | None
    ) -> None:
        def deploy(deployment: Deployment, _: DeployOptions) -> dict[str, Any]:
            deployment.accept_drift(["a", "b"])
            return dict(RESULT)

        monkeypatch.setattr(Deployment, "deploy", deploy)
        self.look(monkeypatch, ok=True)
        status, _, printed = run(commands.deploy, "--stage", "dev", *options)
        assert status == (1 if reason else 0)
        assert reason is None or reason in printed

    def test_deploy_reports_missing_requirements_first(
        self, monkeypatch: pytest.MonkeyPatch, deployed_options: list[DeployOptions]
    ) -> None:
        fault = doctor.Finding("bucket", ok=False, text="It is another's.")
        monkeypatch.setattr(doctor, "examine_account", lambda *_: iter([fault]))
        status, _, stderr = run(commands.deploy, "--stage", "dev", "--yes")
        assert (status, deployed_options) == (1, [])
        assert "It is another's." in stderr


def test_rollback_without_a_base_url_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    back = RESULT | {"baseUrl": None}
    monkeypatch.setattr(Deployment, "rollback", lambda *_, **__: dict(back))
    status, printed, stderr = run(commands.rollback, "--stage", "dev")
    assert (status, printed) == (1, back)
    assert "data stays as it is" in stderr
    assert "Run deploy to make it." in stderr


class TestDestroy:
    @pytest.fixture
    def destroyed(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        with_data: list[bool] = []

        def destroy(_: Any, **how: bool) -> dict[str, Any]:
            with_data.append(how["with_data"])
            return {"stage": "dev", "kept": ["AWS::S3::Bucket b"], "backups": []}

        monkeypatch.setattr(destruction, "destroy", destroy)
        return with_data

    def test_destroy_reports_retained_resources(self, destroyed: list[bool]) -> None:
        status, printed, stderr = run(commands.destroy, "--stage", "dev", "--yes")
        assert (status, destroyed) == (0, [False])
        assert printed["kept"] == ["AWS::S3::Bucket b"]
        assert "Left, with what they hold: AWS::S3::Bucket b." in stderr

    @pytest.mark.parametrize(
        "confirmation",
        [(), ("--yes",), ("--yes-delete-the-data-of", "prod"), ("--yes-delete-the-data-of", "")],
    )
    def test_destroy_deletes_data_only_if_the_stage_name_is_entered(
        self, destroyed: list[bool], confirmation: tuple[str, ...]
    ) -> None:
        status, _, _ = run(commands.destroy, "--stage", "dev", "--with-data", *confirmation)
        assert (status, destroyed) == (1, [])

    def test_destroy_deletes_data_on_request(self, destroyed: list[bool]) -> None:
        confirmation = ("--with-data", "--yes-delete-the-data-of", "dev")
        assert run(commands.destroy, "--stage", "dev", *confirmation)[0] == 0
        assert destroyed == [True]


class TestAdminOfADeployedStage:
    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("STAGE", "AWS_DEFAULT_REGION", *published_settings.FOR_OPERATORS):
            monkeypatch.setenv(name, "of the shell")

    def test_admin_finds_a_stage_by_its_published_settings(self, account: Account) -> None:
        where = {"TABLE_PREFIX": "workspace", "OBJECT_STORE": "s3://b", "EDGE_SECRET": "s"}
        published_settings.publish(account, "dev", where)
        connect("dev")
        assert os.environ["OBJECT_STORE"] == "s3://b"
        assert (os.environ["STAGE"], os.environ["AWS_DEFAULT_REGION"]) == ("dev", REGION)
        assert "EDGE_SECRET" not in published_settings.published(account, "dev")
        published_settings.unpublish(account, "dev")

    def test_admin_tells_others_of_changes_as_the_api_does(
        self, account: Account, reload_settings: Callable[[], None]
    ) -> None:
        facts = StageFacts(
            bucket="b",
            public_url="https://a.example",
            variables={
                "MAIL": "smtp",
                "MAIL_FROM": "mail@a.example",
                "MAIL_SMTP": "smtps://user:p%40ss@mail.example:465",
                "EVENTS_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/1/events",
                "MASTER_KEY_SECRET": "arn:aws:secretsmanager:x:1:secret:master-key",
                "TELEGRAM_BOT_TOKEN_SECRET": "arn:aws:secretsmanager:x:1:secret:token",
            },
        )
        variables = stage_config.environment(stage_config.load(), "dev", facts)
        published_settings.publish(account, "dev", variables)
        connect("dev")
        reload_settings()
        for name in (
            *("public_url", "mail", "mail_from", "events_queue_url"),
            *("master_key_secret", "telegram_bot_token_secret"),
        ):
            assert getattr(settings(), name) == getattr(read(variables), name)
        assert settings().mail_smtp == "smtps://mail.example:465"
        published_settings.unpublish(account, "dev")
        assert published_settings.published(account, "dev") == {}

    def test_admin_reads_restored_tables_beside_those_of_the_stage(self, account: Account) -> None:
        published_settings.publish(account, "dev", {"TABLE_PREFIX": "workspace"})
        connect("dev", table_prefix="restored")
        assert os.environ["TABLE_PREFIX"] == "restored"
        assert published_settings.published(account, "dev")["TABLE_PREFIX"] == "workspace"
        published_settings.unpublish(account, "dev")

    def test_admin_reports_a_stage_that_does_not_exist(self) -> None:
        with pytest.raises(click.ClickException) as failure:
            connect("prod")
        assert failure.value.message == (
            "The stage prod is not deployed in eu-central-1 of the account 123456789012. "
            "Set its --region, or run make deploy STAGE=prod."
        )


class TestSmoke:
    def test_smoke_checks_make_dev_by_its_port(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked: list[str] = []

        def look(target: smoke.Target) -> Iterator[Check]:
            looked.append(target.url)
            yield Check("health", ok=True, why="")

        monkeypatch.setattr(smoke, "run", look)
        monkeypatch.setenv("PORT", "8220")
        assert run(check_commands.smoke)[1]["url"] == "http://127.0.0.1:8220"
        assert (
            run(check_commands.smoke, "--url", "https://a.example/")[1]["url"]
            == "https://a.example"
        )
        assert looked == ["http://127.0.0.1:8220", "https://a.example"]

    def test_smoke_of_a_stage_uses_its_addresses_and_its_edges_secret(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[smoke.Target] = []

        def look(target: smoke.Target) -> Iterator[Check]:
            looked.append(target)
            yield Check("health", ok=True, why="")

        monkeypatch.setattr(smoke, "run", look)
        stage_addresses = {"baseUrl": "https://a.example", "distributionId": "E1"}
        monkeypatch.setattr(
            deployed_stage,
            "addresses",
            lambda _: {**stage_addresses, "apiUrl": "o", "chatUrl": None},
        )
        monkeypatch.setattr(deployed_stage, "edge_secret", lambda _: "of the edge")
        status, printed, stderr = run(check_commands.smoke, "--stage", "dev", "--key", "k")
        assert (status, printed["url"]) == (0, "https://a.example")
        target = smoke.Target(
            "https://a.example", key="k", origins=("o",), edge_secret="of the edge"
        )
        assert looked == [target]
        assert "of the edge" not in f"{printed} {stderr} {target}"

    def test_smoke_of_a_stage_that_is_not_deployed_is_an_error(self) -> None:
        status, _, stderr = run(check_commands.smoke, "--stage", "dev")
        assert status == 1
        assert "The stage dev is not deployed in eu-central-1" in stderr

    @pytest.mark.parametrize(
        ("port", "arguments", "says"),
        [("x", (), 'PORT is "x"'), ("8000", ("--url", "nonsense"), '--url is "nonsense"')],
    )
    def test_smoke_reports_why_it_cannot_run(
        self, monkeypatch: pytest.MonkeyPatch, port: str, arguments: tuple[str, ...], says: str
    ) -> None:
        monkeypatch.setenv("PORT", port)
        status, printed, stderr = run(check_commands.smoke, *arguments)
        assert (status, printed) == (1, None)
        assert says in stderr
