"""Delete a stage's edge and code, but keep its data by default.

Every resource is looked up first, so an interrupted run can be finished by running it again.
"""

import time
from contextlib import ExitStack, suppress
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.core import clock
from infra.deploy import published_settings
from infra.deploy.aws import chalice_state, site_tenants, tables, vaults
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import POLL_SECONDS
from infra.deploy.aws.errors import code
from infra.deploy.deployment import Deployment
from infra.deploy.names import APP
from infra.deploy.package import build as package
from infra.deploy.progress import Progress
from infra.deploy.stage_config import StageFacts

GONE = {
    "404",
    "NoSuchBucket",
    "ResourceNotFoundException",
    "ResourceNotFound",
    "TableNotFoundException",
}


def destroy(deployment: Deployment, *, break_lock: bool, with_data: bool) -> dict[str, Any]:
    """Delete a stage's edge, alarms, API and functions; return the resources that are left.

    The data stack and the daily backups are kept, because the data cannot be recreated.
    ``with_data`` deletes both stacks, after a backup of every table. Vaults are always kept, with
    the copies that they hold and the role that deletes these when they expire.

    Raises:
        click.ClickException: the stage is not deployed, or a resource could not be deleted.
    """
    progress, account = deployment.progress, deployment.account
    outputs, store = deployment.deployed()
    data = deployment.stack("data")
    kept_resources = _physical(account, data.name)
    remains: dict[str, Any] = {
        "stage": deployment.stage,
        "kept": sorted(kept_resources.values()),
        "backups": [],
    }
    others: list[str] = []
    with ExitStack() as locks:
        # The lock is an object of the bucket. Without a bucket, an earlier run has deleted the
        # code.
        if _bucket_stands(account, outputs["BucketName"]):
            deployment.lock(locks, store, break_lock=break_lock)
            others = _tables_of_others(deployment)
            second = deployment.stack("data").parameters().get("BackupRegion", "")
            others += vaults.standing(account, deployment.stage, backup_region=second)
            # The report names resources that outlive the stage, because they cost money.
            remains["kept"] += others
            _delete_stacks(deployment, "alarms")
            _delete_tenants(deployment)
            _delete_stacks(deployment, "edge", "mail", "events", "chat")
            _delete_code(deployment)
            # AWS needs time to notice that a certificate is no longer used.
            _delete_stacks(deployment, "edge-global")
            published_settings.unpublish(account, deployment.stage)
        if not with_data:
            remains["kept"] += published_settings.kept(account, deployment.stage)
            return remains
        with progress.step("Backups of the tables"):
            remains["backups"] = _back_up(account, kept_resources, progress)
        _delete_stacks(deployment, "backups")
        with progress.step("Tables, secrets and logs"):
            _delete_kept(account, kept_resources, progress)
    # The lock is an object in this bucket, and has just been released.
    with progress.step(f"Bucket {outputs['BucketName']}"):
        _delete_bucket(account, outputs["BucketName"])
    with progress.step(f"Stack {data.name}"):
        data.delete()
    published_settings.forget_stored_format(account, deployment.stage)
    return remains | {"kept": others}


def _tables_of_others(deployment: Deployment) -> list[str]:
    """Return the tables that functions use but that are not in the data stack."""
    prefix = deployment.stack("data").parameters()["TablesInUse"]
    if prefix == StageFacts().table_prefix:
        return []
    existing = tables.existing(deployment.account, deployment.stage, prefix=prefix)
    return [f"AWS::DynamoDB::Table {name}" for name in existing]


def _delete_stacks(deployment: Deployment, *names: str) -> None:
    for name in names:
        stack = deployment.stack(name)
        with deployment.progress.step(f"Stack {stack.name}"):
            if not stack.delete():
                deployment.progress.note("There is none.")


def _delete_tenants(deployment: Deployment) -> None:
    edge = deployment.stack("edge")
    setting = (edge.outputs() or {}).get("SiteHostsSetting", "")
    if setting:
        distribution = setting.removeprefix("cloudfront:").partition("/")[0]
        client = deployment.account.client("cloudfront")
        with deployment.progress.step("Hosts of customers' domains"):
            kept_name = f"{APP}-{deployment.stage}-sites"
            site_tenants.delete(
                client, distribution, kept_name=kept_name, progress=deployment.progress
            )


