"""``python -m infra deploy`` and related commands: a JSON object on stdout, messages on stderr."""

import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infra.deploy.progress import Progress

if TYPE_CHECKING:
    from infra.deploy.aws.cloudformation import Change
    from infra.deploy.deployment import Deployment

_STAGE = click.option("--stage", required=True, help="As in .chalice/config.json, such as dev.")
_STAGE_OR_DEV = click.option(
    "--stage", default="dev", show_default=True, help="As in .chalice/config.json."
)
_REGION = click.option("--region", help="Default: that of the shell (AWS_REGION, AWS_PROFILE).")
_BREAK = click.option(
    "--break-lock", is_flag=True, help="Take over from a deployment that is dead for certain."
)
_YES = click.option("--yes", is_flag=True, help="Do not ask.")
CHOICES = {
    "domain": "Domain",
    "hosted_zone": "HostedZoneId",
    "sites_domain": "SitesDomain",
    "sites_hosted_zone": "SitesHostedZoneId",
    "alarm_email": "AlarmEmail",
    "backup_region": "BackupRegion",
    "table_prefix": "TablesInUse",
    "edge": "Edge",
}
"""Options that a stage keeps, and the parameters of its data stack that store them."""
_PYTHON = click.option("--python", help="The Python to package with. Default: the first that fits.")


def _deployment(stage: str, region: str | None) -> "Deployment":
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  the help needs neither boto3 nor the store
    from infra.deploy.deployment import Deployment  # noqa: PLC0415  as above

    account = sign_in(region)
    click.echo(
        f"{stage} in {account.region} of the account {account.id}, as {account.user}", err=True
    )
    return Deployment(account, stage, Progress())


def _require_confirmation(question: str) -> None:
    """Ask for confirmation.

    Raises:
        click.ClickException: stdin is not a terminal.
        click.Abort: the answer is no.
    """
    if not _is_at_terminal():
        raise click.ClickException("Nobody is there to be asked. Give --yes.")
    click.confirm(question, abort=True, err=True)


def _confirm(changes: list["Change"]) -> None:
    _require_confirmation(f"Make these {len(changes)} changes to the data stack, and deploy?")


def _refuse_drift(drifted: list[str]) -> None:
    msg = (
        f"{len(drifted)} resources were changed outside of CloudFormation, and this deployment may "
        "undo that: see above. Give --accept-drift to deploy all the same."
    )
    raise click.ClickException(msg)


def _confirm_drift(drifted: list[str]) -> None:
    _require_confirmation(f"Deploy, and perhaps undo these {len(drifted)} changes?")


def _print(result: dict[str, Any]) -> None:
    click.echo(json.dumps(result, ensure_ascii=False))


def _run_smoke_test(deployment: "Deployment", result: dict[str, Any]) -> None:
    """Run the smoke test on a deployed stage, if its host name resolves.

    The checks go to stderr, and ``smoke`` of the result becomes "ok", "failed" or "skipped".

    Raises:
        click.ClickException: the stage has no edge.
    """
    from infra.deploy import deployed_stage, smoke  # noqa: PLC0415  as above

    url = result["baseUrl"]
    if url is None:
        _print(result)
        raise click.ClickException("The stage has no base URL yet. Run deploy to make it.")
    result["smoke"] = "skipped"
    if result["distributionId"] is None:
        click.echo(f"Chat: {result['chatUrl']}", err=True)
    for record in result["records"]:
        click.echo("DNS record: {name} {type} {value}".format(**record), err=True)
    if result["stopped"]:
        click.echo(f"{url} answers nothing while functions are kept from running.", err=True)
        return
    if result["records"] and not smoke.is_in_dns(url):
        click.echo(
            f"{url} is in no DNS yet. Make the records above, then run "
            f"{_command(deployment, 'smoke')}",
            err=True,
        )
        return
    click.echo(f"Smoke test of {url} …", err=True)
    smoke.wait_until_healthy(url)
    checks = list(smoke.run(deployed_stage.smoke_target(deployment, result)))
    click.echo(smoke.table(checks), err=True)
    result["smoke"] = "failed" if any(check.ok is False for check in checks) else "ok"
    click.echo(url, err=True)


def _command(deployment: "Deployment", name: str) -> str:
    """Return a command of this program for a stage, for the operator to run."""
    return f"python -m infra {name} --stage {deployment.stage} --region {deployment.account.region}"


def _require_success(result: dict[str, Any], advice: str) -> None:
    if result["smoke"] == "failed":
        msg = f"It is deployed, but does not answer as it should: see above. {advice}"
        raise click.ClickException(msg)


