"""The table of docs/clients.md that ``make test-clients`` writes."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BEGIN = "<!-- made by make test-clients: begin -->\n"
END = "<!-- made by make test-clients: end -->\n"
HEAD = "| framework | version | tools offered to its model | how its model sees a failure |"
ROW = re.compile(r"^(\| `([\w@/-]+)` .*)$", re.MULTILINE)
SECTION = re.compile(f"(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", re.DOTALL)


def write(rows: list[tuple[str, str, str, str]]) -> None:
    """Replace the rows of some frameworks in the table of the page.

    Each environment has some of the frameworks.
    """
    lines = {package: f"| `{package}` | {' | '.join(columns)} |" for package, *columns in rows}
    lines = {name: line for line, name in ROW.findall(_section())} | lines
    ordered = [lines[package] for package in sorted(lines, key=str.casefold)]
    table = "\n".join(["", HEAD, "|---|---|---|---|", *ordered, "", ""])
    PAGE.write_text(SECTION.sub(lambda _: table, PAGE.read_text()))


def versions() -> dict[str, str]:
    """Return the frameworks that the table names, with their versions."""
    return dict(re.findall(r"^\| `([\w@/-]+)` \| ([\w.]+) \|", _section(), re.MULTILINE))


def _section() -> str:
    section = SECTION.search(PAGE.read_text())
    assert section, f"{PAGE} has no table made by make test-clients"
    return section[0]
