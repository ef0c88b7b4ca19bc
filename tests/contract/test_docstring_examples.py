"""The examples in docstrings are run, so that each shows what the code does."""

import doctest
import subprocess
from importlib import import_module
from pathlib import Path

from tests.support.sweep import sweep

ROOT = Path(__file__).parents[2]
MODULES = [
    name.removesuffix(".py").replace("/", ".")
    for name in subprocess.run(
        ["git", "ls-files", "chalicelib/*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    if ">>> " in (ROOT / name).read_text()
]


@sweep("module", MODULES)
def test_an_example_in_a_docstring_is_correct(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed
