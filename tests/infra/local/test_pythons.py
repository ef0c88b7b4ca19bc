"""The choice of a Python interpreter, and the pinned packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.deploy.package.build import ROOT
from tests.clients import page

FIND = [str(ROOT / "infra" / "local" / "find-python")]


@pytest.fixture
def search_path(tmp_path: Path) -> Path:
    """Make a folder the whole PATH, with a few standard tools."""
    for tool in ("sh", "cat"):
        executable = shutil.which(tool)
        assert executable
        (tmp_path / tool).symlink_to(executable)
    return tmp_path


def install_script(machine: Path, name: str, script: str) -> None:
    (machine / name).parent.mkdir(parents=True, exist_ok=True)
    (machine / name).write_text(f"#!/bin/sh\n{script}\n")
    (machine / name).chmod(0o755)


def python(version: str, path: str) -> str:
    """Simulate a Python of this version, which checks its arguments and prints its path."""
    return f'case "$2" in *"\'{version}\'"*) echo {path} ;; *) exit 1 ;; esac'


def find_python_name(machine: Path, *versions: str) -> str:
    environment = {**os.environ, "PATH": str(machine)}
    run = subprocess.run(
        [*FIND, *versions], check=False, capture_output=True, text=True, env=environment
    )
    assert run.returncode == (0 if run.stdout else 1)
    assert not run.stderr
    return run.stdout.strip()


class TestFindPython:
    def test_the_first_available_version_is_printed(self, search_path: Path) -> None:
        install_script(search_path, "python3.11", python("3.11", "/opt/eleven"))
        install_script(search_path, "python3.12", python("3.12", "/opt/twelve"))
        assert find_python_name(search_path, "3.13", "3.12", "3.11") == "/opt/twelve"
        assert find_python_name(search_path, "3.11", "3.12", "3.13") == "/opt/eleven"

    def test_a_shim_that_does_not_run_is_skipped(self, search_path: Path) -> None:
        install_script(
            search_path, "python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127"
        )
        install_script(search_path, "python3.12", python("3.12", "/opt/twelve"))
        assert find_python_name(search_path, "3.13", "3.12") == "/opt/twelve"

    def test_a_shim_is_resolved_to_its_version(self, search_path: Path) -> None:
        install_script(
            search_path, "python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127"
        )
        install_script(search_path, "pyenv", f"echo {search_path}/pyenv-root")
        install_script(
            search_path, "pyenv-root/versions/3.13.0/bin/python", python("3.13", "/opt/thirteen")
        )
        install_script(search_path, "python3.12", python("3.12", "/opt/twelve"))
        assert find_python_name(search_path, "3.13", "3.12") == "/opt/thirteen"

    def test_python3_is_recognised_by_its_version(self, search_path: Path) -> None:
        install_script(search_path, "python3", python("3.12", "/opt/three"))
        assert find_python_name(search_path, "3.13", "3.12") == "/opt/three"

    def test_nothing_is_printed_if_there_is_no_python(self, search_path: Path) -> None:
        install_script(search_path, "python3", python("3.9", "/opt/old"))
        assert find_python_name(search_path, "3.13", "3.12", "3.11") == ""

    def test_the_path_of_the_interpreter_and_not_of_its_link_is_printed(
        self, search_path: Path
    ) -> None:
        pytest.importorskip("ensurepip")
        path = Path(sys.executable).resolve()
        (search_path / "python3").symlink_to(path)
        assert find_python_name(search_path, "{}.{}".format(*sys.version_info)) == str(path)


def pins(*files: str) -> set[tuple[str, str]]:
    """Return the names and versions that requirements files pin."""
    text = "\n".join((ROOT / file).read_text() for file in files)
    return set(re.findall(r"^([\w.-]+)(?:\[.*\])?==([\w.]+)", text, re.MULTILINE))


class TestConstraints:
    def test_constraints_pin_every_requirement_at_its_version(self) -> None:
        required = ("requirements.txt", "requirements-dev.txt")
        missing = pins(*required) - pins("constraints.txt")
        assert not missing, "run make lock"
        lines = "\n".join((ROOT / file).read_text() for file in required).splitlines()
        assert len(pins(*required)) == sum(not re.match("[-#]|$", line) for line in lines)

    @pytest.mark.parametrize("suite", ["clients", "deployed"])
    def test_constraints_pin_every_requirement_of_a_suite_at_its_version(self, suite: str) -> None:
        file, constraints = f"requirements-{suite}.txt", f"constraints-{suite}.txt"
        assert not pins(file) - pins(constraints), "run make lock"
        assert f"\n-c {constraints}\n" in (ROOT / file).read_text()

    def test_constraints_are_used_wherever_the_requirements_are_installed(self) -> None:
        assert "\n-c constraints.txt\n" in (ROOT / "requirements.txt").read_text()
        assert (ROOT / "requirements-dev.txt").read_text().startswith("-r requirements.txt\n")

    def test_constraints_do_not_contain_an_index_url(self) -> None:
        text = "\n".join(path.read_text() for path in ROOT.glob("constraints*.txt"))
        assert not re.search(r"://|--index|--find-links|--extra|@ ", text)


class TestClients:
    ENVIRONMENTS = ("clients", "clients-crewai", "clients-fastmcp")

    @staticmethod
    def javascript() -> dict[str, str]:
        package = json.loads((ROOT / "tests" / "clients" / "js" / "package.json").read_text())
        versions: dict[str, str] = package["dependencies"]
        return versions

    def test_the_table_of_frameworks_has_the_required_versions(self) -> None:
        tools = {"mcp", "pytest", "schemathesis", "httpx"}
        tools |= {"google-ai-generativelanguage", "openapi-generator-cli"}
        tools |= {"python-dateutil", "urllib3"}  # of a generated client
        tools |= {"ics", "recurring-ical-events", "vobject"}  # readers of calendar feeds
        required = {
            name: version
            for environment in self.ENVIRONMENTS
            for name, version in pins(f"requirements-{environment}.txt")
            if name not in tools
        }
        framework = "@langchain/google-genai"  # the only one in JavaScript
        required[framework] = self.javascript()[framework]
        assert page.versions() == required, "run make test-clients"

    def test_the_table_of_generators_has_the_required_versions(self) -> None:
        (generator,) = (it for name, it in pins("requirements-clients.txt") if "generator" in name)
        text = page.PAGE.read_text()
        row = re.compile(r"^\| `openapi-generator`.*?\| ([\d.]+) \|", re.MULTILINE)
        assert set(row.findall(text)) == {generator}
        versions = self.javascript()
        pair = f"{versions['openapi-typescript']}, {versions['openapi-fetch']}"
        assert f"`openapi-typescript` with `openapi-fetch` | {pair} |" in text
        axios = f"{versions['orval']} | the same, with axios {versions['axios']}"
        assert f"`orval`, client `axios` | {axios} |" in text
        assert f"by TypeScript {versions['typescript']} with" in text
