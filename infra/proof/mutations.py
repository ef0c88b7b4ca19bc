"""Change the code in small ways, and run the tests that must notice each change.

Every suite of ``SUITES`` names modules and their tests. mutmut makes the changes of
``infra.proof.mutators``, runs for each the tests that execute the changed function, and keeps the
results in build/proof. A mutant that no test finds needs a test, or a reason in
equivalent_mutants.toml why it changes nothing that can be observed. The short form for CI fails if
there is one without a reason.
"""

import difflib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from infra.proof.parts import KEPT, ROOT, Figures, Part

REASONS = Path(__file__).with_name("equivalent_mutants.toml")
SURVIVED, EQUIVALENT, NOT_TRIED = "survived", "equivalent", "not tried"
FATES = {None: NOT_TRIED, 0: SURVIVED, 1: "killed", 3: "killed", 5: "not reached"}
FATES |= {33: "not reached", 2: NOT_TRIED}
"""Fates by the exit code of the tests. All others are signals of a time limit."""
Outcome = dict[str, Any]
"""A mutant and its fate, as JSON."""
DOMAINS = "chalicelib/domains"


class Suite(NamedTuple):
    """Modules to change, as patterns, and the tests that are to find it."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def _rules(*domains: str, more: Iterable[str] = ()) -> Suite:
    """Return the suite of the rules of domains, with more tests than theirs.

    The rules of a domain are a module or a folder of modules.
    """
    rules = [f"{DOMAINS}/{domain}/rules" for domain in domains]
    modules = tuple(f"{rule}/**/*.py" if (ROOT / rule).is_dir() else f"{rule}.py" for rule in rules)
    return Suite(modules, (*(f"tests/domains/{domain}" for domain in domains), *more))


def _engine(*names: str) -> tuple[str, ...]:
    return tuple(f"chalicelib/engine/{name}.py" for name in names)


SUITES = {
    "bookings": _rules(
        *("bookings", "services"),
        more=[
            "tests/transports/public/book*",
            *(f"tests/domains/payments/test_{name}.py" for name in ("late_money", "paying")),
        ],
    ),
    "billing": Suite(
        (
            f"{DOMAINS}/billing/rules/*.py",
            f"{DOMAINS}/billing/flows/charging.py",
            f"{DOMAINS}/billing/flows/funds.py",
        ),
        (
            *(
                "tests/domains/billing",
                "tests/domains/chat",
                "tests/domains/events/test_owner_*.py",
            ),
            "tests/transports/chat/endpoint/test_s*.py",
        ),
    ),
    "payments": Suite(
        (f"{DOMAINS}/payments/rules/*.py", f"{DOMAINS}/payments/flows/*.py"),
        ("tests/domains/payments",),
    ),
    "engine": Suite(
        _engine(
            *("unit", "transactions", "conditional_updates", "idempotency", "claims"),
            *("locks", "limits"),
        ),
        (
            *("tests/engine/test_*.py", "tests/engine/faults", "tests/application"),
            *("tests/domains/files/test_file_uses.py", "tests/domains/client*/test_*.py"),
            "tests/domains/sites/test_restoring.py",
        ),
    ),
    "access": Suite(
        (
            "chalicelib/application/invoke.py",
            "chalicelib/core/idempotency_keys.py",
            "chalicelib/core/principals.py",
            "chalicelib/core/scopes.py",
        ),
        (
            *("tests/application", "tests/contract/test_audiences.py", "tests/core/test_*.py"),
            *("tests/domains/identity/test_keys.py", "tests/transports/test_http.py"),
            *(
                "tests/contract/test_order_of_checks.py",
                "tests/transports/mcp_dispatch/test_mcp_d*.py",
            ),
            "tests/engine/faults/test_faults.py",
            "tests/domains/sites/page_import/test_import_failures.py",
        ),
    ),
    "oauth": _rules("oauth", "identity", more=["tests/transports/oauth"]),
    "sites": _rules("sites"),
    "files": Suite(
        (f"{DOMAINS}/files/rules/*.py", f"{DOMAINS}/catalog/rules/*.py"),
        ("tests/domains/files", "tests/domains/catalog"),
    ),
    "leads": _rules("leads", more=["tests/transports/public/forms"]),
    "chat": _rules("chat", "bots", more=["tests/transports/chat/endpoint", "tests/gateways/llm"]),
    "messages": _rules("mails", "notifications", "webhooks", "knowledge"),
    "schedule": _rules(
        *("schedule", "waiting", "reports", "booking_page"),
        more=[
            "tests/transports/public/test_public_reading.py",
            "tests/transports/public/booking_page/test_assistants*.py",
            "tests/domains/notifications/test_book_again.py",
        ],
    ),
    "tables": _rules(
        *("imports", "exports"),
        more=[
            "tests/infra/operator/test_product_*.py",
            "tests/transports/console/test_import_pages.py",
        ],
    ),
}
IN_CI = {
    "short": Suite(
        (
            f"{DOMAINS}/billing/rules/*.py",
            f"{DOMAINS}/bookings/rules/*.py",
            f"{DOMAINS}/services/rules/*.py",
            f"{DOMAINS}/identity/rules/token_pairs.py",
        ),
        (
            *(f"tests/domains/billing/test_{name}.py" for name in ("pricing", "spending_windows")),
            *(
                f"tests/domains/bookings/test_{name}.py"
                for name in ("booking_tokens", "calendar_files")
            ),
            "tests/domains/services/test_open_windows.py",
            "tests/domains/bookings/slots",
            "tests/domains/identity/test_token_pairs.py",
        ),
    )
}
"""A suite of rules whose tests need no database."""
SHORT = 5.0
"""Minutes below which only this suite runs."""
LOOK_SECONDS = 0.5
NOT_COPIED = frozenset({"chalicelib", "pyproject.toml", "build"})
"""Names in the project's folder that mutmut makes itself, or must not see."""
PYTEST = [
    *("-p", "no:randomly", "-o", "timeout=0", "--assert=plain", "-W", "ignore"),
    # The first counts executed lines, and the second reads the code. mutmut adds to both.
    (
        "--deselect=tests/domains/chat/test_links.py::"
        "test_a_possible_link_is_not_scanned_again_with_each_piece"
    ),
    (
        "--deselect=tests/domains/imports/test_imports.py::"
        "test_each_reason_has_a_sentence_with_its_facts_and_no_sentence_is_unused"
    ),
]


