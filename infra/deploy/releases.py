"""Releases: the code of each deployment, stored for rollbacks.

A release is the zip and the copy of the project from which Chalice deployed it. Routes, schedules
and policies therefore match the code. Secrets and addresses are not part of a release; they are
looked up again.
"""

import shutil
import subprocess
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from chalicelib.core import clock
from infra.deploy.aws.store import Store
from infra.deploy.package.build import ROOT, Package
from infra.deploy.stacks.data import RELEASES, STATE
from infra.deploy.stage_config import StageFacts

CURRENT = f"{STATE}current.json"
KEPT = 20
"""Number of releases. Deleted ones can be restored while the bucket keeps old versions."""
CONFIG = Path(".chalice", "config.json")
DEPLOYMENTS = Path(".chalice", "deployments")
PACKAGER = "requirements-packager.txt"
"""The requirements including Chalice, whose version is part of the name of its cached zip."""


@dataclass(frozen=True, slots=True)
class Source:
    """The deployed commit, and whether the checkout has uncommitted changes."""

    commit: str
    dirty: bool

    @classmethod
    def of(cls, root: Path = ROOT) -> "Source":
        """Return the commit of a checkout.

        Raises:
            click.ClickException: it is not a git checkout, or has no commit.
        """
        try:
            commit = _git(root, "rev-parse", "--short=12", "HEAD")
            return cls(commit, bool(_git(root, "status", "--porcelain")))
        except (OSError, subprocess.CalledProcessError) as error:
            msg = f"{root} is no git checkout with a commit, and a release is named by its commit."
            raise click.ClickException(msg) from error


def _git(root: Path, *arguments: str) -> str:
    command = ("git", "-C", str(root), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True, slots=True)
class Release:
    """The record of a release; ``package`` is Chalice's name of its zip."""

    id: str
    commit: str
    dirty: bool
    at: str
    by: str
    python: str
    package: str
    table_prefix: str = StageFacts().table_prefix
    """Prefix of the tables that its policies allow."""

    @property
    def version(self) -> tuple[int, int]:
        """The Python version of its zip."""
        major, minor = self.python.split(".")
        return int(major), int(minor)

    @property
    def folder(self) -> str:
        """Prefix of its objects."""
        return f"{RELEASES}{self.id}/"


def keep(
    store: Store, made: Package, source: Source, table_prefix: str, root: Path = ROOT
) -> Release:
    """Store a package in the bucket as a release, before any function runs it."""
    at = clock.now()
    mark = "-dirty" if source.dirty else ""
    # Chalice caches one zip for each runtime.
    (cached,) = (made.project / DEPLOYMENTS).glob("*.zip")
    release = Release(
        id=f"{at:%Y%m%dT%H%M%SZ}-{source.commit}{mark}",
        commit=source.commit,
        dirty=source.dirty,
        at=at.isoformat(timespec="seconds"),
        by=store.account.user,
        python="{}.{}".format(*made.python.version),
        package=cached.name,
        table_prefix=table_prefix,
    )
    archive = made.project.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(made.project.rglob("*")):
            name = path.relative_to(made.project)
            if path.is_file() and name != CONFIG and DEPLOYMENTS not in name.parents:
                tar.add(path, str(name))
        tar.add(root / CONFIG, str(CONFIG))
        tar.add(root / "requirements.txt", PACKAGER)
    store.upload(f"{release.folder}project.tar.gz", archive)
    store.upload(f"{release.folder}deployment.zip", made.zip)
    # Written last: without this file, a release does not exist.
    store.put_json(f"{release.folder}release.json", asdict(release))
    return release


def unpack(store: Store, release: Release, project: Path) -> Path:
    """Recreate a release's copy of the project, so that Chalice deploys its zip; return the zip."""
    shutil.rmtree(project, ignore_errors=True)
    archive = project.with_suffix(".tar.gz")
    store.download(f"{release.folder}project.tar.gz", archive)
    with tarfile.open(archive) as tar:
        tar.extractall(project, filter="data")
    package = project / DEPLOYMENTS / release.package
    store.download(f"{release.folder}deployment.zip", package)
    return package


def find(store: Store, name: str) -> Release:
    """Return the release with this id, or the only one whose commit begins with the name.

    Raises:
        click.ClickException: no release matches, or several do.
    """
    found = [each for each in listed(store) if name == each.id or each.commit.startswith(name)]
    if len(found) == 1:
        return found[0]
    fault = "Several releases are" if found else "No release is"
    ids = ", ".join(each.id for each in found) or "python -m infra releases lists all there are"
    msg = f'{fault} "{name}": {ids}.'
    raise click.ClickException(msg)


def previous(store: Store) -> Release:
    """Return the newest release that is older than the current one.

    If a deployment was interrupted, two releases may be in use. The older one is returned.

    Raises:
        click.ClickException: there is none.
    """
    known, found = listed(store), _current(store)
    running = found.get("release")
    ids = [release.id for release in known]
    if running in ids and (other := found.get("deploying")) in ids:
        return known[max(ids.index(running), ids.index(other))]
    older = known[ids.index(running) + 1 :] if running in ids else []
    if not older:
        raise click.ClickException("There is no release before the one that runs.")
    return older[0]


def listed(store: Store) -> list[Release]:
    """Return the stored releases, newest first."""
    found = (
        store.get_record(f"{RELEASES}{folder}/release.json", Release)
        for folder in store.folders(RELEASES)
    )
    return sorted(filter(None, found), key=lambda release: release.at, reverse=True)


def set_deploying(store: Store, release: Release) -> None:
    """Record that functions are changing to a release. Until that ends, each may run either one."""
    store.put_json(CURRENT, {"release": None, **_current(store), "deploying": release.id})


def set_current(store: Store, release: Release) -> None:
    """Record the release that all functions run."""
    at = clock.now().isoformat(timespec="seconds")
    store.put_json(CURRENT, {"release": release.id, "at": at, "by": store.account.user})


def current(store: Store) -> str | None:
    """Return the id of the current release; None before the first deployment."""
    running: str | None = _current(store).get("release")
    return running


def _current(store: Store) -> dict[str, str | None]:
    return store.get_json(CURRENT) or {}


def prune(store: Store) -> None:
    """Delete all but the newest releases. The current release always stays."""
    running = current(store)
    for release in listed(store)[KEPT:]:
        if release.id != running:
            for name in ("release.json", "project.tar.gz", "deployment.zip"):
                store.delete(release.folder + name)
