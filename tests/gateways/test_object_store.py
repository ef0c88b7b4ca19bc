"""Both object stores, S3 and a folder, behave in the same way."""

import base64
import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import boto3
import pytest
import requests
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from moto import mock_aws
from urllib3 import HTTPResponse

from chalicelib.core import deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.domains.files.rules import stored_files
from chalicelib.gateways import object_store as gateway
from chalicelib.gateways.object_store import (
    FolderStore,
    ObjectStore,
    S3Store,
    UploadGoneError,
    object_store,
)
from tests.conftest import Time
from tests.support.patience import PATIENCE

TYPE = "text/html; charset=utf-8"
S3_CALLS: dict[str, Callable[[S3Store], object]] = {
    "put": lambda store: store.put("w/1", b"x", TYPE),
    "get": lambda store: store.get("w/1"),
    "delete": lambda store: store.delete("w/1"),
    "delete_under": lambda store: store.delete_under("w/"),
    "size": lambda store: store.size("w/1"),
    "begin_parts": lambda store: store.begin_parts("w/1", TYPE),
}


@dataclass(frozen=True)
class Bucket:
    """An in-memory S3 bucket with its boto3 client."""

    client: Any
    name: str


_numbers = itertools.count()
REGIONS = ["eu-central-1", "us-east-1", "eu-south-2", "il-central-1"]
"""An old region, the first region, and two that the global host does not serve."""


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    """An empty bucket."""
    with mock_aws():
        new_bucket = Bucket(boto3.client("s3"), f"bucket-{next(_numbers)}")
        new_bucket.client.create_bucket(
            Bucket=new_bucket.name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        gateway._s3_client.cache_clear()
        yield new_bucket
    gateway._s3_client.cache_clear()


@pytest.fixture
def s3(bucket: Bucket) -> S3Store:
    """An empty store in a bucket."""
    return S3Store(bucket.name)


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An empty store of each kind."""
    if request.param == "folder":
        return FolderStore(tmp_path / "objects")
    s3_store: S3Store = request.getfixturevalue("s3")
    return s3_store


class TestObjectStore:
    @pytest.mark.parametrize(
        "body", [b"", b"<p>", "Ёж 🦔\r\n".encode(), bytes(range(256)), b"x" * 2**20]
    )
    def test_a_stored_object_is_returned(self, body: bytes, store: ObjectStore) -> None:
        store.put("w/sites/s/pages/p/1.html", body, TYPE)
        assert store.get("w/sites/s/pages/p/1.html") == body

    def test_an_unknown_object_is_not_found(self, store: ObjectStore) -> None:
        store.put("w/a/1", b"x", TYPE)
        assert store.get("w/a/2") is None
        assert store.get("other/a/1") is None

    def test_an_object_with_the_same_key_is_replaced(self, store: ObjectStore) -> None:
        store.put("w/1", b"long before", TYPE)
        store.put("w/1", b"after", TYPE)
        assert store.get("w/1") == b"after"

    def test_only_the_named_object_is_deleted(self, store: ObjectStore) -> None:
        store.put("w/1", b"1", TYPE)
        store.put("w/11", b"11", TYPE)
        store.delete("w/1")
        assert store.get("w/1") is None
        assert store.get("w/11") == b"11"

    def test_deleting_an_unknown_object_succeeds(self, store: ObjectStore) -> None:
        store.delete("w/none")
        store.delete_under("w/none/")

    def test_all_objects_under_a_prefix_and_no_others_are_deleted(self, store: ObjectStore) -> None:
        inside = ["w/sites/a/1", "w/sites/a/pages/2", "w/sites/a/pages/deep/3"]
        beside = ["w/sites/ab/1", "w/sites/b/1", "v/sites/a/1", "w/sites/a.html"]
        for key in inside + beside:
            store.put(key, key.encode(), TYPE)
        store.delete_under("w/sites/a/")
        assert [store.get(key) for key in inside] == [None] * 3
        assert [store.get(key) for key in beside] == [key.encode() for key in beside]
        store.put(inside[0], b"again", TYPE)
        assert store.get(inside[0]) == b"again"


class TestUploadsInParts:
    KEY = "w/exports/e/a.zip"
    PART = b"x" * gateway.MIN_PART_BYTES

    def test_the_object_is_made_of_the_parts_in_order(self, store: ObjectStore) -> None:
        upload = store.begin_parts(self.KEY, TYPE)
        last = store.put_part(self.KEY, upload, number=2, body=b"end")
        store.put_part(self.KEY, upload, number=1, body=b"killed")
        first = store.put_part(self.KEY, upload, number=1, body=self.PART)
        assert store.get(self.KEY) is None
        assert store.size(self.KEY) is None
        store.complete_parts(self.KEY, upload, [first, last])
        assert store.get(self.KEY) == self.PART + b"end"
        assert store.size(self.KEY) == len(self.PART) + 3

    def test_a_part_that_was_not_named_is_left_out(self, store: ObjectStore) -> None:
        upload = store.begin_parts(self.KEY, TYPE)
        tag = store.put_part(self.KEY, upload, number=1, body=b"whole")
        store.put_part(self.KEY, upload, number=2, body=b"of a run that was killed")
        store.complete_parts(self.KEY, upload, [tag])
        assert store.get(self.KEY) == b"whole"

    @pytest.mark.parametrize("end", ["complete", "abort"])
    def test_an_upload_that_has_ended_is_gone(self, store: ObjectStore, end: str) -> None:
        upload = store.begin_parts(self.KEY, TYPE)
        tag = store.put_part(self.KEY, upload, number=1, body=b"x")
        if end == "complete":
            store.complete_parts(self.KEY, upload, [tag])
        else:
            store.abort_parts(self.KEY, upload)
        if isinstance(store, FolderStore):  # moto answers neither call as S3 does
            with pytest.raises(UploadGoneError):
                store.complete_parts(self.KEY, upload, [tag])
            with pytest.raises(UploadGoneError):
                store.put_part(self.KEY, upload, number=1, body=b"x")
        store.abort_parts(self.KEY, upload)
        assert (store.get(self.KEY) is not None) is (end == "complete")

    def test_a_part_of_an_upload_that_a_bucket_does_not_know_is_refused(
        self, s3: S3Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: Any, **__: Any) -> Any:
            answer = {"Error": {"Code": "NoSuchUpload"}}
            raise UnavailableError from ClientError(answer, "UploadPart")

        monkeypatch.setattr(s3, "_request", fails)
        with pytest.raises(UploadGoneError):
            s3.put_part(self.KEY, "u", number=1, body=b"x")
        with pytest.raises(UploadGoneError):
            s3.complete_parts(self.KEY, "u", ["tag"])


class TestUploadRequests:
    KEY = "w/uploads/u"

    @pytest.fixture(autouse=True)
    def _set_time(self, time: Time) -> None:
        """Let folder stores use the service's clock."""

    def send(self, store: ObjectStore, url: str, body: bytes) -> int:
        """Send a PUT request as a client would, and return the status."""
        if isinstance(store, FolderStore):
            return 200 if store.put_upload(url.rpartition("/")[2], body) else 403
        return requests.put(url, data=body, timeout=PATIENCE).status_code

    @pytest.mark.parametrize("body", [b"x", bytes(range(256)), "Ёж".encode() * 1000])
    def test_an_upload_request_accepts_the_announced_bytes(
        self, body: bytes, store: ObjectStore
    ) -> None:
        request = store.upload_request(self.KEY, len(body), seconds=60)
        assert self.send(store, request.url, body) == 200
        assert store.get(self.KEY) == body
        store.delete(self.KEY)
        assert store.get(self.KEY) is None

    def test_an_upload_request_is_for_one_key(self, store: ObjectStore) -> None:
        request = store.upload_request(self.KEY, 1, seconds=60)
        assert self.send(store, request.url, b"x") == 200
        assert store.get("w/uploads/v") is None

    def test_an_upload_request_is_made_without_calling_the_store(self, store: ObjectStore) -> None:
        assert store.upload_request(self.KEY, 1, seconds=60).url.startswith("http")
        assert store.get(self.KEY) is None

    def test_bucket_serves_a_download_url_with_its_headers(self, s3: S3Store) -> None:
        attachment = {"Content-Disposition": "attachment"}
        s3.put("files/a", b"<svg/>", "image/svg+xml", attachment)
        answer = requests.get(s3.download_url("files/a", 60), timeout=PATIENCE)
        assert answer.content == b"<svg/>"
        assert answer.headers["Content-Disposition"] == "attachment"

    def test_a_folders_download_url_gives_one_object_for_a_time(
        self, tmp_path: Path, time: Time
    ) -> None:
        store = FolderStore(tmp_path)
        token = store.download_url("w/exports/a.zip", 60).rpartition("/")[2]
        assert store.find_download(token) == "w/exports/a.zip"
        assert store.find_download(token[:-8]) is None
        assert store.put_upload(token, b"x") is False
        upload = store.upload_request("w/uploads/u", 1, seconds=60).url.rpartition("/")[2]
        assert store.find_download(upload) is None
        time.pass_by(seconds=61)
        assert store.find_download(token) is None

    @pytest.mark.parametrize("body", [b"", b"ab", b"abcd"])
    def test_a_folders_upload_request_refuses_another_size(
        self, body: bytes, tmp_path: Path
    ) -> None:
        store = FolderStore(tmp_path)
        request = store.upload_request(self.KEY, 3, seconds=60)
        assert self.send(store, request.url, body) == 403
        assert store.get(self.KEY) is None

    def test_a_folders_upload_request_expires(self, tmp_path: Path, time: Time) -> None:
        store = FolderStore(tmp_path)
        request = store.upload_request(self.KEY, 1, seconds=60)
        time.pass_by(seconds=60)
        assert self.send(store, request.url, b"x") == 200
        time.pass_by(seconds=1)
        assert self.send(store, request.url, b"x") == 403

    def test_a_folders_upload_request_survives_a_restart(self, tmp_path: Path) -> None:
        request = FolderStore(tmp_path).upload_request(self.KEY, 1, seconds=60)
        assert self.send(FolderStore(tmp_path), request.url, b"x") == 200

    def test_a_folders_upload_request_is_not_valid_in_another_folder(self, tmp_path: Path) -> None:
        request = FolderStore(tmp_path / "a").upload_request(self.KEY, 1, seconds=60)
        assert self.send(FolderStore(tmp_path / "b"), request.url, b"x") == 403

    def test_a_folders_upload_request_cannot_be_forged(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        token = store.upload_request(self.KEY, 1, seconds=60).url.rpartition("/")[2]
        signature = base64.urlsafe_b64decode(token).decode().partition(".")[0]
        far = "9999999999"
        for forged in (
            f"{signature}.{far}.1.{self.KEY}",
            f"{signature}.{far}.1.w/else",
            f".{far}.1.{self.KEY}",
            f"{'0' * 64}.{far}.1.{self.KEY}",
            "a.b.c",
            "",
        ):
            forged_token = base64.urlsafe_b64encode(forged.encode()).decode()
            assert store.put_upload(forged_token, b"x") is False
        for garbage in ("", "=", "Ё", token[:-4], token + "AAAA", "\x00", "%", token + "!"):
            assert store.put_upload(garbage, b"x") is False
        assert store.get(self.KEY) is None

    def test_an_upload_request_does_not_show_its_secret(self, tmp_path: Path) -> None:
        FolderStore(tmp_path).upload_request(self.KEY, 1, seconds=60)
        (secret,) = (path for path in tmp_path.iterdir() if path.is_file())
        assert secret.stat().st_mode & 0o077 == 0
        assert len(secret.read_bytes()) == 32

    @pytest.mark.parametrize("region", REGIONS)
    def test_an_s3_upload_request_signs_the_length_the_key_and_the_expiry(
        self, region: str, s3: S3Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            boto3, "DEFAULT_SESSION", None
        )  # The store may have read its region before.
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        gateway._s3_client.cache_clear()
        url = urlsplit(s3.upload_request(self.KEY, 12_345, seconds=60).url)
        signed = parse_qs(url.query)
        assert signed["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
        assert signed["X-Amz-Credential"][0].endswith(f"/{region}/s3/aws4_request")
        assert {"content-length", "host"} <= set(signed["X-Amz-SignedHeaders"][0].split(";"))
        assert signed["X-Amz-Expires"] == ["60"]
        assert url.path == f"/{self.KEY}"
        assert not any("checksum" in name.lower() for name in signed)


class TestFolderStore:
    def test_a_folder_is_not_an_object(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        store.put("w/a/1", b"x", TYPE)
        assert store.get("w/a") is None
        assert store.get("w/a/1/2") is None

    def test_a_link_out_of_the_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"outside")
        (tmp_path / "objects").mkdir()
        (tmp_path / "objects" / "link").symlink_to(tmp_path)
        with pytest.raises(ValueError, match="leaves the store"):
            FolderStore(tmp_path / "objects").get("link/x")

    @pytest.mark.parametrize("key", ["../x", "w/../../x", "/etc/passwd", "w/../../../../x"])
    def test_a_key_out_of_the_folder_is_refused(self, key: str, tmp_path: Path) -> None:
        store = FolderStore(tmp_path / "objects")
        (tmp_path / "x").write_bytes(b"outside")
        for use in (store.get, store.delete, store.delete_under):
            with pytest.raises(ValueError, match="leaves the store"):
                use(key)
        with pytest.raises(ValueError, match="leaves the store"):
            store.put(key, b"evil", TYPE)
        assert (tmp_path / "x").read_bytes() == b"outside"

    def test_objects_survive_the_process_that_wrote_them(self, tmp_path: Path) -> None:
        FolderStore(tmp_path).put("w/1", b"kept", TYPE)
        assert FolderStore(tmp_path).get("w/1") == b"kept"

    def test_a_write_leaves_no_other_file(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        store.put("w/1", b"one", TYPE)
        store.put("w/1", b"two", TYPE)
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["1"]

    def test_a_failed_write_keeps_the_old_object(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = FolderStore(tmp_path)
        store.put("w/1", b"old", TYPE)
        monkeypatch.setattr(gateway.os, "fsync", self.full)
        with pytest.raises((OSError, UnavailableError)):
            store.put("w/1", b"new and much longer", TYPE)
        assert store.get("w/1") == b"old"

    def test_a_failed_write_leaves_no_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = FolderStore(tmp_path)
        monkeypatch.setattr(gateway.os, "fsync", self.full)
        with pytest.raises((OSError, UnavailableError)):
            store.put("w/1", b"new", TYPE)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    @staticmethod
    def full(_: int) -> None:
        raise OSError("disk full")


def throttled() -> Exception:
    return ClientError({"Error": {"Code": "SlowDown", "Message": "slow"}}, "Any")


def unreachable() -> Exception:
    return ConnectTimeoutError(endpoint_url="http://nowhere")


class TestS3Store:
    @pytest.mark.parametrize("region", REGIONS)
    def test_the_regions_own_host_is_used(
        self, region: str, bucket: Bucket, s3: S3Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        gateway._s3_client.cache_clear()
        urls = [s3.upload_request("w/1", 1, seconds=60).url]

        def answered(request: Any, **_: Any) -> AWSResponse:
            urls.append(request.url)
            return AWSResponse(
                request.url, 200, {}, HTTPResponse(io.BytesIO(), preload_content=False)
            )

        gateway._s3_client().meta.events.register_first("before-send.s3.PutObject", answered)
        s3.put("w/1", b"x", TYPE)
        host = f"{bucket.name}.s3.{region}.amazonaws.com"
        assert [urlsplit(url).netloc for url in urls] == [host, host]

    def test_the_content_type_is_stored(self, bucket: Bucket, s3: S3Store) -> None:
        s3.put("w/1", b"x", TYPE)
        assert bucket.client.head_object(Bucket=bucket.name, Key="w/1")["ContentType"] == TYPE

    def test_the_headers_for_serving_a_file_are_stored(self, bucket: Bucket, s3: S3Store) -> None:
        s3.put("w/1", b"<svg/>", "image/svg+xml", stored_files.headers("image/svg+xml"))
        head = bucket.client.head_object(Bucket=bucket.name, Key="w/1")
        assert head["ContentType"] == "image/svg+xml"
        assert head["ContentDisposition"] == "attachment"
        assert head["CacheControl"] == "public, max-age=300"

    def test_more_objects_than_one_request_takes_are_deleted(
        self, bucket: Bucket, s3: S3Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            bucket.client.put_object(Bucket=bucket.name, Key=f"w/{number}", Body=b"x")

        def two_a_page(params: dict[str, Any], **_: Any) -> None:
            params.setdefault("MaxKeys", 2)

        client = gateway._s3_client()
        client.meta.events.register("provide-client-params.s3.ListObjectsV2", two_a_page)
        s3.delete_under("w/")
        assert bucket.client.list_objects_v2(Bucket=bucket.name)["KeyCount"] == 0

    def test_objects_that_could_not_be_deleted_are_reported(
        self, bucket: Bucket, s3: S3Store
    ) -> None:
        bucket.client.put_object(Bucket=bucket.name, Key="w/1", Body=b"x")

        def fail(parsed: dict[str, Any], **_: Any) -> None:
            parsed["Errors"] = [{"Key": "w/1", "Code": "InternalError", "Message": "again"}]

        gateway._s3_client().meta.events.register("after-call.s3.DeleteObjects", fail)
        with pytest.raises(Exception, match=r".+"):
            s3.delete_under("w/")

    @pytest.mark.parametrize("fault", [throttled, unreachable])
    @pytest.mark.parametrize("call", ["PutObject", "GetObject", "DeleteObject"])
    def test_a_store_that_fails_is_a_clear_503(
        self,
        call: str,
        fault: Callable[[], Exception],
        s3: S3Store,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)

        def interfere(**_: Any) -> None:
            raise fault()

        gateway._s3_client().meta.events.register_first(f"before-call.s3.{call}", interfere)
        calls = {
            "PutObject": lambda: s3.put("w/1", b"x", TYPE),
            "GetObject": lambda: s3.get("w/1"),
            "DeleteObject": lambda: s3.delete("w/1"),
        }
        with pytest.raises(UnavailableError):
            calls[call]()

    @pytest.mark.parametrize("call", S3_CALLS.values(), ids=S3_CALLS)
    @pytest.mark.parametrize("spent", [0.0, deadline.REQUEST_SECONDS - 0.1])
    def test_a_hanging_store_is_a_503_within_api_gateways_29_seconds(
        self,
        call: Callable[[S3Store], object],
        spent: float,
        s3: S3Store,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        seconds = [0.0]
        monkeypatch.setattr(deadline, "monotonic", lambda: sum(seconds))
        monkeypatch.setattr(retry, "sleep", seconds.append)
        client = gateway._s3_client()
        config = client.meta.config

        def hang(**_: Any) -> None:
            seconds.append(config.connect_timeout + config.read_timeout)
            raise ReadTimeoutError(endpoint_url="http://nowhere")

        client.meta.events.register_first("before-call.s3", hang)
        assert config.retries["total_max_attempts"] == 1
        with deadline.within(deadline.REQUEST_SECONDS):
            seconds.append(spent)
            for _ in range(5):
                with pytest.raises(UnavailableError):
                    call(s3)
        assert sum(seconds) < 29

    @pytest.mark.parametrize("call", S3_CALLS.values(), ids=S3_CALLS)
    def test_a_failure_that_passes_is_retried(
        self, call: Callable[[S3Store], object], s3: S3Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr(retry, "sleep", pauses.append)
        seen: list[str] = []

        def fail_once(model: Any, **_: Any) -> None:
            seen.append(model.name)
            if len(seen) == 1:
                raise ReadTimeoutError(endpoint_url="http://nowhere")

        gateway._s3_client().meta.events.register_first("before-call.s3", fail_once)
        call(s3)
        assert seen == [seen[0]] * 2
        assert len(pauses) == 1

    def test_a_refusal_is_not_retried(self, s3: S3Store) -> None:
        seen: list[str] = []

        def refuse(model: Any, **_: Any) -> None:
            seen.append(model.name)
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, model.name)

        gateway._s3_client().meta.events.register_first("before-call.s3", refuse)
        with pytest.raises(UnavailableError):
            s3.put("w/1", b"x", TYPE)
        assert seen == ["PutObject"]


class TestChoice:
    @pytest.fixture(autouse=True)
    def _clear_cache(self) -> Iterator[None]:
        object_store.cache_clear()
        yield
        object_store.cache_clear()

    def choose(self, monkeypatch: pytest.MonkeyPatch, place: str) -> ObjectStore:
        changed_settings = replace(gateway.settings(), object_store=place)
        monkeypatch.setattr(gateway, "settings", lambda: changed_settings)
        return object_store()

    def test_a_bucket_is_used_on_aws(self, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
        store = self.choose(monkeypatch, f"s3://{bucket.name}")
        store.put("w/1", b"x", TYPE)
        assert bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"][0]["Key"] == "w/1"

    def test_a_folder_is_used_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.choose(monkeypatch, f"file://{tmp_path}").put("w/1", b"x", TYPE)
        assert (tmp_path / "w" / "1").read_bytes() == b"x"

    @pytest.mark.parametrize("place", ["", "ftp://x", "/srv/objects", quote("s3://x", safe="")])
    def test_an_invalid_setting_is_refused_with_the_expected_form(
        self, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ValueError, match="s3://<bucket> or file://<folder>"):
            self.choose(monkeypatch, place)
