"""Limits, responses and samples of the web ACL."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from chalicelib.core.ids import new_id
from chalicelib.lib import tokens
from chalicelib.transports.api_docs import openapi
from infra.deploy.aws import gateway
from infra.deploy.stacks import build as stacks

TEMPLATE = json.loads(json.dumps(cfn_yaml.loads(stacks.template("edge-global"))))
ACL = TEMPLATE["Resources"]["WebAcl"]["Properties"]
RULES = {rule["Name"]: rule for rule in ACL["Rules"]}
BODIES = {name: json.loads(body["Content"]) for name, body in ACL["CustomResponseBodies"].items()}
MANAGED = {
    rule["Statement"]["ManagedRuleGroupStatement"]["Name"]: rule["Statement"][
        "ManagedRuleGroupStatement"
    ]["RuleActionOverrides"]
    for rule in ACL["Rules"]
    if "ManagedRuleGroupStatement" in rule["Statement"]
}


def limit(name: str) -> dict[str, Any]:
    statement: dict[str, Any] = RULES[name]["Statement"]["RateBasedStatement"]
    return statement


def responses() -> Iterator[dict[str, Any]]:
    """Yield the response of every rule that blocks, of managed groups as well."""
    for rule in RULES.values():
        if "Action" in rule:
            yield rule["Action"]["Block"]["CustomResponse"]
    for overrides in MANAGED.values():
        for override in overrides:
            if "Block" in override["ActionToUse"]:
                yield override["ActionToUse"]["Block"]["CustomResponse"]


def test_priorities_of_the_rules_follow_their_order() -> None:
    assert [rule["Priority"] for rule in ACL["Rules"]] == [*range(len(ACL["Rules"]))]


class TestResponses:
    def test_every_refusal_is_the_envelope_that_the_api_documents(self) -> None:
        schema = openapi.document()["components"]["schemas"]["Failure"]["properties"]["data"]
        for name, body in BODIES.items():
            assert list(body) == ["data"], name
            assert set(schema["required"]) <= set(body["data"]), name
            assert body["data"]["status"] is False

    def test_codes_of_refusals_are_those_of_the_service(self) -> None:
        codes = {name: body["data"]["code"] for name, body in BODIES.items()}
        assert codes == {"RateLimited": "rate_limited", "Refused": "forbidden"}

    def test_every_blocking_rule_responds_with_the_envelope(self) -> None:
        all_responses = list(responses())
        assert len(all_responses) == 14
        for response in all_responses:
            headers = {header["Name"]: header["Value"] for header in response["ResponseHeaders"]}
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert "X-Amz-Cf-Id" in headers["Access-Control-Expose-Headers"]
            assert headers["Cache-Control"] == "no-store"
            status = {"RateLimited": 429, "Refused": 403}[response["CustomResponseBodyKey"]]
            assert response["ResponseCode"] == status

    @pytest.mark.parametrize("name", ["Key", "Visitor", "Address"])
    def test_a_limit_counts_a_minute_and_names_the_time_to_wait(self, name: str) -> None:
        assert limit(name)["EvaluationWindowSec"] == 60
        response = RULES[name]["Action"]["Block"]["CustomResponse"]
        assert response["ResponseCode"] == 429
        assert {"Name": "Retry-After", "Value": "60"} in response["ResponseHeaders"]


class TestLimits:
    def counts_as_visitor(self, authorization: str | None) -> bool:
        """Whether the limit of visitors counts a request with this header, as WAF evaluates it."""
        match = limit("Visitor")["ScopeDownStatement"]["NotStatement"]["Statement"]
        regex = match["RegexMatchStatement"]
        assert regex["FieldToMatch"] == {"SingleHeader": {"Name": "authorization"}}
        assert regex["TextTransformations"] == [{"Priority": 0, "Type": "LOWERCASE"}]
        return not re.search(regex["RegexString"], (authorization or "").lower())

    def test_requests_of_a_key_are_counted_from_any_address(self) -> None:
        (key,) = limit("Key")["CustomKeys"]
        assert key["Header"]["Name"] == "authorization"

    @pytest.mark.parametrize("prefix", [tokens.PREFIX, tokens.BOT_PREFIX])
    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
    def test_a_key_of_the_service_is_not_counted_as_a_visitor(
        self, prefix: str, scheme: str
    ) -> None:
        assert not self.counts_as_visitor(f"{scheme} {tokens.generate(prefix)}")

    def test_an_access_token_is_not_counted_as_a_visitor(self) -> None:
        token = tokens.generate_for(new_id(), prefix=tokens.ACCESS_PREFIX)
        assert not self.counts_as_visitor(f"Bearer {token}")

    @pytest.mark.parametrize(
        "header",
        [
            None,
            "",
            "Bearer x",
            "Bearer svc_live_short",
            "Basic dXNlcjpwYXNz",
            "svc_live_" + "0" * 38,
        ],
    )
    def test_any_other_authorization_is_counted_as_a_visitor(self, header: str | None) -> None:
        assert self.counts_as_visitor(header)

    def test_requests_with_invented_keys_are_limited_by_address(self) -> None:
        statement = limit("Address")
        assert statement["AggregateKeyType"] == "IP"
        assert "ScopeDownStatement" not in statement
        assert statement["Limit"] / 60 <= gateway.RATE / 10, (
            "ten addresses do not use the whole throttle"
        )


class TestManagedRules:
    def test_only_groups_that_accept_our_requests_are_used(self) -> None:
        # The core rule set refuses bodies over 8 KB and HTML; anonymous addresses are agents'.
        assert set(MANAGED) == {
            "AWSManagedRulesAmazonIpReputationList",
            "AWSManagedRulesKnownBadInputsRuleSet",
        }

    def test_no_request_is_refused_for_its_body(self) -> None:
        overrides = [rule for group in MANAGED.values() for rule in group]
        counting_rules = {
            rule["Name"] for rule in overrides if rule["ActionToUse"] == {"Count": {}}
        }
        assert counting_rules == {
            rule["Name"] for rule in overrides if rule["Name"].endswith("_BODY")
        }
        assert len(counting_rules) == 3


class TestSamples:
    def test_refused_requests_are_sampled_and_allowed_ones_are_not(self) -> None:
        assert ACL["VisibilityConfig"]["SampledRequestsEnabled"] is False
        for rule in RULES.values():
            assert rule["VisibilityConfig"]["SampledRequestsEnabled"] is True

    def test_keys_sessions_and_queries_are_redacted_in_samples(self) -> None:
        headers, query = ACL["DataProtectionConfig"]["DataProtections"]
        assert {"authorization", "cookie"} <= set(headers["Field"]["FieldKeys"])
        assert query["Field"] == {"FieldType": "QUERY_STRING"}
        assert {headers["Action"], query["Action"]} == {"SUBSTITUTION"}
