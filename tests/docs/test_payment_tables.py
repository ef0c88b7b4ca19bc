"""The tables of docs/payments.md and the tests that show their rows agree."""

import ast
from pathlib import Path

from tests.domains.payments.test_late_money import ROWS

ROOT = Path(__file__).parents[2]


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has a heading."""
    lines = (ROOT / "docs" / "payments.md").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_late_money_has_a_test_for_each_row() -> None:
    documented = [row[0] for row in table("the booking")]
    assert documented == [*ROWS, "is paid by another payment"]


def test_bugs_of_payment_systems_each_have_a_test() -> None:
    rows = table("bug")
    assert len(rows) >= 15
    for *_, shown_by in rows:
        for name in shown_by.replace("`", "").split(", "):
            file, _, test = name.partition("::")
            tree = ast.parse((ROOT / file).read_text())
            assert test in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}, name
