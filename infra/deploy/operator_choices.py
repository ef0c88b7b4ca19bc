"""What operators have decided of a stage, kept with its data: what is left out stays as it was.

Stacks remember their parameters, too, but each its own: a deployment that was stopped between two
of them would go on with the domain of one and the certificate of the other.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from infra.deploy.aws.store import Store
from infra.deploy.stacks.data import STATE
from infra.deploy.stage_config import StageFacts

KEY = f"{STATE}choices.json"


@dataclass(frozen=True, slots=True)
class OperatorChoices:
    """Hosts, where alarms go, and the tables that functions work with; empty where there is none.

    They are kept until an operator changes them, by ``DeployOptions.choices``. ``StageFacts`` are
    read anew by each run. A file of an earlier or a later version is read, too: a missing field has
    its default, and an unknown one is ignored.

    ``table_prefix`` is the data stack's own, or leads to other tables, such as restored ones.
    """

    domain: str = ""
    hosted_zone: str = ""
    sites_domain: str = ""
    sites_hosted_zone: str = ""
    alarm_email: str = ""
    table_prefix: str = StageFacts().table_prefix

    @classmethod
    def of(cls, store: Store) -> Self:
        """Return what was decided so far."""
        return store.get_record(KEY, cls) or cls()

    def changed(self, given: Mapping[str, str | None]) -> Self:
        """Return these with what is given now; None leaves a choice as it is."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def keep(self, store: Store) -> None:
        """Remember them for every deployment to come, also after the stage was destroyed."""
        store.put_json(KEY, asdict(self))

    @property
    def hosts(self) -> dict[str, str]:
        """The parameters of both edge stacks."""
        return {
            "Domain": self.domain,
            "HostedZoneId": self.hosted_zone,
            "SitesDomain": self.sites_domain,
            "SitesHostedZoneId": self.sites_hosted_zone,
        }
