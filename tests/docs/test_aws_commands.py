"""The documents' commands of the AWS CLI exist, with the options that the documents give them.

No test runs them. The CLI derives its commands and options from the models that botocore has.
"""

import re

import botocore.session
from botocore import xform_name

from chalicelib.engine.tables import TABLES
from chalicelib.lib import tokens
from infra.deploy.names import function_name
from infra.deploy.policies import FUNCTIONS
from tests.docs.samples import DOCS, ROOT
from tests.support.sweep import sweep

PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
COMMAND = re.compile(r"\baws ([a-z0-9-]+)\s+([a-z0-9-]+)((?:[^`|)](?!\baws ))*)")
CODE = re.compile(r"^ *```.*?^ *```|`[^`]+`", re.MULTILINE | re.DOTALL)
GLOBAL = {"region", "query", "output", "profile"}
MODELS = {"s3api": "s3"}
"""Commands with another name than their service."""
RECOVERY = (DOCS / "recovery.md").read_text()

COMMANDS = sorted(
    {
        (service, command, *re.findall(r"(?<=--)[a-z0-9-]+", rest))
        for page in PAGES
        for code in CODE.findall(page.read_text())
        for service, command, rest in COMMAND.findall(code)
    }
)


@sweep("command", COMMANDS)
def test_a_command_of_the_aws_cli_exists_with_its_options(command: tuple[str, ...]) -> None:
    service, name, *options = command
    model = botocore.session.get_session().get_service_model(MODELS.get(service, service))
    operations = {xform_name(operation, "-"): operation for operation in model.operation_names}
    assert name in operations, f"aws {service} {name}"
    shape = model.operation_model(operations[name]).input_shape
    assert shape is not None
    known = {xform_name(member, "-") for member in shape.members} | GLOBAL
    assert {option.removeprefix("no-") for option in options} <= known, command
    assert {xform_name(member, "-") for member in shape.required_members} <= {*options}, command


def test_the_commands_of_a_restoration_name_all_tables_and_functions() -> None:
    tables = re.search(r"for table in ([\w ]+);", RECOVERY)
    assert tables is not None
    assert {*tables[1].split()} == {*TABLES}
    suffixes = re.search(r"for function in (.+);", RECOVERY)
    assert suffixes is not None
    named = {f"workspace-api-dev{suffix.strip(chr(34))}" for suffix in suffixes[1].split()}
    assert named == {function_name("dev", function=function) for function in FUNCTIONS}


def test_the_patterns_for_scanners_match_every_token() -> None:
    keys, apps = (re.compile(text) for text in re.findall(r"`((?:svc|ws)[^`]*\{38\})`", RECOVERY))
    for prefix in (tokens.PREFIX, tokens.TEST_PREFIX, tokens.BOT_PREFIX):
        assert keys.fullmatch(tokens.generate(prefix))
    for prefix in tokens.OAUTH_PREFIXES:
        assert apps.fullmatch(tokens.generate_for("01M7YHR7QT2XPH54H14N6XM1AH", prefix=prefix))
