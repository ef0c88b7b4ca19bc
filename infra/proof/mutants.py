"""Mutants: copies of a module in which one expression or statement of a function is changed.

``infra.proof.mutators`` lists the changes. Left as they are: what runs at import (constants of
modules, bodies of classes, defaults, decorators), annotations, texts of errors, and log messages.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

from infra.proof.mutators import replacements

_MESSAGES = ("msg", "message")
"""Names of variables with texts of errors."""
_LOGGERS = ("log", "logger")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_AT_IMPORT = frozenset({"decorator_list", "args", "returns", "annotation", "type_params"})
"""Parts of functions that run when they are defined. A call has ``args`` as well."""
_SHOWN = 100
"""Longest text of an expression that is shown as the place of a change."""

Position = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Mutant:
    """A change of a module.

    ``position`` leads from its root to the node, and ``number`` is that of the replacement of this
    node. ``line`` is the first line of the statement that changes.
    """

    path: str
    function: str
    change: str
    position: Position
    number: int
    line: int

    @property
    def name(self) -> tuple[str, str, str]:
        """The name of the mutant in all modules."""
        return self.path, self.function, self.change


def mutants_of(root: Path, path: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text.

    Equal changes in one function are numbered, so that each has a name of its own.
    """
    found = []
    seen: Counter[tuple[str, str]] = Counter()
    for mutant in _walk(_parse(root, path), _Place(path)):
        key = mutant.function, mutant.change
        seen[key] += 1
        again = f" (no. {seen[key]})" if seen[key] > 1 else ""
        found.append(replace(mutant, change=mutant.change + again))
    return found


def compile_mutant(root: Path, mutant: Mutant) -> CodeType:
    """Return the code of the module with the change."""
    tree: ast.AST = _parse(root, mutant.path)
    parent = tree
    *above, last = mutant.position
    for step in above:
        parent = _child(parent, *step)
    changed = [*replacements(_child(parent, *last), parent)][mutant.number]
    name, index = last
    if index is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[index] = changed
    return _compile(tree, root, mutant.path)


def compile_with_probes(root: Path, path: str, probe: str) -> CodeType:
    """Return the code of a module that calls ``probe(path, line)`` before each statement."""
    tree = _parse(root, path)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and not isinstance(node, ast.Module | ast.ClassDef):
                setattr(node, name, [*_with_probes(statements, path, probe)])
    return _compile(tree, root, path)


def _with_probes(statements: list[ast.stmt], path: str, probe: str) -> Iterator[ast.stmt]:
    for statement in statements:
        place: list[ast.expr] = [ast.Constant(path), ast.Constant(statement.lineno)]
        call = ast.Call(ast.Name(probe, ast.Load()), place, [])
        yield ast.copy_location(ast.Expr(call), statement)
        yield statement


def _parse(root: Path, path: str) -> ast.Module:
    return ast.parse((root / path).read_text())


def _compile(tree: Any, root: Path, path: str) -> CodeType:  # noqa: ANN401  any tree
    code: CodeType = compile(ast.fix_missing_locations(tree), str(root / path), "exec")
    return code


def _child(node: ast.AST, name: str, index: int | None) -> Any:  # noqa: ANN401
    child = getattr(node, name)
    return child if index is None else child[index]


@dataclass(frozen=True)
class _Place:
    """The surroundings of a node."""

    path: str
    function: str = ""
    inside: bool = False
    position: Position = ()
    parent: ast.AST | None = None
    statement: ast.stmt | None = None


def _walk(node: ast.AST, place: _Place) -> Iterator[Mutant]:
    """Yield the mutants of a node and of all below it."""
    if isinstance(node, ast.stmt):
        place = replace(place, statement=node)
    if place.inside:
        yield from _mutants(node, place)
    if _stays(node):
        return
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        place = replace(place, function=f"{place.function}.{node.name}".strip("."))
    inside = place.inside or isinstance(node, _FUNCTIONS)
    for step, child in _children(node):
        position = (*place.position, step)
        yield from _walk(child, replace(place, inside=inside, position=position, parent=node))


def _mutants(node: ast.AST, place: _Place) -> Iterator[Mutant]:
    if place.parent is None or place.statement is None or _is_text_of_error(node, place.statement):
        return
    if _stays(node):
        return
    for number, changed in enumerate(replacements(node, place.parent)):
        change = _change(node, changed, place.parent)
        line = place.statement.lineno
        yield Mutant(place.path, place.function, change, place.position, number, line)


def _children(node: ast.AST) -> Iterator[tuple[tuple[str, int | None], ast.AST]]:
    for name, value in ast.iter_fields(node):
        if name in _AT_IMPORT and not isinstance(node, ast.Call):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.AST):
                yield (name, index), child


def _stays(node: ast.AST) -> bool:
    """Whether nothing inside a node is changed: documentation, and texts of errors and of logs."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _MESSAGES
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
    return False


def _is_text_of_error(node: ast.AST, statement: ast.stmt) -> bool:
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text and isinstance(statement, ast.Raise)


def _change(node: ast.AST, changed: ast.AST, parent: ast.AST) -> str:
    """Describe a change by the texts before and after, with the parent of a short expression."""
    before, after = _text(node), _text(changed)
    if isinstance(node, ast.expr) and isinstance(parent, ast.expr | ast.keyword):
        around = ast.unparse(parent)
        if len(around) <= _SHOWN:
            return f"{before} → {after} in {around}"
    return f"{before} → {after}"


def _text(node: ast.AST) -> str:
    """Return the text of a node, without the body of a compound statement."""
    match node:
        case ast.If(test=test):
            return f"if {ast.unparse(test)}"
        case ast.While(test=test):
            return f"while {ast.unparse(test)}"
    return ast.unparse(node).strip()
