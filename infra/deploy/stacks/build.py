"""The CloudFormation stacks of a stage: their names, places and templates (ADR 35).

They are deployed in this order, with ``chalice deploy`` between the second and the third. An
optional parameter is left out, or empty. Everything else is named after the stage.

======================  =======================================================================
stack and region        what it takes, and its outputs
======================  =======================================================================
``data``                Parameters: Stage; TablePrefix ("workspace").
                        Outputs: BucketName; EdgeSecretArn, a secret that AWS has made up, for
                        ``EDGE_SECRET`` and the stack ``edge``; LlmKeySecretArn, a secret without
                        a value until the operator puts in a key of the model provider;
                        ReleasesPrefix and StatePrefix, under which the bucket keeps the zips
                        of the releases and what Chalice remembers of its deployment.
``edge-global``         Parameters: Stage; optional: Domain, HostedZoneId, SitesDomain,
(always us-east-1)      SitesHostedZoneId. A certificate without a hosted zone is issued once its
                        owner has made the DNS record that the stack's events name; until then the
                        stack is not done.
                        Outputs: WebAclArn; CertificateArn with a Domain; SitesCertificateArn with
                        a SitesDomain.
``edge``                Parameters: Stage, ApiId, ApiStage, BucketName, EdgeSecret (its value;
                        NoEcho); optional: WebAclArn, Domain, CertificateArn, HostedZoneId,
                        SitesDomain, SitesCertificateArn, SitesHostedZoneId.
                        Outputs: BaseUrl, for ``PUBLIC_URL``; DistributionId; DistributionDomain,
                        where the Domain's record leads; SitesDistributionDomain, where that of
                        ``*.<SitesDomain>`` leads, with a SitesDomain; ChatFunctionUrl, which
                        answers 403 without the secret.
``alarms``              Parameters: Stage, ApiStage; TablePrefix ("workspace"); ApiName
                        ("workspace-api"); optional: AlarmEmail (AWS asks it to confirm),
                        MonthlyBudget (USD; of the whole account).
                        Outputs: TopicArn.
======================  =======================================================================

``data`` is never deleted: whatever is in it is retained, and would be in the way of the next one.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.deploy.names import APP
from infra.deploy.stacks import alarms as alarms_stack
from infra.deploy.stacks import data as data_stack

STACKS = ("data", "edge-global", "edge", "alarms")
"""In the order of their deployment; they are deleted in the opposite one, ``data`` never."""
GLOBAL_REGION = "us-east-1"
"""Where AWS wants certificates and rules for CloudFront (ACM and WAF developer guides)."""
_FOLDER = Path(__file__).parent / "templates"
_MADE = {"data": data_stack.template, "alarms": alarms_stack.template}
"""Those that are made of the models' tables and of the functions; the others are files."""


def stack_name(stage: str, stack: str) -> str:
    """Return the name of a stage's stack, such as ``workspace-api-prod-data``."""
    return f"{APP}-{stage}-{stack}"


def region_of(stack: str, region: str) -> str:
    """Return where a stack is deployed, of a service that is in ``region``."""
    return GLOBAL_REGION if stack == "edge-global" else region


def template(stack: str) -> str:
    """Return a stack's template, as CloudFormation takes it; it is the same for all stages."""
    if stack in _MADE:
        return json.dumps(_MADE[stack](), indent=1)
    return (_FOLDER / f"{stack}.yaml").read_text()


def with_literal_names(template: str, values: Mapping[str, str]) -> str:
    """Return a JSON template with the values of parameters where ``Fn::Sub`` names them.

    CloudFormation takes existing resources into a stack only under names that no function makes
    (user guide, Import AWS resources into a CloudFormation stack automatically).
    """

    def named(found: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        if found.keys() != {"Fn::Sub"}:
            return found
        return re.sub(r"\$\{([^}]+)\}", lambda match: values[match[1]], found["Fn::Sub"])

    return json.dumps(json.loads(template, object_hook=named), indent=1)
