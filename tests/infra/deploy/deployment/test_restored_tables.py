"""A deployment to restored tables."""

import json
import re
from pathlib import Path

import click
import pytest

from chalicelib.engine.tables import TABLES
from infra.deploy import published_settings
from infra.deploy.destruction import destroy
from tests.infra.conftest import Aws, commit
from tests.infra.deploy.deployment.helpers import API, CHAT, Deploy, killed_before

pytestmark = pytest.mark.slow


class TestRestoredTables:
    def test_functions_use_restored_tables_until_switched_back(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        deploy()
        assert (
            prefix(aws)
            == published_settings.published(aws.account, "dev")["TABLE_PREFIX"]
            == "restored"
        )
        assert allowed(aws) == {"restored"}
        backups = aws.deployment().stack("backups")
        assert backups.parameters()["TablePrefix"] == "restored"
        assert "workspace-dev-ledger" in aws.client("dynamodb").list_tables()["TableNames"]
        deploy(table_prefix="workspace")
        assert (prefix(aws), allowed(aws)) == ("workspace", {"workspace"})

    def test_killed_deployment_keeps_the_restored_tables(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        restore(aws)
        with killed_before(aws, "Stack workspace-api-dev-edge-global"):
            deploy(table_prefix="restored")
        assert published_settings.published(aws.account, "dev")["TABLE_PREFIX"] == "restored"
        deploy()
        assert (prefix(aws), allowed(aws)) == ("restored", {"restored"})

    def test_destruction_keeps_and_names_restored_tables(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        report = destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert "AWS::DynamoDB::Table restored-dev-ledger" in report["kept"]
        deploy()
        assert prefix(aws) == "restored"
        report = destroy(aws.deployment(checkout), break_lock=False, with_data=True)
        *tables, vault = report["kept"]
        assert len(tables) == 6
        assert all(":Table restored-dev-" in table for table in tables)
        assert "::BackupVault workspace-api-dev" in vault

    def test_restored_tables_get_the_protection_of_the_stacks_tables(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        dynamodb = aws.client("dynamodb")
        for name in ("restored-dev-control", "workspace-dev-control"):
            assert dynamodb.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
            backups = dynamodb.describe_continuous_backups(TableName=name)
            recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
            assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
            ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            assert ttl == {"AttributeName": "expires", "TimeToLiveStatus": "ENABLED"}
        deploy()
        assert not [line for line in aws.messages if line.startswith("  restored-dev-")]

    def test_lost_rows_are_restored_by_the_steps_of_the_deployment_guide(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        dynamodb, functions = aws.client("dynamodb"), aws.client("lambda")
        key = {"pk": {"S": "W#1"}, "sk": {"S": "kept"}}
        dynamodb.put_item(TableName="workspace-dev-ledger", Item=key)
        names = (API, CHAT, "workspace-api-dev-run-jobs", "workspace-api-dev-run-events")
        for name in names:
            functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        restore(aws)
        dynamodb.delete_item(TableName="workspace-dev-ledger", Key=key)
        assert deploy(table_prefix="restored")["stopped"]
        assert dynamodb.get_item(TableName="restored-dev-ledger", Key=key)["Item"] == key
        assert (prefix(aws), allowed(aws)) == ("restored", {"restored"})
        for name in names:
            functions.delete_function_concurrency(FunctionName=name)
        assert deploy()["stopped"] == []
        chat = functions.get_function_concurrency(FunctionName=CHAT)
        assert chat["ReservedConcurrentExecutions"] > 0

    def test_deployment_requires_all_restored_tables(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        restore(aws)
        aws.client("dynamodb").delete_table(TableName="restored-dev-audit")
        with pytest.raises(click.ClickException, match="There is no restored-dev-audit, or it is"):
            deploy(table_prefix="restored")
        assert prefix(aws) == "workspace"
        deploy()
        assert prefix(aws) == "workspace"

    def test_rollback_gets_rights_on_the_restored_tables(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        restore(aws)
        commit(checkout, "app = 2\n")
        later = deploy(table_prefix="restored")["release"]
        aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert (prefix(aws), allowed(aws)) == ("restored", {"restored"})
        deploy(table_prefix="workspace")
        aws.deployment(checkout).rollback(later, break_lock=False, python=None)
        assert (prefix(aws), allowed(aws)) == ("workspace", {"workspace"})


def prefix(aws: Aws) -> str:
    about = aws.client("lambda").get_function_configuration(FunctionName=API)
    return str(about["Environment"]["Variables"]["TABLE_PREFIX"])


def allowed(aws: Aws) -> set[str]:
    """Return the prefixes of the tables that a function may use."""
    policy = aws.client("iam").get_role_policy(RoleName=CHAT, PolicyName=CHAT)["PolicyDocument"]
    return set(re.findall(r":table/(\w+)-dev-", json.dumps(policy)))


def restore(aws: Aws) -> None:
    """Restore the stage's tables to new names, as the deployment guide does."""
    client = aws.client("dynamodb")
    for name in TABLES:
        client.restore_table_to_point_in_time(
            SourceTableName=f"workspace-dev-{name}",
            TargetTableName=f"restored-dev-{name}",
            UseLatestRestorableTime=True,
        )
