"""Raising errors with their causes, and the causes that a log line names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.core.errors import MAX_CAUSES, UnavailableError, log_fields

ROOT = Path(__file__).parents[2]
SOURCES = ["app.py", *(f"{folder}/**/*.py" for folder in ("chalicelib", "infra", "vendor"))]


def risky_raises(tree: ast.AST) -> Iterator[ast.Raise]:
    """Yield each ``raise … from cause`` whose error may be the cause itself.

    An error is safe if the statement creates it: a class, or a call. A function that receives the
    cause is not safe, because it may return the cause.
    """
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Raise)
            and node.exc
            and node.cause
            and not isinstance(node.cause, ast.Constant)
            and not all(
                creates_error(alternative, node.cause) for alternative in alternatives(node.exc)
            )
        ):
            yield node


def alternatives(raised: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that a raised expression may evaluate to."""
    match raised:
        case ast.IfExp(body=one, orelse=other):
            yield from alternatives(one)
            yield from alternatives(other)
        case ast.BoolOp(values=values):
            for value in values:
                yield from alternatives(value)
        case ast.NamedExpr(value=value):
            yield from alternatives(value)
        case _:
            yield raised


def creates_error(raised: ast.expr, cause: ast.expr) -> bool:
    called = raised.func if isinstance(raised, ast.Call) else raised
    name = ast.unparse(called).rpartition(".")[2].lstrip("_")
    if name[:1].isupper():  # a class, or a call of one
        return True
    if not isinstance(raised, ast.Call):
        return False
    arguments = [*raised.args, *(keyword.value for keyword in raised.keywords)]
    return all(ast.dump(argument) != ast.dump(cause) for argument in arguments)


@pytest.mark.parametrize(
    "statement",
    [
        "raise error from error",
        "raise problem from error",
        "raise (OtherError() if lost else error) from error",
        "raise (known or OtherError()) from error",
        "raise meaning_of(error) from error",
        "raise meaning_of(failure=error) from error",
    ],
)
def test_a_raise_of_its_own_cause_is_found(statement: str) -> None:
    assert list(risky_raises(ast.parse(statement)))


@pytest.mark.parametrize(
    "statement",
    [
        "raise OtherError from error",
        "raise errors.OtherError(str(error)) from error",
        "raise (OneError if lost else OtherError()) from error",
        "raise _PrivateError(error) from error",
        "raise meaning_of(error.code) from error",
        "raise error from None",
        "raise error",
        "raise",
    ],
)
def test_a_raise_of_a_new_error_is_not_reported(statement: str) -> None:
    assert not list(risky_raises(ast.parse(statement)))


def test_no_raise_statement_can_make_an_error_its_own_cause() -> None:
    findings = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for pattern in SOURCES
        for path in sorted(ROOT.glob(pattern))
        for node in risky_raises(ast.parse(path.read_text()))
    ]
    assert findings == []


def chain(length: int) -> UnavailableError:
    """Return an error with a chain of this many causes."""
    first = UnavailableError()
    error: BaseException = first
    for _ in range(length):
        error.__cause__ = KeyError()
        error = error.__cause__
    return first


@pytest.mark.parametrize("length", [0, 1, MAX_CAUSES, 10 * MAX_CAUSES])
def test_the_log_names_a_bounded_number_of_causes(length: int) -> None:
    causes = log_fields(chain(length))["cause"].split(" < ")
    assert causes == ["UnavailableError", *["KeyError"] * min(length, MAX_CAUSES - 1)]


@pytest.mark.parametrize("length", [0, 1, 2])
def test_the_log_names_each_error_of_a_cyclic_cause_chain_once(length: int) -> None:
    error = chain(length)
    last: BaseException = error
    while last.__cause__ is not None:
        last = last.__cause__
    last.__cause__ = error
    assert log_fields(error)["cause"].split(" < ") == ["UnavailableError"] + ["KeyError"] * length
