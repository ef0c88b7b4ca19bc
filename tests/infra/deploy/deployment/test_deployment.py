"""Interrupted deployments and the destruction of a stage, on moto with a stand-in for the edge."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from infra.deploy import published_settings
from infra.deploy.aws import chalice_state
from infra.deploy.aws.store import Store
from infra.deploy.deployment import DeployOptions
from infra.deploy.destruction import destroy
from infra.deploy.lock import LockedError, locked
from tests.infra.conftest import REGION, Aws, Killed, QuickChalice
from tests.infra.deploy.deployment.helpers import API, BUCKET, CHAT, Deploy, is_whole, killed_before

pytestmark = pytest.mark.slow


STEPS = (
    "Stack workspace-api-dev-data", "Tables", "Vaults", "Stack workspace-api-dev-backups", "Zip",
    "Release", "Functions and API", "Answers and throttle",
    "Stack workspace-api-dev-chat", "Stack workspace-api-dev-edge-global",
    "Stack workspace-api-dev-edge", "Stack workspace-api-dev-alarms", "Base URL",
)  # fmt: skip


class TestKilled:
    @pytest.mark.parametrize("step", STEPS)
    def test_killed_deployment_is_completed_by_a_second_run(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store, step: str
    ) -> None:
        stopped = aws.deployment(checkout)

        def report(line: str) -> None:
            if line.startswith(step) and line.endswith("…"):
                raise Killed

        stopped.progress.report = report
        with pytest.raises(Killed):
            stopped.deploy(DeployOptions("dev"))
        assert is_whole(aws, store, deploy())

    @pytest.mark.parametrize("killed_after", ["iam_role", "lambda_function", "rest_api"])
    def test_deployment_killed_within_chalice_creates_nothing_twice(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, store: Store, killed_after: str
    ) -> None:
        chalice.dies_after = killed_after
        with pytest.raises(Killed):
            deploy()
        chalice.dies_after = None
        assert is_whole(aws, store, deploy())

    def test_lock_of_a_killed_deployment_is_taken_over_on_the_same_machine(
        self, aws: Aws, deploy: Deploy, store: Store
    ) -> None:
        result = deploy()
        with locked(store):
            lock_body, _ = store.get("state/lock.json") or (b"", "")
        store.put_if("state/lock.json", json.loads(lock_body) | {"pid": 2**22 + 1})
        assert deploy()["apiId"] == result["apiId"]

    @pytest.mark.parametrize("killed_after", ["rest_api", "lambda_function", "iam_role"])
    def test_killed_destruction_is_completed_by_a_second_run(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path, killed_after: str
    ) -> None:
        deploy()
        chalice.dies_after = f"deleted {killed_after}"
        with pytest.raises(Killed):
            destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        chalice.dies_after = None
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert aws.apis() == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        roles = [role["RoleName"] for role in aws.client("iam").list_roles()["Roles"]]
        assert [name for name in roles if "-backups-" not in name] == []


class TestRefusals:
    def test_uncommitted_changes_are_not_deployed(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        (checkout / "app.py").write_text("app = 3\n")
        with pytest.raises(click.ClickException, match=r"in no commit.*--allow-dirty"):
            deploy()
        assert aws.client("cloudformation").list_stacks()["StackSummaries"] == []
        assert deploy(allow_dirty=True)["release"].endswith("-dirty")

    def test_stage_cannot_change_its_region(
        self, aws: Aws, deploy: Deploy, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deploy()
        elsewhere = aws.deployment(checkout)
        elsewhere.account = type(aws.account)(aws.account.id, "us-west-2", aws.account.user)
        for call in (
            lambda: elsewhere.deploy(DeployOptions("dev")),
            lambda: elsewhere.rollback(None, break_lock=False, python=None),
        ):
            with pytest.raises(click.ClickException, match=f"Give --region {REGION}"):
                call()

    def test_unknown_stage_cannot_be_rolled_back_or_destroyed(
        self, aws: Aws, chalice: QuickChalice, checkout: Path
    ) -> None:
        with pytest.raises(click.ClickException, match="dev is not deployed in eu-central-1"):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        with pytest.raises(click.ClickException, match="Run make deploy STAGE=dev"):
            destroy(aws.deployment(checkout), break_lock=False, with_data=False)

    def test_declined_changes_leave_nothing_behind(
        self, aws: Aws, chalice: QuickChalice, checkout: Path
    ) -> None:
        deployment = aws.deployment(checkout)

        def refuse(changes: list[Any]) -> None:
            assert {change.action for change in changes} == {"Add"}
            raise click.Abort

        deployment.confirm = refuse
        with pytest.raises(click.Abort):
            deployment.deploy(DeployOptions("dev"))
        stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
        assert stacks == []

    def test_concurrent_deployment_is_refused_while_the_lock_is_held(
        self, aws: Aws, deploy: Deploy, store: Store
    ) -> None:
        deploy()
        with locked(store):
            for call in (
                deploy,
                lambda: aws.deployment().rollback(None, break_lock=False, python=None),
                lambda: destroy(aws.deployment(), break_lock=False, with_data=False),
            ):
                with pytest.raises(LockedError, match="has been deploying this stage since"):
                    call()

    def test_no_step_starts_after_the_lock_is_lost(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        deployment = aws.deployment(checkout)
        report = deployment.progress.report

        def break_it(line: str) -> None:
            report(line)
            if line == "Zip …":
                store.put_if("state/lock.json", {"run": "another"})

        aws.messages.clear()
        deployment.progress.report = break_it
        with pytest.raises(LockedError, match="taken over"):
            deployment.deploy(DeployOptions("dev"))
        assert "Release …" not in aws.messages


class TestDomains:
    def test_domain_is_the_base_url_from_the_first_deployment(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        result = deploy(domain="api.example.com", sites_domain="sites.example")
        assert result["baseUrl"] == "https://api.example.com"
        for function in (API, CHAT):
            about = aws.client("lambda").get_function_configuration(FunctionName=function)
            assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://api.example.com"
            assert about["Environment"]["Variables"]["SITES_DOMAIN"] == "sites.example"
        assert published_settings.published(aws.account, "dev")["SITES_DOMAIN"] == "sites.example"

    def test_dns_records_to_create_by_hand_are_printed(self, deploy: Deploy) -> None:
        result = deploy(
            domain="api.example.com", sites_domain="sites.example", sites_hosted_zone="Z1"
        )
        led = {"type": "CNAME", "value": "d1.cloudfront.example"}
        assert result["records"] == [{"name": "api.example.com", **led}]
        result = deploy(sites_hosted_zone="")
        assert [record["name"] for record in result["records"]] == [
            "api.example.com",
            "*.sites.example",
        ]

    def test_domain_change_killed_between_stacks_is_completed(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        with killed_before(aws, "Stack workspace-api-dev-edge …"):
            deploy(domain="api.example.com", hosted_zone="Z1")
        assert deploy()["baseUrl"] == "https://api.example.com"
        for stack in ("edge-global", "edge"):
            parameters = aws.deployment().stack(stack).parameters()
            assert (parameters["Domain"], parameters["HostedZoneId"]) == ("api.example.com", "Z1")

    def test_empty_domain_option_removes_the_domain(self, aws: Aws, deploy: Deploy) -> None:
        deploy(domain="api.example.com", sites_domain="sites.example")
        assert deploy()["baseUrl"] == "https://api.example.com"
        assert deploy(domain="", sites_domain="")["baseUrl"] == "https://d1.cloudfront.example"
        about = aws.client("lambda").get_function_configuration(FunctionName=CHAT)
        assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://d1.cloudfront.example"
        assert "SITES_DOMAIN" not in about["Environment"]["Variables"]
        assert "SITES_DOMAIN" not in published_settings.published(aws.account, "dev")


class TestDestroy:
    def test_destruction_keeps_the_data_and_reports_it(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        store.put_if("files/a", "of a visitor")
        report = destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert f"AWS::S3::Bucket {BUCKET}" in report["kept"]
        assert "AWS::DynamoDB::Table workspace-dev-content" in report["kept"]
        assert aws.apis() == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        assert "workspace-dev-ledger" in aws.client("dynamodb").list_tables()["TableNames"]
        assert aws.deployment(checkout).stack("backups").outputs(), "data is backed up as before"
        assert (store.get("files/a") or b"")[0] == b'"of a visitor"'
        assert published_settings.published(aws.account, "dev") == {}

    def test_deployment_after_a_destruction_finds_the_data(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        store.put_if("files/a", "of a visitor")
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert is_whole(aws, store, deploy())
        assert (store.get("files/a") or b"")[0] == b'"of a visitor"'

    def test_destruction_with_data_leaves_only_backups_and_their_vault(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        report = destroy(aws.deployment(checkout), break_lock=False, with_data=True)
        assert report["kept"] == ["AWS::Backup::BackupVault workspace-api-dev (eu-central-1)"]
        assert aws.deployment(checkout).stack("backups").outputs() is None
        assert len(report["backups"]) == 6
        assert aws.client("dynamodb").list_tables()["TableNames"] == []
        assert aws.client("s3").list_buckets()["Buckets"] == []
        assert aws.client("secretsmanager").list_secrets()["SecretList"] == []
        protection_messages = [
            line for line in aws.messages if "its deletion protection is off" in line
        ]
        assert len(protection_messages) == 6
        backups = aws.client("dynamodb").list_backups()["BackupSummaries"]
        assert {backup["BackupArn"] for backup in backups} == set(report["backups"])

    def test_destruction_keeps_resources_deployed_by_hand(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        other = aws.client("apigateway").create_rest_api(name="workspace-api")["id"]
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert aws.apis() == [other]


def test_stopped_functions_stay_stopped(aws: Aws, deploy: Deploy, checkout: Path) -> None:
    assert deploy()["stopped"] == []
    functions = aws.client("lambda")
    every = (API, CHAT, "workspace-api-dev-run-jobs", "workspace-api-dev-run-events")

    def runs() -> list[int | None]:
        concurrencies = [functions.get_function_concurrency(FunctionName=name) for name in every]
        return [concurrency.get("ReservedConcurrentExecutions") for concurrency in concurrencies]

    assert runs() == [None, 444, 4, 8]
    assert deploy()["stopped"] == []
    assert runs() == [None, 444, 4, 8], "the stage's own reservations count as available"
    for name in every:
        functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    assert deploy()["stopped"] == ["api_handler", "chat-stream", "run-events", "run-jobs"]
    assert runs() == [0, 0, 0, 0]
    assert any("Kept from running" in line for line in aws.messages)
    aws.deployment(checkout).rollback(None, break_lock=False, python=None)
    assert runs() == [0, 0, 0, 0]
    for name in every:
        functions.delete_function_concurrency(FunctionName=name)
    assert deploy()["stopped"] == []
    assert runs() == [None, 444, 4, 8]


def test_backups_cover_the_tables_in_use(aws: Aws, deploy: Deploy, store: Store) -> None:
    deploy()
    backups = aws.deployment().stack("backups")
    assert backups.parameters()["BackupRegion"] == ""
    with pytest.raises(click.ClickException, match="--backup-region: expected a region"):
        deploy(backup_region=REGION)
    parameters = aws.deployment().stack("data").parameters()
    assert parameters["BackupRegion"] == "", "a refused choice is not stored"
    deploy(backup_region="eu-west-1")
    deploy()
    assert backups.parameters() == {
        "Stage": "dev",
        "TablePrefix": "workspace",
        "BucketName": BUCKET,
        "BackupRegion": "eu-west-1",
    }
    (second,) = aws.client("backup", "eu-west-1").list_backup_vaults()["BackupVaultList"]
    assert (second["BackupVaultName"], second["Locked"]) == ("workspace-api-dev", True)


def test_destruction_deletes_functions_that_the_code_no_longer_has(
    aws: Aws, deploy: Deploy, checkout: Path
) -> None:
    deploy()
    functions, role = aws.client("lambda"), aws.client("iam").get_role(RoleName=CHAT)["Role"]
    functions.create_function(
        FunctionName="workspace-api-dev-former",
        Runtime="python3.13",
        Role=role["Arn"],
        Handler="app.former",
        Code={"ZipFile": aws.code_of(CHAT)},
    )
    resources = chalice_state.existing(aws.account, "dev")
    assert resources[0]["name"] in {"former_role", "former"}
    destroy(aws.deployment(checkout), break_lock=False, with_data=False)
    assert functions.list_functions()["Functions"] == []


def test_several_apis_of_one_function_are_reported_as_an_error(
    aws: Aws, chalice: QuickChalice, deploy: Deploy
) -> None:
    deploy()
    chalice._api("dev", None)
    with pytest.raises(click.ClickException, match="Several REST APIs lead to workspace-api-dev"):
        deploy()
