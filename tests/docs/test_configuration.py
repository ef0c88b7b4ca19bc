"""The tables of docs/configuration.md name every variable, its default and who sets it."""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chalicelib.core import settings
from infra.deploy import stage_config
from infra.deploy.stage_config import StageFacts
from infra.local.stack import LocalStack
from tests.docs.samples import DOCS, ROOT

PAGE = (DOCS / "configuration.md").read_text()
SERVICE, _, LOCAL = PAGE.partition("\n## `make dev`\n")
OF_OTHERS = "### Variables of others"
ELSEWHERE = {"LOG", "STREAM_HANDLER"}
"""Variables of the service that its settings do not have."""
MARKS = {"●": "always", "○": "unless the shell sets it", "": "never"}
ROW = re.compile(r"^\| `([A-Z_]+)`(?: ([●○]))? \| (.+?) \|", re.MULTILINE)


class Variable(NamedTuple):
    set_by_make_dev: str
    default: str


def variables(text: str) -> dict[str, Variable]:
    return {name: Variable(MARKS[mark], default) for name, mark, default in ROW.findall(text)}


DOCUMENTED = variables(SERVICE.partition(OF_OTHERS)[0])


class Recorded(Mapping[str, str]):
    """An empty environment that remembers which variables were asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_each_variable_of_the_settings_is_documented_and_no_other() -> None:
    environment = Recorded()
    settings.read(environment)
    ours = {name for name in environment.names if not name.startswith("AWS_")}
    assert DOCUMENTED.keys() == ours | ELSEWHERE


def test_the_documented_defaults_are_those_of_the_settings() -> None:
    values = dataclasses.asdict(settings.read({}))
    wrong = {
        name: (variable.default, values[name.lower()])
        for name, variable in DOCUMENTED.items()
        if name.lower() in values and not is_default(variable.default, values[name.lower()])
    }
    assert wrong == {}


def is_default(cell: str, value: Any) -> bool:
    """Whether the beginning of a cell is a value: "none", or the code of one."""
    if cell.startswith("none"):
        return not value
    literal = re.match(r"`([^`]+)`(?=$|[,;])", cell)
    if literal is None:  # words, such as "by the region"
        return True
    if isinstance(value, int | float):
        return float(literal[1]) == value
    return bool(literal[1] == value)


def test_the_marks_say_what_make_dev_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = "7"  # Any variable accepts it, as far as the local stack reads it.
    names = {*DOCUMENTED, *re.findall(r"`([A-Z_]+)`[^|]*?●", SERVICE.partition(OF_OTHERS)[2])}
    for name in (*names, *variables(LOCAL)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    stack = LocalStack.from_environment()
    unset = stack.environment("http://127.0.0.1:1")
    for name in names:
        monkeypatch.setenv(name, own)
    is_kept = {name for name in names if stack.environment("http://127.0.0.1:1")[name] == own}
    found = {
        name: MARKS["" if name not in unset else "○" if name in is_kept else "●"] for name in names
    }
    documented = {name: variable.set_by_make_dev for name, variable in DOCUMENTED.items()}
    assert found == dict.fromkeys(names, MARKS["●"]) | documented
    for name, variable in DOCUMENTED.items():
        for value in re.findall(r"`([^`]+)` in `make dev`", variable.default):
            assert unset[name] == value


def test_the_variables_of_a_deployment_are_in_their_table() -> None:
    table = variables(SERVICE.partition("### What the deployment sets")[2].partition("\n### ")[0])
    facts = StageFacts(
        bucket="b",
        public_url="https://x.example",
        chat_url="https://y.example",
        sites_domain="sites.example",
        site_hosts="local",
        edge_secret="s",
        edge_secret_previous="p",
    )
    environment = stage_config.environment(stage_config.load(), "dev", facts)
    # ``stage_facts`` knows these; without an account, there are none.
    known_later = {name for name in DOCUMENTED if name.endswith(("_KEY_SECRET", "_TOKEN_SECRET"))}
    known_later.add("EVENTS_QUEUE_URL")
    assert table.keys() == environment.keys() - stage_config.DEPLOYED.keys() | known_later
    for name, value in stage_config.DEPLOYED.items():
        assert f"`{value}` on deployed stages" in SERVICE, name


def test_the_variables_of_make_are_in_their_table() -> None:
    makefile = (ROOT / "Makefile").read_text()
    _, _, table = LOCAL.partition("## `make`")
    named = variables(table).keys()
    used = {*re.findall(r"\$\((ARGS|TESTS|STAGE|VENV|PYTHON)\)", makefile)}
    assert named == used


def test_a_process_of_the_suite_has_no_variable_of_a_developer() -> None:
    own = {"STAGE", "RATE_LIMIT_SCALE", "OBJECT_STORE", "BARCODE_SOURCES", "PHOTO_SOURCE"}
    assert DOCUMENTED.keys() & os.environ.keys() <= own
