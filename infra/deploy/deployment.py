"""The deployment of a stage: data, then code, then the edge, then a smoke test (ADR 36).

Each step reads the current state and changes it to the wanted state. To finish a deployment that
was killed at any point, run it again.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from infra.deploy import policies, published_settings, releases, stage_config, stage_facts
from infra.deploy.aws import chalice_state, functions, gateway, tables, vaults
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Change, Stack
from infra.deploy.aws.store import Store
from infra.deploy.lock import locked
from infra.deploy.names import APP
from infra.deploy.operator_choices import OperatorChoices
from infra.deploy.package import build as package
from infra.deploy.progress import Progress
from infra.deploy.releases import Release, Source
from infra.deploy.stage_config import StageFacts
from infra.operator import refolding

UPLOAD_SECONDS = "300"
"""Timeout for the upload of a zip of 26 MiB to Lambda. Chalice's default is one minute."""
CHANGES = ("Creating", "Updating", "Deleting")
"""First words of the lines in which Chalice names a resource."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options of one run of ``deploy``. Only ``choices`` are stored.

    ``choices`` change fields of ``OperatorChoices``, by their names. None keeps a field's deployed
    value. An empty text removes a host or the e-mail address of alarms.
    """

    stage: str
    choices: Mapping[str, str | None] = field(default_factory=dict)
    allow_dirty: bool = False
    break_lock: bool = False
    python: str | None = None


