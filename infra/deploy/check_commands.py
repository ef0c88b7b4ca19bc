"""Commands that build, print or check, and change nothing on AWS.

Like the commands of ``infra.deploy.commands``, they print a JSON object to stdout and messages to
stderr.
"""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from infra.deploy.command_options import (
    PYTHON,
    REGION,
    STAGE,
    STAGE_OR_DEV,
    open_deployment,
    print_result,
)


@click.command()
@STAGE_OR_DEV
@click.option("--out", type=click.Path(path_type=Path), help="Default: build/package/<stage>.")
@PYTHON
@click.option("--architecture", help="Default: the stage's in .chalice/config.json.")
def package(stage: str, out: Path | None, python: str | None, *, architecture: str | None) -> None:
    """Build the Lambda zip and its template, check them and list the largest parts."""
    from infra.deploy.package import build, check  # noqa: PLC0415  the help must not import boto3
    from infra.deploy.stage_config import StageFacts  # noqa: PLC0415  as above

    facts = StageFacts(architecture=architecture)
    built = build.build(stage, out or build.output_of(stage), python, facts=facts)
    size = built.zip.stat().st_size / check.MIB
    click.echo(f"{built.zip}: {size:.1f} MiB. The largest parts, in KiB:")
    click.echo(f"{'':40} {'zipped':>8} {'unpacked':>8}")
    for name, packed, unpacked in check.largest(built.zip):
        click.echo(f"{name:40} {packed / 1024:8.0f} {unpacked / 1024:8.0f}")


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default="build/templates", show_default=True
)
def templates(out: Path) -> None:
    """Write the templates of all stacks, for linters and reviews."""
    from infra.deploy.stacks import build as stacks  # noqa: PLC0415  as above

    out.mkdir(parents=True, exist_ok=True)
    for name in stacks.STACKS:
        text = stacks.template(name)
        (out / f"{name}.{'json' if text.startswith('{') else 'yaml'}").write_text(text)
    print_result({"folder": str(out), "templates": list(stacks.STACKS)})


@click.command()
@click.option("--url", help="Base URL. Default: that of the stage, or of make dev, by PORT.")
@click.option("--stage", help="A deployed stage. Its edge's secret is needed to probe streaming.")
@REGION
@click.option("--key", help="An API key, to list the tools of.")
@click.option("--agent", help="A bot to ask something; its owner pays for the answer.")
@click.option("--bot-key", help="A key of the bot, if it is private.")
@click.option("--site-page", help="The URL of a page of a site.")
@click.option("--origin", "origins", multiple=True, help="An address that only the edge may call.")
def smoke(
    url: str | None,
    *,
    stage: str | None,
    region: str | None,
    origins: tuple[str, ...],
    **options: Any,  # noqa: ANN401  the rest of ``Target``
) -> None:
    """Check from outside whether each surface of a running service responds."""
    from infra.deploy import deployed_stage  # noqa: PLC0415  as above
    from infra.deploy import smoke as outside  # noqa: PLC0415  as above
    from infra.local.stack import LocalStack  # noqa: PLC0415  as above

    if stage is not None:
        deployment = open_deployment(stage, region)
        smoke_target = deployed_stage.smoke_target(deployment, deployed_stage.addresses(deployment))
    else:
        smoke_target = outside.Target(url or LocalStack.from_environment().url)
    target = replace(
        smoke_target,
        url=(url or smoke_target.url).rstrip("/"),
        origins=origins or smoke_target.origins,
        **options,
    )
    if not re.match(r"https?://[^/]", target.url):
        msg = f'--url is "{url}"; expected a base URL such as https://api.example.com.'
        raise click.ClickException(msg)
    checks = list(outside.run(target))
    click.echo(outside.table(checks), err=True)
    print_result({"url": target.url, "checks": [asdict(check) for check in checks]})
    if failed := [check.name for check in checks if check.ok is False]:
        msg = f"Failed: {', '.join(failed)}."
        raise click.ClickException(msg)


@click.command()
@STAGE_OR_DEV
@REGION
def doctor(stage: str, region: str | None) -> None:
    """List what this machine or AWS account lacks for a deployment, with advice."""
    from infra.deploy import doctor as look  # noqa: PLC0415  as above
    from infra.deploy.package.build import ROOT  # noqa: PLC0415  as above

    findings = list(look.examine(stage, region, ROOT))
    click.echo(look.table(findings), err=True)
    print_result({"stage": stage, "findings": [asdict(finding) for finding in findings]})
    if missing := [finding.name for finding in findings if finding.ok is False]:
        msg = f"Missing: {', '.join(missing)}."
        raise click.ClickException(msg)


@click.command("deployer-policy")
@STAGE
@REGION
def deployer_policy(stage: str, region: str | None) -> None:
    """Print the IAM policies that a user or role needs to deploy a stage, as CI does."""
    from infra.deploy import deployer  # noqa: PLC0415  as above
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  as above
    from infra.deploy.policies import Target  # noqa: PLC0415  as above

    account = sign_in(region)
    target = Target(account.region, account.id)
    print_result({"stage": stage, "policies": deployer.documents(stage, target)})


COMMANDS = (package, templates, smoke, doctor, deployer_policy)
