"""The stacks of a stage are valid, documented, and consistent with the code.

CloudFormation itself is not used. cfn-lint checks the templates against AWS's schemas, and moto
creates the resources that it supports.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from cfnlint.decode import cfn_yaml
from moto import mock_aws

from chalicelib.core.settings import read, settings
from chalicelib.domains.files.rules import stored_files
from chalicelib.engine.connection import connection
from chalicelib.engine.tables import TABLES
from chalicelib.transports import edge, routes, scheduled_functions
from chalicelib.transports.chat import chat_route, stream_probe
from infra.deploy.names import APP, configuration_set, function_name
from infra.deploy.package.build import ROOT
from infra.deploy.policies import FUNCTIONS, MAIL_QUEUE
from infra.deploy.stacks import build as stacks
from infra.local.devserver.site_hosts import SHARED

TEMPLATES = {
    stack: json.loads(json.dumps(cfn_yaml.loads(stacks.template(stack)))) for stack in stacks.STACKS
}
RESOURCES = {stack: template["Resources"] for stack, template in TEMPLATES.items()}
CONFIG = json.loads((ROOT / ".chalice" / "config.json").read_text())


def properties_by_name(stack: str, kind: str) -> dict[str, Any]:
    """Return the properties of a stack's resources of one type, by their logical names."""
    resources = RESOURCES[stack].items()
    return {
        name: resource["Properties"] for name, resource in resources if resource["Type"] == kind
    }


def filled(value: Any, **values: str) -> Any:
    """Return a value with references to parameters replaced by their values."""
    text = json.dumps(value)
    for name, replacement in values.items():
        text = text.replace(f"${{{name}}}", replacement)
    return json.loads(re.sub(r'\{"Fn::Sub": ("[^"$]*")\}', r"\1", text))


@pytest.mark.parametrize("stack", stacks.STACKS)
class TestTemplate:
    def test_template_fits_into_one_call(self, stack: str) -> None:
        assert len(stacks.template(stack).encode()) <= 51_200  # CloudFormation quotas

    def test_template_has_the_documented_parameters_and_outputs(self, stack: str) -> None:
        about = (stacks.__doc__ or "").partition(f"``{stack}``  ")[2]
        about = re.split(r"\n(?:``|==)", about)[0]
        documented = set(
            re.findall(
                r"\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b(?:Stage|Domain|Edge|Choices)\b", about
            )
        )
        template = TEMPLATES[stack]
        assert documented - {"NoEcho"} == {*template["Parameters"], *template["Outputs"]}

    def test_template_has_a_name_and_a_region(self, stack: str) -> None:
        assert stacks.stack_name("dev", stack=stack) == f"workspace-api-dev-{stack}"
        place = "us-east-1" if stack == "edge-global" else "eu-central-1"
        assert stacks.region_of(stack, region="eu-central-1") == place


def test_templates_pass_cfn_lint(tmp_path: Path) -> None:
    """``make check`` checks the templates that are files, but not what only informs.

    cfn-lint runs in a process of its own, because it keeps 150 MB.
    """
    for stack in ("data", "backups", "alarms", "edge-global"):
        (tmp_path / f"{stack}.template").write_text(stacks.template(stack))
    command = [Path(sys.executable).with_name("cfn-lint"), *sorted(tmp_path.iterdir())]
    regions = ["--regions", "eu-central-1", "us-east-1"]
    lint = subprocess.run(
        [*command, *regions, "--include-checks", "I"], capture_output=True, text=True, check=False
    )
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")


