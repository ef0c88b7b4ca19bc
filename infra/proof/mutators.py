"""The changes that ``make proof`` requires from mutmut, and mutmut's command with these changes.

``python -m infra.proof.mutators`` is mutmut's command. Its own changes are replaced, because they
remove no check: here a statement, an error, a condition or an argument goes. Left as they are: what
runs at import, annotations, error messages, log messages, and the check of ``zip``.
"""

import signal
from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any

import libcst as cst
import libcst.matchers as m
from mutmut.__main__ import cli
from mutmut.mutation import file_mutation, mutators
from mutmut.runners.harness import PytestRunner
from mutmut.workers import isolation

_TRUE, _FALSE, _NONE = cst.Name("True"), cst.Name("False"), cst.Name("None")
_PAIRS = (
    *((cst.LessThan, cst.LessThanEqual), (cst.LessThanEqual, cst.LessThan)),
    *((cst.GreaterThan, cst.GreaterThanEqual), (cst.GreaterThanEqual, cst.GreaterThan)),
    *((cst.Equal, cst.NotEqual), (cst.NotEqual, cst.Equal), (cst.In, cst.NotIn)),
    *((cst.NotIn, cst.In), (cst.Is, cst.IsNot), (cst.IsNot, cst.Is)),
    *((cst.Add, cst.Subtract), (cst.Subtract, cst.Add), (cst.Multiply, cst.FloorDivide)),
    *((cst.FloorDivide, cst.Multiply), (cst.Divide, cst.Multiply), (cst.Modulo, cst.FloorDivide)),
    *((cst.BitOr, cst.BitAnd), (cst.BitAnd, cst.BitOr)),
    *((cst.AddAssign, cst.SubtractAssign), (cst.SubtractAssign, cst.AddAssign)),
)
_OPERATORS = dict(_PAIRS)
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "True": "False", "False": "True"}
_OPTIONAL_LAST = frozenset({"get", "getattr", "next", "pop", "round", "split"})
"""Functions whose last argument has a default. Others would only fail without it."""
_CHECK = m.Arg(keyword=m.Name("strict"))
_TEXT = m.SimpleString() | m.ConcatenatedString()
_KEPT = (
    m.Param()
    | _CHECK
    | m.Expr(_TEXT)
    | m.Assign([m.AssignTarget(m.Name("msg") | m.Name("message"))])
    | m.Expr(m.Call(m.Attribute(m.Name("log") | m.Name("logger"))))
)
"""Nodes in which nothing is changed."""


def _operator(node: Any) -> Iterator[cst.CSTNode]:  # noqa: ANN401  any node with an operator
    if other := _OPERATORS.get(type(node.operator)):
        yield node.with_changes(operator=other())


def _operand(node: Any) -> Iterator[cst.CSTNode]:  # noqa: ANN401  of and, or, not, minus
    """Yield each operand, in the parentheses of the whole."""
    unary = isinstance(node, cst.UnaryOperation)
    if unary and not isinstance(node.operator, cst.Not | cst.Minus):
        return
    for operand in [node.expression] if unary else [node.left, node.right]:
        lpar, rpar = (*node.lpar, *operand.lpar), (*operand.rpar, *node.rpar)
        yield operand.with_changes(lpar=lpar, rpar=rpar)


def _string(node: cst.SimpleString | cst.ConcatenatedString) -> Iterator[cst.CSTNode]:
    value = node.evaluated_value
    if isinstance(value, bytes):
        yield cst.SimpleString('b""' if value else 'b"mutant"')
    elif value is not None:
        yield cst.SimpleString('""' if value else '"mutant"')


def _name(node: cst.Name) -> Iterator[cst.CSTNode]:
    if node.value in _NAMES:
        yield node.with_changes(value=_NAMES[node.value])


def _test(node: cst.If | cst.IfExp | cst.While) -> Iterator[cst.CSTNode]:
    yield node.with_changes(test=_FALSE)
    if not isinstance(node, cst.While):
        yield node.with_changes(test=_TRUE)


