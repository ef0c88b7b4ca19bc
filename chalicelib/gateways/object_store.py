"""Storage for data too large for a database record, in S3 on AWS and in a folder elsewhere.

Keys are slash-separated and begin with the workspace id. An object is stored durably when ``put``
returns.
"""

import base64
import hashlib
import hmac
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from chalicelib.core import clock, deadline
from chalicelib.core.errors import UnavailableError
from chalicelib.core.retry import backoff
from chalicelib.core.settings import settings
from chalicelib.gateways.local_secret import local_secret

UPLOAD_PATH = "files/uploads/"  # The local server accepts signed uploads here.
DOWNLOAD_PATH = "files/downloads/"  # The local server sends objects by signed URLs here.
# S3 refuses smaller parts of an upload, except the last (S3 user guide, Multipart upload limits).
MIN_PART_BYTES = 5 * 1024 * 1024
NO_HEADERS: Mapping[str, str] = {}
CONNECT_SECONDS = 1
READ_SECONDS = 3  # For S3 to continue. A request in progress at the deadline takes that much more.
# botocore's own retries are off, because they ignore the request's deadline.
ATTEMPTS = 3
_SERVER_ERROR = 500
_DOWNLOAD = "download"  # the mark of a signed download, in place of the size of an upload
# Failures that may pass, besides those with the status of a server error.
_PASSING = frozenset({"RequestTimeout", "SlowDown"})


class UploadRequest(NamedTuple):
    """A presigned PUT request, which needs no API key. Its body becomes the object."""

    url: str


class UploadGoneError(Exception):
    """The upload in parts was completed, or is not known any more."""


