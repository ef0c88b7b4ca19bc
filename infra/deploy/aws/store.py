"""The stage's bucket, in which deployments keep the lock and the releases."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from botocore.exceptions import ClientError

from infra.deploy.aws.account import Account
from infra.deploy.aws.errors import code
from infra.deploy.stage_config import StageFacts

MISSING = {"404", "NoSuchKey"}
CONFLICTS = {"412", "PreconditionFailed", "409", "ConditionalRequestConflict"}
"""Error codes of a refused conditional write.

With ``If-Match``, a deleted object counts as missing (S3 user guide, Conditional writes).
"""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an object, with its metadata."""

    id: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Store:
    """Objects of the data bucket, which must belong to this account."""

    account: Account
    bucket: str

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return an object and its ETag, or None if the object does not exist."""
        try:
            answer = self._s3.get_object(Key=key, **self._where)
        except ClientError as error:
            if code(error) in MISSING:
                return None
            raise
        return answer["Body"].read(), answer["ETag"]

    def put_if(self, key: str, value: object, **condition: str) -> str | None:
        """Store JSON if ``IfMatch`` or ``IfNoneMatch`` holds, and return the ETag, or else None."""
        body = json.dumps(value, indent=2).encode()
        try:
            answer = self._s3.put_object(
                Key=key, Body=body, ContentType="application/json", **condition, **self._where
            )
        except ClientError as error:
            gone = "IfMatch" in condition and code(error) in MISSING
            if gone or code(error) in CONFLICTS:
                return None
            raise
        return str(answer["ETag"])

    def delete(self, key: str, **condition: str) -> None:
        """Delete an object, or only one version of the object if ``IfMatch`` names its ETag."""
        try:
            self._s3.delete_object(Key=key, **condition, **self._where)
        except ClientError as error:
            if code(error) not in CONFLICTS | MISSING:
                raise

    def upload(self, key: str, path: Path, metadata: Mapping[str, str]) -> None:
        """Store a file as the newest version of an object."""
        about = {"ExpectedBucketOwner": self.account.id, "Metadata": dict(metadata)}
        self._s3.upload_file(str(path), self.bucket, key, ExtraArgs=about)

    def versions(self, key: str) -> list[Version]:
        """Return the versions of an object, newest first."""
        pages = self._s3.get_paginator("list_object_versions").paginate(Prefix=key, **self._where)
        versions = [version for page in pages for version in page.get("Versions", ())]
        return [
            Version(
                version["VersionId"],
                self._s3.head_object(Key=key, VersionId=version["VersionId"], **self._where)[
                    "Metadata"
                ],
            )
            for version in versions
        ]

    def download(self, key: str, *, version: str, path: Path) -> None:
        """Write a version of an object into a file."""
        about = {"VersionId": version, "ExpectedBucketOwner": self.account.id}
        self._s3.download_file(self.bucket, key, str(path), ExtraArgs=about)

    def promote(self, key: str, *, version: str) -> None:
        """Make a copy of a version the newest version."""
        source = {"Bucket": self.bucket, "Key": key, "VersionId": version}
        self._s3.copy_object(Key=key, CopySource=source, **self._where)

    @property
    def _s3(self) -> Any:  # noqa: ANN401  boto3's own
        return self.account.client("s3")

    @property
    def _where(self) -> dict[str, str]:
        return {"Bucket": self.bucket, "ExpectedBucketOwner": self.account.id}


def require_same_region(account: Account, stage: str) -> None:
    """Refuse to deploy a stage to a second region, because its names are unique in the account.

    Raises:
        click.ClickException: the stage's bucket is in another region.
    """
    prefix = f"{StageFacts().table_prefix}-{stage}-{account.id}-"
    pages = account.client("s3").get_paginator("list_buckets").paginate(Prefix=prefix)
    names = [bucket["Name"] for page in pages for bucket in page.get("Buckets", ())]
    regions = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    if regions and account.region not in regions:
        msg = (
            f"The stage {stage} is deployed in {regions[0]}, and this is {account.region}. "
            f"Give --region {regions[0]}."
        )
        raise click.ClickException(msg)
