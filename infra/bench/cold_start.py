"""Cost of a cold start up to the first response, compared with importing only the libraries.

The application is measured as packaged: with its manifest, bytecode, and the part of botocore that
the zip contains. Each measurement runs in a new process. The unit is instructions if valgrind is
installed, because their number is the same on every machine. Otherwise it is CPU time.
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
"""Processes for the median of the CPU time. Instructions are counted once."""
LIBRARIES = "import chalice.app, pynamodb.models, pydantic; pydantic.BaseModel, pydantic.Field"
CLIENT = "from pynamodb.connection import Connection; Connection().client"
BASELINE = f"{LIBRARIES}; {CLIENT}"
COUNTING = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
"""Options of valgrind that count instructions without a model of the processor's caches."""
LABELS = {
    "import": "Import alone",
    "read": "First read over REST",
    "write": "First write over REST",
    "tools/list": "First `tools/list`",
    "tools/call": "First `tools/call`",
    "jobs": "First run of jobs",
    "chat": "First message to a bot that does not exist",
}


def section() -> str:
    """Measure and return this section of the page."""
    with tempfile.TemporaryDirectory() as folder:
        baseline = cost(Path(folder), "-c", BASELINE)
        project = packaged(Path(folder) / "project")
        costs = {kind: first_answer_cost(project, kind) / baseline for kind in KINDS}
    rows = [f"| {LABELS[kind]} | {cost:.2f} |" for kind, cost in costs.items()]
    unit = "Instructions" if shutil.which("valgrind") else f"CPU time (median of {RUNS})"
    return f"""\
## Cold start

{unit} of a new process, including the start of Python. The baseline is a process that only imports
Chalice, PynamoDB and pydantic and creates a DynamoDB client with unmodified botocore. Requests to
the database are created and signed. A stub answers them where botocore would send them. An
operation is loaded by its own first request, so the number of operations does not matter.

| | times the libraries |
| --- | ---: |
{chr(10).join(rows)}
"""


def first_answer_cost(project: Path, kind: str, calls: int = 1) -> float:
    """Return the cost of a process that serves a request, or the same one several times."""
    return cost(project, str(ROOT / "infra" / "bench" / "first_answer.py"), kind, str(calls))


def packaged(project: Path) -> Path:
    """Return a copy of the application with the parts that differ in the zip."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "chalicelib", project / "chalicelib", ignore=ignored)
    shutil.copyfile(ROOT / "app.py", project / "app.py")
    (project / "docs").mkdir()
    for recorded in build.RECORDED:
        shutil.copyfile(ROOT / recorded, project / recorded)
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


def cost(project: Path, *arguments: str) -> float:
    """Return the cost of a process in instructions, or in seconds of CPU time."""
    command = [sys.executable, *arguments]
    run(project, command)  # The first run compiles modules that have no bytecode yet.
    if shutil.which("valgrind"):
        valgrind_command = ["valgrind", *COUNTING, *command]
        instructions = re.search(r"I +refs: +([\d,]+)", run(project, valgrind_command))
        if instructions is None:
            raise RuntimeError("valgrind counted nothing")
        return float(instructions[1].replace(",", ""))
    return median(_cpu_seconds(project, command) for _ in range(RUNS))


def _cpu_seconds(project: Path, command: list[str]) -> float:
    start_times = os.times()
    run(project, command)
    end_times = os.times()
    return (
        end_times.children_user
        + end_times.children_system
        - (start_times.children_user + start_times.children_system)
    )


def run(project: Path, command: list[str]) -> str:
    """Run a command in the environment of a deployed function and return its standard error."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "STAGE"}}
    env |= {"PYTHONHASHSEED": "0", "STAGE": "dev", "AWS_LAMBDA_FUNCTION_NAME": "bench"}
    env |= {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "bench"}
    env |= {"AWS_SECRET_ACCESS_KEY": "bench", **stage_config.DEPLOYED}
    process = subprocess.run(
        command, check=True, cwd=project, env=env, capture_output=True, text=True
    )
    return process.stderr