class ObjectStore(Protocol):
    def put(
        self, key: str, body: bytes, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Store an object, or replace it. ``headers`` are served with it if it is public."""

    def get(self, key: str) -> bytes | None:
        """Return an object, or None if it does not exist."""

    def upload_request(self, key: str, size: int, *, seconds: int) -> UploadRequest:
        """Return a presigned upload of exactly ``size`` bytes, valid for ``seconds``."""

    def download_url(self, key: str, seconds: int) -> str:
        """Return a URL of an object, valid for ``seconds``."""

    def size(self, key: str) -> int | None:
        """Return the bytes of an object, or None if it does not exist."""

    def begin_parts(
        self, key: str, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> str:
        """Begin an upload in parts, and return its id. ``complete_parts`` makes the object."""

    def put_part(self, key: str, upload_id: str, *, number: int, body: bytes) -> str:
        """Store a part, or replace it, and return its tag. Numbers begin with 1.

        Raises:
            UploadGoneError: there is no such upload.
        """

    def complete_parts(self, key: str, upload_id: str, tags: Sequence[str]) -> None:
        """Make the object of all parts, given by their tags in order. Raises UploadGoneError."""

    def abort_parts(self, key: str, upload_id: str) -> None:
        """Delete the parts of an upload that is not completed, if there are any."""

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""

    def delete_under(self, prefix: str) -> None:
        """Delete every object whose key begins with ``prefix``, which ends with a slash."""


@contextmanager
def _unavailable_on(*failures: type[Exception]) -> Iterator[None]:
    try:
        yield
    except failures as error:
        raise UnavailableError from error


class FolderStore:
    """Objects as files in a folder, written atomically and flushed to disk by ``put``."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def _path(self, key: str) -> Path:
        path = (self._root / key).resolve()
        # A key that begins with ``../`` would leave the folder.
        if not path.is_relative_to(self._root):
            msg = f"object key {key!r} leaves the store"
            raise ValueError(msg)
        return path

    def put(
        self,
        key: str,
        body: bytes,
        content_type: str,  # noqa: ARG002  a file stores neither a type nor headers
        headers: Mapping[str, str] = NO_HEADERS,  # noqa: ARG002
    ) -> None:
        path = self._path(key)
        with _unavailable_on(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(body)
                    file.flush()
                    # Without the flush, a crash of the machine could leave an empty file under the
                    # final name.
                    os.fsync(file.fileno())
                # A reader sees the whole new file or the old one.
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def upload_request(self, key: str, size: int, *, seconds: int) -> UploadRequest:
        """Return a PUT to the local server with a signature that the server verifies."""
        expires = int(clock.now().timestamp()) + seconds
        token = self._signed(f"{expires}.{size}.{key}")
        return UploadRequest(f"{settings().public_url}/{UPLOAD_PATH}{token}")

    def download_url(self, key: str, seconds: int) -> str:
        """Return a URL of the local server with a signature that the server verifies."""
        expires = int(clock.now().timestamp()) + seconds
        token = self._signed(f"{expires}.{_DOWNLOAD}.{key}")
        return f"{settings().public_url}/{DOWNLOAD_PATH}{token}"

    def find_download(self, token: str) -> str | None:
        """Return the key of the object that a token of ``download_url`` gives, or None."""
        signed = self._verified(token)
        return signed[1] if signed and signed[0] == _DOWNLOAD else None

    def put_upload(self, token: str, body: bytes) -> bool:
        """Store the body of a signed PUT. Return False if the token or the size is not valid."""
        signed = self._verified(token)
        if signed is None or signed[0] != str(len(body)):
            return False
        self.put(signed[1], body, "application/octet-stream")
        return True

    def _verified(self, token: str) -> tuple[str, str] | None:
        """Return the size, or the mark of a download, and the key of a token that is valid now."""
        try:
            payload = base64.urlsafe_b64decode(token).decode().partition(".")[2]
            expires, size, key = payload.split(".", 2)
        except ValueError:
            return None
        # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
        if not hmac.compare_digest(self._signed(payload), token):
            return None
        return None if int(expires) < clock.now().timestamp() else (size, key)

    def _signed(self, payload: str) -> str:
        signature = hmac.digest(self._secret(), payload.encode(), "sha256").hex()
        return base64.urlsafe_b64encode(f"{signature}.{payload}".encode()).decode()

    def _secret(self) -> bytes:
        with _unavailable_on(OSError):
            return local_secret(self._root / ".upload-secret")

    def get(self, key: str) -> bytes | None:
        path = self._path(key)
        with _unavailable_on(OSError):
            try:
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def size(self, key: str) -> int | None:
        path = self._path(key)
        with _unavailable_on(OSError):
            return path.stat().st_size if path.is_file() else None

    def begin_parts(
        self,
        key: str,
        content_type: str,  # noqa: ARG002  as in ``put``
        headers: Mapping[str, str] = NO_HEADERS,  # noqa: ARG002
    ) -> str:
        upload_id = uuid4().hex
        with _unavailable_on(OSError):
            self._parts(key, upload_id).mkdir(parents=True)
        return upload_id

    def _parts(self, key: str, upload_id: str) -> Path:
        return self._path(f"{key}.parts/{upload_id}")

    def put_part(self, key: str, upload_id: str, *, number: int, body: bytes) -> str:
        if not self._parts(key, upload_id).is_dir():
            raise UploadGoneError
        self.put(f"{key}.parts/{upload_id}/{number}", body, "application/octet-stream")
        return f"{number}-{hashlib.sha256(body).hexdigest()}"

    def complete_parts(self, key: str, upload_id: str, tags: Sequence[str]) -> None:
        folder = self._parts(key, upload_id)
        if not folder.is_dir():
            raise UploadGoneError
        whole = folder / "whole"
        with _unavailable_on(OSError):
            with whole.open("wb") as file:
                for tag in tags:
                    file.write((folder / tag.partition("-")[0]).read_bytes())
                file.flush()
                os.fsync(file.fileno())
            whole.replace(self._path(key))
        shutil.rmtree(folder.parent, ignore_errors=True)

    def abort_parts(self, key: str, upload_id: str) -> None:
        shutil.rmtree(self._parts(key, upload_id), ignore_errors=True)

    def delete(self, key: str) -> None:
        path = self._path(key)
        with _unavailable_on(OSError):
            path.unlink(missing_ok=True)

    def delete_under(self, prefix: str) -> None:
        shutil.rmtree(self._path(prefix), ignore_errors=True)


class S3Store:
    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def put(
        self, key: str, body: bytes, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        self._request("put_object", Key=key, Body=body, **_kept_headers(content_type, headers))

    def upload_request(self, key: str, size: int, *, seconds: int) -> UploadRequest:
        # The signature covers the length.
        params = {"Bucket": self._bucket, "Key": key, "ContentLength": size}
        url: str = _s3_client().generate_presigned_url("put_object", params, ExpiresIn=seconds)
        return UploadRequest(url)

    def get(self, key: str) -> bytes | None:
        try:
            answer = self._request("get_object", Key=key)
        except _s3_client().exceptions.NoSuchKey:
            return None
        from botocore.exceptions import BotoCoreError

        with _unavailable_on(BotoCoreError):
            body: bytes = answer["Body"].read()
            return body

    def size(self, key: str) -> int | None:
        from botocore.exceptions import ClientError

        try:
            return int(self._request("head_object", Key=key)["ContentLength"])
        except UnavailableError as error:
            # A response to HEAD has no body, so its code is that of the status.
            cause = error.__cause__
            if isinstance(cause, ClientError) and cause.response["Error"]["Code"] == "404":
                return None
            raise

    def begin_parts(
        self, key: str, content_type: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> str:
        options = _kept_headers(content_type, headers)
        upload_id: str = self._request("create_multipart_upload", Key=key, **options)["UploadId"]
        return upload_id

    def put_part(self, key: str, upload_id: str, *, number: int, body: bytes) -> str:
        with self._upload_gone():
            answer = self._request(
                "upload_part", Key=key, UploadId=upload_id, PartNumber=number, Body=body
            )
        tag: str = answer["ETag"]
        return tag

    def complete_parts(self, key: str, upload_id: str, tags: Sequence[str]) -> None:
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
        with self._upload_gone():
            self._request(
                "complete_multipart_upload",
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": parts},
            )

    def abort_parts(self, key: str, upload_id: str) -> None:
        with suppress(UploadGoneError), self._upload_gone():
            self._request("abort_multipart_upload", Key=key, UploadId=upload_id)

    @contextmanager
    def _upload_gone(self) -> Iterator[None]:
        try:
            yield
        except UnavailableError as error:
            response = getattr(error.__cause__, "response", {})
            if response.get("Error", {}).get("Code") == "NoSuchUpload":
                raise UploadGoneError from error
            raise

    def download_url(self, key: str, seconds: int) -> str:
        """Return a presigned GET. S3 responds with the headers that it keeps for the object."""
        params = {"Bucket": self._bucket, "Key": key}
        url: str = _s3_client().generate_presigned_url("get_object", params, ExpiresIn=seconds)
        return url

    def delete(self, key: str) -> None:
        self._request("delete_object", Key=key)

    def delete_under(self, prefix: str) -> None:
        start: dict[str, str] = {}
        while True:
            # S3 takes at most 1000 keys per request.
            page = self._request("list_objects_v2", Prefix=prefix, **start)
            keys = [{"Key": item["Key"]} for item in page.get("Contents", ())]
            deleted = {"Objects": keys, "Quiet": True}
            # S3 reports objects that it could not delete in a response with the status 200.
            if keys and self._request("delete_objects", Delete=deleted).get("Errors"):
                raise UnavailableError
            if not page.get("IsTruncated"):
                return
            start = {"ContinuationToken": page["NextContinuationToken"]}

    def _request(self, operation: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  parameters of S3
        from botocore.exceptions import BotoCoreError, ClientError

        client = _s3_client()
        for number in count():
            if deadline.passed():
                # No attempt after the request's deadline.
                raise UnavailableError from TimeoutError("the request's time is up")
            try:
                answer: dict[str, Any] = getattr(client, operation)(
                    Bucket=self._bucket, **arguments
                )
            except client.exceptions.NoSuchKey:
                raise
            except (BotoCoreError, ClientError) as error:
                if number + 1 == ATTEMPTS or not _is_passing(error):
                    raise UnavailableError from error
            else:
                return answer
            backoff(number)
        raise AssertionError("unreachable")


def _kept_headers(content_type: str, headers: Mapping[str, str]) -> dict[str, str]:
    # S3 can keep these three. CloudFront adds the others.
    kept = {
        name.replace("-", ""): headers[name]
        for name in ("Content-Type", "Content-Disposition", "Cache-Control")
        if name in headers
    }
    return {"ContentType": content_type, **kept}


def _is_passing(error: Exception) -> bool:
    answer = getattr(error, "response", None)
    if answer is None:
        # No response means that the connection failed or timed out.
        return True
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= _SERVER_ERROR or answer.get("Error", {}).get("Code") in _PASSING


def delete_unused(keys: Iterable[str | None], used: Collection[str | None] = ()) -> None:
    """Delete the objects that nothing uses. A key of None is an object that was never stored."""
    store = object_store()
    for key in keys:
        if key is not None and key not in used:
            store.delete(key)


@cache
def _s3_client() -> Any:  # noqa: ANN401  boto3 generates its clients at run time
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 1, "mode": "standard"},  # ``S3Store`` retries
        signature_version="s3v4",  # version 2 does not sign the length
        # Use the regional host. The global one redirects, and newer regions refuse its signatures
        # (S3 user guide, Virtual hosting of buckets).
        s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
    )
    return boto3.client("s3", config=config)


@cache
def object_store() -> ObjectStore:
    """Return the store of ``OBJECT_STORE``: ``s3://<bucket>`` or ``file://<folder>``."""
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
