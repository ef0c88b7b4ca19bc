"""Mutations: small changes of the code in which a mistake costs most, each to be found by a test.

Every suite of ``SUITES`` names modules and the tests for them. A pytest process runs a seeded
sample of their mutants (``infra.proof.mutation_session``). A mutant that no test finds needs a
test, or a reason in equivalent_mutants.toml why it changes nothing that can be observed. The page
lists both. The short form for CI fails if there is one without a reason.
"""

import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from infra.proof.mutants import mutants_of
from infra.proof.mutation_session import EQUIVALENT, ORDER, Outcome
from infra.proof.parts import KEPT, ROOT, Figures, Part

SEED = 20270115
COLUMNS = (
    *("made", "tried", "killed", "timed out"),
    *("equivalent", "survived", "not reached", "skipped"),
)
REASONS = Path(__file__).with_name("equivalent_mutants.toml")
DOMAINS = "chalicelib/domains"
_RULES_OF_BOOKINGS = ("booking_tokens", "calendar_files", "free_time", "schedule", "slots_by_model")


class Suite(NamedTuple):
    """Modules to change, as patterns, and the tests that are to find it."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def _rules(*domains: str, more: Iterable[str] = ()) -> Suite:
    """Return the suite of the rules of domains, with more tests than theirs."""
    modules = tuple(f"{DOMAINS}/{domain}/rules/*.py" for domain in domains)
    return Suite(modules, (*(f"tests/domains/{domain}" for domain in domains), *more))


def _engine(*names: str) -> tuple[str, ...]:
    return tuple(f"chalicelib/engine/{name}.py" for name in names)


SUITES = {
    "bookings": _rules("bookings", more=["tests/transports/public/bookings"]),
    "billing": Suite(
        (
            f"{DOMAINS}/billing/rules/*.py",
            f"{DOMAINS}/billing/flows/charging.py",
            f"{DOMAINS}/billing/flows/funds.py",
        ),
        ("tests/domains/billing", "tests/domains/chat", "tests/domains/events/test_owner_*.py"),
    ),
    "engine": Suite(
        _engine("unit", "transactions", "idempotency", "claims", "locks", "limits"),
        (
            *("tests/engine/test_*.py", "tests/engine/faults", "tests/application"),
            *("tests/domains/files/test_file_uses.py", "tests/domains/clients/test_*.py"),
        ),
    ),
    "access": Suite(
        (
            "chalicelib/application/invoke.py",
            "chalicelib/core/principals.py",
            "chalicelib/core/scopes.py",
        ),
        (
            *("tests/application", "tests/contract/test_audiences.py", "tests/core/test_*.py"),
            *("tests/domains/identity/test_keys.py", "tests/transports/test_http.py"),
            "tests/engine/faults/test_faults.py",
            "tests/domains/sites/page_import/test_import_failures.py",
        ),
    ),
    "oauth": _rules("oauth", "identity", more=["tests/transports/oauth"]),
    "sites": _rules("sites"),
    "files": Suite(
        (f"{DOMAINS}/files/rules/*.py", f"{DOMAINS}/catalog/rules.py"),
        ("tests/domains/files", "tests/domains/catalog"),
    ),
    "leads": _rules("leads"),
    "chat": _rules("chat", "bots", more=["tests/transports/chat/endpoint", "tests/gateways/llm"]),
    "messages": _rules("notifications", "webhooks", "knowledge"),
}
IN_CI = {
    "short": Suite(
        (
            f"{DOMAINS}/billing/rules/*.py",
            f"{DOMAINS}/bookings/rules/*.py",
            f"{DOMAINS}/identity/rules/token_pairs.py",
        ),
        (
            *(f"tests/domains/billing/test_{name}.py" for name in ("pricing", "spending")),
            *(f"tests/domains/bookings/test_{name}.py" for name in _RULES_OF_BOOKINGS),
            "tests/domains/bookings/slots",
            "tests/domains/identity/test_token_pairs.py",
        ),
    )
}
"""A suite of rules whose tests need no database."""
SHORT = 5.0
"""Minutes below which only this suite runs."""


def run(minutes: float) -> Figures:
    """Run a sample of the mutants. In the short form, fail if a test misses one without a reason.

    Time is divided by the number of mutants. A suite that has not begun when it is over is left
    out. The first run of a suite takes some minutes to record which test executes what.
    """
    until = time.time() + minutes * 60
    chosen = IN_CI if minutes < SHORT else SUITES
    folder = KEPT / "mutations"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {name: sum(_made(suite).values()) for name, suite in chosen.items()}
    outcomes: list[Outcome] = []
    for name, suite in chosen.items():
        if time.time() > until:
            break
        share = (until - time.time()) * sizes[name] / sum(sizes.values())
        outcomes += _outcomes(folder, name, suite, time.time() + share)
        del sizes[name]
    figures = _figures(chosen.values(), outcomes)
    if chosen is IN_CI and figures["survived"]:
        raise AssertionError("No test finds these changes:\n" + _list(_by(figures["survived"])))
    return figures


def _made(suite: Suite) -> dict[str, int]:
    """Return the number of mutants of each module."""
    return {path: len(mutants_of(ROOT, path)) for path in _paths(suite)}


def _outcomes(folder: Path, name: str, suite: Suite, until: float) -> list[Outcome]:
    """Run mutants of a suite until a time, and return what became of each."""
    results, order = folder / f"{name}.jsonl", folder / f"{name}.json"
    last = _read(results)
    results.unlink(missing_ok=True)
    named = {
        "first": [_key(each) for each in last if each["outcome"] == "survived"],
        "equivalent": list(equivalents()),
        "until": until,
        "seed": SEED,
        "paths": _paths(suite),
        "map": str(folder / f"{name}-map.json"),
        "results": str(results),
    }
    order.write_text(json.dumps(named))
    plugins = ["-p", "infra.proof.mutation_session", "-p", "no:randomly", "-o", "timeout=0"]
    brief = ["-q", "-s", "--assert=plain", "--tb=native"]  # nobody reads how a test failed
    with (folder / f"{name}.log").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *brief, *_files(suite.tests)],
            env={**os.environ, ORDER: str(order)},
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )
    return _read(results)


def _read(results: Path) -> list[Outcome]:
    lines = results.read_text().splitlines() if results.exists() else []
    return [json.loads(line) for line in lines]


def _key(outcome: Outcome) -> tuple[str, str, str]:
    return outcome["module"], outcome["function"], outcome["change"]


def _paths(suite: Suite) -> list[str]:
    found = (path for pattern in suite.modules for path in sorted(ROOT.glob(pattern)))
    return [str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"]


def _files(patterns: Iterable[str]) -> list[str]:
    """Return the paths of tests, since pytest accepts no patterns."""
    return [str(path.relative_to(ROOT)) for each in patterns for path in sorted(ROOT.glob(each))]


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the reasons why mutants change nothing, by module, function and change."""
    named = tomllib.loads(REASONS.read_text())["equivalent"]
    return {
        (each["module"], each["function"], change): each["reason"]
        for each in named
        for change in each["changes"]
    }


