"""Requests, units and time of a report of two years with 50,000 bookings."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
TESTS = "tests/domains/reports/test_cost_of_reports.py"
ABOUT = [
    "## Reports, on DynamoDB Local",
    "",
    "A report of two years, of a workspace with 20 members of the staff and 50,000 bookings of",
    "4,000 clients that are counted. Then the same after a booking was made, and the next one.",
    "Milliseconds are processor time of the operation, the least of five runs or the only one.",
    "Requests are those of the operation to the database. The sums of 105 weeks are 0.8 MB.",
    "",
    "| report | requests | waves | read units | processor, ms |",
    "|---|---:|---:|---:|---:|",
]


def section() -> str:
    """Measure and return this section of the page."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = (sys.executable, "-m", "pytest", "-q", "--dynamodb-local", "-m", "", TESTS)
        # Reports of the default family have no properties.
        options = ("-o", "junit_family=xunit1", f"--junit-xml={report}")
        subprocess.run((*command, *options), cwd=ROOT, check=True, stdout=sys.stderr)
        used = [
            json.loads(each.attrib["value"])
            for each in ET.parse(report).iter("property")  # noqa: S314  our own report  # nosec B314
        ]
    rows = [
        f"| {each['name']} | {each['requests']} | {each['waves']} | {each['units']:g} "
        f"| {each['ms']:.0f} |"
        for each in used
    ]
    return "\n".join([*ABOUT, *rows, ""])
