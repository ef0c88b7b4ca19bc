"""The part about emulators of DynamoDB: a table of differences, and the tests behind it."""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from infra.local.dynamodb_jar import DynamoDBLocalMissingError, find_jar, find_java
from infra.proof.emulator_rows import GROUPS, ROWS
from infra.proof.parts import ROOT, Figures, Part

TESTS = "tests/proof/emulators"
ON_LOCAL = ("-m", "store", "--dynamodb-local")


class WrongRowError(Exception):
    """An emulator behaves differently from its row."""


def run(minutes: float) -> Figures:
    """Try each row on moto and, if Java is there, on DynamoDB Local.

    Raises:
        WrongRowError: a test failed.
    """
    end = time.monotonic() + minutes * 60
    on_moto = _tried((), end)
    try:
        find_java()
        find_jar()
        on_local = _tried(ON_LOCAL, end)
    except DynamoDBLocalMissingError as error:
        return {"moto": on_moto, "local": 0, "missing": str(error)}
    return {"moto": on_moto, "local": on_local}


def _tried(options: tuple[str, ...], end: float) -> int:
    """Return the number of rows that were tried, or 0 if the time was up."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = ["-m", "pytest", "-q", TESTS, "-k", "row_says", *options, f"--junitxml={report}"]
        left = max(1.0, end - time.monotonic())
        try:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 0
        if done.returncode:
            raise WrongRowError(done.stdout + done.stderr)
        suite = ET.parse(report).getroot()[0]  # noqa: S314  pytest has written it
    return int(suite.get("tests", 0))


def section(figures: Figures) -> str:
    """Return the table and the figures as Markdown."""
    tried = [row for row in ROWS if row.probe]
    alike = {name: sum(row.agrees in {"both", name} for row in tried) for name in NAMES}
    local = figures["local"] or f"none ({figures.get('missing', 'the time was up')})"
    lines = [
        PROMISE,
        f"""\
Rows: {len(ROWS)}. Tried on moto: {figures["moto"]}; on DynamoDB Local: {local}. Unverified:
{len(ROWS) - len(tried)}. Of {len(tried)} rows with a test, moto does what AWS documents in
{alike["moto"]}, DynamoDB Local in {alike["DynamoDB Local"]}.
""",
    ]
    for group, rows in GROUPS.items():
        lines += [f"### {group}\n", *HEAD]
        for row in rows:
            seen = f"{row.moto} | {row.local}"
            lines.append(f"| {row.topic} | {row.relied_on} | {row.aws} | {seen} | {row.instead} |")
        lines.append("")
    lines.append("[ydb.md](ydb.md) compares the service with the Document API of Yandex YDB.")
    commands = (f"python -m pytest {TESTS}", f"python -m pytest {' '.join(ON_LOCAL)} {TESTS}")
    return "\n".join([*lines, "\n```", *commands, "```"])


PROMISE = """\
Tests run on moto and on DynamoDB Local, but the service relies on what AWS documents. Each
behaviour that matters here is a row. It was tried by a test that fails when an emulator changes, or
it is unverified. No row was tried on AWS.
"""
NAMES = ("moto", "DynamoDB Local")
HEAD = (
    "| behaviour | relied on in | AWS documents | moto | DynamoDB Local | instead, or note |",
    "|---|---|---|---|---|---|",
)
PART = Part(
    name="emulators",
    title="What the emulators do not show",
    minutes=3,
    minutes_in_ci=0,
    run=run,
    section=section,
)
