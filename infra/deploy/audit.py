"""Ask for known vulnerabilities of everything that ``constraints.txt`` pins: ``make audit``.

pip-audit, with two of its answers told from each other: it fails alike when it finds something and
when it cannot ask, and finds nothing where a package mirror knows no advisories.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).parents[2] / "constraints.txt"
UNREACHABLE = re.compile(r"requests\.exceptions\.|ServiceError|vulnerability feed|not redirecting")
"""What pip-audit ends with when the advisory service does not answer, or not as it should."""


def report(printed: str, errors: str) -> tuple[bool, str]:
    """Return whether pip-audit's output lets a build pass, and what it says in a few words."""
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
    found = [
        f"{package['name']} {package['version']}: {fault['id']}"
        f" (fixed in: {', '.join(fault['fix_versions']) or 'no version'})"
        for package in packages
        for fault in package.get("vulns", ())
    ]
    audited = f"Audited {len(packages) - len(unknown)} packages"
    if unknown:
        audited += f" (not {', '.join(unknown)}, which the advisory service does not know)"
    return not found, "\n- ".join([f"{audited}, known vulnerabilities: {len(found)}", *found])


def main() -> None:
    """Exit with 1 if anything pinned has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINS), "--no-deps"]
    options = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, *options], check=False, capture_output=True, text=True)
    passes, words = report(done.stdout, done.stderr)
    print(words)
    sys.exit(not passes)


if __name__ == "__main__":
    main()
