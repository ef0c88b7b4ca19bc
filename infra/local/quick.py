"""Run the tests that a change reaches (make quick).

The tests use the service through its public face, so that almost each of them runs almost every
module, and neither imports nor coverage tell them apart. Names do: folders of tests mirror those of
the code, and the sweeps over all operations are limited to those of the changed domains.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from time import monotonic

import click

from chalicelib.core.operations import REGISTRY, load_all

ROOT = Path(__file__).resolve().parents[2]
HELPERS = {"factories", "fakes", "support"}
CONSOLE = "tests/transports/console"
CONSOLE_SWEEPS = (f"{CONSOLE}/test_console_pages.py", f"{CONSOLE}/test_bare_records.py")
TEXTS = (
    "tests/lib/test_po_files.py",
    "tests/transports/web/test_audit_sentences.py",
    "tests/transports/web/test_web_texts.py",
)
SWEEPS = (
    "tests/contract",
    "tests/domains/events/test_every_event.py::test_every_type_has_a_trigger",
    "tests/domains/notifications/test_who_is_told.py",
    "tests/infra/operator/test_transfer_contents.py",
    *TEXTS,
)
"""What compares registers with declarations, and so fails far from a change."""
ERASURES = "tests/domains/client_profiles/test_erased_fields.py"
SAMPLES = "tests/docs/test_examples.py"
LONG_SWEEPS = (
    SAMPLES,
    "tests/contract/test_fuzz.py",
    "tests/contract/test_mcp_fuzz.py",
    "tests/contract/test_python_sdk.py",
    "tests/contract/test_openapi.py",
    "tests/contract/test_incremental_sync.py",
    "tests/contract/test_shares.py",
    "tests/contract/test_cuts.py",
)
"""Sweeps that no choice of operations shortens. Each runs only if a change chooses its file."""
FEW = 10
NOT_RUN = """\
Not run: tests of other parts that use what has changed, calls of other operations in the sweeps,
and what is slow or has a suite of its own. `make test` runs every quick test, `make pr` all."""


def changed_files(base: str) -> list[str]:
    """Return the files that differ from the newest commit that is in ``base`` too."""
    (fork,) = _git("merge-base", base, "HEAD")
    return sorted(
        {*_git("diff", "--name-only", fork), *_git("ls-files", "-o", "--exclude-standard")}
    )


def tests_of(path: str) -> Iterator[str]:
    """Yield the files and folders of tests that a changed file reaches."""
    yield from _of_tests(path) if path.startswith("tests/") else _of_code(path)
    # Almost every page shows texts of console.po, and the sweeps of TEXTS check the file.
    if "console" in path and path.startswith("chalicelib/") and not path.endswith(".po"):
        yield from (*CONSOLE_SWEEPS, *_named_like(PurePosixPath(CONSOLE), path))
    if path.endswith(".md"):
        yield "tests/docs"
        # The samples of the reference are run by a sweep of the contract.
        if path != "docs/reference.md" and "```" in _text(path):
            yield SAMPLES


def _of_tests(path: str) -> Iterator[str]:
    match PurePosixPath(path).parts:
        case (*_, name) if _is_test(name):
            yield path
        case (_, folder, *_) if folder in HELPERS:
            yield from _users(path)
        case (_, "contract" | "snapshots", *_):
            yield from SWEEPS
        case (_, folder, *folders, _):
            yield str(PurePosixPath("tests", folder, *folders))


def _users(path: str) -> list[str]:
    """Return the tests that import a helper, unless there are too many for a quick run."""
    package, _, name = path.removesuffix(".py").replace("/", ".").rpartition(".")
    imports = rf"from {package}(\.{name} | import .*\b{name}\b)"
    users = [*filter(_is_test, _git("grep", "-lE", imports, "--", "tests"))]
    return users if len(users) <= FEW else []


def _of_code(path: str) -> Iterator[str]:
    match PurePosixPath(path).parts:
        case ("chalicelib", *_, name) if name.endswith(".po"):
            yield from TEXTS
        case ("chalicelib", "domains", domain, _, *_):
            yield from (f"tests/domains/{domain}", *SWEEPS)
            if _is_erased(path):
                yield ERASURES
        case ("chalicelib", *folders, _):
            yield from (*_named_like(_mirror("tests", folders), path), *SWEEPS)
        case ("sdk", "python", *_) | ("infra", "local", "sdk.py"):
            yield "tests/contract/test_python_sdk.py"
        case ("infra", *folders, _):
            mirror = _mirror("tests/infra", folders)
            # A folder without a mirror has tests of its own name, such as test_demo.py.
            for name in (path, *folders[len(mirror.parts) - len(("tests", "infra")) :]):
                yield from _named_like(mirror, name)
        case ("app.py",):
            yield from SWEEPS


def _is_erased(path: str) -> bool:
    """Whether a file declares rows that an erasure empties."""
    return "kept_when_erased" in _text(path)


def _text(path: str) -> str:
    """Return the text of a file, or nothing if the change deletes it."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _mirror(root: str, folders: list[str]) -> PurePosixPath:
    """Return the deepest folder of tests that has the place of a folder of the code."""
    mirror = PurePosixPath(root)
    for folder in folders:
        if not (ROOT / mirror / folder).is_dir():
            break
        mirror /= folder
    return mirror


