"""Every regular expression takes a time that grows like its input, not like the square of it."""

import ast
import itertools
import re
import time
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

import chalicelib
from tests.support.effort import slow_but_for

FOLDER = Path(chalicelib.__file__).parent
METHODS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
LENGTHS = (250, 1_000, 4_000, 16_000)
"""Lengths of runs. A header has up to 10 KB, a form 32 KB."""
MAX_GROWTH = 9
"""A run of four times the length may take four times as long, and twice that by chance. The square
takes sixteen times as long."""
LEAST_SECONDS = 0.01
"""CPU time from which growth is measured. A pattern in linear time stays below it."""
OWN_TEXTS = {
    "transports/api_docs/prose.py": "it colours the examples of the reference",
    "transports/console/image_warnings.py": "it reads warnings of this service",
}
"""Modules whose slow patterns read no text of others, with the reason."""
ENDS = ("", "\0", "!", ";", '"')


class Used(NamedTuple):
    """A pattern, where it is written, and the methods that are called."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


@cache
def sources() -> dict[Path, str]:
    """Return the text of each module."""
    return {path: path.read_text() for path in sorted(FOLDER.rglob("*.py"))}


@cache
def patterns() -> list[Used]:
    """Return the patterns of all modules that can be evaluated without a call."""
    return [used for path, text in sources().items() for used in patterns_of(path, text)]


def patterns_of(path: Path, text: str) -> Iterator[Used]:
    tree = ast.parse(text)
    name = ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    module = import_module(name.removesuffix(".__init__"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (method := called(node)):
            place = f"{path.relative_to(FOLDER)}:{node.lineno}"
            try:
                arguments = [evaluated(argument, module) for argument in arguments_of(node)]
            except NameError:
                continue  # It is made of what a function has. Such patterns have no repeats.
            yield Used(place, re.compile(*arguments), methods_of(method, node, tree, text))


def called(node: ast.Call) -> str:
    """Return the function of a call that takes a pattern, or ""."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=attribute) if attribute != "escape":
            return attribute
    return ""


def arguments_of(node: ast.Call) -> list[ast.expr]:
    flags = [
        value
        for value in (*node.args[1:], *(word.value for word in node.keywords))
        if re.search(r"\bre\.[A-Z]", ast.unparse(value))
    ]
    return [node.args[0], *flags[:1]]


def evaluated(expression: ast.expr, module: Any) -> Any:
    code = compile(ast.Expression(expression), "<pattern>", "eval")
    return eval(code, {"re": re, **vars(module)})  # noqa: S307  our own source


def methods_of(method: str, node: ast.Call, tree: ast.AST, text: str) -> frozenset[str]:
    """Return the methods that are called on a pattern, by the name that it is assigned to."""
    if method != "compile":
        return frozenset({method})
    for assignment in ast.walk(tree):
        if isinstance(assignment, ast.Assign) and assignment.value is node:
            name = ast.unparse(assignment.targets[0])
            uses = set(re.findall(rf"\b{re.escape(name)}\.(\w+)", text)) & METHODS
            others = any(
                re.search(rf"import.*\b{re.escape(name)}\b|\.{re.escape(name)}\b", other)
                for other in sources().values()
                if name in other
            )
            if uses and not others:
                return frozenset(uses)
    return frozenset({"search"})


def runs(tree: Any, before: str = "", *, optional: int = 1) -> Iterator[tuple[str, str]]:
    """Return what precedes each repeat of a parsed pattern, and what it repeats.

    ``optional`` is how often optional parts occur in what precedes it.
    """
    for operator, argument in tree:
        if operator in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            _, most, repeated = argument
            if most >= 100:
                yield before, sample(repeated) or "a"
            yield from runs(repeated, before, optional=optional)
        elif operator is codes.SUBPATTERN:
            yield from runs(argument[-1], before, optional=optional)
        elif operator is codes.BRANCH:
            for branch in argument[1]:
                yield from runs(branch, before, optional=optional)
        before += sample([(operator, argument)], optional)


