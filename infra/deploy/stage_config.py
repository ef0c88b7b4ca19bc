"""The Chalice config of one stage: what ``.chalice/config.json`` says, and what a deployment knows.

The checkout's file holds what is decided for every stage, and nothing that only an account can
tell: no bucket, address or secret. ``generate`` adds those as ``StageFacts`` and leaves the other
stages out. ``make package`` has no facts, and the zip needs none; a deployment writes the stage's
copy of the project together with those of the data and edge stacks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from chalicelib.core.settings import read
from infra.deploy import policies

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("x86_64", "arm64")
"""As Lambda names them; the first is its default."""
DEPLOYED = {
    "LLM_PROVIDER": "bedrock",
    "LLM_MODEL": "nova-lite",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""Variables of every deployed stage, unless its config says otherwise.

They are not in the checkout's config: ``chalice local`` puts what stands there over the shell's.
"""
JOBS = "run-jobs"
"""The function of the scheduled jobs."""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """Values of a stage that its Chalice config needs and the checkout does not have.

    ``stage_facts.read`` reads them from AWS at each deployment and adds what ``OperatorChoices``
    say. Nothing of them is kept; ``DeployOptions`` are the input of the run itself.

    ``bucket`` is the data stack's; the one that stands here until it is known is refused by IAM.
    ``public_url`` and ``sites_domain`` are the edge stack's, empty until that stands.
    ``reserve_jobs`` says that the account's quota lets the scheduled jobs reserve their one
    concurrent run; without, overlapping runs share the work (ADR 13). ``stopped`` are functions
    that an operator keeps from running, which no deployment undoes. ``architecture`` overrides the
    config's. ``variables`` are the operator's further variables of the service
    (docs/configuration.md), such as ``LLM_API_KEY``; they override the config's.
    """

    bucket: str = "${Bucket}"
    public_url: str = ""
    sites_domain: str = ""
    edge_secret: str = field(default="", repr=False)
    table_prefix: str = "workspace"
    reserve_jobs: bool = False
    stopped: frozenset[str] = frozenset()
    architecture: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


def load(root: Path = ROOT) -> dict[str, Any]:
    """Return the Chalice config of a checkout, or of a stage's copy of it."""
    config: dict[str, Any] = json.loads((root / ".chalice" / "config.json").read_text())
    return config


def write(
    project: Path, stage: str, facts: StageFacts, place: policies.Place, root: Path = ROOT
) -> None:
    """Write the config and the policies of a stage into its copy of the project.

    Raises:
        click.ClickException: as ``generate`` does.
    """
    config = generate(load(root), stage, facts)
    (project / ".chalice" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    policies.write(project, stage, place)


def generate(config: Mapping[str, Any], stage: str, facts: StageFacts) -> dict[str, Any]:
    """Return the config of one stage, made from the checkout's.

    Functions and variables are all in the stage: Chalice reads a function's variables there only.

    Raises:
        click.ClickException: the config has no such stage, or a setting a value it cannot have.
    """
    own = {**_stage(config, stage), "api_gateway_stage": stage}
    own["lambda_architecture"] = architecture(config, stage, facts)
    own["environment_variables"] = environment(config, stage, facts)
    functions = own["lambda_functions"] = {
        name: {**settings, "iam_policy_file": policies.file_name(name)}
        for name, settings in config["lambda_functions"].items()
    }
    if facts.reserve_jobs:
        functions[JOBS]["reserved_concurrency"] = 1
    for name in facts.stopped:  # Chalice would take a reservation away that is not in its config.
        functions[name]["reserved_concurrency"] = 0
    shared = {name: value for name, value in config.items() if name not in own}
    return {**shared, "stages": {stage: own}}


def environment(config: Mapping[str, Any], stage: str, facts: StageFacts) -> dict[str, str]:
    """Return the variables of a stage's functions, as the service reads them.

    Raises:
        click.ClickException: as ``generate`` does.
    """
    known = {
        "STAGE": stage,
        "TABLE_PREFIX": facts.table_prefix,
        "OBJECT_STORE": f"s3://{facts.bucket}",
        "PUBLIC_URL": facts.public_url,
        "SITES_DOMAIN": facts.sites_domain,
        "EDGE_SECRET": facts.edge_secret,
    }
    shared = {
        **DEPLOYED,
        **config.get("environment_variables", {}),
        **_stage(config, stage).get("environment_variables", {}),
    }
    merged = {**shared, **facts.variables, **known}
    variables = {name: value for name, value in merged.items() if value}
    try:
        read(variables)
    except ValueError as error:
        msg = f"The settings of the stage {stage} do not fit: {error}."
        raise click.ClickException(msg) from error
    return variables


def architecture(config: Mapping[str, Any], stage: str, facts: StageFacts) -> str:
    """Return the architecture of a stage's functions, such as ``arm64``.

    Raises:
        click.ClickException: there is no such stage, or Lambda has no such architecture.
    """
    settings = {**config, **_stage(config, stage)}
    chosen = facts.architecture or settings.get("lambda_architecture", ARCHITECTURES[0])
    if chosen not in ARCHITECTURES:
        msg = f'Lambda\'s architectures are {" and ".join(ARCHITECTURES)}, not "{chosen}".'
        raise click.ClickException(msg)
    return str(chosen)


def _stage(config: Mapping[str, Any], stage: str) -> Mapping[str, Any]:
    """Return a stage's part; Chalice would take an unknown stage without a word."""
    stages: Mapping[str, Mapping[str, Any]] = config["stages"]
    if stage not in stages:
        msg = f'No stage "{stage}" in .chalice/config.json; it has {", ".join(stages)}.'
        raise click.ClickException(msg)
    return stages[stage]
