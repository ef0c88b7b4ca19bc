"""Store the code of each deployment, so that a rollback can deploy it again.

A release is an archive of the copy of the project from which Chalice deployed it, with its zip.
Routes, schedules and policies therefore match the code. Secrets and addresses are not part of a
release; they are looked up again.

All releases are versions of one object. The newest version is the current release. S3 keeps the
others for 35 days after they were replaced (``stacks.data``).
"""

import shutil
import subprocess
import tarfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import click

from chalicelib.core import clock
from infra.deploy.aws.store import Store
from infra.deploy.package.build import ROOT, Package
from infra.deploy.stage_config import StageFacts

KEY = "releases/release.tar.gz"
CONFIG = Path(".chalice", "config.json")
PACKAGER = "requirements-packager.txt"
"""The requirements including Chalice, whose version is part of the name of its cached zip."""


@dataclass(frozen=True, slots=True)
class Source:
    """The deployed commit, and whether the checkout has uncommitted changes."""

    commit: str
    dirty: bool

    @classmethod
    def from_checkout(cls, root: Path = ROOT) -> "Source":
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
    """The record of a release, which is the metadata of its object.

    Names of metadata have no underscores, because servers treat them as hyphens.
    """

    id: str
    commit: str
    by: str
    python: str
    tables: str = StageFacts().table_prefix
    """Prefix of the tables that its policies allow."""
    version: str = ""
    """The version of the object, which S3 assigns."""

    @property
    def python_version(self) -> tuple[int, int]:
        """The Python version of its zip."""
        major, minor = self.python.split(".")
        return int(major), int(minor)


def keep(store: Store, package: Package, source: Source, tables: str, root: Path = ROOT) -> Release:
    """Store a package in the bucket as a release, before any function runs it."""
    mark = "-dirty" if source.dirty else ""
    release = Release(
        id=f"{clock.now():%Y%m%dT%H%M%SZ}-{source.commit}{mark}",
        commit=source.commit,
        by=store.account.user,
        python="{}.{}".format(*package.python.version),
        tables=tables,
    )
    archive = package.project.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(package.project.rglob("*")):
            name = path.relative_to(package.project)
            if path.is_file() and name != CONFIG and name.parts[:2] != (".chalice", "deployed"):
                tar.add(path, str(name))
        tar.add(root / CONFIG, str(CONFIG))
        tar.add(root / "requirements.txt", PACKAGER)
    store.upload(KEY, archive, asdict(release))
    return release


def unpack(store: Store, release: Release, project: Path) -> None:
    """Recreate a release's copy of the project, so that Chalice deploys its zip."""
    shutil.rmtree(project, ignore_errors=True)
    project.parent.mkdir(parents=True, exist_ok=True)
    archive = project.with_suffix(".tar.gz")
    store.download(KEY, version=release.version, path=archive)
    with tarfile.open(archive) as tar:
        # The filter refuses paths outside the folder (PEP 706), even if the archive was replaced.
        tar.extractall(project, filter="data")


def list_releases(store: Store) -> list[Release]:
    """Return the stored releases: first the current one, then the others, newest first.

    After a rollback, a release has two versions.
    """
    field_names = {field.name for field in fields(Release)}
    stored_releases = [
        Release(
            **{k: v for k, v in version.metadata.items() if k in field_names}
            | {"version": version.id}
        )
        for version in store.versions(KEY)
    ]
    current = stored_releases[:1]
    ids = {release.id: release for release in stored_releases}
    others = sorted(ids.values(), key=lambda release: release.id, reverse=True)
    return current + [release for release in others if release.id != stored_releases[0].id]


def find(store: Store, name: str) -> Release:
    """Return the release with this id, or the only one whose commit begins with the name.

    Raises:
        click.ClickException: no release matches, or several do.
    """
    matches = [
        release
        for release in list_releases(store)
        if name == release.id or release.commit.startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    fault = "Several releases are" if matches else "No release is"
    ids = (
        ", ".join(release.id for release in matches)
        or "python -m infra releases lists all there are"
    )
    msg = f'{fault} "{name}": {ids}.'
    raise click.ClickException(msg)


def previous(store: Store) -> Release:
    """Return the newest release that is older than the current one.

    The current one may be of a deployment that was interrupted before the functions had it.

    Raises:
        click.ClickException: no such release is stored.
    """
    stored_releases = list_releases(store)
    # Ids begin with the time of the release, so they can be compared.
    older = [release for release in stored_releases[1:] if release.id < stored_releases[0].id]
    if not older:
        raise click.ClickException("There is no release before the one that runs.")
    return older[0]


def promote(store: Store, release: Release) -> None:
    """Record that the functions run a release again."""
    store.promote(KEY, version=release.version)
