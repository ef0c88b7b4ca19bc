"""Bytes too large for a database record: S3 on AWS, a folder elsewhere. Both behave alike.

Keys are slash-separated and begin with the workspace id. An object is safe once ``put`` returns.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from chalicelib.core.errors import UnavailableError
from chalicelib.core.settings import settings


class ObjectStore(Protocol):
    """Where objects are kept."""

    def put(self, key: str, body: bytes, content_type: str) -> None:
        """Store an object, replacing one of the same key."""

    def get(self, key: str) -> bytes | None:
        """Return an object, or None if there is none."""

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""

    def delete_under(self, prefix: str) -> None:
        """Remove every object whose key begins with ``prefix``, which ends with a slash."""


@contextmanager
def _reaching(*failures: type[Exception]) -> Iterator[None]:
    """Turn a store that fails after its own retries into a clear 503."""
    try:
        yield
    except failures as error:
        raise UnavailableError from error


class FolderStore:
    """Objects as files below a folder.

    Writes are atomic and flushed to the disk before they count.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def _path(self, key: str) -> Path:
        path = (self._root / key).resolve()
        if not path.is_relative_to(self._root):
            msg = f"object key {key!r} leaves the store"
            raise ValueError(msg)
        return path

    def put(self, key: str, body: bytes, content_type: str) -> None:  # noqa: ARG002  files have no type of their own
        """Store an object."""
        path = self._path(key)
        with _reaching(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def get(self, key: str) -> bytes | None:
        """Return an object."""
        path = self._path(key)
        with _reaching(OSError):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def delete(self, key: str) -> None:
        """Remove an object."""
        path = self._path(key)
        with _reaching(OSError):
            path.unlink(missing_ok=True)

    def delete_under(self, prefix: str) -> None:
        """Remove a folder of objects."""
        shutil.rmtree(self._path(prefix), ignore_errors=True)


class S3Store:
    """Objects in an S3 bucket."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    @property
    def _client(self) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return _s3_client()

    def put(self, key: str, body: bytes, content_type: str) -> None:
        """Store an object."""
        with _reaching_s3():
            self._client.put_object(
                Bucket=self._bucket, Key=key, Body=body, ContentType=content_type
            )

    def get(self, key: str) -> bytes | None:
        """Return an object."""
        client = self._client
        with _reaching_s3():
            try:
                body: bytes = client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except client.exceptions.NoSuchKey:
                return None
            return body

    def delete(self, key: str) -> None:
        """Remove an object."""
        with _reaching_s3():
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def delete_under(self, prefix: str) -> None:
        """Remove all objects under a prefix, a thousand a request (S3's limit)."""
        pages = self._client.get_paginator("list_objects_v2")
        with _reaching_s3():
            for page in pages.paginate(Bucket=self._bucket, Prefix=prefix):
                keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
                if keys and self._delete(keys).get("Errors"):
                    raise UnavailableError

    def _delete(self, keys: list[dict[str, str]]) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True}
        )
        return answer


def _reaching_s3() -> AbstractContextManager[None]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  as below

    return _reaching(BotoCoreError, ClientError)


@cache
def _s3_client() -> Any:  # noqa: ANN401  as above
    import boto3  # noqa: PLC0415  a fifth of a second that requests without objects do not pay
    from botocore.config import Config  # noqa: PLC0415

    # An API call has 29 seconds in all (API Gateway); boto3 alone would wait for minutes.
    retries = {"total_max_attempts": 3, "mode": "standard"}
    return boto3.client("s3", config=Config(connect_timeout=3, read_timeout=8, retries=retries))


@cache
def object_store() -> ObjectStore:
    """Return the store that ``OBJECT_STORE`` names: ``s3://<bucket>`` or ``file://<folder>``."""
    kind, _, place = settings().object_store.partition("://")
    match kind:
        case "s3":
            return S3Store(place)
        case "file":
            return FolderStore(Path(place))
        case _:
            msg = (
                f"OBJECT_STORE is s3://<bucket> or file://<folder>, not {settings().object_store!r}"
            )
            raise ValueError(msg)
