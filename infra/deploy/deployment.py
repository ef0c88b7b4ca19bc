"""Deploy a stage's data, code and edge in this order, and test the stage (ADR 36).

Each step reads the current state and changes it to the wanted state. To finish a deployment that
was killed at any point, run it again.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from chalicelib import STORED_FORMAT
from infra.deploy import code, published_settings, releases, stage_config, stage_facts
from infra.deploy.aws import chalice_state, drift, tables, vaults
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Change, Stack
from infra.deploy.aws.store import Store, require_same_region
from infra.deploy.lock import locked
from infra.deploy.names import APP
from infra.deploy.package import build as package
from infra.deploy.progress import Progress
from infra.deploy.releases import Release, Source
from infra.deploy.stacks import build as stacks
from infra.deploy.stage_config import StageFacts

HOSTS = ("Domain", "HostedZoneId", "SitesDomain", "SitesHostedZoneId")
"""The choices that both edge stacks take."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options of one run of ``deploy``. Only ``choices`` are stored.

    ``choices`` are values of ``stacks.data.CHOICES``. Choices that are left out keep their values.
    An empty string removes a host or the e-mail address of alarms.
    """

    stage: str
    choices: Mapping[str, str] = field(default_factory=dict)
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
    accept_drift: Callable[[list[str]], None] = lambda _: None
    """Called with the resources that were changed outside of CloudFormation; may refuse them."""

    def deploy(self, options: DeployOptions) -> dict[str, Any]:
        """Deploy the checkout; return the state of the stage.

        Raises:
            click.ClickException: something is missing, refused or failed. Completed steps are kept,
                and the next run continues from there.
        """
        source = self._source(allow_dirty=options.allow_dirty)
        # A stage's names are the same in each region, so a second region would get a second stage.
        require_same_region(self.account, self.stage)
        self._check_choices(options.choices)
        # The lock lies in the bucket of the data stack, so a first deployment has no lock yet.
        data = self.stack("data")
        with ExitStack() as locks:
            old_outputs = data.outputs()
            if old_outputs:
                self.lock(locks, self.store(old_outputs), break_lock=options.break_lock)
                self._check_stored_format()
                self._check_drift()
            with self.progress.step(f"Stack {data.name}"):
                names = {"Stage": self.stage, "TablePrefix": StageFacts().table_prefix}
                outputs = data.apply({**names, **options.choices}, self.confirm, keep=True)
            if not old_outputs:  # The bucket of the lock was just created.
                self.lock(locks, self.store(outputs), break_lock=options.break_lock)
            choices = data.parameters()
            self._protect_tables(choices["TablesInUse"])
            self._put_backups(choices, data=outputs)
            facts = self._read_facts(outputs, choices)
            release, resources = self._put_checkout(outputs, facts, source, options.python)
            facts, edge = self._put_addresses(
                choices, data=outputs, facts=facts, resources=resources
            )
        return self._result(release, resources, edge, facts)

    def rollback(self, name: str | None, *, break_lock: bool, python: str | None) -> dict[str, Any]:
        """Deploy an earlier release's code to the functions, without a change of data or edge.

        The default is the release before the current one.

        Raises:
            click.ClickException: the release does not exist, or could not be deployed.
        """
        outputs, store = self.deployed()
        with ExitStack() as locks:
            self.lock(locks, store, break_lock=break_lock)
            release = releases.find(store, name) if name else releases.previous(store)
            facts = self._read_facts(outputs, self.stack("data").parameters())
            with self.progress.step(f"Release {release.id}"):
                project = package.project_of(self.stage, self.root)
                releases.unpack(store, release, project)
                interpreter = package.find_python(python, release.python_version)
                requirements = project / releases.PACKAGER
                builder = package.environment(
                    interpreter, self.root / "build", requirements=requirements
                )
                code.configure_release(self.stage, facts, project, release)
            resources = self._put(builder, project, release)
            # The release is promoted last, so that a failed rollback can be repeated.
            releases.promote(store, release)
        return self._result(release, resources, self.stack("edge").outputs() or {}, facts)

    def update_code(self, seconds: int | None) -> list[chalice_state.Resource]:
        """Deploy only the checkout's code, as ``chalice deploy`` does; return its resources.

        Args:
            seconds: timeout of the upload.

        Raises:
            click.ClickException: the stage is not deployed, is locked, or Chalice failed.
        """
        source = self._source(allow_dirty=True)
        outputs, store = self.deployed()
        with ExitStack() as locks:
            self.lock(locks, store, break_lock=False)
            self._check_stored_format()
            facts = self._read_facts(outputs, self.stack("data").parameters())
            return self._put_checkout(outputs, facts, source, None, seconds)[1]

    def configure(self) -> Path:
        """Write the stage's config, policies and deployed resources into the checkout.

        Returns the folder of the stage, which git ignores.

        Raises:
            click.ClickException: the stage is not deployed.
        """
        outputs, _ = self.deployed()
        facts = stage_facts.read(
            self.account, self.stage, outputs, choices=self.stack("data").parameters()
        )
        resources = chalice_state.existing(self.account, self.stage)
        return code.configure_checkout(self.account, self.stage, facts, resources, self.root)

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
        require_same_region(self.account, self.stage)
        msg = (
            f"The stage {self.stage} is not deployed in {self.account.region} of the account "
            f"{self.account.id}. Run make deploy STAGE={self.stage}."
        )
        raise click.ClickException(msg)

    def _source(self, *, allow_dirty: bool) -> Source:
        source = Source.from_checkout(self.root)
        if source.dirty and not allow_dirty:
            raise click.ClickException(
                "The checkout has changes that are in no commit, and a release is named by its "
                "commit. Commit them, or give --allow-dirty."
            )
        return source

    def _check_choices(self, chosen_values: Mapping[str, str]) -> None:
        """Refuse choices that cannot be carried out, before CloudFormation stores them.

        Raises:
            click.ClickException: hosts without an edge, an edge that would go, missing tables, or
                the stage's own region as the second one of its backups.
        """
        choices = {**self.stack("data").parameters(), **chosen_values}
        vaults.check_region(self.account.region, backup_region=choices.get("BackupRegion", ""))
        if choices.get("Edge") == "false":
            if hosts := [name for name in HOSTS if choices.get(name)]:
                msg = (
                    f"--no-edge: expected no domain, received {', '.join(hosts)}. Domains are the "
                    "edge's. Give '' for them, or --edge."
                )
                raise click.ClickException(msg)
            if self.stack("edge").outputs() is not None:
                msg = (
                    f"--no-edge: expected a stage without an edge, and {self.stage} has one. "
                    f"Run python -m infra destroy --stage {self.stage} first; its data stays."
                )
                raise click.ClickException(msg)
        prefix = chosen_values.get("TablesInUse", StageFacts().table_prefix)
        if prefix != StageFacts().table_prefix:
            tables.require(self.account, self.stage, prefix=prefix)

    def _check_stored_format(self) -> None:
        """Refuse a stage whose rows this checkout does not read.

        Raises:
            click.ClickException: they have another format.
        """
        stored = published_settings.stored_format(self.account, self.stage)
        if stored not in {None, STORED_FORMAT}:
            msg = (
                f"The rows of the stage {self.stage} have the format {stored}, and this checkout "
                f"reads format {STORED_FORMAT}. Export the workspaces with the release that wrote "
                "them (python -m infra admin export), deploy a new stage, and import them there."
            )
            raise click.ClickException(msg)

    def _check_drift(self) -> None:
        """Show the resources of the stacks that were changed outside of CloudFormation."""
        with self.progress.step("Drift of the stacks"):
            every = [self.stack(name) for name in stacks.STACKS]
            if differences := drift.find(every, self.progress):
                for line in differences:
                    self.progress.note(line)
                self.accept_drift(differences)

    def _protect_tables(self, prefix: str) -> None:
        with self.progress.step(f"Tables {prefix}-{self.stage}-*"):
            tables.protect(self.account, self.stage, prefix=prefix, progress=self.progress)

    def lock(self, locks: ExitStack, store: Store, *, break_lock: bool) -> None:
        """Hold the lock until the end, and start no further step once it is lost."""
        lock = locks.enter_context(locked(store, break_lock=break_lock))
        self.progress.before_step = lock.check
        # A later step of the same process holds no lock and must not be checked.
        locks.callback(setattr, self.progress, "before_step", lambda: None)

    def _put_backups(self, choices: Mapping[str, str], *, data: Mapping[str, str]) -> None:
        """Create the vaults, and the plan by which the current tables are copied into them."""
        with self.progress.step("Vaults"):
            vaults.ensure(
                self.account,
                self.stage,
                backup_region=choices["BackupRegion"],
                progress=self.progress,
            )
        parameters = {
            "TablePrefix": choices["TablesInUse"],
            "BucketName": data["BucketName"],
            "BackupRegion": choices["BackupRegion"],
        }
        self._apply("backups", parameters)

    def _read_facts(self, outputs: dict[str, str], choices: Mapping[str, str]) -> StageFacts:
        facts = stage_facts.read(self.account, self.stage, outputs, choices=choices)
        if facts.stopped:
            self.progress.note(
                f"Kept from running, and left so: {', '.join(facts.stopped)}. "
                "aws lambda delete-function-concurrency lets them run again."
            )
        if not facts.reserved.keys() >= stage_facts.RESERVING:
            self.progress.note(
                "The account's quota is too small to reserve executions for the jobs, the events "
                "and the chat (python -m infra doctor)."
            )
        return facts

    def _put_checkout(
        self,
        outputs: dict[str, str],
        facts: StageFacts,
        source: Source,
        python: str | None,
        seconds: int | None = None,
    ) -> tuple[Release, list[chalice_state.Resource]]:
        """Build the checkout, store it as a release, and have Chalice deploy it."""
        with self.progress.step("Zip"):
            # The build needs none of the facts, and its template is readable by other users of the
            # machine.
            built = package.build(
                self.stage, package.output_of(self.stage, self.root), python, self.root
            )
            chalice_folder = built.project / ".chalice"
            code.configure(self.account, self.stage, facts, chalice_folder, root=self.root)
        # The release is stored before any function runs its code, so a rollback always finds it.
        with self.progress.step("Release"):
            release = releases.keep(
                self.store(outputs), built, source, facts.table_prefix, self.root
            )
            self.progress.note(release.id)
        self._publish(facts)
        resources = self._put(built.python, built.project, release, seconds)
        code.configure_checkout(self.account, self.stage, facts, resources, self.root)
        return release, resources

    def _put(
        self, python: package.Python, project: Path, release: Release, seconds: int | None = None
    ) -> list[chalice_state.Resource]:
        return code.put(
            self.account,
            self.stage,
            python,
            project,
            release=release,
            progress=self.progress,
            seconds=seconds,
        )

    def _put_addresses(
        self,
        choices: Mapping[str, str],
        *,
        data: Mapping[str, str],
        facts: StageFacts,
        resources: list[chalice_state.Resource],
    ) -> tuple[StageFacts, dict[str, str]]:
        """Create what calls the functions and the alarms, and set the functions' addresses.

        Returns the facts with the final addresses, and the outputs of the edge.
        """
        chat_url = self._apply("chat", {})["ChatFunctionUrl"]
        self._apply("events", {})
        variables = stage_config.environment(stage_config.load(self.root), self.stage, facts)
        if variables.get("MAIL") == "ses":
            self._apply("mail", {})
        if choices["Edge"] == "true":
            if not facts.edge_secret:  # The stage had no edge until now.
                secret, version = stage_facts.secret(self.account, data["EdgeSecretArn"])
                facts = replace(facts, edge_secret=secret, edge_secret_version=version)
            edge = self._put_edge(
                choices, data=data, chat_url=chat_url, facts=facts, resources=resources
            )
            facts = replace(
                facts,
                public_url=edge["BaseUrl"],
                site_hosts=edge["SiteHostsSetting"],
                chat_url="",
                edge_secret_previous="",  # The edge sends the current secret now.
            )
        else:
            edge, url = {}, chalice_state.value(resources, "rest_api", field="rest_api_url")
            facts = replace(facts, public_url=url.rstrip("/"), chat_url=chat_url.rstrip("/"))
        self._apply(
            "alarms",
            {
                "ApiStage": self.stage,
                "ApiName": APP,
                "TablePrefix": facts.table_prefix,
                "AlarmEmail": choices["AlarmEmail"],
            },
        )
        with self.progress.step("Base URL"):
            code.set_addresses(self.account, resources, facts)
            self._publish(facts)
            code.configure_checkout(self.account, self.stage, facts, resources, self.root)
        return facts, edge

    def _put_edge(
        self,
        choices: Mapping[str, str],
        *,
        data: Mapping[str, str],
        chat_url: str,
        facts: StageFacts,
        resources: list[chalice_state.Resource],
    ) -> dict[str, str]:
        hosts = {name: choices[name] for name in HOSTS}
        outputs = self._apply("edge-global", hosts)
        return self._apply(
            "edge",
            hosts
            | {
                "ApiId": chalice_state.value(resources, "rest_api", field="rest_api_id"),
                "ApiStage": self.stage,
                "ChatFunctionUrl": chat_url,
                "BucketName": data["BucketName"],
                "EdgeSecret": facts.edge_secret,
                "EdgeSecretVersion": facts.edge_secret_version,
                "WebAclArn": outputs["WebAclArn"],
                "ChallengeFunctionArn": outputs["ChallengeFunctionArn"],
                "CertificateArn": outputs.get("CertificateArn", ""),
                "SitesCertificateArn": outputs.get("SitesCertificateArn", ""),
            },
        )

    def _apply(self, name: str, parameters: Mapping[str, str]) -> dict[str, str]:
        stack = self.stack(name)
        with self.progress.step(f"Stack {stack.name}"):
            return stack.apply({"Stage": self.stage, **parameters})

    def _publish(self, facts: StageFacts) -> None:
        """Publish the addresses and tables of the stage for operators' machines."""
        config = stage_config.load(self.root)
        variables = stage_config.environment(config, self.stage, facts)
        published_settings.publish(self.account, self.stage, variables)
        published_settings.publish_stored_format(self.account, self.stage, STORED_FORMAT)

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
            "apiId": chalice_state.value(resources, "rest_api", field="rest_api_id"),
            "apiUrl": chalice_state.value(resources, "rest_api", field="rest_api_url"),
            "chatUrl": (self.stack("chat").outputs() or {}).get("ChatFunctionUrl"),
            "distributionId": edge.get("DistributionId"),
            "baseUrl": edge.get("BaseUrl") or (facts.public_url if facts.chat_url else None),
            "records": stacks.dns_records(self.stack("edge").parameters(), edge=edge),
            "stopped": facts.stopped,
        }
