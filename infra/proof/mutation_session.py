"""A pytest plugin that runs the collected tests against mutants.

infra/proof/mutations.py starts it. One process imports the service and collects the tests once. For
each mutant it forks. The child replaces the code of the changed function, runs the tests that
execute the changed statement, and ends at the first failure. Before that, another child runs each
test once and records the statements that it executes.
"""

import builtins
import contextlib
import gc
import hashlib
import json
import os
import random
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import _lru_cache_wrapper
from itertools import chain, zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

from infra.proof.mutants import Mutant, compile_mutant, compile_with_probes, mutants_of
from infra.proof.parts import ROOT

ORDER = "MUTATION_ORDER"
"""The environment variable with the order: a file that becomes the result."""
PROBE = "__executes__"
MEMORY = 4 << 30
"""Bytes of address space of a child, so that an endless loop fills no more."""
CPU_SECONDS, REAL_SECONDS, TIMES_LONGER = 5.0, 20.0, 10
"""A test may take ten times as long as without a mutant, and this much more."""
SECONDS_OF_TESTS = 10.0
"""Tests of one mutant are left out once those before take this long together."""


class Killed:
    """Outcomes of a mutant."""

    KILLED, TIMED_OUT, SURVIVED, NOT_REACHED, SAME = (
        "killed",
        "timed out",
        "survived",
        "not reached",
        "same",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis only find failures, not shrink them."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutations", settings.get_profile("dev"), phases=phases)
    settings.load_profile("mutations")
    config.pluginmanager.register(MutationSession(Path(os.environ[ORDER])))


