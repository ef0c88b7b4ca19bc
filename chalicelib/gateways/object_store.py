"""Bytes too large for a database record: S3 on AWS, a folder elsewhere. Both behave alike.

Keys are slash-separated and begin with the workspace id. An object is safe once ``put`` returns.
"""

import base64
import hmac
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.settings import settings

UPLOAD_PATH = "files/uploads/"
"""Where the local server takes signed uploads."""
NO_HEADERS: Mapping[str, str] = {}


class UploadRequest(NamedTuple):
    """A PUT that needs no key: its body is the object."""

    url: str


class ObjectStore(Protocol):
    """Where objects are kept."""

    def put(
        self, key: str, body: bytes, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Store an object, replacing one of the same key.

        ``headers`` are those it is to be served with, if it is public.
        """

    def get(self, key: str) -> bytes | None:
        """Return an object, or None if there is none."""

    def upload_request(self, key: str, size: int, seconds: int) -> UploadRequest:
        """Return a request by which whoever has it can put an object of exactly this size."""

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

    def put(
        self,
        key: str,
        body: bytes,
        content_type: str,  # noqa: ARG002  files have no type and headers of their own
        headers: Mapping[str, str] = NO_HEADERS,  # noqa: ARG002
    ) -> None:
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

    def upload_request(self, key: str, size: int, seconds: int) -> UploadRequest:
        """Return a PUT to the local server, which signs it as S3 does its own."""
        expires = int(clock.now().timestamp()) + seconds
        token = self._signed(f"{expires}.{size}.{key}")
        return UploadRequest(f"{settings().public_url}/{UPLOAD_PATH}{token}")

    def put_upload(self, token: str, body: bytes) -> bool:
        """Store the body of a signed PUT; false if the token or the size is not as signed."""
        try:
            told = base64.urlsafe_b64decode(token).decode().partition(".")[2]
            expires, size, key = told.split(".", 2)
        except ValueError:
            return False
        if not hmac.compare_digest(self._signed(told), token):
            return False
        if int(expires) < clock.now().timestamp() or int(size) != len(body):
            return False
        self.put(key, body, "application/octet-stream")
        return True

    def _signed(self, told: str) -> str:
        signature = hmac.digest(self._secret(), told.encode(), "sha256").hex()
        return base64.urlsafe_b64encode(f"{signature}.{told}".encode()).decode()

    def _secret(self) -> bytes:
        """Return what uploads are signed with, made when first needed."""
        path = self._root / ".upload-secret"
        with _reaching(OSError):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
                draft.touch(mode=0o600)
                draft.write_bytes(secrets.token_bytes(32))
                with suppress(FileExistsError):
                    path.hardlink_to(draft)
                draft.unlink()
                return path.read_bytes()

    def get(self, key: str) -> bytes | None:
        """Return an object."""
        path = self._path(key)
        with _reaching(OSError):
            try:
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
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

    def put(
        self, key: str, body: bytes, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Store an object; of its headers, S3 keeps these three, and the edge adds the others."""
        kept = {
            name.replace("-", ""): headers[name]
            for name in ("Content-Type", "Content-Disposition", "Cache-Control")
            if name in headers
        }
        with _reaching_s3():
            self._client.put_object(
                Bucket=self._bucket, Key=key, Body=body, **{"ContentType": content_type, **kept}
            )

    def upload_request(self, key: str, size: int, seconds: int) -> UploadRequest:
        """Return a presigned PUT; the signature covers the length."""
        params = {"Bucket": self._bucket, "Key": key, "ContentLength": size}
        url: str = self._client.generate_presigned_url("put_object", params, ExpiresIn=seconds)
        return UploadRequest(url)

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
    config = Config(
        connect_timeout=3,
        read_timeout=8,
        retries=retries,
        signature_version="s3v4",  # the older one, still usual here and there, signs no length
        # The regional host: the global one redirects, and newer regions refuse what is signed
        # for it (S3 user guide, Virtual hosting of buckets).
        s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
    )
    return boto3.client("s3", config=config)


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
