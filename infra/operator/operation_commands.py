"""Commands that are generated from the declarations of operations.

There is a command for each operation that the operator may call, except ``NO_COMMANDS``. The
command's help is the handler's docstring. Its options have the types, choices, defaults and
help of the input model's fields. ``workspaceId`` becomes ``--workspace``, ``isActive`` becomes
``--active``, ``dryRun`` becomes ``--dry-run``. A command of an operation that keys
may call, too, has ``--workspace``, unless the operation finds the workspace by a record.
``DIFFERENCES`` lists deviations from the declarations.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infra.operator import printing

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from chalicelib.core.operations import Operation


def call(
    operation: str, arguments: dict[str, Any], *, workspace: str | None = None
) -> dict[str, Any]:
    """Run an operation as the operator; return ``data`` of its envelope.

    Operations that API keys may call, too, need ``workspace``: the id of the workspace to work in.
    It may be the argument ``workspaceId`` instead. Warnings are printed on stderr.

    Raises:
        AppError: any failure.
    """
    from uuid import uuid4  # noqa: PLC0415  the help does not need the service

    from chalicelib.application.invoke import invoke  # noqa: PLC0415
    from chalicelib.core.operations import REGISTRY, load_all  # noqa: PLC0415
    from chalicelib.core.principals import OperatorPrincipal  # noqa: PLC0415
    from chalicelib.domains.identity.store import workspaces  # noqa: PLC0415

    load_all()
    if works_in_given_workspace(REGISTRY[operation]) and workspace is None:
        arguments = dict(arguments)
        workspace = arguments.pop("workspaceId", None)
    principal = OperatorPrincipal()
    if workspace is not None:
        plan = workspaces.get(workspace).plan
        principal = OperatorPrincipal(workspace_id=workspace, plan=plan)
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id=str(uuid4()))
    data: dict[str, Any] = json.loads(reply.body)["data"]
    del data["status"]
    data.pop("warningDetails", None)
    for warning in data.pop("warnings", ()):
        click.echo(warning, err=True)
    return data


def works_in_given_workspace(operation: "Operation") -> bool:
    """Whether the operator says in which workspace to run it, as the key of another caller does."""
    from chalicelib.core.principals import Audience  # noqa: PLC0415  the help does not need the service

    return Audience.KEY in operation.audience and operation.resolve is None


def _credit_demo_balance(workspace: dict[str, Any]) -> None:
    """Credit the owner of a new workspace with the amount in DEMO_BALANCE, if that is set."""
    from chalicelib.core.settings import settings  # noqa: PLC0415  the command line starts without it

    if kopecks := settings().demo_balance:
        money = {"kopecks": kopecks, "reason": "Demo balance"}
        key = f"demo-{workspace['workspaceId']}"
        call("credit", {"account": workspace["owner"], **money, "idempotencyKey": key})


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Deviations of a command from its operation's declaration.

    ``options`` maps inputs to the names of their options. ``prompt`` is an input that the
    command prompts for if it is omitted. ``file`` is an input for a file's bytes in base64. Its
    option is ``--path``, and the file's name is sent as the input ``name``. ``prints`` returns the
    output in place of the result, and ``table`` the output for a terminal. ``then`` is called with
    the arguments and the result.
    """

    command: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    prompt: str | None = None
    file: str | None = None
    prints: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    table: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    then: Callable[[dict[str, Any]], None] | None = None


def _webhook_and_secret(result: dict[str, Any]) -> dict[str, Any]:
    return {"webhookId": result["webhook"]["id"], "secret": result["secret"]}


def _workspace_settings(result: dict[str, Any]) -> dict[str, Any]:
    settings = dict(result["workspace"])
    return {"workspaceId": settings.pop("id"), **settings}


_OF_WEBHOOK = {"id": "--webhook"}
DIFFERENCES = {
    "add_file": Differences(file="content"),
    "allow_mail": Differences(options={"email": "--email"}),
    "create_webhook": Differences(options={"events": "--types"}, prints=_webhook_and_secret),
    "create_workspace": Differences(then=_credit_demo_balance),
    "delete_webhook": Differences(options=_OF_WEBHOOK),
    "erase_client": Differences(options={"id": "--client", "email": "--email"}),
    "get_balance": Differences(command="balance"),
    "get_bot_limits": Differences(command="bot-limits"),
    "invite_member": Differences(options={"email": "--email"}),
    "list_audit_log": Differences(command="audit-log"),
    "list_ledger": Differences(command="ledger", table=printing.one_row_an_answer),
    "list_webhook_deliveries": Differences(options=_OF_WEBHOOK),
    "resume_site": Differences(options={"id": "--site"}),
    "end_connection": Differences(options={"id": "--connection"}),
    "revoke_key": Differences(options={"id": "--key"}),
    "rotate_webhook_secret": Differences(options=_OF_WEBHOOK, prints=_webhook_and_secret),
    "send_test_event": Differences(options=_OF_WEBHOOK),
    "set_bot": Differences(options={"id": "--agent"}),
    "set_password": Differences(prompt="password"),
    "set_workspace": Differences(prints=_workspace_settings),
    "suspend_site": Differences(options={"id": "--site"}),
    "update_webhook": Differences(options={**_OF_WEBHOOK, "events": "--types"}),
}
NO_COMMANDS = {
    *("create_category", "list_categories", "upsert_products", "upsert_products_by_id"),
    *("upsert_clients_by_contact", "upsert_services_by_name"),
}
"""Operations that ``import-products`` calls, because their inputs do not fit into options."""
ACCOUNTS = {"owner": "--account --owner", "email": "--account --email"}
"""Options for inputs that identify an account. All commands accept ``--account`` instead of these
inputs."""
SUPPLIED_BY_SESSIONS = {
    "workspaceId": "Workspace id.",
    "account": "E-mail address of the account.",
}
"""Inputs that are optional in a session but required from the operator, with their help."""