def run(minutes: float) -> Figures:
    """Run the mutants. In the short form, fail if a test misses one without a reason.

    Time is divided by the size of the modules. A suite that has not begun when it is over is left
    out. The next run continues, unless the code or the tests have changed. The first run of a suite
    takes some minutes to record which test executes what.
    """
    until = time.time() + minutes * 60
    suites = IN_CI if minutes < SHORT else SUITES
    sizes = {
        name: sum((ROOT / path).stat().st_size for path in _paths(suite.modules))
        for name, suite in suites.items()
    }
    outcomes: list[Outcome] = []
    for name, suite in suites.items():
        if time.time() > until:
            break
        share = (until - time.time()) * sizes[name] / sum(sizes.values())
        outcomes += _outcomes(name, suite, time.time() + share)
        del sizes[name]
    figures = _figures(outcomes)
    if suites is IN_CI and figures[SURVIVED]:
        raise AssertionError("No test finds these changes:\n" + "\n".join(figures[SURVIVED]))
    return figures


def _outcomes(name: str, suite: Suite, until: float) -> list[Outcome]:
    """Let mutmut run until a time, and return what became of each mutant.

    It is not interrupted while it records which test executes what.

    Raises:
        RuntimeError: mutmut ended otherwise than by the time.
    """
    folder = _prepare(KEPT / "mutations" / name, suite)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.proof.mutators", "run"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_PROFILE": "mutations"},
            stdout=log,
            stderr=log,
        )
        while process.poll() is None:
            time.sleep(LOOK_SECONDS)
            if time.time() > until and (folder / "mutants" / "mutmut-stats.json").exists():
                # mutmut stores each result immediately, so an interrupted run continues where it
                # ended.
                process.send_signal(signal.SIGINT)
                process.wait()
                break
        else:
            if process.returncode:
                raise RuntimeError((folder / "log").read_text()[-4000:])
    return [
        outcome for path in _paths(suite.modules) for outcome in _read(folder / "mutants", path)
    ]


