"""The table of docs/clients.md that ``make test-clients`` writes."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BEGIN = "<!-- made by make test-clients: begin -->\n"
END = "<!-- made by make test-clients: end -->\n"
HEAD = "| framework | version | tools offered to its model | how its model sees a failure |"
SECTION = re.compile(f"(?<={re.escape(BEGIN)}).*(?={re.escape(END)})", re.DOTALL)


def write(rows: list[tuple[str, str, str, str]]) -> None:
    """Replace the table of the page."""
    lines = [HEAD, "|---|---|---|---|"]
    lines += [f"| `{package}` | {' | '.join(columns)} |" for package, *columns in rows]
    table = "\n".join(["", *lines, "", ""])
    PAGE.write_text(SECTION.sub(lambda _: table, PAGE.read_text()))


def versions() -> dict[str, str]:
    """Return the frameworks that the table names, with their versions."""
    section = SECTION.search(PAGE.read_text())
    assert section, f"{PAGE} has no table made by make test-clients"
    return dict(re.findall(r"^\| `([\w@/-]+)` \| ([\w.]+) \|", section[0], re.MULTILINE))
