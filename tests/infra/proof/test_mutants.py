"""Mutants: which changes are made, how they are named, and how they get into a running process."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from infra.proof import mutations
from infra.proof.mutants import compile_mutant, compile_with_probes, mutants_of
from infra.proof.parts import ROOT

MODULE = "module.py"


def changes(root: Path, source: str) -> list[str]:
    """Return the changes of a module with this source."""
    (root / MODULE).write_text(dedent(source))
    return [mutant.change for mutant in mutants_of(root, MODULE)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "return a < b",
            ["return a < b → return None", "return a < b → return True", "a < b → a <= b"],
        ),
        ("if a: x()", ["if a → if True", "if a → if False", "x() → pass"]),
        ("x = a == b", ["a == b → a != b"]),
        ("x = a and b", ["a and b → b", "a and b → a"]),
        ("x = not a", ["not a → a"]),
        ("x = a + b", ["a + b → a - b"]),
        ("x += b", ["x += b → x -= b"]),
        ("x = 7", ["7 → 8"]),
        ("x = True", ["True → False"]),
        ("x = 'text'", ["'text' → ''"]),
        ("x = min(a, b)", ["min → max in min(a, b)"]),
        ("x = f(a=a, b=b)", ["f(a=a, b=b) → f(b=b)", "f(a=a, b=b) → f(a=a)"]),
        ("x = a.get(b, y)", ["a.get(b, y) → a.get(b)"]),
        ("f()", ["f() → pass"]),
        ("raise a", ["raise a → pass"]),
        ("x = [y for y in a if y]", ["for y in a if y → for y in a"]),
        (
            "x = y if b else a",
            ["y if b else a → y if True else a", "y if b else a → y if False else a"],
        ),
    ],
)
def test_a_statement_is_changed_in_each_way(
    tmp_path: Path, statement: str, expected: list[str]
) -> None:
    found = changes(tmp_path, f"def f(a, b, x, y):\n    {statement}\n")
    assert found == expected


def test_what_runs_at_import_and_what_is_only_read_is_not_changed(tmp_path: Path) -> None:
    source = '''
        LIMIT = 1

        class Row:
            size: int = 2

            @cached(size=3)
            def read(self, count: int = 4) -> "Row":
                """Return 5."""
                log.info("read", extra={"count": 6})
                msg = f"at most {count + 7}"
                raise ValueError("too many")
        '''
    assert changes(tmp_path, source) == ["raise ValueError('too many') → pass"]


def test_equal_changes_in_a_function_have_different_names(tmp_path: Path) -> None:
    source = "def f(x):\n    x(1)\n    x(1)\n"
    assert changes(tmp_path, source) == [
        "x(1) → pass",
        "1 → 2 in x(1)",
        "x(1) → pass (no. 2)",
        "1 → 2 in x(1) (no. 2)",
    ]


def test_a_compiled_mutant_has_one_change(tmp_path: Path) -> None:
    changes(tmp_path, "def f(a):\n    return a + 1\n")
    results = []
    for mutant in mutants_of(tmp_path, MODULE):
        module: dict[str, Any] = {}
        exec(compile_mutant(tmp_path, mutant), module)  # noqa: S102  it is the test's own
        results.append(module["f"](1))
    assert results == [None, 0, 3]


def test_probes_report_the_statements_that_run(tmp_path: Path) -> None:
    changes(
        tmp_path, "def f(a):\n    if a:\n        a = 1\n    else:\n        a = 2\n    return a\n"
    )
    seen: list[tuple[str, int]] = []
    module: dict[str, Any] = {"probe": lambda *place: seen.append(place)}
    exec(compile_with_probes(tmp_path, MODULE, "probe"), module)  # noqa: S102
    module["f"](0)
    assert seen == [(MODULE, 2), (MODULE, 5), (MODULE, 6)]


def test_each_mutant_that_is_named_as_equivalent_exists() -> None:
    named = mutations.equivalents()
    paths = {module for module, _, _ in named}
    found = {(m.path, m.function, m.change) for path in paths for m in mutants_of(ROOT, path)}
    assert not set(named) - found


def test_every_suite_names_modules_and_tests_that_exist() -> None:
    for suite in [*mutations.SUITES.values(), *mutations.IN_CI.values()]:
        assert all([*ROOT.glob(pattern)] for pattern in (*suite.modules, *suite.tests))
