"""Builds and checks the Lambda zip.

``chalice package`` builds the zip in a clean copy of the project under ``build/``, with a Python
version that Lambda's current images have. This module then corrects or refuses its result.
``chalice(..., "deploy")`` in that copy deploys the same zip.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import click

from infra.deploy import policies, stage_config
from infra.deploy.package import check as zipcheck
from infra.deploy.package.unused import is_used, trimmed

ROOT = stage_config.ROOT
SHIPPED = ("app.py", "chalicelib", "vendor", ".chalice", "requirements.txt", "constraints.txt")
RECORDED = ("docs/recorded_answers.json", "docs/error_keys.json", "CHANGELOG.md")
"""Sources of the OpenAPI document and of the changelog's page.

The copy needs them. The zip has what is made of them.
"""
PIP = "pip<26.3"
"""Chalice's own limit."""
OLDEST, NEWEST = (3, 12), (3, 14)
"""Python versions of Lambda's images on Amazon Linux 2023.

The image of 3.11 has glibc 2.26, which is too old for many wheels.
"""
PREFERRED = ("3.13", "3.12", "3.14")
"""As in the Makefile. The tests do not run on 3.14, so it is the last resort."""
PACKAGER_ONLY = {"chalice"}
"""Requirements for packaging only.

Chalice adds its own runtime to the zip. As a requirement it would also add pip, setuptools and
PyYAML.
"""
MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""Lambda's names of the architectures, with the names that wheels use."""
DATED = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip, so that the same code is the same zip."""
UNKNOWN = stage_config.StageFacts()
"""Facts of a stage that is packaged without a deployment."""
NO_ANSWER = re.compile(
    r"NewConnectionError|ConnectTimeout|ProxyError|failure in name resolution|Connection refused"
)
UNREACHABLE = re.compile(rf"{NO_ANSWER.pattern}|from versions: none")


class PackageError(click.ClickException):
    """The zip could not be built or must not be deployed.

    The message has the reason and advice.
    """


@dataclass(frozen=True, slots=True)
class Python:
    """A working Python, by its path."""

    path: str
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Package:
    """A checked zip, the copy of the project, and the Python that built it."""

    zip: Path
    project: Path
    python: Python


def build(
    stage: str,
    out: Path,
    python: str | None = None,
    root: Path = ROOT,
    facts: stage_config.StageFacts = UNKNOWN,
) -> Package:
    """Build the stage's zip and template in ``out`` and check the zip.

    Of the facts, only the architecture affects the zip.

    A refused zip is kept for inspection as ``refused.zip``, which no command deploys.

    Raises:
        click.ClickException: as ``stage_config.generate`` does.
        PackageError: no suitable Python, no package index, or a fault of the zip.
    """
    architecture = stage_config.architecture(stage_config.load(root), stage, facts)
    builder, project = prepare(stage, python, root, facts)
    write_manifest(builder, project)
    package = out / "deployment.zip"
    package.unlink(missing_ok=True)
    _print_to_stderr(
        "Packaging {} for python{}.{} on {}.".format(stage, *builder.version, architecture)
    )
    resolved = _resolve(builder, project)
    _chalice_package(builder, project, stage, out.resolve())
    _substitute(out / "sam.json")
    _drop_unused(package)
    _add_bytecode(builder, package)
    target = zipcheck.Target(builder.version, MACHINES[architecture])
    if faults := zipcheck.faults(package, target, resolved):
        # Another name prevents a later command from deploying the refused zip.
        package.rename(out / "refused.zip")
        shutil.rmtree(project)
        raise PackageError("\n- ".join(["The zip must not be deployed:", *faults]))
    # Chalice deploys its cached zip, so the cache must have the checked zip and not Chalice's own.
    for cached in (project / ".chalice" / "deployments").glob("*.zip"):
        shutil.copyfile(package, cached)
    return Package(package, project, builder)


def prepare(
    stage: str,
    python: str | None = None,
    root: Path = ROOT,
    facts: stage_config.StageFacts = UNKNOWN,
) -> tuple[Python, Path]:
    """Create the stage's copy of the project and the environment of Chalice; return both.

    Raises:
        PackageError, click.ClickException: as ``build`` does.
    """
    builder = environment(
        find_python(python), root / "build", requirements=root / "requirements.txt"
    )
    project = _copy(root, project=project_of(stage, root))
    stage_config.write(project / ".chalice", stage, facts, policies.Target(), root)
    return builder, project


def project_of(stage: str, root: Path = ROOT) -> Path:
    """Return the path of the copy of the project for a stage."""
    return root / "build" / f"project-{stage}"


def output_of(stage: str, root: Path = ROOT) -> Path:
    """Return the folder of a stage's zip and template."""
    return root / "build" / "package" / stage