def _named_like(folder: PurePosixPath, path: str) -> list[str]:
    """Return the files of tests whose name has the first word of a file's name, in the singular."""
    word = _first_word(PurePosixPath(path))
    found = (ROOT / folder).rglob(f"test_*{word}*.py") if word else ()
    return [str(test.relative_to(ROOT)) for test in found]


def _first_word(path: PurePosixPath) -> str:
    """Return the first word of a file's name in the singular."""
    return path.stem.split("_")[0].removesuffix("s")


def _exists(test: str) -> bool:
    return (ROOT / test.partition("::")[0]).exists()


def _is_test(path: str) -> bool:
    return PurePosixPath(path).match("test_*.py")


def changed_operations(paths: list[str]) -> list[str]:
    """Return the operations that a change is about, or else each tenth operation.

    These are all of a changed domain, and those of the noun that a changed file is named by, if it
    is one of a domain or of the console: ``erase_client`` for ``console/clients.py``.
    """
    code = [PurePosixPath(path) for path in paths if path.startswith("chalicelib/")]
    domains = {path.parts[2] for path in code if path.parts[1] == "domains"}
    words = {_first_word(path) for path in code if {"domains", "console"} & {*path.parts}}
    found = sorted(
        entry.name
        for entry in REGISTRY
        if entry.module.split(".")[2] in domains or not words.isdisjoint(_nouns(entry.name))
    )
    return found or [entry.name for entry in REGISTRY][::10]


def _nouns(name: str) -> set[str]:
    _verb, *words = name.split("_")
    return {word.removesuffix("s") for word in words}


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True
    )
    if done.returncode not in {0, 1}:  # `git grep` finds nothing: 1.
        raise click.ClickException(done.stderr.strip())
    return done.stdout.splitlines()


def run(base: str) -> int:
    """Run the tests of a change, and return pytest's exit status."""
    load_all()
    paths = changed_files(base)
    tests = {test: path for path in paths for test in tests_of(path) if _exists(test)}
    # A folder has the files in it.
    chosen = [t for t in tests if not any(str(p) in tests for p in PurePosixPath(t).parents)]
    for test in sorted(chosen):
        click.echo(f"{test}  because of {tests[test]}")
    if not chosen:
        click.echo(f"No test is named like the {len(paths)} files that differ from {base}.")
        return 0
    operations = ",".join(changed_operations(paths))
    began = monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--operations={operations}"]
    command += [f"--ignore={sweep}" for sweep in LONG_SWEEPS if sweep not in tests]
    status = subprocess.run([*command, *sorted(chosen)], cwd=ROOT, check=False).returncode
    click.echo(f"{monotonic() - began:.0f} s. {NOT_RUN}")
    return status
