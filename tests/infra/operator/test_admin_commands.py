"""Commands and options of the operator's command line, also mistyped ones."""

import re
import subprocess
import sys
from typing import Any

import click
import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.domains.identity.store import accounts
from infra.operator import operation_commands
from tests.factories.operator import Operator

pytestmark = pytest.mark.usefixtures("reload_settings")
"""Commands that connect to a stage change the environment of this process."""


COMMANDS = (
    *("create-account", "create-workspace", "add-member"),
    *("list-members", "create-key", "list-keys", "revoke-key"),
    *(
        "set-workspace",
        "set-plan",
        "audit-log",
        "suspend-site",
        "resume-site",
        "add-file",
        "erase-client",
        "create-webhook",
        "list-webhooks",
        "delete-webhook",
    ),
    *("credit", "adjust", "balance", "ledger"),
    *("set-bot", "set-bot-limits", "bot-limits", "create-bot-key", "delete-bot-key"),
    *("import-products", "export-products", "export", "import", "telegram-webhook"),
)
WRITTEN_BY_HAND = {"import-products", "export-products", "export", "import", "telegram-webhook"}


class TestOptions:
    def test_options_are_required_or_have_a_default_in_the_help(self, operator: Operator) -> None:
        help_text = operator.invoke("create-workspace", "--help").stdout
        assert "[required]" in help_text.split("--account")[1].split("--name")[0]
        for name in ("--plan", "--timezone", "--country"):
            assert "[required]" not in help_text.split(name)[1].split("--")[0]
        assert "[default: RU]" in " ".join(help_text.split())

    def test_every_operation_for_the_operator_is_used_by_a_command(self) -> None:
        commands = operation_commands.commands()
        assert set(COMMANDS) - WRITTEN_BY_HAND <= set(commands)
        names = {operation.name for operation in REGISTRY.select(Audience.OPERATOR)}
        assert set(operation_commands.DIFFERENCES) <= names
        assert names >= operation_commands.NO_COMMANDS
        assert len(commands) == len(names) - len(operation_commands.NO_COMMANDS)

    def test_every_option_of_every_operation_has_help_and_a_readable_name(self) -> None:
        for name, command in operation_commands.commands().items():
            assert command.help, name
            for option in command.params:
                assert isinstance(option, click.Option)
                assert option.help, (name, option.name)
                for option_name in option.opts:
                    assert re.fullmatch("--[a-z]+(-[a-z]+)*", option_name), (name, option_name)

    @pytest.mark.parametrize(
        ("words", "arguments"),
        [
            (("--daily", "none", "--weekly", "500"), {"daily": None, "weekly": 500}),
            ((), {}),
        ],
    )
    def test_omitted_options_are_not_sent_and_none_is_null(
        self,
        words: tuple[str, ...],
        arguments: dict[str, Any],
        operator: Operator,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        calls: list[dict[str, Any]] = []
        monkeypatch.setattr(
            operation_commands, "call", lambda _, arguments: calls.append(arguments) or {}
        )
        operator.run("set-bot-limits", "--agent", "a", *words)
        assert calls == [{"agentId": "a", **arguments}]

    def test_invalid_choice_is_refused_with_the_valid_ones(self, operator: Operator) -> None:
        line = operator.run_failing("set-plan", "--workspace", "x", "--plan", "gold")
        assert "'gold' is not one of 'free', 'start', 'business', 'enterprise'" in line

    def test_the_first_screen_imports_neither_operations_nor_the_store(self) -> None:
        command = (sys.executable, "-X", "importtime", "-m", "infra", "--help")
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        imported = {line.split("|")[-1].strip() for line in result.stderr.splitlines()}
        assert "infra.operator.operation_commands" in imported
        assert not {"pynamodb", "boto3", "chalicelib.engine", "chalicelib.domains"} & imported


class TestEveryFailure:
    @pytest.mark.parametrize(
        "words",
        [
            ("create-account", "--email", "ann@example.com"),
            ("create-account", "--email", "a@b.de", "--password", "long enough", "--role", "boss"),
            ("create-key", "--workspce", "x"),
            ("no-such-command",),
        ],
    )
    def test_mistyped_command_fails_with_one_line(
        self, words: tuple[str, ...], operator: Operator
    ) -> None:
        operator.run_failing(*words)

    def test_crash_fails_with_one_line(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_: object) -> None:
            raise RuntimeError("broken\nin two lines")

        monkeypatch.setattr(accounts, "stage_email_claim", crash)
        operator.run_failing("create-account", "--email", "a@b.de", "--password", "long enough")

    @pytest.mark.usefixtures("no_database")
    def test_missing_local_database_fails_with_one_line(self) -> None:
        line = Operator().run_failing("revoke-key", "--key", "x")
        assert "make dev" in line
        assert "--stage" in line

    @pytest.mark.usefixtures("no_database")
    def test_the_list_of_commands_needs_no_database(self) -> None:
        result = Operator().invoke("--help")
        assert result.exit_code == 0
        assert all(command in result.stdout for command in COMMANDS)

    @pytest.mark.usefixtures("no_database")
    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_commands_help_needs_no_database(self, command: str) -> None:
        assert Operator().invoke(command, "--help").exit_code == 0