@pytest.mark.filterwarnings("ignore:Tried to parse:UserWarning")  # moto knows no secrets there
class TestData:
    def test_data_resources_are_retained(self) -> None:
        for name, resource in RESOURCES["data"].items():
            assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain", name

    def test_tables_match_those_that_the_service_creates(self, database: None) -> None:
        stage = {"ParameterKey": "Stage", "ParameterValue": settings().stage}
        with mock_aws():
            client = boto3.client("cloudformation", "us-west-2")
            client.create_stack(
                StackName="data", TemplateBody=stacks.template("data"), Parameters=[stage]
            )
            dynamodb = boto3.client("dynamodb", "us-west-2")
            tables = {t: described(dynamodb, t) for t in dynamodb.list_tables()["TableNames"]}
        names = [row.Meta.table_name for row in TABLES.values()]
        assert tables == {name: described(connection().client, name) for name in names}

    def test_tables_with_expiry_have_time_to_live(self, database: None) -> None:
        tables = properties_by_name("data", "AWS::DynamoDB::Table")
        assert len(tables) == len(TABLES)
        for table in filled([*tables.values()], TablePrefix="workspace", Stage=settings().stage):
            answer = connection().client.describe_time_to_live(TableName=table["TableName"])
            expected = answer["TimeToLiveDescription"]
            declared = table.get("TimeToLiveSpecification", {})
            assert declared.get("AttributeName") == expected.get("AttributeName")
            assert declared.get("Enabled", False) == (expected["TimeToLiveStatus"] == "ENABLED")

    @pytest.mark.parametrize("name", TABLES)
    def test_tables_have_recovery_and_deletion_protection(self, name: str) -> None:
        table = properties_by_name("data", "AWS::DynamoDB::Table")[f"{name.title()}Table"]
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["DeletionProtectionEnabled"] is True
        assert table["BillingMode"] == "PAY_PER_REQUEST"

    def test_bucket_is_private(self) -> None:
        (bucket,) = properties_by_name("data", "AWS::S3::Bucket").values()
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        assert len(bucket["PublicAccessBlockConfiguration"]) == 4
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        assert bucket["BucketName"] == {
            "Fn::Sub": "${TablePrefix}-${Stage}-${AWS::AccountId}-${AWS::Region}"
        }

    def test_each_function_has_its_log_group(self) -> None:
        groups = properties_by_name("data", "AWS::Logs::LogGroup").values()
        names = {filled(group["LogGroupName"], Stage="dev") for group in groups}
        assert names == {
            f"/aws/lambda/{function_name('dev', function=function)}" for function in FUNCTIONS
        }
        assert all(group["RetentionInDays"] for group in groups)


def described(client: Any, table: str) -> dict[str, Any]:
    """Return the keys and indexes of a table, independent of their order."""
    description = client.describe_table(TableName=table)["Table"]
    fields = (
        "AttributeDefinitions",
        "KeySchema",
        "LocalSecondaryIndexes",
        "GlobalSecondaryIndexes",
    )
    return {name: sort_lists(description.get(name, [])) for name in fields} | {
        "BillingMode": description["BillingModeSummary"]["BillingMode"]
    }


def sort_lists(value: Any) -> Any:
    """Return a value with its lists sorted, at any depth."""
    if isinstance(value, list):
        return sorted(map(sort_lists, value), key=json.dumps)
    if isinstance(value, dict):
        return {name: sort_lists(value[name]) for name in sorted(value)}
    return value


DISTRIBUTIONS = properties_by_name("edge", "AWS::CloudFront::Distribution")
CACHE_NOTHING = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
SEND_ALL_BUT_HOST = "b689b0a8-53d0-40ab-baf2-68738e2966ac"
ALL_METHODS = {"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"}


def behaviours(name: str) -> dict[str, Any]:
    """Return a distribution's behaviours by pattern, in order. "*" is the default."""
    config = DISTRIBUTIONS[name]["DistributionConfig"]
    special = {behaviour["PathPattern"]: behaviour for behaviour in config["CacheBehaviors"]}
    return {**special, "*": config["DefaultCacheBehavior"]}


def behaviour(name: str, path: str) -> dict[str, Any]:
    """Return the behaviour that CloudFront selects for a path: the first that matches."""
    for pattern, behaviour_settings in behaviours(name).items():
        if re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), path):
            return dict(behaviour_settings)
    raise AssertionError(path)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