def find_python(requested: str | None = None, exactly: tuple[int, int] | None = None) -> Python:
    """Return ``requested``, or the first Python that both Lambda and Chalice support.

    Each candidate is run, because a shim of pyenv may exist without working. ``exactly`` is the
    version of an existing zip.

    Raises:
        PackageError: no such Python runs.
    """
    oldest, newest = (exactly, exactly) if exactly else (OLDEST, NEWEST)
    preferred = (_dotted(exactly),) if exactly else PREFERRED
    tried = []
    for path in [requested] if requested else _candidates(preferred):
        version = _version(path)
        if version and oldest <= version <= newest:
            return Python(path, version)
        tried.append(f"{path} ({_dotted(version) if version else 'does not run'})")
    needed = _dotted(exactly) if exactly else f"from {_dotted(OLDEST)} to {_dotted(NEWEST)}"
    msg = (
        f"Packaging needs a Python {needed}. "
        f"Install one, or name it with --python. Tried: {', '.join(dict.fromkeys(tried))}."
    )
    raise PackageError(msg)


def _dotted(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)


def _candidates(preferred: tuple[str, ...]) -> Iterator[str]:
    # The running Python comes first, because it needs no second interpreter for packaging.
    yield sys.executable
    with suppress(subprocess.CalledProcessError):  # not found
        yield _output(str(ROOT / "infra" / "local" / "find-python"), *preferred).strip()


