"""The vaults of a stage's backups, in its region and in a second one.

They are in no stack: a vault with copies cannot be deleted, and the second one is in a region
without any stack.
"""

import boto3
import click

from infra.deploy.aws.account import Account
from infra.deploy.progress import Progress
from infra.deploy.stacks.backups import COPY_DAYS, vault_name


def check_region(region: str, *, backup_region: str) -> None:
    """Check the choice of the second region.

    Raises:
        click.ClickException: it is not a region of AWS Backup, or is the stage's own.
    """
    if not backup_region:
        return
    regions = boto3.Session().get_available_regions("backup")
    if backup_region == region or backup_region not in regions:
        msg = (
            f"--backup-region: expected a region of AWS other than {region}, received "
            f"{backup_region}. Give one such as eu-west-1, or '' for none."
        )
        raise click.ClickException(msg)


def ensure(account: Account, stage: str, *, backup_region: str, progress: Progress) -> None:
    """Create the vaults if they do not exist, and lock them against deletion of their copies.

    The lock is in governance mode: it prevents accidents, and an administrator can remove it
    (``backup:DeleteBackupVaultLockConfiguration``). A lock in compliance mode cannot be removed,
    not even by AWS. Copies of a stage that was created by mistake, or of data that must be erased,
    could then not be deleted before the backup expires.
    """
    name = vault_name(stage)
    for region in filter(None, (account.region, backup_region)):
        client = account.client("backup", region)
        try:
            client.create_backup_vault(BackupVaultName=name)
            progress.note(f"Vault {name} in {region}")
        except client.exceptions.AlreadyExistsException:
            pass
        client.put_backup_vault_lock_configuration(BackupVaultName=name, MinRetentionDays=COPY_DAYS)


def standing(account: Account, stage: str, *, backup_region: str) -> list[str]:
    """Return the vaults that exist, as lines for the operator."""
    name, lines = vault_name(stage), []
    for region in filter(None, (account.region, backup_region)):
        # Describing a missing vault is answered with AccessDeniedException.
        pages = account.client("backup", region).get_paginator("list_backup_vaults").paginate()
        if any(vault["BackupVaultName"] == name for p in pages for vault in p["BackupVaultList"]):
            lines.append(f"AWS::Backup::BackupVault {name} ({region})")
    return lines