def _figures(suites: Iterable[Suite], outcomes: list[Outcome]) -> Figures:
    known = equivalents()
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    lists: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        outcome = each["outcome"]
        if outcome == EQUIVALENT:
            each["reason"] = known[_key(each)]
        modules[each["module"]][outcome] += 1
        lists[outcome].append(each)
    made = {path: count for suite in suites for path, count in _made(suite).items()}
    tried = Counter(each["module"] for each in outcomes)
    return {
        "seed": SEED,
        "tests": sum(each["runs"] for each in outcomes),
        "modules": {
            path: {"made": count, "tried": tried[path], **modules[path]}
            for path, count in made.items()
        },
        **{name: lists[name] for name in ("survived", "timed out", "equivalent", "not reached")},
    }


def section(figures: Figures) -> str:
    """Describe the figures."""
    modules = {path: Counter(counts) for path, counts in figures["modules"].items()}
    total: Counter[str] = sum(modules.values(), Counter())
    rows = [
        f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |"
        for name, counts in [*modules.items(), ("all", total)]
    ]
    unreached = {f"`{each['module']}` {each['function']}" for each in figures["not reached"]}
    return f"""\
Promise: a mistake in the code that decides on money, time and access fails a test.

A mutant changes one comparison, condition, operator, constant, argument, returned value or
statement of a function. The tests that execute the changed statement run until one fails. Of
{total["made"]:,} mutants a sample of {total["tried"]:,} was tried (seed {figures["seed"]}), with
{figures["tests"]:,} runs of tests. {total["killed"] + total["timed out"]:,} were found. Not
changed: constants of modules, defaults, decorators, annotations, texts of errors and log messages.

| module | {" | ".join(COLUMNS)} |
|---|{"---|" * len(COLUMNS)}
{chr(10).join(rows)}

A mutant is timed out if a test takes ten times as long as without it, or never ends. It is skipped
if the compiler makes the same code of it, or if Python cannot replace the function.

Mutants that survived, each of which needs a test or a reason:

{_list(_by(figures["survived"]))}

Mutants that change nothing that can be observed:

{_list(_by(figures["equivalent"]))}

Functions with statements that no test of these suites executes:

{_list(sorted(unreached))}
"""


def _by(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the changes by function and reason."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for each in outcomes:
        place = each["module"], each["function"], each.get("reason", "")
        found[place].append(f"`{' '.join(each['change'].split())}`")
    return [
        f"`{module}` {function}: {', '.join(changes)}. {reason}".strip()
        for (module, function, reason), changes in sorted(found.items())
    ]


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "None."


PART = Part(
    name="mutations",
    title="Mutations",
    minutes=12,
    minutes_in_ci=4,
    run=run,
    section=section,
)
