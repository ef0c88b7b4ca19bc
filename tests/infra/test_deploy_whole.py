"""The real application, deployed whole by Chalice on moto's server, from clones of this checkout."""

import base64
import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra import package
from infra.deploy import chalice_state, gateway, releases
from infra.deploy.deployment import Wanted
from infra.deploy.destruction import destroy
from tests.fakes import lambda_runtime_api
from tests.infra.conftest import Aws, connected, moto

pytestmark = [pytest.mark.package, pytest.mark.timeout(900)]
FUNCTIONS = ("workspace-api-dev", "workspace-api-dev-run-jobs", "workspace-api-dev-chat-stream")


def clone(folder: Path) -> Path:
    """Clone this checkout as it stands, with what is in no commit yet; return the clone."""

    def git(*arguments: str, at: Path) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=at, check=True, capture_output=True, text=True
        )
        return done.stdout

    git("clone", "-q", str(package.ROOT), str(folder), at=package.ROOT)
    changed = git("ls-files", "-z", "--modified", "--others", "--exclude-standard", at=package.ROOT)
    for name in filter(None, changed.split("\0")):
        if (package.ROOT / name).is_file() and not (package.ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(package.ROOT / name, folder / name)
    git("add", "--all", at=folder)
    git("commit", "-q", "--allow-empty", "-m", "As it stands", at=folder)
    return folder


@dataclass
class Story:
    """What came of deploying twice from one clone, and once from another."""

    aws: Aws
    clones: tuple[Path, Path]
    results: list[dict[str, Any]]
    said: list[list[str]]
    apis: list[list[str]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with moto() as address, pytest.MonkeyPatch.context() as patch:
        aws = connected(address, patch)
        clones = (
            clone(tmp_path_factory.mktemp("a") / "x"),
            clone(tmp_path_factory.mktemp("b") / "x"),
        )
        story = Story(aws, clones, [], [], [])
        for root in (clones[0], clones[0], clones[1]):
            aws.said.clear()
            story.results.append(aws.deployment(root).deploy(Wanted("dev")))
            story.said.append(list(aws.said))
            story.apis.append(aws.apis())
        yield story


def test_two_machines_deploy_one_api(story: Story) -> None:
    print("\n".join(story.said[0]))
    print("\n".join(story.said[1]))
    print("\n".join(story.said[2]))
    assert story.apis[0] == story.apis[1] == story.apis[2]
    assert len(story.apis[0]) == 1