@dataclass
class Deployment:
    """A stage in an account, with the actions on it."""

    account: Account
    stage: str
    progress: Progress
    root: Path = package.ROOT
    confirm: Callable[[list[Change]], None] = lambda _: None

    def deploy(self, options: DeployOptions) -> dict[str, Any]:
        """Deploy the checkout; return the state of the stage.

        Raises:
            click.ClickException: something is missing, refused or failed. Completed steps stay, and
                the next run continues from there.
        """
        source = self._source(allow_dirty=options.allow_dirty)
        self._refuse_another_region()
        data = self.stack("data")
        with ExitStack() as held:
            before = data.outputs()
            if before:
                self.lock(held, self.store(before), break_lock=options.break_lock)
            with self.progress.step(f"Stack {data.name}"):
                outputs = data.apply(self._data_parameters(), self.confirm, keep=True)
            store = self.store(outputs)
            if not before:  # The bucket of the lock was just created.
                self.lock(held, store, break_lock=options.break_lock)
            choices = self._choose(store, options)
            self._put_backups(choices, outputs)
            facts = self._read_facts(outputs, choices)
            with self.progress.step("Zip"):
                # The build needs none of the facts, and its template is readable by other users of
                # the machine.
                built = package.build(
                    self.stage, self.root / "build" / "package", options.python, self.root
                )
                self._configure(built.project, facts)
            with self.progress.step("Release"):
                release = releases.keep(store, built, source, choices.table_prefix, self.root)
                self.progress.note(release.id)
            self._publish(facts)
            resources = self._put_code(store, release, built.python, built.project)
            self._refold(choices)
            edge = self._put_edge(choices, outputs, facts, resources)
            facts = replace(facts, public_url=edge["BaseUrl"], site_hosts=edge["SiteHostsSetting"])
            self._set_edge_settings(resources, facts)
            releases.prune(store)
        return self._result(release, resources, edge, facts)

    def rollback(self, name: str | None, *, break_lock: bool, python: str | None) -> dict[str, Any]:
        """Deploy an earlier release's code to the functions; data and edge stay as they are.

        The default is the release before the current one.

        Raises:
            click.ClickException: the release does not exist, or could not be deployed.
        """
        outputs, store = self.deployed()
        edge = self.stack("edge").outputs() or {}
        with ExitStack() as held:
            self.lock(held, store, break_lock=break_lock)
            release = releases.find(store, name) if name else releases.previous(store)
            facts = self._read_facts(outputs, OperatorChoices.of(store))
            # The earlier code may fold texts differently, so the next deployment must check this.
            refolding.forget(self.account.client("dynamodb"), f"{facts.table_prefix}-{self.stage}")
            with self.progress.step(f"Release {release.id}"):
                project = package.project_of(self.stage, self.root)
                releases.unpack(store, release, project)
                found = package.find_python(python, release.version)
                requirements = project / releases.PACKAGER
                builder = package.environment(found, self.root / "build", requirements)
                self._configure(project, facts, release)
            resources = self._put_code(store, release, builder, project)
        return self._result(release, resources, edge, facts)

    def stack(self, name: str) -> Stack:
        """Return one of the stage's stacks."""
        return Stack(self.account, self.stage, name, self.progress)

    def store(self, outputs: Mapping[str, str]) -> Store:
        """Return the store in the bucket of the data stack."""
        return Store(self.account, outputs["BucketName"])

    def deployed(self) -> tuple[dict[str, str], Store]:
        """Return the data stack's outputs and the store of a deployed stage.

        Raises:
            click.ClickException: the stage is not deployed, or is in another region.
        """
        if outputs := self.stack("data").outputs():
            return outputs, self.store(outputs)
        self._refuse_another_region()
        msg = (
            f"The stage {self.stage} is not deployed in {self.account.region} of the account "
            f"{self.account.id}. Run make deploy STAGE={self.stage}."
        )
        raise click.ClickException(msg)

    def _source(self, *, allow_dirty: bool) -> Source:
        source = Source.of(self.root)
        if source.dirty and not allow_dirty:
            raise click.ClickException(
                "The checkout has changes that are in no commit, and a release is named by its "
                "commit. Commit them, or give --allow-dirty."
            )
        return source

    def _refuse_another_region(self) -> None:
        """Refuse to deploy a stage to a second region, because its names are unique in the account.

        Raises:
            click.ClickException: the stage's bucket is in another region.
        """
        ours = f"{StageFacts().table_prefix}-{self.stage}-{self.account.id}-"
        pages = self.account.client("s3").get_paginator("list_buckets").paginate(Prefix=ours)
        names = [bucket["Name"] for page in pages for bucket in page.get("Buckets", ())]
        elsewhere = [name.removeprefix(ours) for name in names if name.startswith(ours)]
        if elsewhere and self.account.region not in elsewhere:
            msg = (
                f"The stage {self.stage} is deployed in {elsewhere[0]}, and this is "
                f"{self.account.region}. Give --region {elsewhere[0]}."
            )
            raise click.ClickException(msg)

    def lock(self, held: ExitStack, store: Store, *, break_lock: bool) -> None:
        """Hold the lock until the end, and start no further step once it is lost."""
        lock = held.enter_context(locked(store, break_lock=break_lock))
        self.progress.before_step = lock.check
        held.callback(setattr, self.progress, "before_step", lambda: None)

    def _data_parameters(self) -> dict[str, str]:
        return {"Stage": self.stage, "TablePrefix": StageFacts().table_prefix}

    def _choose(self, store: Store, options: DeployOptions) -> OperatorChoices:
        """Store the choices before any of them is applied, so that the next run finds them."""
        choices = OperatorChoices.of(store).changed(options.choices)
        vaults.check_region(self.account.region, choices.backup_region)
        with self.progress.step(f"Tables {choices.table_prefix}-{self.stage}-*"):
            tables.protect(self.account, self.stage, choices.table_prefix, self.progress)
        choices.keep(store)
        return choices

    def _put_backups(self, choices: OperatorChoices, data: dict[str, str]) -> None:
        """Create the vaults, and the plan by which the current tables are copied into them."""
        with self.progress.step("Vaults"):
            vaults.ensure(self.account, self.stage, choices.backup_region, self.progress)
        parameters = {
            "TablePrefix": choices.table_prefix,
            "BucketName": data["BucketName"],
            "BackupRegion": choices.backup_region,
        }
        self._apply("backups", parameters)

    def _read_facts(self, outputs: dict[str, str], choices: OperatorChoices) -> StageFacts:
        facts = stage_facts.read(self.account, self.stage, outputs, choices)
        if facts.stopped:
            self.progress.note(
                f"Kept from running, and left so: {', '.join(facts.stopped)}. "
                "aws lambda delete-function-concurrency lets them run again."
            )
        if not {stage_config.JOBS, stage_config.CHAT} <= facts.reserved.keys():
            self.progress.note(
                "The account's quota is too small to reserve executions for both the jobs and the "
                "chat (python -m infra doctor)."
            )
        return facts

    def _configure(self, project: Path, facts: StageFacts, release: Release | None = None) -> None:
        """Write the stage's config, which contains secrets, for Chalice.

        An earlier release keeps its own policies, because its code may need other rights than the
        current code. They are adapted to the current tables.
        """
        folder = project / ".chalice"
        folder.chmod(0o700)
        if release is not None:
            config = stage_config.generate(stage_config.load(project), self.stage, facts)
            (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
            policies.replace_table_prefix(
                project, self.stage, release.table_prefix, facts.table_prefix
            )
        else:
            target = policies.Target(self.account.region, self.account.id)
            stage_config.write(project, self.stage, facts, target, self.root)

    def _put_code(
        self, store: Store, release: Release, python: package.Python, project: Path
    ) -> list[chalice_state.Resource]:
        """Run Chalice to create or update functions, routes, roles and schedules."""
        with self.progress.step("Functions and API (chalice deploy)"):
            before = chalice_state.existing(self.account, store, self.stage)
            chalice_state.put_into(project, self.stage, before)
            releases.set_deploying(store, release)
            arguments = ("--stage", self.stage, "--connection-timeout", UPLOAD_SECONDS)
            region = self.account.region
            output = package.chalice(python, project, "deploy", *arguments, region=region)
            for line in output.splitlines():
                if line.startswith(CHANGES) and not line.endswith(" package."):
                    self.progress.note(line)
            resources = chalice_state.save(store, project, self.stage)
            self._verify(resources, project / releases.DEPLOYMENTS / release.package)
            functions.discard_late_runs(self.account.client("lambda"), self.stage)
            releases.set_current(store, release)
        with self.progress.step("Answers and throttle of API Gateway"):
            api = chalice_state.value(resources, "rest_api", "rest_api_id")
            gateway.apply(self.account.client("apigateway"), api, self.stage, release.id)
        return resources

    def _verify(self, resources: list[chalice_state.Resource], zipped: Path) -> None:
        """Check that the functions run exactly the zip that was checked."""
        ours = base64.b64encode(hashlib.sha256(zipped.read_bytes()).digest()).decode()
        client = self.account.client("lambda")
        for function in _functions(resources):
            if client.get_function_configuration(FunctionName=function)["CodeSha256"] != ours:
                msg = (
                    f"{function} does not have the zip that was checked: Chalice packed another. "
                    "Delete build/ and run again."
                )
                raise click.ClickException(msg)

    def _refold(self, choices: OperatorChoices) -> None:
        """Schedule jobs that fold texts again which an older version's rule has folded."""
        with self.progress.step("Search texts"):
            client = self.account.client("dynamodb")
            if jobs := refolding.schedule(client, f"{choices.table_prefix}-{self.stage}"):
                self.progress.note(f"{jobs} jobs fold the texts of all workspaces again")

    def _put_edge(
        self,
        choices: OperatorChoices,
        data: dict[str, str],
        facts: StageFacts,
        resources: list[chalice_state.Resource],
    ) -> dict[str, str]:
        made = self._apply("edge-global", choices.hosts)
        edge = self._apply(
            "edge",
            choices.hosts
            | {
                "ApiId": chalice_state.value(resources, "rest_api", "rest_api_id"),
                "ApiStage": self.stage,
                "BucketName": data["BucketName"],
                "EdgeSecret": facts.edge_secret,
                "EdgeSecretVersion": facts.edge_secret_version,
                "WebAclArn": made["WebAclArn"],
                "CertificateArn": made.get("CertificateArn", ""),
                "SitesCertificateArn": made.get("SitesCertificateArn", ""),
            },
        )
        self._apply(
            "alarms",
            {
                "ApiStage": self.stage,
                "ApiName": APP,
                "TablePrefix": facts.table_prefix,
                "AlarmEmail": choices.alarm_email,
            },
        )
        return edge

    def _apply(self, name: str, parameters: Mapping[str, str]) -> dict[str, str]:
        stack = self.stack(name)
        with self.progress.step(f"Stack {stack.name}"):
            return stack.apply({"Stage": self.stage, **parameters})

    def _publish(self, facts: StageFacts) -> None:
        """Publish the addresses and tables of the stage for operators' machines."""
        config = stage_config.load(self.root)
        variables = stage_config.environment(config, self.stage, facts)
        published_settings.publish(self.account, self.stage, variables)

    def _set_edge_settings(
        self, resources: list[chalice_state.Resource], facts: StageFacts
    ) -> None:
        """Set what the edge stack determines for functions and operators, such as the base URL.

        Only a first deployment creates the functions without it. The edge sends its current secret
        now, so functions no longer accept the former one.
        """
        client = self.account.client("lambda")
        known = {"PUBLIC_URL": facts.public_url, "SITE_HOSTS": facts.site_hosts}
        with self.progress.step("Base URL"):
            for function in _functions(resources):
                about = client.get_function_configuration(FunctionName=function)
                variables = about["Environment"]["Variables"]
                wanted = variables | {name: value for name, value in known.items() if value}
                wanted.pop("EDGE_SECRET_PREVIOUS", None)
                if wanted != variables:
                    client.update_function_configuration(
                        FunctionName=function, Environment={"Variables": wanted}
                    )
                    client.get_waiter("function_updated_v2").wait(FunctionName=function)
            self._publish(facts)

    def _result(
        self,
        release: Release,
        resources: list[chalice_state.Resource],
        edge: Mapping[str, str],
        facts: StageFacts,
    ) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "region": self.account.region,
            "release": release.id,
            "apiId": chalice_state.value(resources, "rest_api", "rest_api_id"),
            "apiUrl": chalice_state.value(resources, "rest_api", "rest_api_url"),
            "chatUrl": edge.get("ChatFunctionUrl"),
            "distributionId": edge.get("DistributionId"),
            "baseUrl": edge.get("BaseUrl"),
            "records": self._records(edge),
            "stopped": facts.stopped,
        }

    def _records(self, edge: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the DNS records of the edge that Route 53 does not create."""
        given = self.stack("edge").parameters()
        domains = (
            ("Domain", "HostedZoneId", "DistributionDomain", ""),
            ("SitesDomain", "SitesHostedZoneId", "SitesDistributionDomain", "*."),
        )
        return [
            {"name": below + given[domain], "type": "CNAME", "value": edge[led]}
            for domain, zone, led, below in domains
            if given.get(domain) and not given.get(zone) and led in edge
        ]


def _functions(resources: list[chalice_state.Resource]) -> list[str]:
    return [each["lambda_arn"] for each in resources if each["resource_type"] == "lambda_function"]
