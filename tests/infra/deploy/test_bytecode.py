"""The compiled modules of the zip."""

import importlib.util
import subprocess
import sys
from importlib.machinery import SourcelessFileLoader
from pathlib import Path

from infra.deploy.package import bytecode

SHARING = """
def one(scheme):
    return scheme in {"http", "https"}
def other(scheme):
    return scheme in {"http", "https"}, ("a", "b"), ("a", "b")
"""


def compiled(folder: Path) -> Path:
    subprocess.run([sys.executable, "-P", bytecode.__file__, folder, "/var/task"], check=True)
    return Path(importlib.util.cache_from_source(str(folder / "schemes.py")))


def test_shared_constants_are_stored_as_if_they_were_not_shared(tmp_path: Path) -> None:
    """Python shares equal sets in some runs and not in others."""
    folders = tmp_path / "shared", tmp_path / "apart"
    for folder in folders:
        folder.mkdir()
        (folder / "schemes.py").write_text(SHARING)
    shared, again = (compiled(folder).read_bytes() for folder in folders)
    assert shared == again
    assert shared.count(b"https") == 1  # strings are
    assert shared.count(b">\x02\x00\x00\x00") == 2  # sets of two are not


def test_a_compiled_module_runs_without_its_source(tmp_path: Path) -> None:
    (tmp_path / "schemes.py").write_text(SHARING)
    (tmp_path / "broken.py").write_text("def (")
    pyc = compiled(tmp_path)
    (tmp_path / "schemes.py").unlink()
    loader = SourcelessFileLoader("schemes", str(pyc))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("schemes", loader)  # type: ignore[arg-type]  found
    )
    loader.exec_module(module)
    assert module.one("http")
    assert module.one.__code__.co_filename == "/var/task/schemes.py"
    assert not (tmp_path / "__pycache__" / pyc.name.replace("schemes", "broken")).exists()
