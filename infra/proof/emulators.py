"""The part of the proof about differences between emulators of DynamoDB."""

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from infra.local.dynamodb_jar import DynamoDBLocalMissingError, find_jar, find_java
from infra.proof.parts import Figures, Part, count_tests

TESTS = "tests/proof/emulators"
ON_LOCAL = ("-m", "store", "--dynamodb-local")
NAMES = ("moto", "DynamoDB Local")
UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Row:
    """A behaviour: where the service relies on it, what AWS documents, and both emulators.

    ``emulators.toml`` has the rows, and says what the fields mean.
    """

    topic: str
    relied_on: str
    aws: str
    probe: str = ""
    moto: str = UNVERIFIED
    local: str = UNVERIFIED
    agrees: str = ""
    instead: str = ""


GROUPS = {
    group: [Row(**row) for row in rows]
    for group, rows in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}
MINISTACK = tomllib.loads(Path(__file__).with_name("ministack.toml").read_text())["row"]
ROWS = [row for rows in GROUPS.values() for row in rows]
PROMISE = """\
Tests run on moto and on DynamoDB Local, but the service relies on the documentation of AWS. Each
row is a behaviour on which the service relies. A test checks the row and fails when an emulator
changes, or the row is *unverified*. No row was checked on AWS.
"""
ON_MINISTACK = """\
### A deployment

`make test-deployed` deploys to ministack, which is of others. It checks each row whose last column
names an addition of `tests/deployed/emulator.py`
([ADR 77](adr/0077-a-deployment-is-tried-on-an-emulator-of-others.md)).
"""
HEAD_OF_MINISTACK = ("| behaviour | AWS documents | ministack | instead |", "|---|---|---|---|")
HEAD = (
    "| behaviour | relied on in | AWS documents | moto | DynamoDB Local | replacement, or note |",
    "|---|---|---|---|---|---|",
)


def run(minutes: float) -> Figures:
    """Try each row on moto and, if Java is there, on DynamoDB Local.

    Raises:
        BrokenPromiseError: an emulator behaves differently from its row.
    """
    end = time.monotonic() + minutes * 60
    words = [TESTS, "-k", "row_says"]
    on_moto = count_tests(words, end)
    try:
        find_java()
        find_jar()
    except DynamoDBLocalMissingError as error:
        return {"moto": on_moto, "local": 0, "missing": str(error)}
    return {"moto": on_moto, "local": count_tests([*words, *ON_LOCAL], end)}


def section(figures: Figures) -> str:
    """Return the table and the figures as Markdown."""
    tried = [row for row in ROWS if row.probe]
    alike = {name: sum(row.agrees in {"both", name} for row in tried) for name in NAMES}
    local = figures["local"] or f"none ({figures.get('missing', 'the time was up')})"
    lines = [
        PROMISE,
        f"""\
Rows: {len(ROWS)}. Checked on moto: {figures["moto"]}; on DynamoDB Local: {local}. Unverified:
{len(ROWS) - len(tried)}. Of {len(tried)} rows with a test, moto conforms to the documentation in
{alike["moto"]}, and DynamoDB Local in {alike["DynamoDB Local"]}.
""",
    ]
    for group, rows in GROUPS.items():
        lines += [f"### {group}\n", *HEAD]
        for row in rows:
            seen = f"{row.moto} | {row.local}"
            lines.append(f"| {row.topic} | {row.relied_on} | {row.aws} | {seen} | {row.instead} |")
        lines.append("")
    lines += [ON_MINISTACK, *HEAD_OF_MINISTACK]
    lines += ["| {topic} | {aws} | {seen} | {instead} |".format(**row) for row in MINISTACK]
    lines.append("\n[ydb.md](ydb.md) compares the service with the Document API of Yandex YDB.")
    commands = (f"python -m pytest {TESTS}", f"python -m pytest {' '.join(ON_LOCAL)} {TESTS}")
    return "\n".join([*lines, "\n```", *commands, "```"])


PART = Part(
    name="emulators",
    title="Differences between the emulators and AWS",
    minutes=3,
    minutes_in_ci=0,
    run=run,
    section=section,
)