def _prepare(folder: Path, suite: Suite) -> Path:
    """Return the folder of a suite, with its configuration and links to this folder's files."""
    code = [*ROOT.glob("chalicelib/**/*.py"), *ROOT.glob("tests/**/*.py"), Path(__file__)]
    code.append(Path(__file__).with_name("mutators.py"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(code))).hexdigest()
    if (folder / "state").exists() and (folder / "state").read_text() == state:
        return folder
    # Results of other code or tests would count as results of this code.
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "mutants").mkdir(parents=True)
    (folder / "chalicelib").symlink_to(ROOT / "chalicelib")
    for path in ROOT.iterdir():
        if path.name not in NOT_COPIED:
            (folder / "mutants" / path.name).symlink_to(path)
    options = {
        "only_mutate": _paths(suite.modules),
        "pytest_add_cli_args": PYTEST,
        "pytest_add_cli_args_test_selection": _paths(suite.tests),
        "timeout_multiplier": 5.0,  # the limit is twice this number of the usual time
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    before_section, section, after_section = (
        (ROOT / "pyproject.toml").read_text().partition("[tool.mutmut]\n")
    )
    (folder / "pyproject.toml").write_text(
        "\n".join([before_section + section.strip(), *lines, after_section])
    )
    (folder / "state").write_text(state)
    return folder


def _read(mutants: Path, path: str) -> Iterator[Outcome]:
    """Yield the mutants of a module from mutmut's files.

    A change is named by the lines of the function before and after the change. Equal changes in one
    function are numbered, so that each has a name of its own.
    """
    file = mutants / path
    if not Path(f"{file}.meta").exists():
        return
    lines = file.read_text().splitlines()
    spans = json.loads(Path(f"{file}.spans").read_text())["spans"]
    equivalent_changes, seen = equivalents(), Counter[tuple[str, str]]()
    codes = json.loads(Path(f"{file}.meta").read_text())["exit_code_by_key"]
    for key, code in codes.items():
        name = key.rpartition(".")[2]
        original = name.rpartition("__mutmut_")[0] + "__mutmut_orig"
        function = original.removesuffix("__mutmut_orig")[2:].replace("ǁ", ".")
        old_source, new_source = (
            [line.strip().replace(f"def {function}(", "def (") for line in lines[start - 1 : end]]
            for function in (original, name)
            for start, end in [spans[function]]
        )
        diff = [*difflib.ndiff(old_source, new_source)]
        sides = (" ".join(line[2:] for line in diff if line[0] == sign) for sign in "-+")
        change = " → ".join(sides)
        seen[function, change] += 1
        if seen[function, change] > 1:
            # equivalent_mutants.toml names a change by this string, so it must be unique in the
            # function.
            change += f" (no. {seen[function, change]})"
        outcome = {"module": path, "function": function, "change": change}
        outcome["outcome"] = FATES.get(code, "timed out")
        if outcome["outcome"] == SURVIVED and (path, function, change) in equivalent_changes:
            outcome["outcome"] = EQUIVALENT
        yield outcome


def _paths(patterns: Iterable[str]) -> list[str]:
    paths = (path for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    return [str(path.relative_to(ROOT)) for path in paths if path.name != "__init__.py"]


def equivalents() -> set[tuple[str, str, str]]:
    """Return the mutants that change nothing, by module, function and change."""
    declared = tomllib.loads(REASONS.read_text())["equivalent"]
    return {
        (declaration["module"], declaration["function"], change)
        for declaration in declared
        for change in declaration["changes"]
    }


def _figures(outcomes: Iterable[Outcome]) -> Figures:
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    survived, unreached = list[str](), set[str]()
    for mutant in outcomes:
        outcome, place = mutant["outcome"], f"{mutant['module']} {mutant['function']}"
        modules[mutant["module"]].update({"made": 1, "tried": outcome != NOT_TRIED, outcome: 1})
        if outcome == SURVIVED:
            survived.append(f"{place}: {mutant['change']}")
        elif outcome == "not reached":
            unreached.add(place)
    total: Counter[str] = sum(modules.values(), Counter())
    return {
        **{path: dict(counts) for path, counts in modules.items()},
        "all": dict(total),
        SURVIVED: survived,
        "not reached": sorted(unreached),
    }


PART = Part(
    name="mutations",
    minutes=12,
    minutes_in_ci=4,
    run=run,
)
