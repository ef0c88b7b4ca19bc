"""Hosts as distribution tenants of CloudFront, compared with botocore's description of the API."""

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.stub import ANY, Stubber

from chalicelib.core.errors import UnavailableError
from chalicelib.gateways import site_hosts
from chalicelib.gateways.site_hosts import Address, CloudFrontHosts
from chalicelib.transports import scheduled_functions

HOST = "www.example.com"
ENDPOINT = "d1.cloudfront.net"
FUNCTION_SECONDS = 300
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/one"
HOSTS = CloudFrontHosts.from_setting(f"cloudfront:E1/cg_1/{ENDPOINT}", stage="prod")
NAME = "prod-80fc0fb9266db7b83f85850fa0e6548b6d70ee68"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    client = botocore.session.get_session().create_client(
        "cloudfront",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )
    monkeypatch.setattr(site_hosts, "client", lambda: client)
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def tenant(status: str = "inactive", *, enabled: bool = True, **more: Any) -> dict[str, Any]:
    about = {"Id": "dt_1", "Enabled": enabled, "Domains": [{"Domain": HOST, "Status": status}]}
    return {"DistributionTenant": {**about, **more}, "ETag": "v1"}


def expect_lookup(stub: Stubber, answer: dict[str, Any] | None) -> None:
    """Stub a lookup with this tenant, or as not found."""
    parameters = {"Identifier": NAME}
    if answer is None:
        stub.add_client_error(
            "get_distribution_tenant", "EntityNotFound", expected_params=parameters
        )
    else:
        stub.add_response("get_distribution_tenant", answer, parameters)


def certificate(stub: Stubber, **about: str) -> None:
    answer = {"ManagedCertificateDetails": about}
    stub.add_response("get_managed_certificate_details", answer, {"Identifier": "dt_1"})


