"""Plain ``chalice`` commands in the checkout, as Chalice's documentation has them.

``app.py`` calls ``start`` when Chalice's command line imports it. Chalice reads its config before
that, and the committed config has no addresses, secrets or policies of a stage. ``chalice deploy``
and ``chalice package`` therefore go on in a copy of the project, with the config that
``python -m infra configure`` wrote, and with the checked zip.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

import click

ROOT = Path(__file__).resolve().parents[2]


def start() -> None:
    """Do what the running Chalice command needs; ``deploy`` and ``package`` end here.

    Raises:
        SystemExit: the command is done, or was refused.
    """
    match _command(sys.argv[1:]):
        case "local":
            from infra.local import chalice_local  # noqa: PLC0415  other commands start no database

            chalice_local.start()
        case "deploy":
            _run(deploy)
        case "package":
            _run(package)


def _command(arguments: list[str]) -> str | None:
    """Return the Chalice command that the arguments name."""
    words = iter(arguments)
    for word in words:
        if word == "--project-dir":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _run(command: Callable[[str, Path, dict[str, Any]], None]) -> Never:
    """Run a command for a configured stage and exit, with a failure in one line on stderr."""
    from infra.operator.cli_errors import report_errors_in_one_line  # noqa: PLC0415  chalice local has no use for it

    with report_errors_in_one_line():
        options = click.get_current_context().params
        stage = options["stage"]
        folder = ROOT / ".chalice" / stage
        if not (folder / "config.json").is_file():
            retry_hint = f"then chalice {command.__name__} again"
            msg = (
                f"The stage {stage} is not configured in this checkout. "
                f"Run python -m infra configure --stage {stage}, {retry_hint}."
            )
            raise click.ClickException(msg)
        command(stage, folder, options)
    sys.exit(0)


def deploy(stage: str, folder: Path, options: dict[str, Any]) -> None:
    """Deploy the checkout's code to a stage, and report the resources as Chalice does.

    Raises:
        click.ClickException: an option or the account does not fit, or the deployment failed.
    """
    from chalice.deploy.deployer import DeploymentReporter  # noqa: PLC0415  only this command reports
    from chalice.utils import UI  # noqa: PLC0415  as above

    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  as above
    from infra.deploy.deployment import Deployment  # noqa: PLC0415  as above
    from infra.deploy.progress import Progress  # noqa: PLC0415  as above

    for name in ("autogen_policy", "api_gateway_stage"):
        if options.get(name) is not None:
            msg = f"--{name.replace('_', '-')}: expected no value, for the stage's config has one."
            raise click.ClickException(msg)
    if options.get("profile"):
        os.environ["AWS_PROFILE"] = options["profile"]
    deployment = Deployment(sign_in(), stage, Progress())
    outputs, _ = deployment.deployed()
    stage_settings = json.loads((folder / "config.json").read_text())["stages"][stage]
    if stage_settings["environment_variables"]["OBJECT_STORE"] != f"s3://{outputs['BucketName']}":
        msg = (
            f"The stage {stage} was configured for another account or region. "
            f"Choose its AWS_PROFILE, or run python -m infra configure --stage {stage}."
        )
        raise click.ClickException(msg)
    resources = deployment.update_code(options.get("connection_timeout"))
    DeploymentReporter(UI()).display_report({"resources": resources})


def package(stage: str, folder: Path, options: dict[str, Any]) -> None:
    """Write the checked zip and Chalice's template of a stage.

    Raises:
        click.ClickException: the zip could not be built, or Chalice refused an option.
    """
    from infra.deploy.package import build  # noqa: PLC0415  chalice local has no use for it

    built = build.build(stage, build.output_of(stage))
    shutil.copytree(folder, built.project / ".chalice", dirs_exist_ok=True)
    arguments = ["--stage", stage, "--pkg-format", options["pkg_format"]]
    arguments += ["--template-format", options["template_format"]]
    if options["single_file"]:
        arguments.append("--single-file")
    if options["merge_template"]:
        arguments += ["--merge-template", str(Path(options["merge_template"]).resolve())]
    out = str(Path(options["out"]).resolve())
    click.echo(build.chalice(built.python, built.project, "package", *arguments, out), nl=False)
