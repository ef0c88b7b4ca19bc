"""Writes a noun's files and its lines in registers, or nothing if one of them cannot be written."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chalicelib.core.operations import load_all
from infra.local.new_noun.files import new_files
from infra.local.new_noun.noun import Noun, WrongNounError, read_noun
from infra.local.new_noun.registers import changed_files

ROOT = Path(__file__).resolve().parents[3]
NEXT = """\
Next:
1. `make update` records what tests compare with. Then `make quick` and `make check` pass.
2. Add the fields of the {label} to its row, models, form and templates ("A field of a noun").
3. Write the texts at "To do" in {labels} of console.po, changes.po and infra/local/demo.
4. Decide on events, the erasure, tools and the menu ("A noun", in CONTRIBUTING.md)."""


class Written(NamedTuple):
    """The noun, and the paths of the files that were written and changed."""

    noun: Noun
    new: list[str]
    changed: list[str]

    def report(self) -> Iterator[str]:
        yield from (f"written  {path}" for path in self.new)
        yield from (f"changed  {path}" for path in self.changed)
        names = self.noun.names()
        yield NEXT.format(label=names["label"], labels=names["labels"])


def write(name: str, *, plural: str = "", domain: str, root: Path = ROOT) -> Written:
    """Write the skeleton of a noun, or raise WrongNounError before anything is written."""
    load_all()
    noun = read_noun(root, name, plural, domain)
    new, changed = new_files(root, noun), changed_files(root, noun)
    if there := [path for path in new if (root / path).exists()]:
        msg = f'NAME: {", ".join(there)} exist already. Send another name than "{name}".'
        raise WrongNounError(msg)
    for path, content in {**new, **changed}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    _format(root, [path for path in (*new, *changed) if path.endswith(".py")])
    return Written(noun, sorted(new), sorted(changed))


def _format(root: Path, paths: list[str]) -> None:
    # The order of imports and the breaks of lines depend on the length of the name.
    for arguments in (["check", "--select", "I", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--quiet", *paths]
        subprocess.run(command, cwd=root, check=True)
