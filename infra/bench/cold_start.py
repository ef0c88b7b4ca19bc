"""What a cold start costs, from nothing to the first answer, beside the libraries it stands on.

The application is measured as it is packaged, with its manifest, bytecode and what the zip keeps of
botocore, in processes of their own: in instructions where valgrind is there, for they repeat on any
machine, else in CPU time.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import botocore

from infra.bench.first_answer import KINDS
from infra.deploy import stage_config
from infra.deploy.package import build, unused

ROOT = Path(__file__).parents[2]
RUNS = 10
"""Processes of which the median CPU time is taken; instructions are counted once."""
LIBRARIES = "import chalice.app, pynamodb.models, pydantic; pydantic.BaseModel, pydantic.Field"
CLIENT = "from pynamodb.connection import Connection; Connection().client"
FLOOR = f"{LIBRARIES}; {CLIENT}"
SAID = {
    "import": "Import alone",
    "read": "First read over REST",
    "write": "First write over REST",
    "tools/list": "First `tools/list`",
    "tools/call": "First `tools/call`",
    "jobs": "First run of jobs",
    "chat": "First message to a bot, of which there is none",
}


def section() -> str:
    """Measure, and return the page's section."""
    with tempfile.TemporaryDirectory() as folder:
        floor = _cost(Path(folder), "-c", FLOOR)
        project = _packaged(Path(folder) / "project")
        costs = {kind: _first(project, kind) / floor for kind in KINDS}
    rows = [f"| {SAID[kind]} | {cost:.2f} |" for kind, cost in costs.items()]
    unit = "Instructions" if shutil.which("valgrind") else f"CPU time (median of {RUNS})"
    return f"""\
## Cold start

{unit} of a new process, start of Python included, beside those of one that only imports
Chalice, PynamoDB and pydantic and makes a client of DynamoDB, with botocore as it comes. Requests
to the database are made and signed, and answered where they would be sent. What an operation costs,
only its own first request pays: it does not matter how many there are.

| | times the libraries |
| --- | ---: |
{chr(10).join(rows)}
"""


def _first(project: Path, kind: str) -> float:
    return _cost(project, str(ROOT / "infra" / "bench" / "first_answer.py"), kind)


def _packaged(project: Path) -> Path:
    """Return a copy of the application as the zip has it, as far as it differs from here."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "chalicelib", project / "chalicelib", ignore=ignored)
    shutil.copyfile(ROOT / "app.py", project / "app.py")
    (project / "docs").mkdir()
    shutil.copyfile(ROOT / build.RECORDED, project / build.RECORDED)
    subprocess.run(
        [
            sys.executable,
            "-P",
            str(ROOT / "infra" / "deploy" / "package" / "manifest.py"),
            str(project),
        ],
        check=True,
    )
    source = Path(botocore.__file__).parent
    for path in source.rglob("*"):
        name = path.relative_to(source.parent)
        if path.is_file() and unused.is_used(str(name)):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_bytes(unused.trimmed(str(name), path.read_bytes()))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(project)], check=True)
    return project


def _cost(project: Path, *arguments: str) -> float:
    """Return what a process costs: instructions, or seconds of CPU time."""
    command = [sys.executable, *arguments]
    _run(project, command)  # The first compiles what has no bytecode yet.
    if shutil.which("valgrind"):
        counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
        found = re.search(r"Collected : (\d+)", _run(project, counted))
        if found is None:
            raise RuntimeError("valgrind counted nothing")
        return float(found[1])
    return median(_cpu_seconds(project, command) for _ in range(RUNS))


def _cpu_seconds(project: Path, command: list[str]) -> float:
    before = os.times()
    _run(project, command)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def _run(project: Path, command: list[str]) -> str:
    """Run a command as a function of ours; return what it said on its standard error."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "STAGE"}}
    env |= {"PYTHONHASHSEED": "0", "STAGE": "dev", "AWS_LAMBDA_FUNCTION_NAME": "bench"}
    env |= {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "bench"}
    env |= {"AWS_SECRET_ACCESS_KEY": "bench", **stage_config.DEPLOYED}
    done = subprocess.run(command, check=True, cwd=project, env=env, capture_output=True, text=True)
    return done.stderr