class TestDistribution:
    def test_origins_receive_the_edge_secret(self, name: str) -> None:
        origins = DISTRIBUTIONS[name]["DistributionConfig"]["Origins"]
        for origin in origins:
            if origin["Id"] == "files":
                assert origin["OriginAccessControlId"]
                continue
            (header,) = origin["OriginCustomHeaders"]
            assert header["HeaderName"].lower() == edge.SECRET_HEADER
            assert header["HeaderValue"] == {"Ref": "EdgeSecret"}
            assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
        assert {origin["Id"] for origin in origins} == {"api", "chat", "files"}

    def test_custom_headers_are_not_reserved_by_cloudfront(self, name: str) -> None:
        forbidden = ("x-edge-", "x-amz-", "x-amzn-")
        for header in (edge.SECRET_HEADER, edge.VIEWER_HEADER, edge.HOST_HEADER):
            assert not header.startswith(forbidden)

    def test_every_behaviour_runs_the_viewer_request_function(self, name: str) -> None:
        for pattern, rules in behaviours(name).items():
            if rules["TargetOriginId"] == "files":
                continue
            (function,) = rules["FunctionAssociations"]
            assert function["EventType"] == "viewer-request", pattern

    def test_errors_are_not_cached(self, name: str) -> None:
        errors = DISTRIBUTIONS[name]["DistributionConfig"]["CustomErrorResponses"]
        assert {error["ErrorCode"] for error in errors} == {
            *(400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504)
        }
        assert all(error == error | {"ErrorCachingMinTTL": 0} for error in errors)

    def test_distribution_uses_current_protocols(self, name: str) -> None:
        config = DISTRIBUTIONS[name]["DistributionConfig"]
        assert config["HttpVersion"] == "http2and3"
        assert "TLSv1.2_2021" in json.dumps(config["ViewerCertificate"])

    def test_the_chat_streams(self, name: str) -> None:
        chat = behaviour(name, chat_route.PATH)
        assert behaviour(name, stream_probe.PATH) == chat
        assert chat["TargetOriginId"] == "chat"
        assert chat["CachePolicyId"] == CACHE_NOTHING
        assert chat["OriginRequestPolicyId"] == SEND_ALL_BUT_HOST
        assert chat["Compress"] is False
        assert "POST" in chat["AllowedMethods"]
        origins = DISTRIBUTIONS[name]["DistributionConfig"]["Origins"]
        (origin,) = [origin for origin in origins if origin["Id"] == "chat"]
        assert origin["ConnectionAttempts"] == 1
        assert origin["CustomOriginConfig"]["OriginReadTimeout"] > 15 * 2  # a ping each 15

    def test_files_are_read_from_the_bucket(self, name: str) -> None:
        rules = behaviour(name, "/files/0123/bread.png")
        assert rules["TargetOriginId"] == "files"
        assert set(rules["AllowedMethods"]) == {"GET", "HEAD", "OPTIONS"}
        targets = [rules["TargetOriginId"] for rules in behaviours(name).values()]
        assert targets.count("files") == 1, "nothing else of the bucket is public"


