"""Operators' choices for a stage, stored with its data. An omitted choice keeps its value.

Stacks store their own parameters, but each stack separately. A deployment that was interrupted
between two stacks would otherwise continue with the domain of one and the certificate of the other.
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
    """Hosts, the e-mail address of alarms, the second region of backups, and the tables' prefix.

    Empty if not set. Choices are stored until an operator changes them with
    ``DeployOptions.choices``. In contrast, each run reads ``StageFacts`` again. Files of earlier
    and later versions can be read: a missing field has its default, and an unknown field is
    ignored.

    ``table_prefix`` is the data stack's own, or that of other tables, such as restored ones.
    """

    domain: str = ""
    hosted_zone: str = ""
    sites_domain: str = ""
    sites_hosted_zone: str = ""
    alarm_email: str = ""
    backup_region: str = ""
    table_prefix: str = StageFacts().table_prefix

    @classmethod
    def of(cls, store: Store) -> Self:
        """Return the stored choices."""
        return store.get_record(KEY, cls) or cls()

    def changed(self, given: Mapping[str, str | None]) -> Self:
        """Return the choices with these changes; None keeps a choice."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def keep(self, store: Store) -> None:
        """Store the choices for all later deployments, including those after ``destroy``."""
        store.put_json(KEY, asdict(self))

    @property
    def hosts(self) -> dict[str, str]:
        """The host parameters of both edge stacks."""
        return {
            "Domain": self.domain,
            "HostedZoneId": self.hosted_zone,
            "SitesDomain": self.sites_domain,
            "SitesHostedZoneId": self.sites_hosted_zone,
        }
