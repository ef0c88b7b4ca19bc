"""Contents, retention and second copy of the daily backups."""

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import click
import pytest
from moto import mock_aws

from chalicelib.engine.tables import TABLES
from infra.deploy.aws import vaults
from infra.deploy.aws.account import Account
from infra.deploy.progress import Progress
from infra.deploy.stacks import alarms, backups
from infra.deploy.stacks.data import KEPT_DAYS
from tests.infra.conftest import REGION

RESOURCES = backups.template()["Resources"]
RULE = RESOURCES["Plan"]["Properties"]["BackupPlan"]["BackupPlanRule"][0]
ACCOUNT = "123456789012"


def filled(value: Any, **values: str) -> Any:
    """Return a value with its parameters filled in."""
    values |= {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT}
    text = json.dumps(value)
    for name, replacement in values.items():
        text = text.replace(f"${{{name}}}", replacement)
    return json.loads(re.sub(r'\{"Fn::Sub": ("[^"$]*")\}', r"\1", text))


class TestPlan:
    def test_every_table_that_functions_use_and_the_bucket_are_copied(self) -> None:
        selection = RESOURCES["Selection"]["Properties"]["BackupSelection"]
        names = {"TablePrefix": "restored", "Stage": "dev", "BucketName": "ours"}
        assert filled(selection["Resources"], **names) == [
            *(f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/restored-dev-{name}" for name in TABLES),
            "arn:aws:s3:::ours",
        ]

    def test_copies_are_daily_and_expire_before_old_versions_of_objects_do(self) -> None:
        assert RULE["ScheduleExpression"] == "cron(0 3 * * ? *)"
        assert RULE["Lifecycle"] == {"DeleteAfterDays": backups.COPY_DAYS}
        assert backups.COPY_DAYS <= KEPT_DAYS, "erased data is gone after that time"

    def test_chosen_second_region_gets_a_copy_of_each_backup(self) -> None:
        condition, (copy,), otherwise = RULE["CopyActions"]["Fn::If"]
        assert condition == "HasCopy"
        assert otherwise == {"Ref": "AWS::NoValue"}
        assert copy["Lifecycle"] == RULE["Lifecycle"]
        filled_copy = filled(copy, Stage="dev", BackupRegion="eu-west-1")
        expected = f"arn:aws:backup:eu-west-1:{ACCOUNT}:backup-vault:{backups.vault_name('dev')}"
        assert filled_copy["DestinationBackupVaultArn"] == expected

    def test_backup_role_is_for_aws_backup_and_retained(self) -> None:
        role = RESOURCES["Role"]
        (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "backup.amazonaws.com"}
        assert role["DeletionPolicy"] == role["UpdateReplacePolicy"] == "Retain"
        assert "RoleName" not in role["Properties"], "a fixed name would block the next stack"


def test_failed_backups_and_failed_copies_are_reported_to_the_topic() -> None:
    resources = alarms.template()["Resources"]
    rule = resources["BackupFailures"]["Properties"]
    detail = filled(rule["EventPattern"]["detail"], Stage="dev")
    vault = [f"arn:aws:backup:{REGION}:{ACCOUNT}:backup-vault:{backups.vault_name('dev')}"]
    assert detail["state"] == ["FAILED", "ABORTED", "EXPIRED"]
    assert detail["$or"] == [{"backupVaultArn": vault}, {"sourceBackupVaultArn": vault}]
    assert [target["Arn"] for target in rule["Targets"]] == [{"Ref": "Topic"}]
    statements = resources["TopicPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    services = [statement["Principal"]["Service"] for statement in statements]
    assert "events.amazonaws.com" in services


@pytest.mark.parametrize("region", [REGION, "atlantis-1", "eu-west"])
def test_invalid_backup_region_is_refused(region: str) -> None:
    expected = f"--backup-region: expected a region of AWS other than {REGION}, received {region}."
    with pytest.raises(click.ClickException, match=re.escape(expected)):
        vaults.check_region(REGION, backup_region=region)


@pytest.mark.parametrize("region", ["", "eu-west-1"])
def test_another_backup_region_or_none_is_accepted(region: str) -> None:
    vaults.check_region(REGION, backup_region=region)


class TestVaults:
    @pytest.fixture
    def account(self) -> Iterator[Account]:
        with mock_aws():
            yield Account(ACCOUNT, REGION, f"arn:aws:iam::{ACCOUNT}:user/ops")
            # An enclosing mock of the suite keeps what was created.
            for region in (REGION, "eu-west-1"):
                client = boto3.client("backup", region)
                for vault in client.list_backup_vaults()["BackupVaultList"]:
                    client.delete_backup_vault(BackupVaultName=vault["BackupVaultName"])

    @pytest.mark.parametrize("second", ["", "eu-west-1"])
    def test_vaults_are_created_once_and_locked_without_compliance_mode(
        self, account: Account, second: str
    ) -> None:
        messages: list[str] = []
        for _ in range(2):
            vaults.ensure(account, "dev", backup_region=second, progress=Progress(messages.append))
        regions = [REGION, *filter(None, [second])]
        assert messages == [f"  Vault workspace-api-dev in {region}" for region in regions]
        for region in regions:
            client = boto3.client("backup", region)
            (vault,) = client.list_backup_vaults()["BackupVaultList"]
            assert (vault["Locked"], vault["MinRetentionDays"]) == (True, backups.COPY_DAYS)
            assert "LockDate" not in vault, "an administrator can remove the lock"

    def test_vaults_that_stay_are_listed_for_the_operator(self, account: Account) -> None:
        assert vaults.standing(account, "dev", backup_region="eu-west-1") == []
        vaults.ensure(account, "dev", backup_region="eu-west-1", progress=Progress(lambda _: None))
        assert vaults.standing(account, "dev", backup_region="eu-west-1") == [
            f"AWS::Backup::BackupVault workspace-api-dev ({REGION})",
            "AWS::Backup::BackupVault workspace-api-dev (eu-west-1)",
        ]
