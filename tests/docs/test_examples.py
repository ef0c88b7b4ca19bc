"""Each sample of the documents runs in the demo of ``make dev``, or has a reason in ``samples``.

The samples of the guides of the reference run in ``tests/contract/test_reference.py``.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from tests.docs.samples import LANGUAGES, NOT_RUN, ROOT, Command, Sample, commands, samples
from tests.infra.local.make_dev.helpers import DEV, RunningStack
from tests.support.patience import PATIENCE
from tests.support.sweep import sweep

SAMPLES = samples()
RUN = [sample for sample in SAMPLES if sample.reason is None]
OF_PYTHON, OF_NODE = (
    {s.page for s in RUN if s.language == language} for language in ("python", "js")
)
SHELL = {"", "sh", "bash", "console"}
OF_SHELL = {sample.page for sample in RUN if sample.language in SHELL}
TABLE = "name,price,sku\nRye bread,240,RYE-7\nWheat bread,190,WHE-7\n"
"""The table ``goods.csv`` of a reader."""
INHERITED = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME"}
"""Variables of a reader's shell. The tests' own would lead to another database."""

OWN_VALUE = re.compile(r"…|^[0-9A-Z]{26}$")
"""An id or a token on a page, which each demo has for itself."""

pytestmark = pytest.mark.timeout(6 * PATIENCE)


class TestRegister:
    def test_each_sample_runs_or_has_one_reason(self) -> None:
        ambiguous = [(s.page, s.code[:60]) for s in SAMPLES if len([*s.matches()]) > 1]
        assert ambiguous == []
        runnable = SHELL | {"python", "js"}
        silent = [(s.page, s.code[:60]) for s in RUN if s.language not in runnable]
        assert silent == [], "Give each of these a reason in NOT_RUN of tests/docs/samples.py."

    def test_each_reason_belongs_to_a_sample(self) -> None:
        used = {(s.page, beginning) for s in SAMPLES for beginning, _ in s.matches()}
        named = {(page, beginning) for page, entries in NOT_RUN.items() for beginning in entries}
        assert named - used == set(), "Remove these from NOT_RUN of tests/docs/samples.py."

    def test_most_pages_have_samples_that_run(self) -> None:
        assert len(OF_PYTHON) >= 7
        assert len(OF_SHELL) >= 5
        assert {"docs/javascript.md"} == OF_NODE
        assert "python" in LANGUAGES


class Demo:
    """The English demo, with what a reader has at hand: its key, its ids and a shell."""

    def __init__(self, stack: RunningStack, folder: Path) -> None:
        self.folder, self.url = folder, stack.url
        record = json.loads((stack.data / "demo.json").read_text())
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in INHERITED},
            "API_KEY": stack.key,
            "BASE_URL": stack.url,
            "BOT": record["agentId"],
            "DATA_DIR": str(stack.data),
            "PORT": str(stack.port),
            "PYTHONPATH": str(ROOT),
            "no_proxy": "127.0.0.1",
        }
        self.values = {
            "svc_live_…": stack.key,
            "http://127.0.0.1:8000": stack.url,
            "WORKSPACE_ID": record["workspaceId"],
            ".venv/bin/python": shlex.quote(sys.executable),
        }
        (folder / "goods.csv").write_text(TABLE)

    def run(self, *command: str | Path) -> str:
        """Run a program in the reader's folder, and return its output."""
        process = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        assert "Assertion failed" not in process.stderr
        return process.stdout

    def shell(self, command: str, before: list[str]) -> str:
        """Run a command of a page after those that only prepare it."""
        script = "\n".join(["set -e", *before, command])
        return self.run("bash", "-c", self.filled(script))

    def filled(self, text: str) -> str:
        """Replace what a reader would: addresses, ids and tokens that the page shows."""
        for shown, value in sorted(self.values.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(shown, value)
        return text

    def learn(self, shown: str, printed: str) -> None:
        """Remember which values the demo has for those in the output that a page shows."""
        for name, value in re.findall(r'"(\w+)": ?"([^"\s]+)"', shown):
            if OWN_VALUE.search(value) and (found := re.search(rf'"{name}": ?"([^"]+)"', printed)):
                self.values.setdefault(value, found[1])


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    running = RunningStack(tmp_path / "data", DEV, ROOT, tmp_path, DEMO="en")
    try:
        yield Demo(running.wait_until_ready(), tmp_path)
    finally:
        if running.process.poll() is None:
            running.stop()


def blocks(page: str, languages: set[str]) -> list[Sample]:
    """Return the samples of a page that run, in some languages."""
    return [sample for sample in RUN if sample.page == page and sample.language in languages]


def run_python(page: str, demo: Demo) -> None:
    program = demo.folder / "program.py"
    program.write_text("\n".join(sample.code for sample in blocks(page, {"python"})))
    demo.run(sys.executable, program)
    demo.run(sys.executable, program)  # A reader runs it again.


def run_javascript(page: str, demo: Demo) -> None:
    script = "\n".join(sample.code for sample in blocks(page, {"js"}))
    node, _ = compute_driver_executable()  # Playwright brings Node.js, so none must be installed.
    lines = demo.run(node, "--input-type=module", "--eval", script).splitlines()
    assert "Rye bread 240" in lines
    assert any("RYE-1" in line for line in lines)
    assert "Rye bread" in lines[-1]  # The bot knows the products of other pages, too.


PREPARES = re.compile(r"export |\w+=\S+(\s+#|$)|\w+\(\) \{")
"""Commands that only set a name for the next ones."""


def run_commands(page: str, demo: Demo) -> None:
    before: list[str] = []
    for sample in blocks(page, SHELL):
        for command in commands(sample):
            needed = {"unzip", "jq"} & {*re.findall(r"\w+", command.text)}
            if not all(map(shutil.which, needed)):
                continue
            if PREPARES.match(command.text):
                before.append(command.text)
                continue
            printed = demo.shell(command.text, before)
            check(command, printed)
            demo.learn(command.shown, printed)


def check(command: Command, printed: str) -> None:
    """Assert that a command did what its page says."""
    assert printed, command.text
    answers = [json.loads(line) for line in printed.splitlines() if line.startswith('{"data"')]
    assert all(answer["data"]["status"] for answer in answers), printed
    if printed.startswith('{"jsonrpc"'):
        assert not json.loads(printed)["result"].get("isError"), printed
    if events := re.findall(r"^data: (.+)$", printed, re.MULTILINE):
        assert json.loads(events[-1])["type"] == "done", printed
    names = set(re.findall(r'[{,] ?"(\w+)":', command.shown))
    assert names <= set(re.findall(r'"(\w+)":', printed.replace('\\"', '"'))), printed


PROGRAMS = [
    *((page, run_python) for page in sorted(OF_PYTHON)),
    *((page, run_javascript) for page in sorted(OF_NODE)),
]
PAGES_OF_COMMANDS = [(page, run_commands) for page in sorted(OF_SHELL)]


@sweep(("page", "run"), PROGRAMS)
def test_the_programs_of_the_pages_run_in_the_demo(
    page: str, run: Callable[[str, Demo], None], demo: Demo
) -> None:
    run(page, demo)


@pytest.mark.slow  # The commands of operators take seconds each, and have tests of their own.
@sweep(("page", "run"), PAGES_OF_COMMANDS)
def test_the_commands_of_the_pages_run_in_the_demo(
    page: str, run: Callable[[str, Demo], None], demo: Demo
) -> None:
    run(page, demo)
