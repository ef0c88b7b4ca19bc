"""moto's server as a stand-in for AWS, with additions that the deployment needs.

moto imports only OpenAPI 3, and Chalice sends Swagger 2.0 to API Gateway. The parts that moto reads
are the same in both, so the document's version is replaced.
"""

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from moto.apigateway.models import APIGatewayBackend
from moto.awslambda.models import lambda_backends
from moto.cloudformation.models import ChangeSet, Stack
from moto.cloudformation.responses import CloudFormationResponse
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.common_models import CloudFormationModel
from moto.core.responses import BaseResponse
from moto.moto_server import werkzeug_app
from moto.s3.models import FakeBucket
from moto.secretsmanager.models import secretsmanager_backends

from infra.local import moto_server
from tests.infra.deploy.moto_calls import CALLS

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

CODE = "/moto-code/"
"""Path of the functions' zips, by region and name. On AWS, Lambda returns a link to S3."""
ACCOUNT_SETTINGS = "/2016-08-19/account-settings"
"""Actions of Lambda that moto does not support."""
TENANTS = "/2020-05-31/distribution-tenants"
"""CloudFront's list of tenants, which moto does not have. The list is empty."""
CONCURRENCY = int(os.environ.get("CONCURRENCY", "1000"))


def relabelled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a Swagger 2.0 document in a form that moto imports."""
    if "swagger" not in document:
        return document
    document_fields = {name: value for name, value in document.items() if name != "swagger"}
    return document_fields | {"openapi": "3.0.1", "info": {"description": "", **document["info"]}}


def accept_swagger() -> None:
    """Let moto's API Gateway import the document that Chalice sends."""
    imports, puts = APIGatewayBackend.import_rest_api, APIGatewayBackend.put_rest_api

    def import_rest_api(self: Any, api_doc: Any, fail_on_warnings: bool) -> Any:
        return imports(self, relabelled(api_doc), fail_on_warnings)

    def put_rest_api(
        self: Any, function_id: str, api_doc: Any, fail_on_warnings: bool, mode: str = "merge"
    ) -> Any:
        return puts(self, function_id, relabelled(api_doc), fail_on_warnings, mode)

    APIGatewayBackend.import_rest_api = import_rest_api
    APIGatewayBackend.put_rest_api = put_rest_api


def follow_change_sets() -> None:
    """Let moto's stacks return the outputs and parameters of their latest change set."""
    apply = ChangeSet.apply

    def applied(self: Any) -> None:
        apply(self)
        self.stack.template, self.stack.parameters = self.template, self.parameters
        self.stack._parse_template()
        self.stack.resource_map.load_conditions()
        self.stack.output_map = self.stack._create_output_map()

    def has_parameters(self: Any, others: dict[str, Any]) -> bool:
        """Compare the effective values of parameters, defaults included."""
        return all(self.stack_parameters.get(name) == value for name, value in others.items())

    ChangeSet.apply, Stack.has_parameters = applied, has_parameters
    # An empty change set is one that failed; moto has that, too, but refuses to make one.
    CloudFormationResponse._validate_different_update = lambda *_: None


def keep_versions() -> None:
    """Have the buckets of moto's stacks keep versions."""
    create = FakeBucket.create_from_cloudformation_json.__func__

    def created(
        cls: Any, resource_name: str, cloudformation_json: Any, *positional: Any, **more: Any
    ) -> Any:
        bucket = create(cls, resource_name, cloudformation_json, *positional, **more)
        versioning = cloudformation_json["Properties"].get("VersioningConfiguration", {})
        bucket.versioning_status = versioning.get("Status")
        return bucket

    FakeBucket.create_from_cloudformation_json = classmethod(created)


def find_no_drift() -> None:
    """Have moto's stacks be as their templates say."""
    answers = {
        "DetectStackDrift": "<StackDriftDetectionId>1</StackDriftDetectionId>",
        "DescribeStackDriftDetectionStatus": (
            "<DetectionStatus>DETECTION_COMPLETE</DetectionStatus>"
        ),
        "DescribeStackResourceDrifts": "<StackResourceDrifts/>",
    }
    for action, answer in answers.items():
        body = f"<{action}Response><{action}Result>{answer}</{action}Result></{action}Response>"
        method = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
        setattr(CloudFormationResponse, method, lambda _, body=body: body)


class SecretResource(CloudFormationModel):
    """A secret of a stack, which moto does not support. It is generated or has no value."""

    def __init__(self, arn: str) -> None:
        self.physical_resource_id = arn

    @staticmethod
    def cloudformation_name_type() -> str:
        return "Name"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::SecretsManager::Secret"

    @classmethod
    def create_from_cloudformation_json(
        cls,
        resource_name: str,  # noqa: ARG003  moto's
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
        **_: Any,
    ) -> Any:
        about = cloudformation_json["Properties"]
        length = about.get("GenerateSecretString", {}).get("PasswordLength")
        secret = secretsmanager_backends[account_id][region_name].create_secret(
            name=about["Name"],
            secret_string=secrets.token_hex(length // 2) if length else None,
            secret_binary=None,
            description=about.get("Description"),
            tags=[],
            kms_key_id=None,
            client_request_token=None,
            replica_regions=[],
            force_overwrite=False,
        )
        return cls(json.loads(secret)["ARN"])


called: set[str] = set()


def record_calls_of_chalice() -> None:
    """Have moto record each call of Chalice before responding."""
    dispatch = BaseResponse.call_action

    def call_action(self: Any) -> Any:
        # Chalice also appends its name to the agent of clients in an application.
        if self.headers.get("User-Agent", "").startswith("aws-chalice/"):
            service = self.boto3_service_name
            action = self.method if service == "apigateway" else self._get_action()
            called.add(f"{service}:{action}")
        return dispatch(self)

    BaseResponse.call_action = call_action


def reserved() -> int:
    """Return the concurrency that functions have reserved, in all regions."""
    regions = lambda_backends[DEFAULT_ACCOUNT_ID].values()
    functions = [list_function for region in regions for list_function in region.list_functions()]
    return sum(function.reserved_concurrency or 0 for function in functions)


def add_missing_paths(app: Wsgi) -> Wsgi:
    """Serve the paths that moto lacks, in addition to its own."""

    def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.rstrip("/") == ACCOUNT_SETTINGS:
            start("200 OK", [("Content-Type", "application/json")])
            limit = {"UnreservedConcurrentExecutions": CONCURRENCY - reserved()}
            return [json.dumps({"AccountLimit": limit}).encode()]
        if path == CALLS:
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(sorted(called)).encode()]
        if path.rstrip("/") == TENANTS:
            start("200 OK", [("Content-Type", "text/xml")])
            return [b"<ListDistributionTenantsResult/>"]
        if path.startswith(CODE):
            region, name = path.removeprefix(CODE).split("/")
            function = lambda_backends[DEFAULT_ACCOUNT_ID][region].get_function(name)
            start("200 OK", [("Content-Type", "application/zip")])
            return [function.code_bytes]
        return app(environ, start)

    return serve


def main() -> None:
    """Run the server until it is killed."""
    accept_swagger()
    follow_change_sets()
    record_calls_of_chalice()
    keep_versions()
    find_no_drift()
    stock = werkzeug_app.DomainDispatcherApplication
    moto_server.DomainDispatcherApplication = lambda *a, **k: add_missing_paths(stock(*a, **k))
    moto_server.main()