@click.command()
@_STAGE
@_REGION
@click.option("--domain", help="Where the service is, such as api.example.com; '' for none.")
@click.option("--hosted-zone", help="Route 53's zone of the domain; '' if its DNS is elsewhere.")
@click.option("--sites-domain", help="Below it each site has a host: another domain; '' for none.")
@click.option("--sites-hosted-zone", help="Route 53's zone of the sites' domain.")
@click.option("--alarm-email", help="Where alarms go; AWS asks that address to confirm.")
@click.option("--backup-region", help="Where a second copy of each backup goes; '' for nowhere.")
@click.option("--table-prefix", help="Of restored tables; 'workspace' for the stage's own.")
@click.option("--edge/--no-edge", default=None, help="With CloudFront, or API Gateway alone.")
@click.option("--accept-drift", is_flag=True, help="Deploy over changes made by hand.")
@click.option("--allow-dirty", is_flag=True, help="Deploy changes that are in no commit.")
@click.option(
    "--rollback-on-failure",
    is_flag=True,
    help="If the smoke test fails, put the release before back without asking.",
)
@_BREAK
@_PYTHON
@_YES
def deploy(  # noqa: PLR0913  one for each option
    stage: str,
    region: str | None,
    python: str | None,
    *,
    accept_drift: bool,
    allow_dirty: bool,
    rollback_on_failure: bool,
    break_lock: bool,
    yes: bool,
    **given: str | bool | None,
) -> None:
    """Deploy the checkout: data, then code, then the edge; then run the smoke test.

    Options that are left out keep their deployed values. To finish a deployment that was
    interrupted, run it again.
    """
    from infra.deploy import deployed_stage, doctor  # noqa: PLC0415  as above
    from infra.deploy.deployment import DeployOptions  # noqa: PLC0415  as above
    from infra.deploy.package.build import ROOT  # noqa: PLC0415  as above

    doctor.require(doctor.examine_machine(stage, ROOT))
    deployment = _deployment(stage, region)
    doctor.require(doctor.examine_account(deployment.account, stage, ROOT))
    if not yes:
        deployment.confirm = _confirm
    if not accept_drift:
        deployment.accept_drift = _refuse_drift if yes else _confirm_drift
    choices = {
        CHOICES[name]: value if isinstance(value, str) else str(value).lower()
        for name, value in given.items()
        if value is not None
    }
    options = DeployOptions(stage, choices, allow_dirty, break_lock, python)
    result = deployment.deploy(options)
    _run_smoke_test(deployment, result)
    earlier = deployed_stage.earlier_release(deployment) if result["smoke"] == "failed" else None
    if earlier is None:
        _print(result)
        _require_success(
            result, "There is no earlier release to go back to: correct it, and deploy."
        )
        return
    back = f"{_command(deployment, 'rollback')} --release {earlier}"
    try:
        if rollback_on_failure or _wants_rollback(earlier):
            restored = deployment.rollback(earlier, break_lock=False, python=python)
            result["rolledBackTo"] = restored["release"]
            _run_smoke_test(deployment, restored)
            result["smokeAfterRollback"] = restored["smoke"]
            back = f"The release {earlier} was put back; its smoke test: {restored['smoke']}."
        else:
            back = f"This puts the release before back: {back}"
    finally:
        _print(result)
    _require_success(result, back)


def _wants_rollback(release: str) -> bool:
    """Ask whether to roll back. Without a terminal, the answer is no."""
    question = f"Put the release {release} back now? Data stays as it is."
    return _is_at_terminal() and click.confirm(question, err=True)


def _is_at_terminal() -> bool:
    return sys.stdin.isatty()


@click.command()
@_STAGE
@_REGION
def configure(stage: str, region: str | None) -> None:
    """Write a deployed stage's config and policies into the checkout, for plain chalice deploy."""
    folder = _deployment(stage, region).configure()
    click.echo(f"Now chalice deploy --stage {stage} updates its code.", err=True)
    _print({"stage": stage, "folder": str(folder)})


@click.command()
@_STAGE_OR_DEV
@click.option("--out", type=click.Path(path_type=Path), help="Default: build/package/<stage>.")
@_PYTHON
@click.option("--architecture", help="Default: the stage's in .chalice/config.json.")
def package(stage: str, out: Path | None, python: str | None, architecture: str | None) -> None:
    """Build the Lambda zip and its template, check them and list the largest parts."""
    from infra.deploy.package import build, check  # noqa: PLC0415  as above
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
    _print({"folder": str(out), "templates": list(stacks.STACKS)})


@click.command()
@_STAGE
@_REGION
@click.option("--release", help="Its id, or the beginning of its commit. Without: the one before.")
@_BREAK
@_PYTHON
def rollback(
    stage: str, region: str | None, release: str | None, python: str | None, *, break_lock: bool
) -> None:
    """Deploy an earlier release's code to the functions. Data and edge stay as they are."""
    deployment = _deployment(stage, region)
    click.echo("The code goes back; data stays as it is.", err=True)
    result = deployment.rollback(release, break_lock=break_lock, python=python)
    _run_smoke_test(deployment, result)
    _print(result)
    _require_success(result, f"{_command(deployment, 'releases')} lists the releases.")


@click.command("releases")
@_STAGE
@_REGION
def list_releases(stage: str, region: str | None) -> None:
    """List the stored releases, newest first."""
    from infra.deploy import releases  # noqa: PLC0415  as above

    _, store = _deployment(stage, region).deployed()
    found = releases.listed(store)
    current = found[0].id if found else None
    _print({"current": current, "releases": [asdict(release) for release in found]})