def commands() -> dict[str, click.Command]:
    """Import all operations, and return their commands by name."""
    from chalicelib.core.operations import REGISTRY, load_all  # noqa: PLC0415  the help of infra does not need it
    from chalicelib.core.principals import Audience  # noqa: PLC0415  as above

    load_all()
    entries = [
        _command(operation)
        for operation in REGISTRY.select(Audience.OPERATOR)
        if operation.name not in NO_COMMANDS
    ]
    return {str(command.name): command for command in entries}


def _command(operation: "Operation") -> click.Command:
    differences = DIFFERENCES.get(operation.name, Differences())
    return printing.AS_JSON(
        click.Command(
            differences.command or operation.name.replace("_", "-"),
            callback=click.pass_context(partial(_run, operation.name, differences)),
            params=list(_options(operation, differences)),
            help=operation.description,
        )
    )


def _run(
    operation: str,
    differences: Differences,
    ctx: click.Context,
    /,
    *,
    as_json: bool,
    **values: Any,  # noqa: ANN401  click's own
) -> None:
    ctx.obj()
    arguments = {
        name: None if value is NULL else value
        for name, value in values.items()
        if value is not None
    }
    if differences.file:
        path = Path(values[differences.file])
        content = base64.b64encode(path.read_bytes()).decode()
        arguments |= {differences.file: content, "name": path.name}
    answer = call(operation, arguments)
    result = differences.prints(answer) if differences.prints else _flat(answer)
    if differences.then is not None:
        differences.then({**arguments, **result})
    table = differences.table and differences.table(result)
    printing.show(result, as_json=as_json, table=table)


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a result, or the fields of its account, if it only has an account."""
    values = list(data.values())
    return values[0] if len(values) == 1 and isinstance(values[0], dict) else data


def _options(operation: "Operation", differences: Differences) -> list[click.Option]:
    properties = operation.input_schema["properties"]
    fields = {
        model_field.alias or name: model_field
        for name, model_field in operation.input.model_fields.items()
    }
    if differences.file:
        del fields["name"]
    options = [
        _option(name, field, properties[name], differences) for name, field in fields.items()
    ]
    if works_in_given_workspace(operation):
        about = SUPPLIED_BY_SESSIONS["workspaceId"]
        options.insert(0, click.Option(["--workspace", "workspaceId"], required=True, help=about))
    return options


def _option(
    name: str, declared: "FieldInfo", schema: Mapping[str, Any], differences: Differences
) -> click.Option:
    """Return the option for an input, by the input's name in JSON."""
    if name == differences.file:
        return click.Option(["--path", name], type=FILE, required=True, help="The file.")
    names = differences.options.get(name) or ACCOUNTS.get(name) or _option_name(name)
    about = SUPPLIED_BY_SESSIONS.get(name, declared.description or "")
    kind = _type(schema)
    if isinstance(kind, _IntegerOrNull):
        about = about.replace("null", "none")
    more: dict[str, Any] = {}
    if declared.is_required() or name in SUPPLIED_BY_SESSIONS:
        more["required"] = True
    elif declared.default is False:
        more["is_flag"] = True
    elif declared.default is not None:
        more |= {"default": declared.default, "show_default": True}
    if name == differences.prompt:
        question = f"New {name}"
        more |= {"prompt": question, "hide_input": True, "confirmation_prompt": True}
    return click.Option([*names.split(), name], type=kind, help=about, **more)


def _option_name(name: str) -> str:
    plain = re.sub(r"^is(?=[A-Z])|(?<=.)Id$", "", name)
    return "--" + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", plain).lower()


NULL = object()
"""The value of an option with the word ``none``. It is sent as null.

An omitted option is not sent.
"""


class _IntegerOrNull(click.ParamType[Any]):
    """An integer, or ``none``."""

    name = "integer|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401  click's own
        """Return the integer."""
        return NULL if value in ("none", NULL) else click.INT.convert(value, param, ctx)


class _Words(click.ParamType[list[str]]):
    """Comma-separated words."""

    name = "word,word"

    def convert(self, value: Any, *_: Any) -> list[str]:  # noqa: ANN401  click's own
        """Return the words."""
        return value if isinstance(value, list) else str(value).split(",")


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_TYPES: Mapping[str, click.ParamType[Any]] = {
    "integer": click.INT,
    "boolean": click.BOOL,
    "string": click.STRING,
    "array": _Words(),
}


def _type(schema: Mapping[str, Any]) -> click.ParamType[Any]:
    """Return the type of an option from the JSON Schema of its input."""
    if "enum" in schema:
        return click.Choice([choice for choice in schema["enum"] if choice is not None])
    if schema["type"] == ["integer", "null"]:
        return _IntegerOrNull()
    if isinstance(schema["type"], list):
        return _TYPES[next(name for name in schema["type"] if name != "null")]
    return _TYPES[schema["type"]]