class TestServe:
    def test_a_new_host_gets_a_tenant_with_a_certificate(self, stub: Stubber) -> None:
        expect_lookup(stub, None)
        stub.add_response(
            "create_distribution_tenant",
            tenant(),
            {
                "DistributionId": "E1",
                "ConnectionGroupId": "cg_1",
                "Name": NAME,
                "Domains": [{"Domain": HOST}],
                "Enabled": True,
                "ManagedCertificateRequest": {
                    "ValidationTokenHost": "cloudfront",
                    "PrimaryDomainName": HOST,
                },
                "Tags": {"Items": [{"Key": "workspace-api-stage", "Value": "prod"}]},
            },
        )
        assert HOSTS.serve(HOST).state == "certificate"

    @pytest.mark.parametrize(
        ("code", "state", "reason"),
        [
            ("InvalidArgument", "waiting", f"{HOST} does not lead to {ENDPOINT} yet."),
            ("CNAMEAlreadyExists", "waiting", "Another distribution of CloudFront"),
            ("EntityAlreadyExists", "certificate", ""),
        ],
    )
    def test_a_host_that_cannot_be_created_yet_waits(
        self, code: str, state: str, reason: str, stub: Stubber
    ) -> None:
        expect_lookup(stub, None)
        stub.add_client_error("create_distribution_tenant", code)
        answer = HOSTS.serve(HOST)
        assert answer.state == state
        assert (answer.reason or "").startswith(reason)

    @pytest.mark.parametrize("code", ["AccessDenied", "EntityLimitExceeded", "Throttling"])
    def test_a_refusal_that_is_not_the_hosts_fault_is_an_error(
        self, code: str, stub: Stubber, caplog: pytest.LogCaptureFixture
    ) -> None:
        expect_lookup(stub, None)
        stub.add_client_error("create_distribution_tenant", code)
        with pytest.raises(UnavailableError):
            HOSTS.serve(HOST)
        assert "CloudFront failed" in caplog.text

    def test_an_unreachable_cloudfront_is_an_error(
        self, stub: Stubber, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(**_: Any) -> Any:
            raise EndpointConnectionError(endpoint_url="https://cloudfront.amazonaws.com")

        monkeypatch.setattr(stub.client, "get_distribution_tenant", fail)
        with pytest.raises(UnavailableError):
            HOSTS.serve(HOST)

    def test_a_certificate_in_the_making_is_waited_for(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant())
        certificate(stub, CertificateStatus="pending-validation")
        assert HOSTS.serve(HOST).state == "certificate"

    def test_a_tenant_whose_certificate_is_not_known_yet_is_waited_for(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant())
        stub.add_client_error("get_managed_certificate_details", "EntityNotFound")
        assert HOSTS.serve(HOST).state == "certificate"

    @pytest.mark.parametrize(
        ("status", "state"), [("inactive", "certificate"), ("active", "active")]
    )
    def test_an_issued_certificate_is_attached(
        self, status: str, state: str, stub: Stubber
    ) -> None:
        expect_lookup(stub, tenant(Customizations={"WebAcl": {"Action": "disable"}}))
        certificate(stub, CertificateStatus="issued", CertificateArn=CERTIFICATE)
        stub.add_response(
            "update_distribution_tenant",
            tenant(status),
            {
                "Id": "dt_1",
                "IfMatch": "v1",
                "Domains": [{"Domain": HOST}],
                "Customizations": {
                    "WebAcl": {"Action": "disable"},
                    "Certificate": {"Arn": CERTIFICATE},
                },
            },
        )
        assert HOSTS.serve(HOST).state == state

    def test_an_attached_certificate_is_not_attached_again(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant(Customizations={"Certificate": {"Arn": CERTIFICATE}}))
        certificate(stub, CertificateStatus="issued", CertificateArn=CERTIFICATE)
        assert HOSTS.serve(HOST).state == "certificate"

    @pytest.mark.parametrize("code", ["PreconditionFailed", "InvalidIfMatchVersion"])
    def test_tenant_changed_concurrently_is_updated_at_the_next_step(
        self, code: str, stub: Stubber
    ) -> None:
        expect_lookup(stub, tenant())
        certificate(stub, CertificateStatus="issued", CertificateArn=CERTIFICATE)
        stub.add_client_error("update_distribution_tenant", code)
        assert HOSTS.serve(HOST).state == "certificate"

    @pytest.mark.parametrize(
        "status", ["validation-timed-out", "failed", "expired", "revoked", "inactive"]
    )
    def test_a_certificate_that_was_not_made_fails_the_host(
        self, status: str, stub: Stubber
    ) -> None:
        expect_lookup(stub, tenant())
        certificate(stub, CertificateStatus=status)
        answer = HOSTS.serve(HOST)
        assert answer.state == "failed"
        assert status in (answer.reason or "")

    def test_an_active_domain_is_active(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant("active"))
        assert HOSTS.serve(HOST) == site_hosts.HostState("active")

    def test_disabled_tenant_is_enabled_again(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant("active", enabled=False))
        update = {"Id": "dt_1", "IfMatch": "v1", "Enabled": True}
        stub.add_response("update_distribution_tenant", tenant("active"), update)
        assert HOSTS.serve(HOST).state == "active"


class TestRelease:
    def test_a_tenant_is_disabled_and_deleted(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant("active"))
        update = {"Id": "dt_1", "IfMatch": "v1", "Enabled": False}
        answer = tenant(enabled=False) | {"ETag": "v2"}
        stub.add_response("update_distribution_tenant", answer, update)
        stub.add_response("delete_distribution_tenant", {}, {"Id": "dt_1", "IfMatch": "v2"})
        assert HOSTS.release(HOST)

    def test_a_tenant_that_is_gone_is_released(self, stub: Stubber) -> None:
        expect_lookup(stub, None)
        assert HOSTS.release(HOST)

    @pytest.mark.parametrize(
        ("code", "is_done"),
        [("ResourceNotDisabled", False), ("PreconditionFailed", False), ("EntityNotFound", True)],
    )
    def test_a_refused_deletion_is_tried_again_unless_the_tenant_is_gone(
        self, code: str, is_done: bool, stub: Stubber
    ) -> None:
        expect_lookup(stub, tenant(enabled=False))
        stub.add_client_error("delete_distribution_tenant", code, expected_params=ANY_DELETION)
        assert HOSTS.release(HOST) is is_done

    def test_tenant_changed_concurrently_is_disabled_at_the_next_step(self, stub: Stubber) -> None:
        expect_lookup(stub, tenant())
        stub.add_client_error("update_distribution_tenant", "PreconditionFailed")
        assert not HOSTS.release(HOST)


ANY_DELETION = {"Id": ANY, "IfMatch": ANY}


def test_an_apex_gets_an_alias_and_other_hosts_a_cname() -> None:
    assert HOSTS.address(apex=False) == Address("CNAME", ENDPOINT)
    assert HOSTS.address(apex=True) == Address("ALIAS", ENDPOINT)
    assert not HOSTS.proves("shop.localhost")


def test_names_of_tenants_differ_between_stages_and_fit(stub: Stubber) -> None:
    other = CloudFrontHosts.from_setting("cloudfront:E1/cg_1/d1.cloudfront.net", stage="dev")
    long = ".".join(["a" * 63] * 3) + ".example"
    for hosts, host in ((HOSTS, HOST), (other, HOST), (HOSTS, long)):
        name = hosts._name(host)
        assert len(name) <= 128
        stub.add_client_error(
            "get_distribution_tenant", "EntityNotFound", expected_params={"Identifier": name}
        )
        assert hosts.release(host)
    assert HOSTS._name(HOST) != other._name(HOST)


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("", type(None)),
        ("local", site_hosts.LocalHosts),
        ("cloudfront:E1/cg/d.net", CloudFrontHosts),
    ],
)
def test_the_setting_chooses_the_gateway(
    setting: str, kind: type, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
) -> None:
    monkeypatch.setenv("SITE_HOSTS", setting)
    reload_settings()
    assert isinstance(site_hosts.site_hosts(), kind)


def test_hanging_cloudfront_ends_within_the_functions_time() -> None:
    config = site_hosts.client().meta.config
    attempts = config.retries["total_max_attempts"]
    longest = (config.connect_timeout + config.read_timeout) * attempts
    assert 3 * longest <= FUNCTION_SECONDS - scheduled_functions.TIME_LIMIT_SECONDS
