"""Replacements of a node of a syntax tree, each of which is a mutant."""

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_OPTIONAL_LAST = frozenset({"get", "getattr", "next", "pop", "round", "split"})
"""Functions whose last argument has a default. Others would only fail without it."""
_CHECKS = (None, "strict")
"""Keywords that stay: ``**`` and the check of ``zip``, which finds mistakes itself."""
_TRUE, _FALSE = ast.Constant(value=True), ast.Constant(value=False)


def replacements(node: ast.AST, parent: ast.AST) -> Iterable[ast.AST]:
    """Return the replacements of a node, always in the same order."""
    find = _BY_TYPE.get(type(node))
    return find(node, parent) if find else ()


def _comparison(node: ast.Compare, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield other operators. A condition as a whole is replaced by its statement already."""
    whole = isinstance(parent, ast.If | ast.IfExp | ast.Return)
    for number, op in enumerate(node.ops):
        if isinstance(op, _BOUNDS) or not whole:
            ops = [*node.ops]
            ops[number] = _OPERATORS[type(op)]()  # type: ignore[call-overload]
            yield _with(node, ops=ops)


def _boolean(node: ast.BoolOp, _: ast.AST) -> Iterator[ast.AST]:
    for rest in _without_each(node.values):
        yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]


def _unary(node: ast.UnaryOp, _: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _arithmetic(node: ast.BinOp | ast.AugAssign, _: ast.AST) -> Iterator[ast.AST]:
    if type(node.op) in _OPERATORS:
        yield _with(node, op=_OPERATORS[type(node.op)]())


def _constant(node: ast.Constant, parent: ast.AST) -> Iterator[ast.AST]:
    if isinstance(parent, ast.keyword) and parent.arg in _CHECKS:
        return
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int() | float():
            yield ast.Constant(node.value + 1)
        case str() if not isinstance(parent, ast.JoinedStr | ast.FormattedValue):
            yield ast.Constant("" if node.value else "mutant")
        case bytes():
            yield ast.Constant(b"" if node.value else b"mutant")


def _name(node: ast.Name, _: ast.AST) -> Iterator[ast.AST]:
    if node.id in _NAMES:
        yield ast.Name(_NAMES[node.id], node.ctx)


def _condition(node: ast.If | ast.IfExp, _: ast.AST) -> Iterator[ast.AST]:
    yield _with(node, test=_TRUE)
    yield _with(node, test=_FALSE)


def _loop(node: ast.While, _: ast.AST) -> Iterator[ast.AST]:
    yield _with(node, test=_FALSE)


def _comprehension(node: ast.comprehension, _: ast.AST) -> Iterator[ast.AST]:
    for rest in _without_each(node.ifs):
        yield _with(node, ifs=rest)


def _return(node: ast.Return, _: ast.AST) -> Iterator[ast.AST]:
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))
        if isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield ast.Return(_TRUE)


def _call(node: ast.Call, _: ast.AST) -> Iterator[ast.AST]:
    """Yield the call without each keyword, and without an argument that has a default."""
    for keyword, rest in zip(node.keywords, _without_each(node.keywords), strict=True):
        if keyword.arg not in _CHECKS:
            yield _with(node, keywords=rest)
    if len(node.args) > 1 and ast.unparse(node.func).rpartition(".")[2] in _OPTIONAL_LAST:
        yield _with(node, args=node.args[:-1])


def _statement(node: ast.Expr, _: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node.value, ast.Call | ast.YieldFrom):
        yield ast.Pass()


def _raise(_: ast.Raise, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield nothing instead of an error, unless a condition of its own is replaced already."""
    if not isinstance(parent, ast.If) or len(parent.body) > 1:
        yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without_each(values: list[Any]) -> Iterator[list[Any]]:
    for left_out in range(len(values)):
        yield [*values[:left_out], *values[left_out + 1 :]]


_BY_TYPE: dict[type[ast.AST], Callable[[Any, ast.AST], Iterator[ast.AST]]] = {
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.BinOp: _arithmetic,
    ast.AugAssign: _arithmetic,
    ast.Constant: _constant,
    ast.Name: _name,
    ast.If: _condition,
    ast.IfExp: _condition,
    ast.While: _loop,
    ast.comprehension: _comprehension,
    ast.Return: _return,
    ast.Call: _call,
    ast.Expr: _statement,
    ast.Delete: lambda _node, _parent: iter([ast.Pass()]),
    ast.Raise: _raise,
    ast.Break: lambda _node, _parent: iter([ast.Continue()]),
    ast.Continue: lambda _node, _parent: iter([ast.Break()]),
}
