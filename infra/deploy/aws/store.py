"""Objects in a stage's bucket that deployments read and write, with conditional writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from botocore.exceptions import ClientError

from infra.deploy.aws.account import Account
from infra.deploy.aws.errors import code

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
MISSING = {"404", "NoSuchKey"}
CONFLICTS = {"412", "PreconditionFailed", "409", "ConditionalRequestConflict"}
"""Error codes of a refused conditional write.

With ``If-Match``, a deleted object counts as missing (S3 user guide, Conditional writes).
"""


def as_record(found: Mapping[str, Any], kind: type[Record]) -> Record:
    """Return stored JSON as a record, without fields that a newer version has added."""
    known = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True, slots=True)
class Store:
    """Objects of the data bucket, which must belong to this account."""

    account: Account
    bucket: str

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return an object and its ETag; None if it does not exist."""
        try:
            answer = self._s3.get_object(Key=key, **self._where)
        except ClientError as error:
            if code(error) in MISSING:
                return None
            raise
        return answer["Body"].read(), answer["ETag"]

    def get_json(self, key: str) -> Any:  # noqa: ANN401  JSON
        """Return an object's JSON; None if the object does not exist."""
        found = self.get(key)
        return found and json.loads(found[0])

    def get_record(self, key: str, kind: type[Record]) -> Record | None:
        """Return an object's JSON as a record; None if the object does not exist."""
        found = self.get_json(key)
        return None if found is None else as_record(found, kind)

    def put_json(self, key: str, value: object) -> None:
        """Store JSON under a key."""
        self.put_if(key, value)

    def put_if(self, key: str, value: object, **condition: str) -> str | None:
        """Store JSON if ``IfMatch`` or ``IfNoneMatch`` holds; return its ETag, or None if not."""
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

    def upload(self, key: str, path: Path) -> None:
        """Store a file under a key."""
        self._s3.upload_file(
            str(path), self.bucket, key, ExtraArgs={"ExpectedBucketOwner": self.account.id}
        )

    def download(self, key: str, path: Path) -> None:
        """Write an object into a file."""
        found = self.get(key)
        if found is None:
            msg = f"s3://{self.bucket}/{key} is missing."
            raise click.ClickException(msg)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found[0])

    def delete(self, key: str, **condition: str) -> None:
        """Delete an object if it exists; with ``IfMatch``, only that version."""
        try:
            self._s3.delete_object(Key=key, **condition, **self._where)
        except ClientError as error:
            if code(error) not in CONFLICTS | MISSING:
                raise

    def folders(self, prefix: str) -> list[str]:
        """Return the names directly below a prefix that ends with a slash, in order."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Prefix=prefix, Delimiter="/", **self._where
        )
        found = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", ())]
        return [name.removeprefix(prefix).rstrip("/") for name in found]

    @property
    def _s3(self) -> Any:  # noqa: ANN401  boto3's own
        return self.account.client("s3")

    @property
    def _where(self) -> dict[str, str]:
        return {"Bucket": self.bucket, "ExpectedBucketOwner": self.account.id}