def _conditions(node: cst.CompFor) -> Iterator[cst.CSTNode]:
    for number in range(len(node.ifs)):
        yield node.with_changes(ifs=[*node.ifs[:number], *node.ifs[number + 1 :]])


def _return(node: cst.Return) -> Iterator[cst.CSTNode]:
    constant = m.SimpleString() | m.BaseNumber() | m.Name("None") | m.Name("True") | m.Name("False")
    if node.value is not None and not m.matches(node.value, constant):
        yield node.with_changes(value=_NONE)
        if isinstance(node.value, cst.Comparison | cst.BooleanOperation | cst.UnaryOperation):
            yield node.with_changes(value=_TRUE)


def _call(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Yield the call without each keyword, and without an argument that has a default."""
    args = node.args
    for number, arg in enumerate(args):
        if arg.keyword and not m.matches(arg, _CHECK):
            yield node.with_changes(args=[*args[:number], *args[number + 1 :]])
    name = getattr(node.func, "attr", node.func)
    if len(args) > 1 and not args[-1].keyword and getattr(name, "value", "") in _OPTIONAL_LAST:
        yield node.with_changes(args=args[:-1])


def _statement(node: cst.Expr) -> Iterator[cst.CSTNode]:
    if m.matches(node.value, m.Call() | m.Yield(m.From())):
        yield cst.Pass()


CHANGES: list[tuple[type[cst.CSTNode], Callable[[Any], Iterable[cst.CSTNode]]]] = [
    *(
        (node_type, _operator)
        for node_type in (cst.ComparisonTarget, cst.BinaryOperation, cst.AugAssign)
    ),
    *((node_type, _operand) for node_type in (cst.BooleanOperation, cst.UnaryOperation)),
    *((node_type, _string) for node_type in (cst.SimpleString, cst.ConcatenatedString)),
    *((node_type, _test) for node_type in (cst.If, cst.IfExp, cst.While)),
    *((node_type, lambda _: [cst.Pass()]) for node_type in (cst.Raise, cst.Del)),
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, _name),
    (cst.CompFor, _conditions),
    (cst.Return, _return),
    (cst.Call, _call),
    (cst.Expr, _statement),
    (cst.Break, lambda _: [cst.Continue()]),
    (cst.Continue, lambda _: [cst.Break()]),
]


class Visitor(file_mutation.MutationVisitor):  # type: ignore[misc]
    """mutmut's visitor, which leaves out more nodes."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Raise):
            self._texts = {*m.findall(node, _TEXT)}
        return (
            m.matches(node, _KEPT)
            or node in getattr(self, "_texts", ())
            or super()._skip_node_and_children(node)
        )

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Change a node, but not a part of a concatenated string literal."""
        return super().on_visit(node) and not isinstance(node, cst.ConcatenatedString)


class Runner(isolation.ForkRunner):  # type: ignore[misc]
    """mutmut's runner of forks, whose own process collects tests, but runs none.

    Tests leave threads, after which no fork is safe. So the run that records which test executes
    what is in a child. It shows that the tests pass, so they do not run once more.
    """

    test_runner_class, test_runner_args = PytestRunner, MappingProxyType[str, object]({})
    _run_in_child = isolation.ForkServerRunner._run_in_child  # noqa: SLF001
    collect_stats = isolation.ForkServerRunner.collect_stats

    def run_clean_tests(self, **_: object) -> int:
        """Return that the tests pass."""
        return 0

    def run_forced_fail(self) -> int:
        """Return that a test can fail."""
        return 1

    def startup(self) -> None:
        """Import the tests, so that the forks need not."""
        self.test_runner.warm_up()
        super().startup()


def install() -> None:
    """Let mutmut make our changes, with our runner."""
    mutators.mutation_operators[:] = CHANGES
    file_mutation.NEVER_MUTATE_FUNCTION_CALLS.clear()
    file_mutation.MutationVisitor = Visitor
    isolation.ForkRunner = Runner


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off
    install()
    cli(prog_name="python -m infra.proof.mutators")