def _version(python: str) -> tuple[int, int] | None:
    """Return a Python's version, or None if the Python does not run."""
    try:
        major, minor = _output(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return int(major), int(minor)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def environment(python: Python, work: Path, *, requirements: Path) -> Python:
    """Create or update the environment for packaging, in which Chalice imports the app.

    Raises:
        PackageError: the package index is unreachable, or lacks a requirement.
    """
    venv = environment_of(python, work)
    inside = Python(str(venv / "bin" / "python"), python.version)
    work.mkdir(parents=True, exist_ok=True)
    with venv.with_name(f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Packaging of another stage may use it.
        if _version(inside.path) != python.version:
            _print_to_stderr(f"Making {venv} with {python.path}.")
            _run(python, "-m", "venv", "--clear", str(venv))
        _pip(inside, "install", "--quiet", PIP, "-r", str(requirements))
    return inside


def environment_of(python: Python, work: Path) -> Path:
    """Return the path of the packaging environment for a Python's version."""
    return work / f"venv-{_dotted(python.version)}"


def _copy(root: Path, *, project: Path) -> Path:
    """Copy the files that git tracks, so that no other file of the checkout is shipped."""
    list_command = (
        "git",
        "-C",
        str(root),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    )
    try:
        names = _output(*list_command, "--", *SHIPPED, *RECORDED).split("\0")
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{root} is no git checkout, and packaging ships only what git knows."
        raise PackageError(msg) from error
    shutil.rmtree(project, ignore_errors=True)
    for name in filter(None, names):
        if (source := root / name).is_file():
            target = project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)  # keeps the executable bit
    (project / "requirements.txt").write_text("".join(shipped_requirements(project)))
    return project


def write_manifest(python: Python, project: Path) -> None:
    """Write the manifest of operations, which functions find modules by, into a fresh copy."""
    _run(python, "-P", str(Path(__file__).with_name("manifest.py")), str(project.resolve()))


def shipped_requirements(root: Path) -> list[str]:
    """Return the requirements of a checkout that its zip contains."""
    lines = (root / "requirements.txt").read_text().splitlines(keepends=True)
    line_names = [(line, re.match(r"[\w.-]+", line)) for line in lines]
    return [
        line
        for line, name in line_names
        if name is None or zipcheck.normalised(name[0]) not in PACKAGER_ONLY
    ]


def _resolve(python: Python, project: Path) -> set[tuple[str, str]]:
    """Return the names and versions that the zip must contain: Chalice may leave some out.

    Chalice only prints a warning then.
    """
    requirements = str(project / "requirements.txt")
    options = ("--quiet", "--dry-run", "--ignore-installed", "--report", "-")
    report = json.loads(_pip(python, "install", *options, "-r", requirements))
    distributions = [item["metadata"] for item in report["install"]]
    return {(zipcheck.normalised(item["name"]), item["version"]) for item in distributions}


def chalice(python: Python, project: Path, *arguments: str, region: str | None = None) -> str:
    """Run a Chalice command in a copy of the project and return its output.

    No bytecode is written, because compiled modules below ``chalicelib`` would make Chalice package
    again.
    """
    program = str(Path(python.path).with_name("chalice"))
    return _run(python, program, *arguments, cwd=project, region=region)


def _chalice_package(python: Python, project: Path, stage: str, out: Path) -> None:
    output = chalice(python, project, "package", "--stage", stage, str(out))
    missing = re.search(
        r"Could not install dependencies:\n(.*?)\nYou will have to", output, re.DOTALL
    )
    if missing:
        names = ", ".join(missing[1].split())
        msg = f"No wheel that runs on Lambda for {names}. Pin versions that have one."
        raise PackageError(msg)


def _substitute(template: Path) -> None:
    """Have CloudFormation replace the placeholders of the policies.

    Chalice copies them as plain strings.
    """

    def substituted(node: Any) -> Any:  # noqa: ANN401  JSON
        if isinstance(node, str):
            return {"Fn::Sub": node} if "${AWS::" in node else node
        if isinstance(node, list):
            return [substituted(child) for child in node]
        if isinstance(node, dict) and node.keys() != {"Fn::Sub"}:
            return {name: substituted(child) for name, child in node.items()}
        return node

    template.write_text(json.dumps(substituted(json.loads(template.read_text())), indent=2))


def _drop_unused(package: Path) -> None:
    """Remove libraries' data for AWS services and languages that the project does not use.

    Every file gets the same date.
    """
    full_package = package.with_suffix(".whole.zip")
    package.rename(full_package)
    with ZipFile(full_package) as source, ZipFile(package, "w", ZIP_DEFLATED) as slim_package:
        for entry in source.infolist():
            if is_used(entry.filename):
                # A fixed date makes equal code an equal zip, so Lambda and Chalice see no change.
                entry.date_time = DATED
                slim_package.writestr(entry, trimmed(entry.filename, source.read(entry)))
    full_package.unlink()


def _add_bytecode(python: Python, package: Path) -> None:
    """Add compiled modules, because Lambda's code folder is read-only.

    Without them, each cold start compiles again; with bytecode, importing the app takes half the
    time.
    """
    with tempfile.TemporaryDirectory() as folder, ZipFile(package, "a", ZIP_DEFLATED) as archive:
        archive.extractall(folder)
        _run(python, "-P", str(Path(__file__).with_name("bytecode.py")), folder, "/var/task")
        for compiled in sorted(Path(folder).rglob("*.pyc")):
            entry = ZipInfo.from_file(compiled, compiled.relative_to(folder))
            entry.date_time = DATED
            archive.writestr(entry, compiled.read_bytes(), ZIP_DEFLATED)


def _pip(python: Python, *arguments: str) -> str:
    return _run(python, "-m", "pip", *arguments)


def _run(
    python: Python, *arguments: str, cwd: Path | None = None, region: str | None = None
) -> str:
    """Run a Python outside the checkout and return its output."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # Sets have the same order in each run, so patterns that libraries make from sets do not differ.
    variables["PYTHONHASHSEED"] = "0"
    # Chalice requires a region, although neither the zip nor the template contains it.
    variables["AWS_DEFAULT_REGION"] = region or variables.get("AWS_DEFAULT_REGION", "us-east-1")
    command = [python.path, *arguments]
    # PYTHONPATH is removed above, because modules of the checkout would hide the copy's modules.
    process = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env=variables
    )
    if process.returncode:
        raise PackageError(_why(" ".join(arguments[:3]), printed=process.stdout + process.stderr))
    return process.stdout


def _why(command: str, *, printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip() and "Location" not in line]
    if UNREACHABLE.search(printed):
        return (
            "The package index does not answer or has no such package, and packaging downloads the "
            "wheels of requirements.txt. Connect to the network, or name a mirror with "
            f"PIP_INDEX_URL. The last word was: {lines[-1]}"
        )
    return "\n".join([f"`{command}` failed:", *lines[-15:]])


def _print_to_stderr(text: str) -> None:
    click.echo(text, err=True)
