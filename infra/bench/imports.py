"""Time, memory and requests of imports in the Lambda zip."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
TESTS = "tests/infra/deploy/test_imports_in_zip.py"
ABOUT = [
    "## Imports",
    "",
    "An import of 2,000 clients with six values each, in processes that have only the Lambda zip.",
    "The call that starts the import reads the file, and a job creates the clients. Seconds are",
    "processor time with that of child processes; the database and the object store are moto in",
    "another process. Memory is the peak of the process. A workbook is read in a child process,",
    "whose peak is an upper bound. Requests are those of the job to the database, about 10 ms each",
    "on AWS.",
    "",
    "| table | reading | memory | of the child | creating | memory | requests |",
    "|---|---:|---:|---:|---:|---:|---:|",
]


def section() -> str:
    """Measure and return this section of the page."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = (sys.executable, "-m", "pytest", "-q", "-m", "package", TESTS)
        # Reports of the default family have no properties.
        options = ("-o", "junit_family=xunit1", f"--junit-xml={report}")
        subprocess.run((*command, *options), cwd=ROOT, check=True, stdout=sys.stderr)
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314  our own report  # nosec B314
    return "\n".join([*ABOUT, *map(_row, cases), ""])


def _row(case: ET.Element) -> str:
    (used,) = (json.loads(each.attrib["value"]) for each in case.iter("property"))
    name = case.attrib["name"].partition("[")[2].rstrip("]")
    seconds = "{readSeconds} s | {readMegabytes:.0f} MB | {childMegabytes:.0f} MB"
    seconds += " | {writeSeconds} s | {writeMegabytes:.0f} MB | {requests}"
    return f"| {name} | {seconds.format(**used)} |"