class TestMainDistribution:
    @pytest.mark.parametrize(
        "path",
        ["/", "/api/health", "/api/mcp", "/api/public/hit", "/api/blog/list", "/console/keys"],
    )
    def test_the_api_and_the_console_are_never_cached(self, path: str) -> None:
        rules = behaviour("Distribution", path)
        assert rules["TargetOriginId"] == "api"
        assert rules["CachePolicyId"] == CACHE_NOTHING
        assert rules["OriginRequestPolicyId"] == SEND_ALL_BUT_HOST
        assert set(rules["AllowedMethods"]) == ALL_METHODS

    def test_pages_of_the_service_may_be_cached(self) -> None:
        caches = dict.fromkeys(("/blog", "/s/", "/api/docs"), "PagesCache")
        # The page of a form shows changes of the form immediately, and a short link is a secret.
        uncached = ("/form/{form}", "/b/{code}")
        for path in uncached:
            rules = behaviour("Distribution", re.sub(r"\{\w+\}", "x", path))
            assert rules["CachePolicyId"] == CACHE_NOTHING
            assert set(rules["AllowedMethods"]) == ALL_METHODS
        # The start page varies by what its client accepts, which no cache's key has. Few programs
        # read the list of documents.
        scripts = [routes.WIDGET_PATH, routes.BOOK_SCRIPT_PATH]
        for path in [*(routes.PAGES.keys() - {"/", "/llms.txt", *uncached}), *scripts]:
            rules = behaviour("Distribution", re.sub(r"\{\w+\}", "x", path))
            begins = next((begin for begin in caches if path.startswith(begin)), None)
            expected = caches[begins] if begins else "StaticCache"
            assert rules["CachePolicyId"] == {"Ref": expected}, path
            assert set(rules["AllowedMethods"]) == ALL_METHODS, "what is refused is refused by us"

    def test_pages_are_cached_for_a_minute_by_host_query_and_language(self) -> None:
        config = properties_by_name("edge", "AWS::CloudFront::CachePolicy")["PagesCache"][
            "CachePolicyConfig"
        ]
        assert (config["MinTTL"], config["DefaultTTL"], config["MaxTTL"]) == (0, 0, 60)
        key = config["ParametersInCacheKeyAndForwardedToOrigin"]
        assert {name.lower() for name in key["HeadersConfig"]["Headers"]} == {
            edge.HOST_HEADER,
            "accept-language",
        }
        assert key["QueryStringsConfig"] == {"QueryStringBehavior": "all"}
        assert key["CookiesConfig"] == {"CookieBehavior": "none"}

    def test_files_are_cached_for_as_long_as_a_replaced_one_may_be_shown(self) -> None:
        config = properties_by_name("edge", "AWS::CloudFront::CachePolicy")["FilesCache"][
            "CachePolicyConfig"
        ]
        assert config["MaxTTL"] == stored_files.CACHED_SECONDS
        key = config["ParametersInCacheKeyAndForwardedToOrigin"]
        query = {"QueryStringBehavior": "whitelist", "QueryStrings": ["v"]}
        assert key["QueryStringsConfig"] == query
        for distribution in ("Distribution", "SitesDistribution"):
            rules = behaviour(distribution, "/files/x/photo.jpg")
            assert rules["CachePolicyId"] == {"Ref": "FilesCache"}

    def test_responses_without_cache_control_are_not_cached(self) -> None:
        policies = properties_by_name("edge", "AWS::CloudFront::CachePolicy").values()
        for config in (policy["CachePolicyConfig"] for policy in policies):
            assert (config["MinTTL"], config["DefaultTTL"]) == (0, 0)

    def test_a_key_sent_unencrypted_is_refused_rather_than_redirected(self) -> None:
        for path in ("/api/projects/list", chat_route.PATH, "/api/mcp", "/oauth/token"):
            assert behaviour("Distribution", path)["ViewerProtocolPolicy"] == "https-only"

    @pytest.mark.parametrize(
        "path",
        [
            *("/api/mcp", "/oauth/authorize", "/oauth/token"),
            "/.well-known/oauth-protected-resource/api/mcp",
        ],
    )
    def test_sign_in_of_ai_clients_is_encrypted_and_never_cached(self, path: str) -> None:
        rules = behaviour("Distribution", path)
        assert rules["ViewerProtocolPolicy"] == "https-only"
        assert rules["CachePolicyId"] == behaviour("Distribution", "/console")["CachePolicyId"]
        assert "POST" in rules["AllowedMethods"]

    def test_only_the_tool_server_passes_the_challenge_function(self) -> None:
        special = DISTRIBUTIONS["Distribution"]["DistributionConfig"]["CacheBehaviors"]
        passing = [path["PathPattern"] for path in special if "LambdaFunctionAssociations" in path]
        assert passing == ["/api/mcp*"]


