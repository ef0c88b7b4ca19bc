"""Names, regions and templates of a stage's CloudFormation stacks (ADR 35).

They are deployed in this order, with ``chalice deploy`` between the first and the second. A stage
without an edge has neither ``edge-global`` nor ``edge``. An optional parameter may be left out or
empty. All other names are derived from the stage.

======================  =======================================================================
stack and region        parameters and outputs
======================  =======================================================================
``data``                Parameters: Stage; TablePrefix ("workspace"). The operator's choices,
                        which the other stacks receive: Domain, HostedZoneId, SitesDomain,
                        SitesHostedZoneId, AlarmEmail, BackupRegion, TablesInUse, Edge
                        ("true").
                        Outputs: BucketName; EdgeSecretArn, a secret that AWS generates, for
                        ``EDGE_SECRET`` and the stack ``edge``; LlmKeySecretArn, a secret without
                        a value until the operator stores a key of the model provider;
                        MasterKeySecretArn, a secret that AWS generates; TelegramTokenSecretArn and
                        MaxTokenSecretArn, secrets without a value until the operator stores a bot's
                        token; SmsKeySecretArn, as well, of a provider of SMS; Choices, which
                        changes with the choices.
``backups``             Parameters: Stage, BucketName; TablePrefix ("workspace"), the tables that
                        the functions use; optional: BackupRegion, where a second vault is.
                        Outputs: RoleArn, the role of AWS Backup, also for restorations.
``chat``                Parameters: Stage.
                        Outputs: ChatFunctionUrl, the URL of the chat's function. With an edge, the
                        function responds with 403 without the secret.
``events``              Parameters: Stage.
                        Outputs: QueueUrl, the queue whose messages wake the function that sends
                        events. ``EVENTS_QUEUE_URL`` has it before the stack exists.
``mail``                Parameters: Stage. Only a stage with ``MAIL=ses`` has this stack.
                        Outputs: ConfigurationSet, with which SES reports on messages; TopicArn,
                        to which SES reports, for a configuration set of the operator's own.
``edge-global``         Parameters: Stage; optional: Domain, HostedZoneId, SitesDomain,
(always us-east-1)      SitesHostedZoneId. Without a hosted zone, the domain's owner must
                        create the DNS record that the stack's events name. The stack waits
                        for the record.
                        Outputs: WebAclArn; ChallengeFunctionArn, with its version; CertificateArn
                        with a Domain; SitesCertificateArn with a SitesDomain.
``edge``                Parameters: Stage, ApiId, ApiStage, ChatFunctionUrl, BucketName,
                        EdgeSecret (its value; NoEcho), EdgeSecretVersion (the value's id in
                        Secrets Manager); optional: WebAclArn, ChallengeFunctionArn,
                        Domain, CertificateArn, HostedZoneId, SitesDomain,
                        SitesCertificateArn, SitesHostedZoneId.
                        Outputs: BaseUrl, for ``PUBLIC_URL``; DistributionId; DistributionDomain,
                        the target of the Domain's record; SitesDistributionDomain, the target
                        of the record of ``*.<SitesDomain>``, with a SitesDomain;
                        SiteHostsSetting, for ``SITE_HOSTS``; EdgeSecretVersion, as given: the
                        secret that the edge sends.
``alarms``              Parameters: Stage, ApiStage; TablePrefix ("workspace"); ApiName
                        ("workspace-api"); optional: AlarmEmail (AWS asks it to confirm),
                        MonthlyBudget (USD; of the whole account).
                        Outputs: TopicArn.
======================  =======================================================================

``data`` and ``backups`` are deleted only together with the data of the stage.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.deploy.names import APP
from infra.deploy.stacks import alarms as alarms_stack
from infra.deploy.stacks import backups as backups_stack
from infra.deploy.stacks import data as data_stack

STACKS = ("data", "backups", "chat", "events", "mail", "edge-global", "edge", "alarms")
"""In the order of deployment. They are deleted in reverse order."""
GLOBAL_REGION = "us-east-1"
"""CloudFront requires this region for certificates and WAF rules (ACM and WAF developer guides)."""
_FOLDER = Path(__file__).parent / "templates"
_MADE = {
    "data": data_stack.template,
    "backups": backups_stack.template,
    "alarms": alarms_stack.template,
}
"""Templates that are generated from tables and functions. The others are files."""


def stack_name(stage: str, *, stack: str) -> str:
    """Return the name of a stage's stack, such as ``workspace-api-prod-data``."""
    return f"{APP}-{stage}-{stack}"


def region_of(stack: str, *, region: str) -> str:
    """Return the region of a stack, for a service in ``region``."""
    return GLOBAL_REGION if stack == "edge-global" else region


def template(stack: str) -> str:
    """Return a stack's CloudFormation template, which is the same for all stages."""
    if stack in _MADE:
        return json.dumps(_MADE[stack](), indent=1)
    return (_FOLDER / f"{stack}.yaml").read_text()


def insert_names(template: str, values: Mapping[str, str]) -> str:
    """Return a JSON template with parameters inserted for ``Fn::Sub``.

    CloudFormation imports existing resources only if their names contain no intrinsic functions
    (user guide, Import AWS resources into a CloudFormation stack automatically).
    """

    def insert_name(reference: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        if reference.keys() != {"Fn::Sub"}:
            return reference
        return re.sub(r"\$\{([^}]+)\}", lambda match: values[match[1]], reference["Fn::Sub"])

    return json.dumps(json.loads(template, object_hook=insert_name), indent=1)


def dns_records(parameters: Mapping[str, str], *, edge: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the DNS records of the edge that its operator must create.

    Route 53 creates the records of a domain whose hosted zone is given.

    Args:
        parameters: the parameters of the stack ``edge``.
        edge: its outputs.
    """
    domains = (
        ("Domain", "HostedZoneId", "DistributionDomain", ""),
        ("SitesDomain", "SitesHostedZoneId", "SitesDistributionDomain", "*."),
    )
    return [
        {"name": prefix + parameters[domain], "type": "CNAME", "value": edge[target]}
        for domain, zone, target, prefix in domains
        if parameters.get(domain) and not parameters.get(zone) and target in edge
    ]
