"""Hostile inputs against every entry of the service: how many, where, and what came of them.

The inputs and what must not happen are tests of the suite. This part runs them by kind and counts
them, so a kind that lost its inputs is seen.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from infra.proof.parts import ROOT, Figures, Part

WHOLE: tuple[str, ...] = ("",)
"""All tests of a file."""


@dataclass(frozen=True)
class Attack:
    """Inputs of one kind, and the tests that send them, by file.

    ``least`` is the number of cases below which the part fails.
    """

    kind: str
    inputs: str
    entries: str
    tests: Mapping[str, Sequence[str]]
    least: int

    @property
    def words(self) -> list[str]:
        """The words of the command that repeats the attack."""
        chosen = [
            f"tests/{file}::{name}" if name else f"tests/{file}"
            for file, names in self.tests.items()
            for name in names
        ]
        return ["python", "-m", "pytest", "-q", *chosen]


ATTACKS = (
    Attack(
        "Internal addresses (SSRF)",
        "notations of loopback, private and metadata addresses, names that resolve to them, odd "
        "ports, user names in URLs, URLs that parsers read differently, and a name whose second "
        "look-up differs",
        "the fetcher, each redirect of it, webhooks, the import of pages",
        {
            "gateways/test_fetch.py": ("TestHostileUrls", "TestResolving", "TestRedirects"),
            "gateways/test_post.py": ("TestRequest",),
            "domains/sites/page_import/test_page_import.py": (
                "TestPage::test_a_url_of_an_internal_address_is_400",
            ),
        },
        680,
    ),
    Attack(
        "Scripts in texts (XSS)",
        "the Big List of Naughty Strings in every place of Markdown, and names with markup and "
        "template expressions",
        "Markdown of the blog and of answers, every page of the console, the reference's search, "
        "the booking page",
        {
            "lib/test_markdown.py": WHOLE,
            "transports/console/test_console_pages.py": ("TestPages",),
            "transports/api_docs/test_reference_pages.py": ("TestSearch",),
            "transports/public/booking_page/test_booking_steps.py": (
                "test_hostile_names_are_shown_as_text",
            ),
        },
        400,
    ),
    Attack(
        "Instructions to a model",
        "50 texts that order calls, forge frames, print links or hide text, before a model that "
        "obeys all of them; each case has all texts in one place",
        "what a bot reads: products, services, pages, sources, messages",
        {"transports/chat/endpoint/test_injections.py": WHOLE},
        8,
    ),
    Attack(
        "Headers and formulas",
        "line breaks in names, subjects, addresses and redirects; cells that begin like a formula",
        "mails, exported leads and products",
        {
            "gateways/mail/test_message.py": WHOLE,
            "infra/operator/test_product_export.py": (
                "test_no_cell_of_a_caller_begins_like_a_formula",
            ),
            "transports/console/forms/test_leads.py": (
                "TestExport::test_no_cell_begins_like_a_formula",
            ),
        },
        34,
    ),
    Attack(
        "Redirect URIs of apps",
        "schemes, hosts and user names that could give an authorization code away",
        "registration and requests of OAuth clients",
        {"domains/oauth/test_redirect_uris.py": WHOLE},
        44,
    ),
    Attack(
        "Ids of another workspace",
        "one record of every type, a key, a session and an invitation of another workspace",
        "every operation of keys and sessions that takes an id, every list, every page",
        {
            "contract/test_access.py": (
                "test_another_workspaces_ids_are_answered_like_unknown_ids",
                "test_lists_show_nothing_of_another_workspace",
            ),
            "contract/test_session_access.py": (
                "test_ids_of_another_workspace_fail_like_unknown_ids",
                "test_operations_without_ids_neither_return_nor_change_data_of_another_workspace",
            ),
            "transports/console/test_console_pages.py": (
                "TestAccess::test_a_strangers_workspace_looks_like_an_unknown_one",
            ),
        },
        280,
    ),
    Attack(
        "Calls without access",
        "no key, a wrong key, other scopes and roles, a membership that has ended",
        "every operation of keys, every page and form of the console",
        {
            "contract/test_access.py": (
                "test_calls_without_a_valid_key_are_401",
                "test_a_scope_admits_exactly_the_operations_that_require_it",
            ),
            "transports/console/test_console_pages.py": ("TestAccess",),
        },
        600,
    ),
    Attack(
        "Malformed requests",
        "odd bytes, encodings, lengths, ids, paths and queries",
        "every kind of route",
        {"transports/test_malformed_http.py": WHOLE, "transports/test_odd_values.py": WHOLE},
        480,
    ),
)


class WeakAttackError(Exception):
    """An attack succeeded, or has lost inputs."""


def run(minutes: float) -> Figures:
    """Run the attacks one after another, as many as fit in the time.

    Raises:
        WeakAttackError: a test failed, or an attack has fewer cases than it should have.
    """
    end = time.monotonic() + minutes * 60
    found = []
    for attack in ATTACKS:
        left = end - time.monotonic()
        cases, failures = _run(attack, left) if left > 0 else (0, 0)
        if failures or 0 < cases < attack.least:
            msg = f"{attack.kind}: {failures} of {cases} failed; expected at least {attack.least}"
            raise WeakAttackError(msg)
        found.append({"kind": attack.kind, "cases": cases, "failures": failures})
    return {"attacks": found}


def _run(attack: Attack, seconds: float) -> tuple[int, int]:
    """Return the numbers of cases and of failures; 0 cases if the time was up."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, *attack.words[1:], f"--junitxml={report}"]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return 0, 0
        if not report.exists():
            raise WeakAttackError(done.stdout + done.stderr)
        suite = ET.parse(report).getroot()[0]  # noqa: S314  pytest has written it
    broken = sum(int(suite.get(name, 0)) for name in ("failures", "errors"))
    return int(suite.get("tests", 0)), broken


PROMISE = """\
Hostile inputs change nothing, reveal nothing and reach no internal host.
[threat-model.md](threat-model.md) names what is protected. A case is an input at an entry, or a
random search for one. A case that succeeds fails this part.
"""


def section(figures: Figures) -> str:
    """Return the figures as Markdown."""
    cases = {each["kind"]: each["cases"] for each in figures["attacks"]}
    lines = [
        PROMISE,
        "| attack | inputs | entries | cases | succeeded |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.kind} | {each.inputs} | {each.entries} | {cases[each.kind]} | 0 |"
        for each in ATTACKS
        if cases[each.kind]
    ]
    commands = (shlex.join(each.words) for each in ATTACKS if cases[each.kind])
    return "\n".join([*lines, "\n```", *commands, "```"])


PART = Part(
    name="security",
    title="Hostile inputs",
    minutes=8,
    minutes_in_ci=0,
    run=run,
    section=section,
)