@click.command()
@_STAGE
@_REGION
@click.option("--with-data", is_flag=True, help="Also all that the stage knows, after backups.")
@click.option(
    "--yes-delete-the-data-of", metavar="STAGE", help="The stage once more, instead of the prompt."
)
@_BREAK
@_YES
def destroy(  # noqa: PLR0913  one for each option
    stage: str,
    region: str | None,
    yes_delete_the_data_of: str | None,
    *,
    with_data: bool,
    break_lock: bool,
    yes: bool,
) -> None:
    """Delete a stage's edge, alarms, API and functions; its data stays."""
    from infra.deploy.destruction import destroy as delete  # noqa: PLC0415  as above

    deployment = _deployment(stage, region)
    if with_data:
        typed = yes_delete_the_data_of or _prompt_for_stage(stage)
        if typed != stage:
            msg = f"Nothing was deleted: {typed!r} is not {stage!r}."
            raise click.ClickException(msg)
    elif not yes:
        _require_confirmation(f"Delete edge, alarms, API and functions of {stage}? Its data stays.")
    left = delete(deployment, break_lock=break_lock, with_data=with_data)
    if left["kept"]:
        click.echo(f"Left, with what they hold: {', '.join(left['kept'])}.", err=True)
    _print(left)


def _prompt_for_stage(stage: str) -> str:
    if not _is_at_terminal():
        msg = f"Nobody is there to be asked. Give --yes-delete-the-data-of {stage}."
        raise click.ClickException(msg)
    answer: str = click.prompt(f"All data of {stage} will be gone. Type its name", err=True)
    return answer


@click.command()
@click.option("--url", help="Base URL. Default: that of the stage, or of make dev, by PORT.")
@click.option("--stage", help="A deployed stage. Its edge's secret is needed to probe streaming.")
@_REGION
@click.option("--key", help="An API key, to list the tools of.")
@click.option("--agent", help="A bot to ask something; its owner pays for the answer.")
@click.option("--bot-key", help="A key of the bot, if it is private.")
@click.option("--site-page", help="The URL of a page of a site.")
@click.option("--origin", "origins", multiple=True, help="An address that only the edge may call.")
def smoke(
    url: str | None,
    stage: str | None,
    region: str | None,
    origins: tuple[str, ...],
    **options: Any,  # noqa: ANN401  the rest of ``Target``
) -> None:
    """Check from outside whether each surface of a running service answers."""
    from infra.deploy import deployed_stage  # noqa: PLC0415  as above
    from infra.deploy import smoke as outside  # noqa: PLC0415  as above
    from infra.local.stack import LocalStack  # noqa: PLC0415  as above

    if stage is not None:
        deployment = _deployment(stage, region)
        found = deployed_stage.smoke_target(deployment, deployed_stage.addresses(deployment))
    else:
        found = outside.Target(url or LocalStack.from_environment().url)
    target = replace(
        found, url=(url or found.url).rstrip("/"), origins=origins or found.origins, **options
    )
    if not re.match(r"https?://[^/]", target.url):
        msg = f'--url is "{url}"; expected a base URL such as https://api.example.com.'
        raise click.ClickException(msg)
    checks = list(outside.run(target))
    click.echo(outside.table(checks), err=True)
    _print({"url": target.url, "checks": [asdict(check) for check in checks]})
    if failed := [check.name for check in checks if check.ok is False]:
        msg = f"Failed: {', '.join(failed)}."
        raise click.ClickException(msg)


@click.command()
@_STAGE_OR_DEV
@_REGION
def doctor(stage: str, region: str | None) -> None:
    """List what this machine or AWS account lacks for a deployment, with advice."""
    from infra.deploy import doctor as look  # noqa: PLC0415  as above
    from infra.deploy.package.build import ROOT  # noqa: PLC0415  as above

    findings = list(look.examine(stage, region, ROOT))
    click.echo(look.table(findings), err=True)
    _print({"stage": stage, "findings": [asdict(finding) for finding in findings]})
    if missing := [finding.name for finding in findings if finding.ok is False]:
        msg = f"Missing: {', '.join(missing)}."
        raise click.ClickException(msg)


@click.command("deployer-policy")
@_STAGE
@_REGION
def deployer_policy(stage: str, region: str | None) -> None:
    """Print the IAM policies that a user or role needs to deploy a stage, as CI does."""
    from infra.deploy import deployer  # noqa: PLC0415  as above
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  as above
    from infra.deploy.policies import Target  # noqa: PLC0415  as above

    account = sign_in(region)
    target = Target(account.region, account.id)
    _print({"stage": stage, "policies": deployer.documents(stage, target)})


COMMANDS = (
    deploy,
    configure,
    package,
    templates,
    rollback,
    list_releases,
    destroy,
    smoke,
    doctor,
    deployer_policy,
)
