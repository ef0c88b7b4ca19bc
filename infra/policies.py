"""IAM policies, one a function, generated from the tables, the stage and its bucket (ADR 0017).

``stage_config`` writes them into the stage's copy of the project: for ``make package`` with
placeholders for region and account, for a deployment with those of whoever is signed in.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chalicelib.core.settings import Settings, read
from chalicelib.store.tables import TABLES

ROWS = (
    "BatchGetItem",
    "ConditionCheckItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
)
"""A write in a transaction needs the right to that write, and a check its own; none for itself
(DynamoDB developer guide, Using IAM with DynamoDB transactions)."""


MODEL_RIGHTS = ("InvokeModelWithResponseStream",)
"""What ConverseStream needs (Bedrock user guide, Converse)."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a function may do with audit records, money, objects and models.

    Rows of other tables all may change.

    The audit log is append-only: never ``UpdateItem`` or ``DeleteItem``. Nothing in the ledger is
    ever deleted.
    """

    audit: tuple[str, ...]
    ledger: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    models: bool = False


API = "api_handler"
"""What Chalice calls the function behind all routes."""
CHARGING = ("BatchGetItem", "GetItem", "PutItem", "UpdateItem")
"""What reserving and settling need of the ledger."""
FUNCTIONS: Mapping[str, Access] = {
    API: Access(
        audit=("PutItem", "Query"),
        # Balance, entries and limits; it charges nothing.
        ledger=("GetItem", "Query", "UpdateItem"),
        objects=("DeleteObject", "GetObject", "PutObject"),
        models=True,
    ),
    "run-jobs": Access(audit=("PutItem",), ledger=CHARGING, objects=("DeleteObject",)),
    "chat-stream": Access(audit=("PutItem",), ledger=CHARGING, models=True),
}
"""By the names in .chalice/config.json. Without a policy, Chalice refuses to package a function."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage is deployed; placeholders until that is known."""

    region: str = "${AWS::Region}"
    account: str = "${AWS::AccountId}"

    @classmethod
    def signed_in(cls) -> "Place":
        """Return the region and the account of the credentials in use.

        Raises:
            click.ClickException: there are none, or no region.
        """
        import boto3  # noqa: PLC0415  generating placeholders needs no AWS
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        session = boto3.Session()
        try:
            account = session.client("sts").get_caller_identity()["Account"]
        except (BotoCoreError, ClientError) as error:
            msg = f"Sign in to AWS and choose a region first: {error}"
            raise click.ClickException(msg) from error
        return cls(session.region_name, account)


def file_name(function: str) -> str:
    """Return the name of a function's policy in ``.chalice``, as config.json has it."""
    return f"policy-{function}.json"


def write(project: Path, stage: str, place: Place) -> list[Path]:
    """Write the policies of a stage's functions into a copy of the project; return the files."""
    folder = project / ".chalice"
    config = json.loads((folder / "config.json").read_text())
    files = []
    for function in FUNCTIONS:
        file = folder / file_name(function)
        file.write_text(json.dumps(policy(config, stage, function, place), indent=2) + "\n")
        files.append(file)
    return files


def policy(config: dict[str, Any], stage: str, function: str, place: Place) -> dict[str, Any]:
    """Return the policy of a function in a stage, by the stage's generated config."""
    settings = read(config["stages"][stage]["environment_variables"])
    access = FUNCTIONS[function]
    bucket = f"arn:aws:s3:::{settings.object_store.removeprefix('s3://')}"
    # A bucket's ARN names neither region nor account, and its name is free once it is deleted.
    ours = {"StringEquals": {"aws:ResourceAccount": place.account}}
    name = f"{config['app_name']}-{stage}" + ("" if function == API else f"-{function}")
    logs = f"arn:aws:logs:{place.region}:{place.account}:log-group:/aws/lambda/{name}"
    tables = {table: _table(settings, table, place) for table in TABLES}
    audit, ledger = tables.pop("audit"), tables.pop("ledger")
    indexes = [f"{arn}/index/{name}" for table, arn in tables.items() for name in _indexes(table)]
    statements = [
        _allow("Rows", "dynamodb", ROWS, tables.values()),
        _allow("Lists", "dynamodb", ["Query"], indexes),
        _allow("Audit", "dynamodb", access.audit, [audit]),
        _allow("Ledger", "dynamodb", access.ledger, [ledger]),
        _allow("LogGroup", "logs", ["CreateLogGroup"], [logs]),
        _allow("Logs", "logs", ["CreateLogStream", "PutLogEvents"], [f"{logs}:*"]),
    ]
    if access.objects:
        statements += [
            _allow("Objects", "s3", access.objects, [f"{bucket}/*"]) | {"Condition": ours},
            # Without it S3 answers 403 instead of 404 for an object that is not there.
            _allow("ObjectNames", "s3", ["ListBucket"], [bucket]) | {"Condition": ours},
        ]
    if access.models:
        statements.append(_allow("Models", "bedrock", MODEL_RIGHTS, _models(place)))
    return {"Version": "2012-10-17", "Statement": statements}


def _models(place: Place) -> list[str]:
    """Return Bedrock's models, of any region: an inference profile leads to several."""
    return [
        "arn:aws:bedrock:*::foundation-model/*",
        f"arn:aws:bedrock:{place.region}:{place.account}:inference-profile/*",
    ]


def _table(settings: Settings, table: str, place: Place) -> str:
    name = settings.table_name(table)
    return f"arn:aws:dynamodb:{place.region}:{place.account}:table/{name}"


def _indexes(table: str) -> Iterable[str]:
    return TABLES[table]._indexes  # noqa: SLF001  PynamoDB has no public list of them


def _allow(
    sid: str, service: str, actions: Iterable[str], resources: Iterable[str]
) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{action}" for action in actions],
        "Resource": list(resources),
    }