def sample(tree: Any, optional: int = 1) -> str:
    """Return a short string that a parsed pattern matches, or nearly."""
    text = ""
    for operator, argument in tree:
        match operator:
            case codes.LITERAL:
                text += chr(argument)
            case codes.NOT_LITERAL:
                text += "a" if argument != ord("a") else "b"
            case codes.ANY:
                text += "a"
            case codes.IN:
                text += one_of(argument)
            case codes.MAX_REPEAT | codes.MIN_REPEAT | codes.POSSESSIVE_REPEAT:
                text += sample(argument[2], optional) * min(max(argument[0], optional), 100)
            case codes.SUBPATTERN | codes.ATOMIC_GROUP:
                inner = argument[-1] if operator is codes.SUBPATTERN else argument
                text += sample(inner, optional)
            case codes.BRANCH:
                text += sample(argument[1][0], optional)
    return text


def one_of(members: Any) -> str:
    """Return a character of a set."""
    kinds = {codes.CATEGORY_SPACE: " ", codes.CATEGORY_DIGIT: "0", codes.CATEGORY_WORD: "a"}
    is_negated = members[0][0] is codes.NEGATE
    chosen = ""
    for operator, argument in members:
        if operator is codes.LITERAL:
            chosen += chr(argument)
        elif operator is codes.RANGE:
            chosen += chr(argument[0])
        elif operator is codes.CATEGORY:
            chosen += kinds.get(argument, "-")
    if not is_negated:
        return chosen[:1]
    return next(letter for letter in "a -0.Z~\u0416" if letter not in chosen)


def attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str, str]]:
    """Return the beginnings, the repeated parts and the ends of strings to try."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE & ~re.DEBUG)
    pairs = {pair for optional in (0, 1) for pair in runs(tree, optional=optional)}
    pairs |= {("", before) for before, _ in pairs if before} | {("", pump) for _, pump in pairs}
    pairs |= {("", sample(tree)[:length]) for length in (1, 2, 100) if sample(tree)}
    pairs |= {("", " "), ("", "a"), ("", "\t")}
    return {(before, pump, end) for before, pump in pairs for end in ENDS}


def seconds(used: Used, method: str, subject: Any) -> float:
    """Return the CPU time of one call: of this thread, so that a busy machine does not count."""
    call = getattr(used.pattern, method)
    blank: Any = b"" if isinstance(subject, bytes) else ""
    begun = time.thread_time()
    if method in {"sub", "subn"}:
        call(blank, subject)
    elif method == "finditer":
        list(call(subject))
    else:
        call(subject)
    return time.thread_time() - begun


def grows_too_fast(used: Used) -> Iterator[str]:
    """Yield the attacks for which the time of a pattern grows faster than its input."""
    for before, pump, end in sorted(attacks(used.pattern)):
        texts = [before + pump * (length // len(pump)) + end for length in LENGTHS]
        subjects: list[Any] = texts
        if isinstance(used.pattern.pattern, bytes):
            subjects = [text.encode("latin1", "replace") for text in texts]
        for method in used.methods:
            if is_superlinear(used, method, subjects):
                yield f"{used.place} {method}: {before!r} + {pump!r} * n + {end!r}"


def is_superlinear(used: Used, method: str, subjects: list[Any]) -> bool:
    """Whether the first of the ever longer runs that takes long grew too fast."""
    for shorter, longer in itertools.pairwise(subjects):
        if seconds(used, method, longer) > LEAST_SECONDS:
            fast, slow = (
                min(seconds(used, method, subject) for _ in range(3))
                for subject in (shorter, longer)
            )
            return slow > max(LEAST_SECONDS, fast * MAX_GROWTH)
    return False


def test_all_patterns_are_found() -> None:
    assert len(patterns()) > 200


@pytest.mark.parametrize("part", slow_but_for([0, 4], range(8)))
def test_no_pattern_takes_the_square_of_a_long_run(part: int) -> None:
    tried = [used for used in patterns()[part::8] if used.place.partition(":")[0] not in OWN_TEXTS]
    assert [attack for used in tried for attack in grows_too_fast(used)] == []


def test_a_slow_pattern_is_found() -> None:
    for pattern in (r"\s+$", r"(a|a)*b", r"=\s*x?\s*;", r"<!--.*?-->"):
        text = pattern.replace("(a|a)*b", r"a*a*b")
        assert next(grows_too_fast(Used("here", re.compile(text), frozenset({"search"}))), None), (
            pattern
        )
    assert not [*grows_too_fast(Used("here", re.compile(r"\s+$"), frozenset({"fullmatch"})))]
