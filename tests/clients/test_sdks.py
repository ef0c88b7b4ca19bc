"""The packages of ``make sdk``, installed in empty projects and used against the service."""

import re
import shutil
from pathlib import Path

import pytest

from tests.clients.conftest import SDK, TOOLS, Project
from tests.clients.test_generators import run

ROOT = Path(__file__).parents[2]
UV = ROOT / "build" / "uv" / "bin" / "uv"
TYPESCRIPTS = ["typescript", "typescript-7"]


def examples(language: str, folder: str) -> str:
    """Return the examples of a package's README as one program."""
    text = (ROOT / "sdk" / folder / "README.md").read_text()
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="session")
def typescript(project: Project) -> Path:
    """An empty project with the package of ``npm pack``, and programs that use it."""
    folder = project("typescript")
    for source in (ROOT / "tests" / "clients" / "sdk").iterdir():
        shutil.copy(source, folder)
    (folder / "readme.ts").write_text(examples("ts", "typescript"))
    return folder


@pytest.fixture(scope="session", params=TYPESCRIPTS)
def compiled(request: pytest.FixtureRequest, typescript: Path) -> Path:
    """The programs, whose types TypeScript 5 and 7 have checked with all of ``strict``."""
    folder = typescript / request.param
    run("node", TOOLS / request.param / "bin" / "tsc", "--outDir", folder, cwd=typescript)
    return folder


class TestTypescript:
    def test_the_examples_of_its_readme_run(self, compiled: Path) -> None:
        first, *others = run("node", compiled / "readme.js").splitlines()
        assert first == "Rye bread 240"
        assert any(line.startswith("404 not_found product") for line in others)
        assert "true" in others

    def test_it_repeats_iterates_uploads_and_verifies(self, compiled: Path) -> None:
        output = run("node", "--test", "--test-reporter=tap", compiled / "behaviour.js")
        assert re.search(r"^# pass \d\d$", output, re.MULTILINE), output

    def test_its_version_is_that_of_the_service(self, typescript: Path, version: str) -> None:
        script = 'console.log((await import("workspace-automation")).version)'
        shown = run("node", "--input-type=module", "--eval", script, cwd=typescript)
        assert shown.strip() == version


@pytest.fixture(scope="session")
def python(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an empty environment with the package's wheel, and a type checker."""
    environment = tmp_path_factory.mktemp("python") / "environment"
    run(UV, "venv", "--quiet", environment)
    interpreter = environment / "bin" / "python"
    wheel = SDK / f"workspace_automation-{version}-py3-none-any.whl"
    pins = ROOT / "constraints.txt"
    run(UV, "pip", "install", "--python", interpreter, "-c", pins, wheel, "mypy")
    return interpreter


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    """The examples of the Python package's README as one program."""
    program = tmp_path / "readme.py"
    program.write_text(examples("python", "python"))
    return program


class TestPython:
    def test_the_examples_of_its_readme_run(self, python: Path, readme: Path) -> None:
        first, *others = run(python, readme).splitlines()
        assert first == "Rye bread 240.0"
        assert any(line.startswith("not_found product ") for line in others)
        assert "True" in others

    def test_its_types_are_checked_in_strict_mode(self, python: Path, readme: Path) -> None:
        written = SDK / "python" / "workspace_automation" / "connection.py"
        options = ("-m", "mypy", "--strict", "--cache-dir", readme.parent / "cache")
        run(python, *options, readme, cwd=readme.parent)
        run(python, *options, "--follow-imports=silent", written)

    def test_its_version_is_that_of_the_service(self, python: Path, version: str) -> None:
        program = "import workspace_automation as w; print(w.VERSION)"
        assert run(python, "-c", program).strip() == version
