"""Build and check the zip that Lambda runs.

``chalice package`` does the packing, in a clean copy of the project under ``build/`` and with a
Python that Lambda's current images have; what it leaves out or gets wrong is done or refused here.
``chalice(..., "deploy")`` in that copy takes the very same zip.
"""

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
from zipfile import ZIP_DEFLATED, ZipFile

import click

from infra.deploy import policies, stage_config
from infra.deploy.package import check as zipcheck
from infra.deploy.package.unused import is_used, trimmed

ROOT = stage_config.ROOT
SHIPPED = ("app.py", "chalicelib", "vendor", ".chalice", "requirements.txt", "constraints.txt")
RECORDED = "docs/recorded_answers.json"
"""A part of the OpenAPI document, which is made in the copy of the project. The zip has only the
document."""
PIP = "pip<26.3"
"""Chalice's own limit."""
OLDEST, NEWEST = (3, 12), (3, 14)
"""Lambda's images on Amazon Linux 2023. That of 3.11 has glibc 2.26, too old for many wheels."""
PREFERRED = ("3.13", "3.12", "3.14")
"""As in the Makefile; 3.14, which the suite is not run on, only where there is nothing else."""
PACKAGER_ONLY = {"chalice"}
"""Chalice packs its own runtime; as a requirement it would bring pip, setuptools, PyYAML … too."""
MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}
"""Lambda's names of the architectures, and those that wheels use."""
UNKNOWN = stage_config.StageFacts()
"""Of a stage that is packaged to be looked at, not deployed."""
NO_ANSWER = re.compile(
    r"NewConnectionError|ConnectTimeout|ProxyError|failure in name resolution|Connection refused"
)
UNREACHABLE = re.compile(rf"{NO_ANSWER.pattern}|from versions: none")


class PackageError(click.ClickException):
    """The zip could not be built, or must not be deployed; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Python:
    """A Python that runs, by its path."""

    path: str
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Package:
    """A checked zip, the copy of the project it is made from, and the Python that packed it."""

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

    Of the facts, only the architecture decides what is in the zip.

    A refused zip is left as ``refused.zip``, for inspection, where nothing deploys it.

    Raises:
        click.ClickException: as ``stage_config.generate`` does.
        PackageError: no fitting Python, no package index, a fault of the zip.
    """
    architecture = stage_config.architecture(stage_config.load(root), stage, facts)
    builder, project = prepare(stage, python, root, facts)
    write_manifest(builder, project)
    package = out / "deployment.zip"
    package.unlink(missing_ok=True)
    _say("Packaging {} for python{}.{} on {}.".format(stage, *builder.version, architecture))
    resolved = _resolve(builder, project)
    _chalice_package(builder, project, stage, out.resolve())
    _drop_unused(package)
    _add_bytecode(builder, package)
    target = zipcheck.Target(builder.version, MACHINES[architecture])
    if faults := zipcheck.faults(package, target, resolved):
        package.rename(out / "refused.zip")
        shutil.rmtree(project)
        raise PackageError("\n- ".join(["The zip must not be deployed:", *faults]))
    for cached in (project / ".chalice" / "deployments").glob("*.zip"):
        shutil.copyfile(package, cached)
    return Package(package, project, builder)


def prepare(
    stage: str,
    python: str | None = None,
    root: Path = ROOT,
    facts: stage_config.StageFacts = UNKNOWN,
) -> tuple[Python, Path]:
    """Make the stage's fresh copy of the project, and what runs Chalice in it; return both.

    Raises:
        PackageError, click.ClickException: as ``build`` does.
    """
    builder = environment(find_python(python), root / "build", root / "requirements.txt")
    project = _copy(root, project_of(stage, root))
    stage_config.write(project, stage, facts, policies.Place(), root)
    return builder, project


def project_of(stage: str, root: Path = ROOT) -> Path:
    """Return where the copy of the project is that a stage is packaged from."""
    return root / "build" / f"project-{stage}"


def find_python(wanted: str | None = None, exactly: tuple[int, int] | None = None) -> Python:
    """Return ``wanted`` or the first Python found that Lambda has and chalice can package with.

    Each is run, because a shim of pyenv may be there and not work. ``exactly`` is the version that
    a zip is made for already.

    Raises:
        PackageError: there is none.
    """
    oldest, newest = (exactly, exactly) if exactly else (OLDEST, NEWEST)
    preferred = (_dotted(exactly),) if exactly else PREFERRED
    tried = []
    for path in [wanted] if wanted else _candidates(preferred):
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
    yield sys.executable
    with suppress(subprocess.CalledProcessError):  # it found none
        yield _output(str(ROOT / "infra" / "local" / "find-python"), *preferred).strip()


