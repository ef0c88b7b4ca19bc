"""What a cold start costs, from nothing to the first answer, beside the libraries it stands on.

The application is measured as it is packaged, with its manifest and bytecode, in processes of their
own: in instructions where valgrind is there, for they repeat on any machine, else in CPU time.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from infra.bench.first_answer import REQUESTS

ROOT = Path(__file__).parents[2]
RUNS = 10
"""Processes of which the median CPU time is taken; instructions are counted once."""
FLOOR = "import chalice.app, pynamodb.models, pydantic; pydantic.BaseModel, pydantic.Field"
KINDS = ("import", *REQUESTS, "jobs")
SAID = {
    "import": "Import alone",
    "read": "First read over REST",
    "write": "First write over REST",
    "tools/list": "First `tools/list`",
    "tools/call": "First `tools/call`",
    "jobs": "First run of jobs",
}


def section() -> str:
    """Measure, and return the page's section."""
    with tempfile.TemporaryDirectory() as folder:
        project = _packaged(Path(folder) / "project")
        floor = _cost(project, "-c", FLOOR)
        costs = {kind: _first(project, kind) / floor for kind in KINDS}
    rows = [f"| {SAID[kind]} | {cost:.2f} |" for kind, cost in costs.items()]
    unit = "Instructions" if shutil.which("valgrind") else f"CPU time (median of {RUNS})"
    return f"""\
## Cold start

{unit} of a new process, start of Python included, beside those of one that only imports
Chalice, PynamoDB and pydantic. The database is left out, and so is making botocore's client. What
an operation costs, only its own first request pays: it does not matter how many there are.

| | times the libraries |
| --- | ---: |
{chr(10).join(rows)}
"""


def _first(project: Path, kind: str) -> float:
    return _cost(project, str(ROOT / "infra" / "bench" / "first_answer.py"), kind)


def _packaged(project: Path) -> Path:
    """Return a copy of the application with its manifest and bytecode."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "chalicelib", project / "chalicelib", ignore=ignored)
    shutil.copyfile(ROOT / "app.py", project / "app.py")
    subprocess.run(
        [sys.executable, "-P", str(ROOT / "infra" / "manifest.py"), str(project)], check=True
    )
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
    env["AWS_DEFAULT_REGION"] = "eu-central-1"
    done = subprocess.run(command, check=True, cwd=project, env=env, capture_output=True, text=True)
    return done.stderr
