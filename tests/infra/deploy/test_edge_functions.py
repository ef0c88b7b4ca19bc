"""CloudFront's functions, run in an engine for the same language (ECMAScript 5.1)."""

import hashlib
import json
from typing import Any

import dukpy
import pytest
from cfnlint.decode import cfn_yaml

from chalicelib.transports import edge, routes
from infra.deploy.stacks import build as stacks

CODE = {
    name: resource["Properties"]["FunctionCode"]
    for name, resource in cfn_yaml.loads(stacks.template("edge"))["Resources"].items()
    if resource["Type"] == "AWS::CloudFront::Function"
}
VIEWER = "2001:db8::7"


def run_function(
    function: str, uri: str = "/", host: str = "shop.sites.example", **headers: Any
) -> Any:
    """Return the function's result for a request (CloudFront developer guide, event structure)."""
    request_headers = {"host": {"value": host}}
    request_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = {
        "method": "GET",
        "uri": uri,
        "querystring": {},
        "headers": request_headers,
        "cookies": {},
    }
    event = {"version": "1.0", "viewer": {"ip": VIEWER}, "request": request}
    return dukpy.evaljs([CODE[function], "handler(dukpy.event)"], event=event)


@pytest.mark.parametrize("function", CODE)
class TestEach:
    def test_function_adds_host_and_viewer_headers(self, function: str) -> None:
        headers = run_function(function)["headers"]
        assert headers[edge.HOST_HEADER] == {"value": "shop.sites.example"}
        assert headers[edge.VIEWER_HEADER] == {"value": VIEWER}

    def test_function_overwrites_headers_sent_by_the_viewer(self, function: str) -> None:
        lie = {"value": "evil", "multiValue": [{"value": "evil"}, {"value": "worse"}]}
        headers = run_function(function, x_forwarded_host=lie, x_viewer_address=lie)["headers"]
        assert "evil" not in str(headers)

    def test_function_changes_no_read_only_header(self, function: str) -> None:
        assert run_function(function)["headers"]["host"] == {"value": "shop.sites.example"}

    def test_function_fits_the_size_limit(self, function: str) -> None:
        assert len(CODE[function].encode()) < 10_000  # CloudFront quotas


def test_the_service_keeps_its_paths() -> None:
    assert run_function("ViewerFunction", "/api/../x//y/")["uri"] == "/api/../x//y/"


@pytest.mark.parametrize(
    ("uri", "page"),
    [
        ("/", ""),
        ("/about", "/about"),
        ("/about/", "/about"),
        ("//about//", "/about"),
        ("/%D1%85%D0%BB%D0%B5%D0%B1", "/%D1%85%D0%BB%D0%B5%D0%B1"),
        ("/api/projects/list", "/api%2Fprojects%2Flist"),
        ("/s/other/page", "/s%2Fother%2Fpage"),
        ("/../../console", "/..%2F..%2Fconsole"),
        ("/robots.txt", "/robots.txt"),
    ],
)
def test_a_sites_path_is_one_page_of_its_own_site(uri: str, page: str) -> None:
    assert run_function("SitesFunction", uri)["uri"] == f"/s/shop.sites.example{page}"
    assert "/s/{site}/{page}" in routes.PAGES


@pytest.mark.parametrize(
    "host", ["SHOP.sites.example", "www.customer.example", "xn--80ajpngj0i.xn--p1ai"]
)
def test_service_receives_the_whole_host(host: str) -> None:
    returned = run_function("SitesFunction", "/about", host)
    assert returned["uri"] == f"/s/{host.lower()}/about"
    assert returned["headers"][edge.HOST_HEADER] == {"value": host.lower()}


class TestChallenge:
    """The function of Lambda@Edge, run as Lambda does (CloudFront guide, event structure)."""

    @pytest.fixture
    def handler(self) -> Any:
        resources = cfn_yaml.loads(stacks.template("edge-global"))["Resources"]
        names: dict[str, Any] = {}
        exec(resources["ChallengeFunction"]["Properties"]["Code"]["ZipFile"], names)  # noqa: S102  the code under test
        return names["handler"]

    def test_other_code_is_published_as_another_version(self) -> None:
        resources = json.loads(json.dumps(cfn_yaml.loads(stacks.template("edge-global"))))[
            "Resources"
        ]
        properties = json.dumps(resources["ChallengeFunction"]["Properties"], sort_keys=True)
        versions = [name for name in resources if resources[name]["Type"] == "AWS::Lambda::Version"]
        digest = hashlib.sha256(properties.encode()).hexdigest()[:8]
        assert (versions, digest) == (["ChallengeVersion1"], "c6365760"), (
            "CloudFront keeps running a version that has the same name: give it the next number"
        )

    def event(self, status: str, **headers: str) -> Any:
        response_headers = {
            name.replace("_", "-"): [{"key": name.replace("_", "-").title(), "value": value}]
            for name, value in headers.items()
        }
        return {"Records": [{"cf": {"response": {"status": status, "headers": response_headers}}}]}

    def test_the_header_that_api_gateway_renamed_gets_its_name_back(self, handler: Any) -> None:
        event = self.event("401", x_amzn_remapped_www_authenticate="Bearer x", vary="Origin")
        answer = handler(event, None)
        assert answer == {
            "status": "401",
            "headers": {
                "vary": [{"key": "Vary", "value": "Origin"}],
                "www-authenticate": [{"key": "WWW-Authenticate", "value": "Bearer x"}],
            },
        }

    def test_other_answers_stay_as_they_are(self, handler: Any) -> None:
        event = self.event("200", content_type="application/json")
        assert (
            handler(event, None)
            == self.event("200", content_type="application/json")["Records"][0]["cf"]["response"]
        )