class MutationSession:
    """Runs the mutants that the order names, until its time is up."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._order: dict[str, Any] = json.loads(file.read_text())
        self._until = float(self._order["until"])
        self._failed = False
        self._items: dict[str, pytest.Item] = {}
        self._tests: dict[str, Any] = {}
        self._trusted: set[str] = set()
        self._killers: dict[tuple[str, str], list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record that a test failed."""
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        self._items = {item.nodeid: item for item in session.items}
        self._last = session.items[-1]
        warm = next(i for i in session.items if "api" in getattr(i, "fixturenames", ()))
        self._passes(warm)
        self._code = LiveCode(self._order["paths"])
        self._tests = self._mapped()
        mutants = [m for path in self._order["paths"] for m in mutants_of(ROOT, path)]
        random.Random(self._order["seed"]).shuffle(mutants)  # noqa: S311  a repeatable sample
        with Path(self._order["results"]).open("w", buffering=1) as results:
            for mutant in mutants:
                if time.time() > self._until:
                    break
                named = {
                    "module": mutant.path,
                    "function": mutant.function,
                    "change": mutant.change,
                    "line": mutant.line,
                }
                outcome = {**named, **self._try(mutant)}
                results.write(json.dumps(outcome, ensure_ascii=False) + "\n")
        return True

    def _passes(self, item: pytest.Item) -> bool:
        """Run a test, and keep the fixtures of the session."""
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=self._last)
        return not self._failed

    def _mapped(self) -> dict[str, Any]:
        """Return what each test executes and how long it takes. Tests that fail are left out."""
        file = Path(self._order["map"])
        sources = _hash(self._order["paths"])
        known = json.loads(file.read_text()) if file.exists() else {}
        if known.get("sources") != sources:
            known = {"sources": sources, "tests": {}}
        files = {item.nodeid.partition("::")[0] for item in self._items.values()}
        hashes = {name: _hash([name]) for name in files}
        tests = {
            name: test
            for name, test in known["tests"].items()
            if hashes.get(name.partition("::")[0]) == test["file"] and name in self._items
        }
        new = [name for name in self._items if name not in tests]
        if new:
            written = file.with_suffix(".new")
            in_child(lambda _: written.write_text(json.dumps(self._measured(new))))
            for name, test in json.loads(written.read_text()).items():
                tests[name] = {**test, "file": hashes[name.partition("::")[0]]}
            written.unlink()
            file.write_text(json.dumps({"sources": sources, "tests": tests}))
        return {n: t for n, t in tests.items() if t["passed"] and t["statements"]}

    def _measured(self, names: Iterable[str]) -> dict[str, Any]:
        """Run tests with probes in the code."""
        executed: set[tuple[str, int]] = set()
        setattr(builtins, PROBE, lambda *place: executed.add(place))
        for path in self._order["paths"]:
            self._code.replace(path, compile_with_probes(ROOT, path, PROBE))
        measured = {}
        for name in names:
            executed.clear()
            started = time.process_time()
            passed = self._passes(self._items[name])
            seconds = round(time.process_time() - started, 4)
            measured[name] = {
                "passed": passed,
                "seconds": seconds,
                "statements": [f"{path}:{line}" for path, line in sorted(executed)],
            }
        return measured

    def _try(self, mutant: Mutant) -> dict[str, Any]:
        names = self._chosen(mutant)
        if not names:
            return {"outcome": Killed.NOT_REACHED}

        def work(say: Callable[[str], None]) -> None:
            if not self._code.replace(mutant.path, compile_mutant(ROOT, mutant)):
                say(Killed.SAME)
                return
            for number, name in enumerate(names):
                say(str(number))
                with _time_limit(self._tests[name]["seconds"]):
                    passed = self._passes(self._items[name])
                if not passed:
                    say(Killed.KILLED)
                    return
            say(Killed.SURVIVED)

        said = in_child(work)
        outcome = said.pop() if said and not said[-1].isdecimal() else Killed.TIMED_OUT
        if outcome not in {Killed.KILLED, Killed.TIMED_OUT}:
            return {"outcome": outcome, "tests": len(names)}
        killer = names[int(said[-1])] if said else ""
        if outcome == Killed.KILLED and not self._is_trusted(killer):
            del self._tests[killer]
            return self._try(mutant)
        killers = self._killers[mutant.path, mutant.function]
        killers[:] = [killer, *(k for k in killers if k != killer)]
        return {"outcome": outcome, "killer": killer, "number": len(said)}

    def _is_trusted(self, name: str) -> bool:
        """Whether a test passes alone, on the code as it is."""
        if name not in self._trusted:
            if in_child(lambda say: say(str(self._passes(self._items[name])))) != ["True"]:
                return False
            self._trusted.add(name)
        return True

    def _chosen(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a statement, in the order in which they run.

        First those that killed mutants of the same function, then the fastest of each module in
        turn, because tests of one module often find the same.
        """
        place = f"{mutant.path}:{mutant.line}"
        found = [name for name, test in self._tests.items() if place in test["statements"]]
        found.sort(key=lambda name: float(self._tests[name]["seconds"]))
        modules: dict[str, list[str]] = defaultdict(list)
        for name in found:
            modules[name.partition("::")[0]].append(name)
        in_turn = chain.from_iterable(zip_longest(*modules.values()))
        killers = [k for k in self._killers[mutant.path, mutant.function] if k in found]
        ranked = dict.fromkeys([*killers, *filter(None, in_turn)])
        return [*_within(SECONDS_OF_TESTS, ranked, self._tests)]


class LiveCode:
    """The functions of some modules, as they are in memory."""

    def __init__(self, paths: Iterable[str]) -> None:
        gc.unfreeze()
        files = {str(ROOT / path): path for path in paths}
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        self._caches: list[Any] = []
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename in files:
                self._functions[files[each.__code__.co_filename]].append(each)
            elif isinstance(each, _lru_cache_wrapper):
                self._caches.append(each)
        gc.freeze()

    def replace(self, path: str, module: CodeType) -> bool:
        """Replace the code of all functions that differ. Return False if none does."""
        code = {(c.co_qualname, c.co_firstlineno): c for c in _code_in(module)}
        changed = set()
        for function in self._functions[path]:
            new = code.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if new is not None and new != function.__code__:
                function.__code__ = new
                changed.add(function)
        for cache in self._caches:
            if cache.__wrapped__ in changed:
                cache.cache_clear()
        return bool(changed)


def _code_in(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _code_in(each)


def in_child(work: Callable[[Callable[[str], None]], object]) -> list[str]:
    """Run a function in a forked process, and return the lines that it says."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(read)
            os.setsid()
            for output in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), output)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            work(lambda line: (os.write(write, f"{line}\n".encode()), None)[1])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        lines = said.read().splitlines()
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return lines


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End this process if a test takes much longer than it should."""
    limits = {
        signal.ITIMER_PROF: CPU_SECONDS + TIMES_LONGER * seconds,
        signal.ITIMER_REAL: REAL_SECONDS + TIMES_LONGER * seconds,
    }
    for timer, limit in limits.items():
        signal.setitimer(timer, limit)
    yield
    for timer in limits:
        signal.setitimer(timer, 0)


def _within(seconds: float, names: Iterable[str], tests: dict[str, Any]) -> Iterator[str]:
    for name in names:
        if seconds < 0:
            return
        seconds -= tests[name]["seconds"]
        yield name


def _hash(paths: Iterable[str]) -> str:
    return hashlib.sha256(b"\0".join((ROOT / path).read_bytes() for path in paths)).hexdigest()
