"""Checks every package in ``constraints.txt`` for known vulnerabilities: ``make audit``.

pip-audit exits with the same status for a vulnerability and for an unreachable service. It also
reports no vulnerability if a package mirror has no advisories. This module distinguishes these
cases.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).parents[2] / "constraints.txt"
UNREACHABLE = re.compile(r"requests\.exceptions\.|ServiceError|vulnerability feed|not redirecting")
"""Errors of pip-audit when the advisory service is unreachable or its response is not usable."""


def report(printed: str, *, errors: str) -> tuple[bool, str]:
    """Return whether pip-audit's output lets a build pass, with a short message."""
    try:
        packages = json.loads(printed)["dependencies"]
    except ValueError:
        last = (errors.strip().splitlines() or ["it said nothing"])[-1]
        if UNREACHABLE.search(errors):
            return True, f"NOT AUDITED: the advisory service cannot be reached from here ({last})"
        return False, f"pip-audit failed:\n{errors}"
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return True, "NOT AUDITED: what answers for the advisory service here knows no package"
    findings = [
        f"{package['name']} {package['version']}: {fault['id']}"
        f" (fixed in: {', '.join(fault['fix_versions']) or 'no version'})"
        for package in packages
        for fault in package.get("vulns", ())
    ]
    audited = f"Audited {len(packages) - len(unknown)} packages"
    if unknown:
        audited += f" (not {', '.join(unknown)}, which the advisory service does not know)"
    return not findings, "\n- ".join(
        [f"{audited}, known vulnerabilities: {len(findings)}", *findings]
    )


def main() -> None:
    """Exit with 1 if a pinned package has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINS), "--no-deps"]
    options = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    process = subprocess.run([*command, *options], check=False, capture_output=True, text=True)
    passes, words = report(process.stdout, errors=process.stderr)
    print(words)
    sys.exit(not passes)


if __name__ == "__main__":
    main()
