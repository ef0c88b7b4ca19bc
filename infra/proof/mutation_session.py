"""A pytest plugin that runs the collected tests against mutants.

infra/proof/mutations.py starts it. One process imports the service and collects the tests once. For
each mutant it forks. The child replaces the code of the changed function, runs the tests that
execute the changed statement, and ends at the first failure. Before that, another child runs each
test once and records the statements that it executes. These records are kept until the code or the
module of the test changes.
"""

import builtins
import hashlib
import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from infra.proof.forks import RAISED, Report, in_child, time_limit
from infra.proof.live_code import LiveCode
from infra.proof.mutants import Mutant, compile_mutant, compile_with_probes, mutants_of
from infra.proof.parts import ROOT

ORDER = "MUTATION_ORDER"
"""The environment variable with the path of the order, a JSON file."""
PROBE = "__executes__"
SECONDS_OF_TESTS = 30.0
"""CPU seconds of the tests of one mutant. Further tests are left out."""

Outcome = dict[str, Any]
"""The outcome of a mutant, as JSON."""
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
EQUIVALENT = "equivalent"
"""It changes nothing that can be observed, as a person has found. It is not run."""
NOT_REACHED = "not reached"
"""No test executes the changed statement."""
SKIPPED = "skipped"
"""The compiler makes the same code of it, or its function cannot be replaced."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis find failures without making them small."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutations", settings.get_profile("dev"), phases=phases)
    settings.load_profile("mutations")
    config.pluginmanager.register(MutationSession(json.loads(Path(os.environ[ORDER]).read_text())))


class MutationSession:
    """Runs a sample of the mutants of some modules until a time.

    The order has ``paths`` of modules, a ``seed``, the time ``until``, and the files ``map`` for
    the records of the tests and ``results``. Mutants in ``first`` come first: they survived last.
    Those in ``equivalent`` are not run.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._paths: list[str] = order["paths"]
        self._failed = False
        self._items: dict[str, pytest.Item] = {}
        self._tests: dict[str, dict[str, Any]] = {}
        self._trusted: set[str] = set()
        self._equivalent = {tuple(name) for name in order["equivalent"]}
        self._killers: dict[tuple[str, str], list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record that a test failed."""
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        self._items = {item.nodeid: item for item in session.items}
        uses_api = (i for i in session.items if "api" in getattr(i, "fixturenames", ()))
        self._passes(next(uses_api, session.items[0]))  # it makes what all tests share
        self._code = LiveCode(self._paths)
        self._tests = self._recorded()
        mutants = [mutant for path in self._paths for mutant in mutants_of(ROOT, path)]
        random.Random(self._order["seed"]).shuffle(mutants)  # noqa: S311  a repeatable sample
        first = {tuple(name) for name in self._order["first"]}
        mutants.sort(key=lambda each: each.name not in first)
        with Path(self._order["results"]).open("w", buffering=1) as results:
            for mutant in mutants:
                if time.time() > self._order["until"]:
                    break
                outcome = {
                    "module": mutant.path,
                    "function": mutant.function,
                    "line": mutant.line,
                    "change": mutant.change,
                    **self._try(mutant),
                }
                results.write(json.dumps(outcome, ensure_ascii=False) + "\n")
        return True

    def _passes(self, item: pytest.Item) -> bool:
        """Run a test, and tear down all but the fixtures of the session.

        pytest keeps what the next item needs too, so the session stands for it.
        """
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.session)
        return not self._failed

    def _recorded(self) -> dict[str, Any]:
        """Return the records of the tests that pass. Run those whose module has changed."""
        file, sources = Path(self._order["map"]), _hash(self._paths)
        kept = json.loads(file.read_text()) if file.exists() else {}
        if kept.get("sources") != sources:
            kept = {"sources": sources, "tests": {}}
        hashes = {name: _hash([name]) for name in {_module(each) for each in self._items}}
        tests = {
            name: kept["tests"][name]
            for name in self._items
            if kept["tests"].get(name, {}).get("module") == hashes[_module(name)]
        }
        if new := [name for name in self._items if name not in tests]:
            written = file.with_suffix(".new")
            if lines := in_child(lambda _: written.write_text(json.dumps(self._record(new)))):
                raise RuntimeError(lines[-1])
            for name, test in json.loads(written.read_text()).items():
                tests[name] = {**test, "module": hashes[_module(name)]}
            written.unlink()
            file.write_text(json.dumps({"sources": sources, "tests": tests}))
        return {name: test for name, test in tests.items() if test["passed"]}

    def _record(self, names: Iterable[str]) -> dict[str, Any]:
        """Run tests with probes in the code."""
        executed: set[str] = set()
        setattr(builtins, PROBE, lambda path, line: executed.add(f"{path}:{line}"))
        for path in self._paths:
            self._code.replace(path, compile_with_probes(ROOT, path, PROBE))
        records = {}
        for name in names:
            executed.clear()
            self._code.forget()
            started = time.process_time()
            passed = self._passes(self._items[name])
            seconds = round(time.process_time() - started, 4)
            statements = sorted(executed)
            records[name] = {"passed": passed, "seconds": seconds, "statements": statements}
        return records

    def _try(self, mutant: Mutant) -> Outcome:
        """Run the tests of a mutant. ``runs`` is their number, ``killer`` the one that failed."""
        if mutant.name in self._equivalent:
            return {"outcome": EQUIVALENT, "runs": 0}
        names = self._chosen(mutant)
        if not names:
            return {"outcome": NOT_REACHED, "runs": 0}

        def work(report: Report) -> None:
            if not self._code.replace(mutant.path, compile_mutant(ROOT, mutant)):
                report(SKIPPED)
                return
            for name in names:
                report(name)
                with time_limit(self._seconds(name)):
                    passed = self._passes(self._items[name])
                if not passed:
                    report(KILLED)
                    return
            report(SURVIVED)

        lines = in_child(work)
        ended = lines.pop() if lines and lines[-1] not in self._tests else TIMED_OUT
        outcome = KILLED if ended.startswith(RAISED) else ended
        if not lines or outcome == SURVIVED:
            return {"outcome": outcome, "runs": len(lines)}
        killer = lines[-1]
        if outcome == KILLED and not self._is_trusted(killer):
            del self._tests[killer]
            return self._try(mutant)
        killers = self._killers[mutant.path, mutant.function]
        killers[:] = [killer, *(name for name in killers if name != killer)]
        return {"outcome": outcome, "runs": len(lines), "killer": killer}

    def _is_trusted(self, name: str) -> bool:
        """Whether a test passes as the only one in a child, on the code as it is."""
        if name not in self._trusted:
            if in_child(lambda report: report(str(self._passes(self._items[name])))) != ["True"]:
                return False
            self._trusted.add(name)
        return True

    def _chosen(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a statement, in the order in which they run.

        First those that killed mutants of the same function, then the others, the fastest of a
        module first. Modules get equal time, because tests of one module often find the same.
        """
        place = f"{mutant.path}:{mutant.line}"
        found = [name for name, test in self._tests.items() if place in test["statements"]]
        found.sort(key=self._seconds)
        spent, ends = defaultdict[str, float](float), dict[str, float]()
        for name in found:
            ends[name] = spent[_module(name)] = spent[_module(name)] + self._seconds(name)
        killers = [each for each in self._killers[mutant.path, mutant.function] if each in ends]
        return [*self._affordable(dict.fromkeys([*killers, *sorted(found, key=ends.__getitem__)]))]

    def _seconds(self, name: str) -> float:
        return float(self._tests[name]["seconds"])

    def _affordable(self, names: Iterable[str]) -> Iterator[str]:
        left = SECONDS_OF_TESTS
        for name in names:
            if left < 0:
                return
            left -= self._seconds(name)
            yield name


def _module(name: str) -> str:
    return name.partition("::")[0]


def _hash(paths: Iterable[str]) -> str:
    return hashlib.sha256(b"\0".join((ROOT / path).read_bytes() for path in paths)).hexdigest()