def _delete_code(deployment: Deployment) -> None:
    account, stage = deployment.account, deployment.stage
    with deployment.progress.step("Functions and API (chalice delete)"):
        resources = chalice_state.existing(account, stage)
        if not resources:
            deployment.progress.note("There are none.")
            return
        builder, project = package.prepare(stage, root=deployment.root)
        chalice_state.write(project, stage, resources)
        output = package.chalice(
            builder, project, "delete", "--stage", stage, region=account.region
        )
        for line in filter(None, output.splitlines()):
            deployment.progress.note(line)


def _physical(account: Account, stack: str) -> dict[str, str]:
    """Return the types of a stack's resources by their physical ids."""
    pages = account.client("cloudformation").get_paginator("list_stack_resources")
    return {
        resource[
            "PhysicalResourceId"
        ]: f"{resource['ResourceType']} {resource['PhysicalResourceId']}"
        for page in pages.paginate(StackName=stack)
        for resource in page["StackResourceSummaries"]
        if resource.get("PhysicalResourceId")
    }


def _resources_of_kind(resources: dict[str, str], kind: str) -> list[str]:
    return [name for name, about in resources.items() if about.startswith(f"{kind} ")]


def _bucket_stands(account: Account, bucket: str) -> bool:
    try:
        account.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=account.id)
    except ClientError as error:
        if code(error) in GONE:
            return False
        raise
    return True


def _back_up(account: Account, resources: dict[str, str], progress: Progress) -> list[str]:
    """Back up each existing table, and wait: a table cannot be deleted during its backup.

    DynamoDB keeps backups of deleted tables.
    """
    client, backups = account.client("dynamodb"), []
    for table in _resources_of_kind(resources, "AWS::DynamoDB::Table"):
        # A second run backs up again, so the name has the time.
        name = f"{table}-{clock.now():%Y%m%dT%H%M%SZ}"
        with suppress(client.exceptions.TableNotFoundException):
            answer = client.create_backup(TableName=table, BackupName=name)
            backups.append(answer["BackupDetails"]["BackupArn"])
            progress.note(backups[-1])
    for backup in backups:
        while _status(client, backup) == "CREATING":
            time.sleep(POLL_SECONDS)
    return backups


def _status(client: Any, backup: str) -> str:  # noqa: ANN401  boto3's own
    about = client.describe_backup(BackupArn=backup)["BackupDescription"]
    return str(about["BackupDetails"]["BackupStatus"])


def _delete_kept(account: Account, resources: dict[str, str], progress: Progress) -> None:
    dynamodb, logs = account.client("dynamodb"), account.client("logs")
    secrets = account.client("secretsmanager")
    for table in _resources_of_kind(resources, "AWS::DynamoDB::Table"):
        with suppress(dynamodb.exceptions.ResourceNotFoundException):
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=table)  # no longer UPDATING
            progress.note(f"{table}: its deletion protection is off, and it is deleted")
            dynamodb.delete_table(TableName=table)
            dynamodb.get_waiter("table_not_exists").wait(TableName=table)
    for secret in _resources_of_kind(resources, "AWS::SecretsManager::Secret"):
        # A secret in its recovery window would block its name for the next deployment.
        with suppress(secrets.exceptions.ResourceNotFoundException):
            secrets.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    for group in _resources_of_kind(resources, "AWS::Logs::LogGroup"):
        with suppress(logs.exceptions.ResourceNotFoundException):
            logs.delete_log_group(logGroupName=group)


def _delete_bucket(account: Account, bucket: str) -> None:
    """Delete a bucket with all versions of its objects, 1,000 in a request (S3's limit)."""
    client = account.client("s3")
    try:
        pages = client.get_paginator("list_object_versions").paginate(
            Bucket=bucket, ExpectedBucketOwner=account.id
        )
        for page in pages:
            versions = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            objects = [
                {"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions
            ]
            if objects:
                # S3 deletes a bucket only if it has no versions and no delete markers.
                client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        client.delete_bucket(Bucket=bucket)
    except ClientError as error:
        if code(error) not in GONE:
            raise
