"""The stack with a vault and a daily backup of tables and bucket.

The vaults are in no stack (``aws.vaults``). Point-in-time recovery of the data stack restores to
any second, but it ends with its table and its region. Copies in a vault do not.
"""

from typing import Any

from chalicelib.engine.tables import TABLES
from infra.deploy.names import APP

COPY_DAYS = 14
"""Days that a copy is kept. Copies of tables are complete, so each day costs their whole size."""
SCHEDULE = "cron(0 3 * * ? *)"
"""Every day at 3:00 UTC."""
WINDOW_MINUTES = {"StartWindowMinutes": 60, "CompletionWindowMinutes": 720}
"""A backup that has not begun or ended in this time is reported as expired."""
MANAGED = "arn:${AWS::Partition}:iam::aws:policy/"
POLICIES = (
    "service-role/AWSBackupServiceRolePolicyForBackup",
    "service-role/AWSBackupServiceRolePolicyForRestores",
    "AWSBackupServiceRolePolicyForS3Backup",
    "AWSBackupServiceRolePolicyForS3Restore",
)
"""AWS's policies for AWS Backup. Only that service can assume the role."""


def vault_name(stage: str) -> str:
    """Return the name of a stage's vault, in its own region and in the second one."""
    return f"{APP}-{stage}"


def template() -> dict[str, Any]:
    """Return the template, whose parameters and outputs ``stacks.build`` documents."""
    vault = "arn:${AWS::Partition}:backup:${BackupRegion}:${AWS::AccountId}:backup-vault:"
    lifecycle = {"DeleteAfterDays": COPY_DAYS}
    copy = {
        "DestinationBackupVaultArn": _sub(vault + vault_name("${Stage}")),
        "Lifecycle": lifecycle,
    }
    rule = {
        "RuleName": "daily",
        "TargetBackupVault": _sub(vault_name("${Stage}")),
        "ScheduleExpression": SCHEDULE,
        **WINDOW_MINUTES,
        "Lifecycle": lifecycle,
        "CopyActions": {"Fn::If": ["HasCopy", [copy], {"Ref": "AWS::NoValue"}]},
    }
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "backup.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    table = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Workspace API: daily backups of tables and bucket of a stage.",
        "Parameters": {
            "Stage": {"Type": "String", "AllowedPattern": "[a-z][a-z0-9]{0,15}"},
            "TablePrefix": {"Type": "String", "Default": "workspace"},
            "BucketName": {"Type": "String"},
            "BackupRegion": {"Type": "String", "Default": ""},
        },
        "Conditions": {"HasCopy": {"Fn::Not": [{"Fn::Equals": [{"Ref": "BackupRegion"}, ""]}]}},
        "Resources": {
            # AWS Backup deletes expired copies as this role, so it outlives the stack. It has no
            # fixed name, which would block the next stack.
            "Role": {
                "Type": "AWS::IAM::Role",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": {
                    "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
                    "ManagedPolicyArns": [_sub(MANAGED + name) for name in POLICIES],
                },
            },
            "Plan": {
                "Type": "AWS::Backup::BackupPlan",
                "Properties": {
                    "BackupPlan": {
                        "BackupPlanName": _sub(f"{APP}-${{Stage}}"),
                        "BackupPlanRule": [rule],
                    }
                },
            },
            "Selection": {
                "Type": "AWS::Backup::BackupSelection",
                "Properties": {
                    "BackupPlanId": {"Ref": "Plan"},
                    "BackupSelection": {
                        "SelectionName": "data",
                        "IamRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                        "Resources": [
                            *(
                                _sub(f"{table}${{TablePrefix}}-${{Stage}}-{name}")
                                for name in TABLES
                            ),
                            _sub("arn:${AWS::Partition}:s3:::${BucketName}"),
                        ],
                    },
                },
            },
        },
        "Outputs": {"RoleArn": {"Value": {"Fn::GetAtt": ["Role", "Arn"]}}},
    }


def _sub(text: str) -> dict[str, str]:
    return {"Fn::Sub": text}
