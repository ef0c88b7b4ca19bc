"""Changes, outcomes and figures of a run of mutants."""

import json
import time
from pathlib import Path
from textwrap import dedent

import pytest
from mutmut.mutation import file_mutation
from mutmut.mutation import mutators as mutators_of_mutmut

from infra.proof import mutations, mutators
from infra.proof.mutations import Suite
from infra.proof.parts import ROOT

BARCODES = Suite(("chalicelib/lib/barcodes.py",), ("tests/lib/test_barcodes.py",))
MODULE = "module.py"


@pytest.fixture(autouse=True)
def our_mutmut(monkeypatch: pytest.MonkeyPatch) -> None:
    """mutmut with our changes, until the end of the test."""
    monkeypatch.setattr(
        mutators_of_mutmut, "mutation_operators", mutators_of_mutmut.mutation_operators
    )
    monkeypatch.setattr(file_mutation, "mutation_operators", list(mutators.CHANGES))
    monkeypatch.setattr(file_mutation, "NEVER_MUTATE_FUNCTION_CALLS", set())
    monkeypatch.setattr(file_mutation, "MutationVisitor", mutators.Visitor)


def write_mutants(folder: Path, path: str, source: str) -> list[str]:
    """Write what mutmut makes of a module, and return the changes that the proof reads there."""
    mutated = file_mutation.mutate_file_contents(path, source)
    spans = mutated.line_span_by_function_name.items()
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(mutated.code)
    codes = {f"module.{name}": None for name in mutated.mutant_names}
    Path(f"{file}.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    lines = {name: [span.start, span.end] for name, span in spans}
    Path(f"{file}.spans").write_text(json.dumps({"spans": lines}))
    return [mutant["change"] for mutant in mutations._read(folder, path)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("return a < b", {"return None", "return True", "return a <= b"}),
        ("if a: x()", {"if False: x()", "if True: x()", "if a: pass"}),
        ("x = a == b", {"x = a != b"}),
        ("x = a and b", {"x = b", "x = a"}),
        ("x = (a or b) and y", {"x = (a or b)", "x = y", "x = (a) and y", "x = (b) and y"}),
        ("x = not a", {"x = a"}),
        ("x = a + b", {"x = a - b"}),
        ("x += b", {"x -= b"}),
        ("x = 7", {"x = 8"}),
        ("x = True", {"x = False"}),
        ("x = 'text'", {'x = ""'}),
        ("x = 'a text ' 'in parts'", {'x = ""'}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("x = f(a=a, b=b)", {"x = f(b=b)", "x = f(a=a, )"}),
        ("x = a.get(b, y)", {"x = a.get(b, )"}),
        ("f()", {"pass"}),
        ("raise a", {"pass"}),
        ("x = [y for y in a if y]", {"x = [y for y in a]"}),
        ("x = y if b else a", {"x = y if True else a", "x = y if False else a"}),
        ("x = zip(a, b, strict=True)", set()),
    ],
)
def test_a_statement_is_changed_in_each_way(
    tmp_path: Path, statement: str, expected: set[str]
) -> None:
    changes = write_mutants(tmp_path, MODULE, f"def f(a, b, x, y):\n    {statement}\n")
    assert {change.partition(" → ")[2] for change in changes} == expected


def test_what_runs_at_import_and_what_is_only_read_is_not_changed(tmp_path: Path) -> None:
    source = '''
        LIMIT = 1

        class Row:
            size: int = 2

            @cached(size=3)
            def decorated(self):
                return 4

            def read(self, count: int = 4) -> "Row":
                """Return 5."""
                log.info("read", extra={"count": 6})
                msg = f"at most {count + 7}"
                raise ValueError("too many")
        '''
    changes = write_mutants(tmp_path, MODULE, dedent(source))
    assert changes == ['raise ValueError("too many") → pass']


def test_equal_changes_in_a_function_have_different_names(tmp_path: Path) -> None:
    changes = write_mutants(tmp_path, MODULE, "def f(x):\n    x(1)\n    x(1)\n")
    assert changes == ["x(1) → pass", "x(1) → x(2)", "x(1) → pass (no. 2)", "x(1) → x(2) (no. 2)"]


@pytest.mark.slow
def test_each_mutant_that_is_named_as_equivalent_exists(tmp_path: Path) -> None:
    equivalents = mutations.equivalents()
    found_changes = set()
    for path in {path for path, _, _ in equivalents}:
        write_mutants(tmp_path, path, (ROOT / path).read_text())
        found_changes |= {
            (path, mutant["function"], mutant["change"])
            for mutant in mutations._read(tmp_path, path)
        }
    assert sorted(equivalents - found_changes) == []


def test_every_suite_names_modules_and_tests_that_exist() -> None:
    for suite in [*mutations.SUITES.values(), *mutations.IN_CI.values()]:
        assert all([*ROOT.glob(pattern)] for pattern in (*suite.modules, *suite.tests))


@pytest.mark.slow
def test_tests_find_the_mutants_of_what_they_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutations, "KEPT", tmp_path)
    outcomes = mutations._outcomes("barcodes", BARCODES, time.time() + 120)
    fates = [outcome["outcome"] for outcome in outcomes]
    assert fates.count("killed") > len(fates) * 0.8
    assert set(fates) <= {"killed", "timed out", "survived", "not reached"}
    outcomes_again = mutations._outcomes("barcodes", BARCODES, time.time() + 120)
    assert outcomes_again == outcomes


def test_survivors_without_a_reason_and_functions_without_a_test_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def f(a):\n    a(1)\n\n\ndef g(a):\n    a(2)\n"
    write_mutants(tmp_path, MODULE, source)
    file = tmp_path / f"{MODULE}.meta"
    keys = json.loads(file.read_text())["exit_code_by_key"]
    codes = dict(zip(keys, (1, 0, 0, 33), strict=True))
    file.write_text(json.dumps({"exit_code_by_key": codes}))
    monkeypatch.setattr(mutations, "equivalents", lambda: {(MODULE, "f", "a(1) → a(2)")})
    figures = mutations._figures(mutations._read(tmp_path, MODULE))
    counts = {"made": 4, "tried": 4, "killed": 1, "equivalent": 1, "survived": 1, "not reached": 1}
    assert figures[MODULE] == figures["all"] == counts
    assert figures["survived"] == [f"{MODULE} g: a(2) → pass"]
    assert figures["not reached"] == [f"{MODULE} g"]