class TestSitesDistribution:
    def test_each_host_is_a_tenant_behind_the_connection_group(self) -> None:
        config = DISTRIBUTIONS["SitesDistribution"]["DistributionConfig"]
        assert config["ConnectionMode"] == "tenant-only"
        # These are the connection group's (CloudFront API reference, DistributionConfig).
        assert not {"Aliases", "IPV6Enabled", "PriceClass"} & set(config)
        (group,) = properties_by_name("edge", "AWS::CloudFront::ConnectionGroup").values()
        assert (group["Enabled"], group["Ipv6Enabled"]) == (True, True)
        (tenant,) = properties_by_name("edge", "AWS::CloudFront::DistributionTenant").values()
        assert tenant["DistributionId"] == {"Ref": "SitesDistribution"}
        assert tenant["ConnectionGroupId"] == {"Fn::GetAtt": ["SiteHosts", "Id"]}
        assert tenant["Domains"] == [{"Fn::Sub": "*.${SitesDomain}"}]

    def test_setting_of_site_hosts_can_be_read_by_the_service(self) -> None:
        text = TEMPLATES["edge"]["Outputs"]["SiteHostsSetting"]["Value"]["Fn::Sub"]
        parameters = {
            "SitesDistribution": "E1",
            "SiteHosts.Id": "cg_1",
            "SiteHosts.RoutingEndpoint": "d.net",
        }
        for name, value in parameters.items():
            text = text.replace(f"${{{name}}}", value)
        assert read({"SITE_HOSTS": text}).site_hosts == "cloudfront:E1/cg_1/d.net"

    def test_sites_distribution_has_the_paths_of_local_site_hosts(self) -> None:
        assert set(behaviours("SitesDistribution")) == {*SHARED, "*"}

    def test_sites_distribution_serves_only_paths_that_pages_call(self) -> None:
        assert set(behaviours("SitesDistribution")) == {
            f"{chat_route.PATH}*",
            "/api/public/*",
            "/widget.js",
            "/files/?*",
            "*",
        }

    @pytest.mark.parametrize("path", ["/files", "/files/", "/api", "/api/", "/blog", "/widget"])
    def test_a_page_may_have_the_name_of_a_path_of_the_service(self, path: str) -> None:
        (function,) = behaviour("SitesDistribution", path)["FunctionAssociations"]
        assert function["FunctionARN"] == {"Fn::GetAtt": ["SitesFunction", "FunctionARN"]}

    def test_other_paths_are_pages_of_the_hosts_site(self) -> None:
        rules = behaviour("SitesDistribution", "/api/projects/list")
        (function,) = rules["FunctionAssociations"]
        assert function["FunctionARN"] == {"Fn::GetAtt": ["SitesFunction", "FunctionARN"]}
        assert rules["CachePolicyId"] == {"Ref": "PagesCache"}


