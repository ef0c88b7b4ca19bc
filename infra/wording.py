"""Check that habits of wording, which make the project hard to read, do not spread.

``wording.json`` has the allowed number of occurrences of each habit, which may only fall::

    python -m infra.wording               fail if a number has grown
    python -m infra.wording --show mails  list the occurrences of a habit
    python -m infra.wording --update      store the present numbers

Words are counted in docstrings, comments and Markdown, without the code in them.
"""

import ast
import io
import json
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

BASELINE = Path(__file__).with_name("wording.json")
ROOT = Path(__file__).parent.parent
FOLDERS = ("chalicelib", "infra", "tests", "docs")
SKIPPED = {
    "CHANGELOG.md",
    *(f"docs/{d}.md" for d in ("reference", "proof", "benchmarks", "clients")),
}
"""Documents that are generated, or that describe earlier releases."""
BOTS = re.compile(r"chat|bots|llm|knowledge|widget")  # in these files, a bot answers
WORDS = {
    "answer: write response": r"\banswers?\b",
    "text: write string": r"\b(?:an?|the|any|some|as|of) texts?\b|\btexts\b",
    "mails: write e-mails": r"(?<!-)\bmails\b|\ba mail\b",
    "people: write users, members or callers": r"\b(?:people|persons?)\b",
    "stays: write is kept, or does not change": r"\bstays?\b",
    "shall: write must or will": r"\bshall\b",
    "is no, is none: write is not": r"\b(?:is|are|was|were|be) (?:none\b|no (?!longer|more)[a-z])",
    "alone, at once, for good": r"\b(?:alone|at once|for good|meanwhile|anew|beside)\b",
    "those of: repeat the noun": r"\b(?:those (?:of|that|who|which|in)|that of|the one that)\b",
    "of it, to them: repeat the noun": r"\b(?:in|of|to|for|from|with|after|before) (?:it|them)\b",
    "code that wants, knows, says, tells": (
        r"\b(?:page|form|job|list|call|app|server|tool|request|operation|release|process)s? "
        r"(?:wants?|asks?|knows?|learns?|speaks?|says?|tells?|remembers?|forgets?)\b"
    ),
}
NOT_A_NOUN = re.compile(
    "found|made|kept|shown|held|wanted|asked|given|taken|told|sent|stored|left|added|removed|changed"
    "|moved|chosen|typed|offered|granted|written|placed|checked|named|listed|counted|refused|said"
    "|done|again|near|before|after|around|along|within|without|under|beyond|most|least|rest|own|away"
    "|whole|each"
)
VAGUE = re.compile("item|value|data|result|one|entry|obj|thing|rest|other")
_NOT_A_VERB = re.compile(rf"(?:{NOT_A_NOUN.pattern}|of)$|(?:of|by|with|without|in|as|at|on)_")
_CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_IS_MAXIMUM = re.compile(r"(?:The )?(?:[Mm]aximum|[Ll]argest|[Ll]ongest|Highest|Upper|Limit|Size)")
_LIST_OF_PARTS = re.compile(r"[^.\n]{3,60}: ")
Occurrence = tuple[str, str]  # a habit, and the place where it was found


def in_prose(place: str, text: str) -> Iterator[Occurrence]:
    """Yield the habits in a text."""
    plain = " ".join(_CODE.sub("X", text).split())
    for habit, pattern in WORDS.items():
        if habit.startswith("answer") and BOTS.search(place):
            continue
        for match in re.finditer(pattern, plain, re.IGNORECASE):
            start, end = max(0, match.start() - 30), match.end() + 30
            yield habit, f"{place}: …{plain[start:end]}…"


def in_python(path: str, source: str) -> Iterator[Occurrence]:
    """Yield the habits in the docstrings, comments and names of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from in_prose(f"{path}:{token.start[0]}", token.string)
    for node in ast.walk(ast.parse(source)):
        yield from _in_name(path, node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield from _in_docstrings(path, node)


def _in_name(path: str, node: ast.AST) -> Iterator[Occurrence]:
    place = f"{path}:{getattr(node, 'lineno', 1)}"
    match node:
        case ast.FunctionDef(name=name) if _NOT_A_VERB.match(name.strip("_")):
            yield "function without a verb", f"{place}: {name}"
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) if NOT_A_NOUN.fullmatch(name):
            yield "name that is not a noun", f"{place}: {name}"
        case ast.Name(id=name, ctx=ast.Store()) if VAGUE.fullmatch(name) and "tests" not in path:
            yield "vague name", f"{place}: {name}"


def _in_docstrings(
    path: str, node: ast.Module | ast.ClassDef | ast.FunctionDef
) -> Iterator[Occurrence]:
    text = ast.get_docstring(node) or ""
    place = f"{path}:{getattr(node, 'lineno', 1)}: {text}"
    if re.search(r"[.;:] +", text) and "\n" not in text and not path.startswith("tests"):
        yield "several facts in a docstring of one line", place
    if isinstance(node, ast.Module) and _LIST_OF_PARTS.match(text):
        yield "docstring of a module that lists its parts", place
    for before, statement in zip([None, *node.body], node.body, strict=False):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(documentation))):
                yield from in_prose(f"{path}:{statement.lineno}", documentation)
                names = [t.id for t in getattr(before, "targets", ()) if isinstance(t, ast.Name)]
                if names and names[0].startswith("MAX_") and not _IS_MAXIMUM.match(documentation):
                    yield "MAX_ that is not described as a maximum", f"{path}: {names[0]}"


def occurrences(root: Path) -> dict[str, list[str]]:
    """Return the places of each habit in a checkout."""
    places: dict[str, list[str]] = defaultdict(list)
    files = [*root.glob("*.md"), *(p for folder in FOLDERS for p in (root / folder).rglob("*.*"))]
    for file in sorted(files):
        path = file.relative_to(root).as_posix()
        search = {".py": in_python, ".md": in_prose}.get(file.suffix)
        if search is not None and path not in SKIPPED:
            for habit, place in search(path, file.read_text()):
                places[habit].append(place)
    return places


@click.command()
@click.option("--show", help="List the occurrences of the habits whose names contain this.")
@click.option("--update", is_flag=True, help="Store the present numbers.")
def main(show: str | None, update: bool) -> None:  # noqa: FBT001  click passes options so
    """Compare the wording with the stored numbers of its habits."""
    places = occurrences(ROOT)
    counts = {habit: len(places[habit]) for habit in sorted(places)}
    if show is not None:
        click.echo("\n".join(p for habit in counts if show in habit for p in places[habit]))
        return
    if update:
        BASELINE.write_text(json.dumps(counts, indent=2) + "\n")
    stored: dict[str, int] = json.loads(BASELINE.read_text())
    grown = {h: number for h, number in counts.items() if number > stored.get(h, 0)}
    for habit, number in grown.items():
        click.echo(f"{habit}: {number}, at most {stored.get(habit, 0)} are allowed", err=True)
    if grown:
        raise click.ClickException('Reword them. `python -m infra.wording --show "…"` lists them.')
    if any(counts.get(habit, 0) < number for habit, number in stored.items()):
        click.echo("Fewer habits than stored: run `python -m infra.wording --update`.")


if __name__ == "__main__":
    main()
