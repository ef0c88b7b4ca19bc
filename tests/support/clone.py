"""Clones of this checkout, from which tests deploy."""

import shutil
import subprocess
from pathlib import Path

from infra.deploy.package import build as package


def clone(folder: Path) -> Path:
    """Clone this checkout, commit its uncommitted changes there, and return the clone."""
    git("clone", "-q", str(package.ROOT), str(folder), at=package.ROOT)
    changed_files = git("diff", "--name-only", "-z", "HEAD", at=package.ROOT)
    changed_files += git("ls-files", "-z", "--others", "--exclude-standard", at=package.ROOT)
    for name in filter(None, changed_files.split("\0")):
        source, copy = package.ROOT / name, folder / name
        if not source.exists():
            copy.unlink()
        elif source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)  # with its executable bit
    commit(folder, "As it stands")
    # Installing the packager once more would take a minute and show nothing.
    work = package.ROOT / "build"
    environment = package.environment(
        package.find_python(), work, requirements=package.ROOT / "requirements.txt"
    )
    packager = package.environment_of(environment, work)
    (folder / "build").mkdir()
    (folder / "build" / packager.name).symlink_to(packager)
    return folder


def commit(folder: Path, subject: str) -> None:
    """Commit all changes of a clone."""
    git("add", "--all", at=folder)
    git("commit", "-q", "--allow-empty", "-m", subject, at=folder)


def git(*arguments: str, at: Path) -> str:
    """Run a git command, and return its output."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    process = subprocess.run(
        ["git", *who, *arguments], cwd=at, check=True, capture_output=True, text=True
    )
    return process.stdout