def _version(python: str) -> tuple[int, int] | None:
    """Return a Python's version, or None if it does not run."""
    try:
        major, minor = _output(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return int(major), int(minor)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def environment(python: Python, work: Path, requirements: Path) -> Python:
    """Make the environment that packages, or bring it up to date; chalice imports the app in it.

    Raises:
        PackageError: the package index does not answer, or lacks what is required.
    """
    venv = environment_of(python, work)
    inside = Python(str(venv / "bin" / "python"), python.version)
    if _version(inside.path) != python.version:
        _say(f"Making {venv} with {python.path}.")
        _run(python, "-m", "venv", "--clear", str(venv))
    _pip(inside, "install", "--quiet", PIP, "-r", str(requirements))
    return inside


def environment_of(python: Python, work: Path) -> Path:
    """Return where the environment is that packages for a Python's version."""
    return work / f"venv-{_dotted(python.version)}"


def _copy(root: Path, project: Path) -> Path:
    """Copy what git knows of the project, so that nothing lying around is shipped."""
    known = ("git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        names = _output(*known, "--", *SHIPPED, RECORDED).split("\0")
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{root} is no git checkout, and packaging ships only what git knows."
        raise PackageError(msg) from error
    shutil.rmtree(project, ignore_errors=True)
    for name in filter(None, names):
        if (source := root / name).is_file():
            target = project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)  # with the right to run
    (project / "requirements.txt").write_text("".join(shipped_requirements(project)))
    return project


def write_manifest(python: Python, project: Path) -> None:
    """Write what a function finds its modules by; the copy is fresh, and so is the manifest."""
    _run(python, "-P", str(Path(__file__).with_name("manifest.py")), str(project.resolve()))


def shipped_requirements(root: Path) -> list[str]:
    """Return the lines of a checkout's requirements that its zip is packed by."""
    lines = (root / "requirements.txt").read_text().splitlines(keepends=True)
    named = [(line, re.match(r"[\w.-]+", line)) for line in lines]
    return [
        line
        for line, name in named
        if name is None or zipcheck.normalised(name[0]) not in PACKAGER_ONLY
    ]


def _resolve(python: Python, project: Path) -> set[tuple[str, str]]:
    """Return the names and versions that the zip must hold; chalice only warns of a missing one."""
    requirements = str(project / "requirements.txt")
    options = ("--quiet", "--dry-run", "--ignore-installed", "--report", "-")
    report = json.loads(_pip(python, "install", *options, "-r", requirements))
    found = [item["metadata"] for item in report["install"]]
    return {(zipcheck.normalised(item["name"]), item["version"]) for item in found}


def chalice(python: Python, project: Path, *arguments: str, region: str | None = None) -> str:
    """Run a chalice command in a copy of the project and return what it printed.

    It writes no bytecode: compiled modules below ``chalicelib`` would make chalice pack again.
    """
    program = str(Path(python.path).with_name("chalice"))
    return _run(python, program, *arguments, cwd=project, region=region)


def _chalice_package(python: Python, project: Path, stage: str, out: Path) -> None:
    told = chalice(python, project, "package", "--stage", stage, str(out))
    missing = re.search(
        r"Could not install dependencies:\n(.*?)\nYou will have to", told, re.DOTALL
    )
    if missing:
        names = ", ".join(missing[1].split())
        msg = f"No wheel that runs on Lambda for {names}. Pin versions that have one."
        raise PackageError(msg)


def _drop_unused(package: Path) -> None:
    """Leave out what libraries bring for AWS services and languages that nothing here speaks of."""
    whole = package.with_suffix(".whole.zip")
    package.rename(whole)
    with ZipFile(whole) as source, ZipFile(package, "w", ZIP_DEFLATED) as kept:
        for entry in source.infolist():
            if is_used(entry.filename):
                kept.writestr(entry, trimmed(entry.filename, source.read(entry)))
    whole.unlink()


def _add_bytecode(python: Python, package: Path) -> None:
    """Add compiled modules: Lambda's code folder is read-only, so each cold start compiled again.

    Measured, that halves the time to import the app. The modules are never compared with their
    sources, whose times a deployment may change (PEP 552, unchecked).
    """
    with tempfile.TemporaryDirectory() as folder, ZipFile(package, "a", ZIP_DEFLATED) as archive:
        archive.extractall(folder)
        options = ("-q", "--invalidation-mode", "unchecked-hash", "-s", folder, "-p", "/var/task")
        _run(python, "-m", "compileall", *options, folder)
        for compiled in sorted(Path(folder).rglob("*.pyc")):
            archive.write(compiled, compiled.relative_to(folder))


def _pip(python: Python, *arguments: str) -> str:
    return _run(python, "-m", "pip", *arguments)


def _run(
    python: Python, *arguments: str, cwd: Path | None = None, region: str | None = None
) -> str:
    """Run a Python outside the checkout and return what it printed."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # Chalice asks for a region, though nothing of it gets into the zip or the template.
    variables["AWS_DEFAULT_REGION"] = region or variables.get("AWS_DEFAULT_REGION", "us-east-1")
    command = [python.path, *arguments]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env=variables
    )
    if done.returncode:
        raise PackageError(_why(" ".join(arguments[:3]), done.stdout + done.stderr))
    return done.stdout


def _why(command: str, printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip() and "Location" not in line]
    if UNREACHABLE.search(printed):
        return (
            "The package index does not answer or has no such package, and packaging downloads the "
            "wheels of requirements.txt. Connect to the network, or name a mirror with "
            f"PIP_INDEX_URL. The last word was: {lines[-1]}"
        )
    return "\n".join([f"`{command}` failed:", *lines[-15:]])


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.command()
@click.option("--stage", default="dev", show_default=True, help="As in .chalice/config.json.")
@click.option("--out", type=click.Path(path_type=Path), default="build/package", show_default=True)
@click.option("--python", help="The Python to package with. Default: the first fitting one found.")
@click.option(
    "--architecture",
    type=click.Choice(stage_config.ARCHITECTURES),
    help="Default: the stage's in .chalice/config.json.",
)
def main(stage: str, out: Path, python: str | None, architecture: str | None) -> None:
    """Build the Lambda zip and its template, check them and say what takes the room."""
    package = build(stage, out, python, facts=stage_config.StageFacts(architecture=architecture))
    size = package.zip.stat().st_size / zipcheck.MIB
    click.echo(f"{package.zip}: {size:.1f} MiB. The largest parts, in KiB:")
    click.echo(f"{'':40} {'zipped':>8} {'unpacked':>8}")
    for name, packed, unpacked in zipcheck.largest(package.zip):
        click.echo(f"{name:40} {packed / 1024:8.0f} {unpacked / 1024:8.0f}")


if __name__ == "__main__":
    main()
