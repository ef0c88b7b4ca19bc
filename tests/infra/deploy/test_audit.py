"""The dependency audit's verdict for each kind of output of pip-audit."""

import json
from typing import Any

from infra.deploy import audit

SOUND = {"name": "idna", "version": "3.20", "vulns": []}
FAULTY = {
    "name": "jinja2",
    "version": "2.4",
    "vulns": [
        {"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"]},
        {"id": "PYSEC-2027-1", "fix_versions": []},
    ],
}
UNKNOWN = {"name": "ours", "skip_reason": "Dependency not found on PyPI and could not be audited"}


def outcome(*packages: dict[str, Any], errors: str = "") -> tuple[bool, str]:
    return audit.report(json.dumps({"dependencies": packages, "fixes": []}), errors=errors)


def test_audit_passes_without_known_vulnerabilities() -> None:
    assert outcome(SOUND) == (True, "Audited 1 packages, known vulnerabilities: 0")


def test_audit_fails_and_names_vulnerabilities() -> None:
    passes, words = outcome(SOUND, FAULTY, errors="Found 2 known vulnerabilities in 1 package")
    assert not passes
    assert words.splitlines() == [
        "Audited 2 packages, known vulnerabilities: 2",
        "- jinja2 2.4: PYSEC-2014-8 (fixed in: 2.7.2)",
        "- jinja2 2.4: PYSEC-2027-1 (fixed in: no version)",
    ]


def test_audit_names_packages_that_the_service_does_not_know() -> None:
    passes, words = outcome(SOUND, UNKNOWN)
    assert passes
    assert words.startswith("Audited 1 packages (not ours, which")


def test_audit_reports_a_mirror_without_advisories_as_not_audited() -> None:
    passes, words = outcome(UNKNOWN, UNKNOWN, errors="No known vulnerabilities found")
    assert passes
    assert words.startswith("NOT AUDITED")


def test_audit_passes_with_a_notice_if_the_service_is_unreachable() -> None:
    traceback = "Traceback (most recent call last):\nrequests.exceptions.ConnectionError: no route"
    for pip_output in (
        traceback,
        "ERROR: Could not connect to PyPI's vulnerability feed\nERROR: Tip",
    ):
        passes, words = audit.report("", errors=pip_output)
        assert passes
        assert words.startswith("NOT AUDITED: the advisory service cannot be reached from here")
        assert pip_output.splitlines()[-1] in words


def test_audit_fails_if_pip_audit_fails() -> None:
    passes, words = audit.report("", errors="ERROR: requirement foo is not pinned")
    assert not passes
    assert "foo is not pinned" in words