class TestOrigins:
    def test_the_chats_url_streams_and_has_both_permissions(self) -> None:
        (url,) = properties_by_name("chat", "AWS::Lambda::Url").values()
        assert (url["InvokeMode"], url["AuthType"]) == ("RESPONSE_STREAM", "NONE")
        assert "Cors" not in url, "the handler's headers would be sent twice"
        assert filled(url["TargetFunctionArn"], Stage="dev") == function_name(
            "dev", function="chat-stream"
        )
        permissions = properties_by_name("chat", "AWS::Lambda::Permission").values()
        assert {permission["Action"] for permission in permissions} == {
            "lambda:InvokeFunction",
            "lambda:InvokeFunctionUrl",
        }

    def test_stored_files_have_the_headers_that_s3_does_not_keep(self) -> None:
        policy = properties_by_name("edge", "AWS::CloudFront::ResponseHeadersPolicy")[
            "FilesHeaders"
        ]
        config = policy["ResponseHeadersPolicyConfig"]
        security = config["SecurityHeadersConfig"]
        assert security["ContentTypeOptions"]["Override"] is True
        headers = {
            "Content-Security-Policy": security["ContentSecurityPolicy"]["ContentSecurityPolicy"],
            "X-Content-Type-Options": "nosniff",  # what ContentTypeOptions stands for
            "Access-Control-Allow-Origin": ",".join(
                config["CorsConfig"]["AccessControlAllowOrigins"]["Items"]
            ),
        } | {header["Header"]: header["Value"] for header in config["CustomHeadersConfig"]["Items"]}
        kept_by_s3 = {"Content-Type", "Content-Disposition"}
        expected = stored_files.headers("image/png")
        assert headers == {name: expected[name] for name in expected.keys() - kept_by_s3}

    def test_distributions_may_read_only_files_of_the_bucket(self) -> None:
        (policy,) = properties_by_name("edge", "AWS::S3::BucketPolicy").values()
        statements = {
            statement["Sid"]: statement for statement in policy["PolicyDocument"]["Statement"]
        }
        read = statements["PublicFiles"]
        assert read["Action"] == "s3:GetObject"
        assert read["Resource"] == {"Fn::Sub": "arn:${AWS::Partition}:s3:::${BucketName}/files/*"}
        for sid in ("PublicFiles", "MissingFilesAreNotFound"):
            assert statements[sid]["Principal"] == {"Service": "cloudfront.amazonaws.com"}
            assert set(statements[sid]["Condition"]) == {"StringEquals"}
            assert "distribution/${Distribution}" in json.dumps(statements[sid]["Condition"])
        assert statements["OnlyEncrypted"]["Effect"] == "Deny"


class TestMail:
    def test_reports_of_ses_reach_the_runner_of_events(
        self,
    ) -> None:
        (destination,) = properties_by_name(
            "mail", "AWS::SES::ConfigurationSetEventDestination"
        ).values()
        event = destination["EventDestination"]
        assert event["MatchingEventTypes"] == ["send", "bounce", "complaint"]
        assert event["SnsDestination"] == {"TopicARN": {"Ref": "Topic"}}
        (subscription,) = properties_by_name("mail", "AWS::SNS::Subscription").values()
        assert subscription["TopicArn"] == {"Ref": "Topic"}
        assert subscription["Endpoint"] == {"Fn::GetAtt": ["Queue", "Arn"]}
        (mapping,) = properties_by_name("mail", "AWS::Lambda::EventSourceMapping").values()
        assert mapping["EventSourceArn"] == {"Fn::GetAtt": ["Queue", "Arn"]}
        assert filled(mapping["FunctionName"], Stage="dev") == function_name(
            "dev", function="run-events"
        )
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]

    def test_queue_keeps_messages_longer_than_the_function_runs(
        self,
    ) -> None:
        (queue,) = properties_by_name("mail", "AWS::SQS::Queue").values()
        assert queue["QueueName"] == {
            "Fn::Sub": f"{APP}-${{Stage}}-{scheduled_functions.MAIL_QUEUE}"
        }
        assert scheduled_functions.MAIL_QUEUE == MAIL_QUEUE
        timeout = CONFIG["lambda_functions"]["run-events"]["lambda_timeout"]
        assert queue["VisibilityTimeout"] >= timeout

    def test_only_ses_publishes_and_only_the_topic_sends(self) -> None:
        (topic,) = properties_by_name("mail", "AWS::SNS::TopicPolicy").values()
        (publish,) = topic["PolicyDocument"]["Statement"]
        assert publish["Principal"] == {"Service": "ses.amazonaws.com"}
        condition = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        assert publish["Condition"]["StringEquals"] == condition
        (queue,) = properties_by_name("mail", "AWS::SQS::QueuePolicy").values()
        (send,) = queue["PolicyDocument"]["Statement"]
        assert send["Principal"] == {"Service": "sns.amazonaws.com"}
        assert send["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": "Topic"}}}

    def test_the_configuration_set_has_the_name_that_the_functions_send_with(self) -> None:
        (mails,) = properties_by_name("mail", "AWS::SES::ConfigurationSet").values()
        assert filled(mails["Name"], Stage="dev") == configuration_set("dev")
        assert mails["SuppressionOptions"] == {"SuppressedReasons": []}
