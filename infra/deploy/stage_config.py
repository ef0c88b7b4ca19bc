"""Write ``.chalice/config.json`` for one stage, with the facts of a deployment.

The checkout's file has the settings that are the same in every account, without buckets, addresses
or secrets. ``generate`` adds those from ``StageFacts`` and removes the other stages. ``make
package`` has no facts, and the zip needs none. A deployment generates the config of the stage's
copy with the facts of the data and edge stacks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from chalicelib.core.settings import read
from infra.deploy import names, policies

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("x86_64", "arm64")
"""Lambda's names of the architectures; the first is its default."""
DEPLOYED = {
    "LLM_PROVIDER": "bedrock",
    "LLM_MODEL": "nova-lite",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""Variables of every deployed stage; its config may override them.

They are not in the checkout's config, because ``chalice local`` would let them override the shell's
variables.
"""
JOBS = "run-jobs"
"""The function that runs scheduled jobs."""
JOB_RUNS = 4
"""Runs of the jobs at the same time. One starts each minute and takes at most four minutes."""
EVENTS = "run-events"
"""The function that sends events to webhooks."""
EVENT_RUNS = 8
"""Maximum of concurrent runs: the schedule's runs, as above, and two for each of its queues."""
CHAT = "chat-stream"
"""The function that streams chats."""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """Values of a stage that its Chalice config needs and the checkout does not have.

    ``stage_facts.read`` reads them from AWS at each deployment, with the operator's choices.
    They are never stored. ``DeployOptions`` are the input of a single run.

    ``bucket`` is the data stack's bucket; IAM refuses the placeholder. ``public_url`` is empty
    until it is known, and ``site_hosts`` until the edge stack exists. A stage without an edge has
    no ``edge_secret``, and a ``chat_url``, the URL of the chat's function. ``reserved`` is the
    reserved concurrency by function, as far as the account's quota allows (``stage_facts``). It is
    0 for a function that an operator has stopped; deployments keep such functions stopped.
    ``architecture`` overrides the config's. ``variables`` are further variables of the service
    (docs/configuration.md), such as ``LLM_API_KEY_SECRET``; they override the config's.
    ``edge_secret_previous`` is the secret that the edge sends until the deployment has given it
    ``edge_secret``, if that is another one.
    """

    bucket: str = "${Bucket}"
    public_url: str = ""
    chat_url: str = ""
    sites_domain: str = ""
    site_hosts: str = ""
    edge_secret: str = field(default="", repr=False)
    edge_secret_version: str = ""
    edge_secret_previous: str = field(default="", repr=False)
    table_prefix: str = "workspace"
    reserved: Mapping[str, int] = field(default_factory=dict)
    architecture: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def stopped(self) -> list[str]:
        """The functions that an operator has stopped."""
        return sorted(name for name, runs in self.reserved.items() if runs == 0)


def load(root: Path = ROOT) -> dict[str, Any]:
    """Return the Chalice config of a checkout, or of a stage's copy of the config."""
    config: dict[str, Any] = json.loads((root / ".chalice" / "config.json").read_text())
    return config


def write(
    folder: Path, stage: str, facts: StageFacts, target: policies.Target, root: Path = ROOT
) -> None:
    """Write the config and the policies of a stage into a folder, such as ``.chalice`` of a copy.

    Raises:
        click.ClickException: as ``generate`` does.
    """
    config = generate(load(root), stage, facts)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    policies.write(folder, stage, target)


def folder_of(stage: str, root: Path = ROOT) -> Path:
    """Return the folder of a configured stage in the checkout, which git ignores."""
    return root / ".chalice" / stage


def generate(config: Mapping[str, Any], stage: str, facts: StageFacts) -> dict[str, Any]:
    """Return the config of one stage, based on the checkout's.

    All functions and variables are within the stage, where Chalice reads a function's variables.

    Raises:
        click.ClickException: the config lacks the stage, or a setting has an invalid value.
    """
    stage_settings = {**_stage(config, stage), "api_gateway_stage": stage}
    stage_settings["lambda_architecture"] = architecture(config, stage, facts)
    stage_settings["environment_variables"] = environment(config, stage, facts)
    functions = stage_settings["lambda_functions"] = {
        name: {**settings, "iam_policy_file": policies.file_name(name)}
        for name, settings in config["lambda_functions"].items()
    }
    for name in functions.keys() & facts.reserved.keys():  # An earlier release may lack a function.
        # Chalice removes a reservation that is not in its config.
        functions[name]["reserved_concurrency"] = facts.reserved[name]
    shared = {name: value for name, value in config.items() if name not in stage_settings}
    return {**shared, "stages": {stage: stage_settings}}


def environment(config: Mapping[str, Any], stage: str, facts: StageFacts) -> dict[str, str]:
    """Return the variables of a stage's functions, as the service reads them.

    Raises:
        click.ClickException: as ``generate`` does.
    """
    known_variables = {
        "STAGE": stage,
        "TABLE_PREFIX": facts.table_prefix,
        "OBJECT_STORE": f"s3://{facts.bucket}",
        "SITES_DOMAIN": facts.sites_domain,
        **addresses(facts),
    }
    shared = {
        **DEPLOYED,
        **config.get("environment_variables", {}),
        **_stage(config, stage).get("environment_variables", {}),
    }
    merged = {**shared, **facts.variables, **known_variables}
    if merged.get("MAIL") == "ses":
        merged.setdefault("MAIL_SES_CONFIGURATION_SET", names.configuration_set(stage))
    variables = {name: value for name, value in merged.items() if value}
    try:
        read(variables)
    except ValueError as error:
        msg = f"The settings of the stage {stage} do not fit: {error}."
        raise click.ClickException(msg) from error
    return variables


def addresses(facts: StageFacts) -> dict[str, str]:
    """Return the variables whose values are known only after the functions were created."""
    return {
        "PUBLIC_URL": facts.public_url,
        "CHAT_URL": facts.chat_url,
        "SITE_HOSTS": facts.site_hosts,
        "EDGE_SECRET": facts.edge_secret,
        "EDGE_SECRET_PREVIOUS": facts.edge_secret_previous,
    }


def architecture(config: Mapping[str, Any], stage: str, facts: StageFacts) -> str:
    """Return the architecture of a stage's functions, such as ``arm64``.

    Raises:
        click.ClickException: the stage or the architecture does not exist.
    """
    settings = {**config, **_stage(config, stage)}
    chosen_name = facts.architecture or settings.get("lambda_architecture", ARCHITECTURES[0])
    if chosen_name not in ARCHITECTURES:
        msg = f'Lambda\'s architectures are {" and ".join(ARCHITECTURES)}, not "{chosen_name}".'
        raise click.ClickException(msg)
    return str(chosen_name)


def _stage(config: Mapping[str, Any], stage: str) -> Mapping[str, Any]:
    """Return a stage's part of the config, because Chalice silently accepts an unknown stage."""
    stages: Mapping[str, Mapping[str, Any]] = config["stages"]
    if stage not in stages:
        msg = f'No stage "{stage}" in .chalice/config.json; it has {", ".join(stages)}.'
        raise click.ClickException(msg)
    return stages[stage]
