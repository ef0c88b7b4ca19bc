"""The table of clauses and tests (README.md)."""

import re
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parents[1] / "domains" / "oauth")
ROW = re.compile(r"^\|[^|]+\|[^|]+\| `(\w+\.py)::(\w+)` \|$", re.MULTILINE)


def test_every_test_of_the_table_exists() -> None:
    table = (HERE / "README.md").read_text()
    named_tests = ROW.findall(table)
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(named_tests) == len(rows) - 1
    for file, name in named_tests:
        paths = [path for folder in FOLDERS if (path := folder / file).exists()]
        assert any(f"def {name}(" in path.read_text() for path in paths), name
