"""``python -m infra deploy`` and the other commands that change a stage."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from infra.deploy.command_options import (
    BREAK_LOCK,
    PYTHON,
    REGION,
    STAGE,
    YES,
    open_deployment,
    print_result,
)

if TYPE_CHECKING:
    from infra.deploy.aws.cloudformation import Change
    from infra.deploy.deployment import Deployment

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


def _run_smoke_test(deployment: "Deployment", result: dict[str, Any]) -> None:
    """Run the smoke test on a deployed stage, if its host name resolves.

    The checks go to stderr, and ``smoke`` of the result becomes "ok", "failed" or "skipped".

    Raises:
        click.ClickException: the stage has no edge.
    """
    from infra.deploy import deployed_stage, smoke  # noqa: PLC0415  as above

    url = result["baseUrl"]
    if url is None:
        print_result(result)
        raise click.ClickException("The stage has no base URL yet. Run deploy to make it.")
    result["smoke"] = "skipped"
    if result["distributionId"] is None:
        click.echo(f"Chat: {result['chatUrl']}", err=True)
    for record in result["records"]:
        click.echo("DNS record: {name} {type} {value}".format(**record), err=True)
    if result["stopped"]:
        click.echo(f"{url} answers nothing while functions are kept from running.", err=True)
        return
    if result["records"] and not deployed_stage.is_in_dns(url):
        click.echo(
            f"{url} is in no DNS yet. Make the records above, then run "
            f"{_command(deployment, 'smoke')}",
            err=True,
        )
        return
    click.echo(f"Smoke test of {url} …", err=True)
    deployed_stage.wait_until_healthy(url)
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
@STAGE
@REGION
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
@BREAK_LOCK
@PYTHON
@YES
def deploy(  # noqa: PLR0913  one for each option
    stage: str,
    region: str | None,
    *,
    python: str | None,
    accept_drift: bool,
    allow_dirty: bool,
    rollback_on_failure: bool,
    break_lock: bool,
    yes: bool,
    **flags: str | bool | None,
) -> None:
    """Deploy the checkout: data, then code, then the edge; then run the smoke test.

    Options that are left out keep their deployed values. To finish a deployment that was
    interrupted, run it again.
    """
    from infra.deploy import deployed_stage, doctor  # noqa: PLC0415  as above
    from infra.deploy.deployment import DeployOptions  # noqa: PLC0415  as above
    from infra.deploy.package.build import ROOT  # noqa: PLC0415  as above

    doctor.require(doctor.examine_machine(stage, ROOT))
    deployment = open_deployment(stage, region)
    doctor.require(doctor.examine_account(deployment.account, stage, ROOT))
    if not yes:
        deployment.confirm = _confirm
    if not accept_drift:
        deployment.accept_drift = _refuse_drift if yes else _confirm_drift
    choices = {
        CHOICES[name]: value if isinstance(value, str) else str(value).lower()
        for name, value in flags.items()
        if value is not None
    }
    options = DeployOptions(stage, choices, allow_dirty, break_lock, python)
    result = deployment.deploy(options)
    _run_smoke_test(deployment, result)
    earlier = deployed_stage.earlier_release(deployment) if result["smoke"] == "failed" else None
    if earlier is None:
        print_result(result)
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
        print_result(result)
    _require_success(result, back)


def _wants_rollback(release: str) -> bool:
    """Ask whether to roll back, and return False without a terminal."""
    question = f"Put the release {release} back now? Data stays as it is."
    return _is_at_terminal() and click.confirm(question, err=True)


def _is_at_terminal() -> bool:
    return sys.stdin.isatty()


@click.command()
@STAGE
@REGION
def configure(stage: str, region: str | None) -> None:
    """Write a deployed stage's config and policies into the checkout, for plain chalice deploy."""
    folder = open_deployment(stage, region).configure()
    click.echo(f"Now chalice deploy --stage {stage} updates its code.", err=True)
    print_result({"stage": stage, "folder": str(folder)})


@click.command()
@STAGE
@REGION
@click.option("--release", help="Its id, or the beginning of its commit. Without: the one before.")
@BREAK_LOCK
@PYTHON
def rollback(
    stage: str, region: str | None, *, release: str | None, python: str | None, break_lock: bool
) -> None:
    """Deploy an earlier release's code to the functions, without a change of data or edge."""
    deployment = open_deployment(stage, region)
    click.echo("The code goes back; data stays as it is.", err=True)
    result = deployment.rollback(release, break_lock=break_lock, python=python)
    _run_smoke_test(deployment, result)
    print_result(result)
    _require_success(result, f"{_command(deployment, 'releases')} lists the releases.")


@click.command("releases")
@STAGE
@REGION
def list_releases(stage: str, region: str | None) -> None:
    """List the stored releases, newest first."""
    from infra.deploy import releases  # noqa: PLC0415  as above

    _, store = open_deployment(stage, region).deployed()
    kept_releases = releases.list_releases(store)
    current = kept_releases[0].id if kept_releases else None
    print_result({"current": current, "releases": [asdict(release) for release in kept_releases]})


@click.command()
@STAGE
@REGION
@click.option("--with-data", is_flag=True, help="Also all that the stage knows, after backups.")
@click.option(
    "--yes-delete-the-data-of", metavar="STAGE", help="The stage once more, instead of the prompt."
)
@BREAK_LOCK
@YES
def destroy(  # noqa: PLR0913  one for each option
    stage: str,
    region: str | None,
    *,
    yes_delete_the_data_of: str | None,
    with_data: bool,
    break_lock: bool,
    yes: bool,
) -> None:
    """Delete a stage's edge, alarms, API and functions, but keep its data."""
    from infra.deploy.destruction import destroy as delete  # noqa: PLC0415  as above

    deployment = open_deployment(stage, region)
    if with_data:
        confirmed_stage = yes_delete_the_data_of or _prompt_for_stage(stage)
        if confirmed_stage != stage:
            msg = f"Nothing was deleted: {confirmed_stage!r} is not {stage!r}."
            raise click.ClickException(msg)
    elif not yes:
        _require_confirmation(f"Delete edge, alarms, API and functions of {stage}? Its data stays.")
    remains = delete(deployment, break_lock=break_lock, with_data=with_data)
    if remains["kept"]:
        click.echo(f"Left, with what they hold: {', '.join(remains['kept'])}.", err=True)
    print_result(remains)


def _prompt_for_stage(stage: str) -> str:
    if not _is_at_terminal():
        msg = f"Nobody is there to be asked. Give --yes-delete-the-data-of {stage}."
        raise click.ClickException(msg)
    answer: str = click.prompt(f"All data of {stage} will be gone. Type its name", err=True)
    return answer


COMMANDS = (deploy, configure, rollback, list_releases, destroy)
