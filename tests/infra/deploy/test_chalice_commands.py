"""Plain Chalice commands in a checkout that was not configured."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.deploy.package.build import ROOT
from infra.local.autoreload import SOURCES

CHALICE = str(Path(sys.executable).with_name("chalice"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout's sources."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        target = folder / name
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, target)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("deploy",),
        ("deploy", "--stage", "prod", "--profile", "theirs"),
        ("package", "out"),
        ("--debug", "package", "--stage", "local", "--single-file", "out.zip"),
    ],
)
def test_a_stage_that_is_not_configured_is_refused_in_one_sentence(
    checkout: Path, arguments: tuple[str, ...]
) -> None:
    words = [*arguments, "dev"]
    stage = words[words.index("--stage") + 1] if "--stage" in words else "dev"
    command = "deploy" if "deploy" in words else "package"
    process = subprocess.run(
        [CHALICE, *arguments], cwd=checkout, check=False, capture_output=True, text=True
    )
    assert process.returncode == 1
    (message,) = [line for line in process.stderr.splitlines() if "[DEBUG]" not in line]
    assert message == (
        f"The stage {stage} is not configured in this checkout. Run python -m infra configure "
        f"--stage {stage}, then chalice {command} again."
    )
    assert process.stdout == ""
