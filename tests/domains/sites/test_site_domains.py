"""Custom domains, which a TXT record proves for one site at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domains.sites.store.sites import find_domain_claim
from chalicelib.gateways import dns
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.support.warned import warned

SET = "/api/projects/set-domain"
Records = dict[str, set[str] | None]


@pytest.fixture
def site(api: Api) -> str:
    return new_site(api)


def new_site(api: Api) -> str:
    site_id: str = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    return site_id


def bind(api: Api, site: str, domain: str | None = "www.example.com") -> Any:
    return api.post(SET, {"id": site, "domain": domain})["domain"]


def prove(records: Records, binding: dict[str, Any]) -> None:
    """Create the TXT record that the binding requires."""
    for record in binding["records"]:
        assert record["type"] == "TXT"
        records[record["host"]] = {"v=spf1 -all", record["value"]}


def add(records: Records, binding: dict[str, Any]) -> None:
    """Create the TXT record that the binding requires, in addition to existing ones."""
    for record in binding["records"]:
        records[record["host"]] = (records.get(record["host"]) or set()) | {record["value"]}


def project(api: Api, site: str) -> Any:
    projects = api.get("/api/projects/list?size=100")["projects"]
    return next(p for p in projects if p["id"] == site)


def test_a_new_domain_waits_for_its_record(api: Api, site: str) -> None:
    binding = bind(api, site)
    assert (binding["name"], binding["status"]) == ("www.example.com", "pending")
    (record,) = binding["records"]
    assert record["host"] == "_svc-verify.www.example.com"
    assert record["value"].startswith("svc-verify=")
    assert project(api, site)["domain"] == binding


def test_the_txt_record_verifies_a_domain(
    api: Api, site: str, txt_records: Records, time: Time
) -> None:
    first = bind(api, site)
    prove(txt_records, first)
    time.pass_by(minutes=5)
    second = bind(api, site)
    assert second["status"] == "verified"
    assert second["records"] == first["records"]
    assert second["checkedAt"] > first["checkedAt"]


def test_another_sites_token_proves_nothing(api: Api, txt_records: Records) -> None:
    one, two = new_site(api), new_site(api)
    prove(txt_records, bind(api, one))
    assert bind(api, two)["status"] == "pending"


def test_pending_domain_can_be_proven_by_another_site(
    new_owner: Callable[..., Owner], txt_records: Records
) -> None:
    squatter, rightful = new_owner().api(), new_owner().api()
    bind(squatter, new_site(squatter))
    site = new_site(rightful)
    prove(txt_records, bind(rightful, site))
    assert bind(rightful, site)["status"] == "verified"


class TestNewOwner:
    """A domain that another site has already proven."""

    @pytest.fixture
    def proven(self, api: Api, site: str, txt_records: Records) -> Any:
        """The proven binding of ``site``."""
        prove(txt_records, bind(api, site))
        return bind(api, site)

    @pytest.fixture
    def other_api(self, new_owner: Callable[..., Owner]) -> Api:
        return new_owner().api()

    def test_a_new_owner_gets_a_record_to_create(
        self, proven: Any, other_api: Api, time: Time
    ) -> None:
        their_site = new_site(other_api)
        second = bind(other_api, their_site, "WWW.example.com.")
        free = bind(other_api, their_site, "example.org")
        assert second["status"] == free["status"] == "pending"
        assert second["records"] != proven["records"]
        assert second.keys() == free.keys()

    def test_a_new_owner_is_refused_while_the_old_record_exists(
        self, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        their_site = new_site(other_api)
        add(txt_records, bind(other_api, their_site))
        for _ in range(2):
            answer = other_api.call_refused(
                "POST", SET, {"id": their_site, "domain": "www.example.com"}
            )
            assert (answer.status, answer.data["code"]) == (409, "domain_taken")
        assert project(other_api, their_site)["domain"]["status"] == "pending"
        assert bind(api, site)["status"] == "verified"

    def test_a_new_owner_gets_the_domain_once_only_their_record_exists(
        self, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records, time: Time
    ) -> None:
        their_site = new_site(other_api)
        prove(txt_records, bind(other_api, their_site))
        time.pass_by(minutes=5)
        binding = bind(other_api, their_site)
        assert binding["status"] == project(other_api, their_site)["domain"]["status"] == "verified"
        lost = project(api, site)["domain"]
        assert "after this one" in lost["reason"]
        same = {"reason": lost["reason"], "checkedAt": binding["checkedAt"]}
        assert lost == {**proven, "status": "failed", **same}
        assert bind(api, site)["status"] == "failed"
        assert bind(other_api, their_site)["status"] == "verified"

    def test_a_domain_moves_between_sites_of_one_owner(
        self, proven: Any, api: Api, site: str, txt_records: Records
    ) -> None:
        second = new_site(api)
        prove(txt_records, bind(api, second))
        assert bind(api, second)["status"] == "verified"
        assert project(api, site)["domain"]["status"] == "failed"

    def test_domain_does_not_move_while_the_dns_is_unavailable(
        self, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        their_site = new_site(other_api)
        bind(other_api, their_site)
        txt_records["_svc-verify.www.example.com"] = None
        assert bind(other_api, their_site)["status"] == "pending"
        assert project(api, site)["domain"]["status"] == "verified"

    @pytest.mark.parametrize("how", ["unbind", "rebind", "delete", "check"])
    def test_a_new_owner_keeps_the_domain_whatever_the_old_one_does(
        self, how: str, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        their_site = new_site(other_api)
        prove(txt_records, bind(other_api, their_site))
        bind(other_api, their_site)
        match how:
            case "unbind":
                bind(api, site, None)
            case "rebind":
                bind(api, site, "shop.example.com")
            case "delete":
                api.post("/api/projects/delete", {"id": site})
            case "check":
                bind(api, site)
        third = new_site(api)
        add(txt_records, bind(api, third))
        assert (
            api.call_refused("POST", SET, {"id": third, "domain": "www.example.com"}).status == 409
        )
        assert bind(other_api, their_site)["status"] == "verified"

    def test_a_new_owner_loses_the_domain_by_the_same_rule(
        self, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        their_site = new_site(other_api)
        prove(txt_records, bind(other_api, their_site))
        bind(other_api, their_site)
        add(txt_records, proven)
        assert (
            api.call_refused("POST", SET, {"id": site, "domain": "www.example.com"}).status == 409
        )
        prove(txt_records, proven)
        assert bind(api, site)["status"] == "verified"
        assert project(other_api, their_site)["domain"]["status"] == "failed"

    @pytest.mark.store
    def test_concurrent_proofs_give_the_domain_to_one_new_owner(
        self, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        sites = [new_site(other_api) for _ in range(6)]
        records = [bind(other_api, their_site) for their_site in sites]
        txt_records.clear()
        for binding in records:
            add(txt_records, binding)
        body = {"domain": "www.example.com"}
        answers = run_concurrently(
            6, lambda n: other_api.call("POST", SET, {**body, "id": sites[n]})
        )
        assert sorted(a.status for a in answers) == [200, 409, 409, 409, 409, 409]
        bound = [project(other_api, their_site)["domain"]["status"] for their_site in sites]
        assert sorted(bound) == [*["pending"] * 5, "verified"]
        assert project(api, site)["domain"]["status"] == "failed"

    @pytest.mark.store
    @pytest.mark.parametrize("how", ["unbind", "rebind", "delete", "check"])
    def test_concurrent_calls_of_the_old_owner_leave_one_holder(
        self, how: str, proven: Any, api: Api, site: str, other_api: Api, txt_records: Records
    ) -> None:
        their_site = new_site(other_api)
        prove(txt_records, bind(other_api, their_site))
        path, body = {
            "unbind": (SET, {"id": site, "domain": None}),
            "rebind": (SET, {"id": site, "domain": "shop.example.com"}),
            "delete": ("/api/projects/delete", {"id": site}),
            "check": (SET, {"id": site, "domain": "www.example.com"}),
        }[how]
        take = {"id": their_site, "domain": "www.example.com"}
        calls = [lambda: api.call("POST", path, body), lambda: other_api.call("POST", SET, take)]
        answers = run_concurrently(2, lambda n: calls[n]())
        assert [a.status for a in answers] == [200, 200]
        assert project(other_api, their_site)["domain"]["status"] == "verified"
        claim = find_domain_claim("www.example.com")
        assert claim is not None
        assert claim.target == their_site
        if how == "check":
            assert project(api, site)["domain"]["status"] == "failed"


def test_concurrent_proofs_give_the_domain_to_one_site(api: Api, txt_records: Records) -> None:
    sites = [new_site(api) for _ in range(6)]
    values = set()
    for site in sites:
        (record,) = bind(api, site)["records"]
        values.add(record["value"])
    txt_records[record["host"]] = values
    body = {"domain": "www.example.com"}
    answers = run_concurrently(6, lambda n: api.call("POST", SET, {**body, "id": sites[n]}))
    assert sorted(a.status for a in answers) == [200, 409, 409, 409, 409, 409]


@pytest.mark.parametrize("how", ["unbind", "rebind", "delete"])
def test_a_released_domain_is_free_again(
    how: str, api: Api, site: str, new_owner: Callable[..., Owner], txt_records: Records
) -> None:
    prove(txt_records, bind(api, site))
    bind(api, site)
    match how:
        case "unbind":
            assert bind(api, site, None) is None
            assert project(api, site)["domain"] is None
        case "rebind":
            assert bind(api, site, "shop.example.com")["status"] == "pending"
        case "delete":
            gone = api.post("/api/projects/delete", {"id": site})
            assert gone["cascade"]["domain"] == "www.example.com"
    other = new_owner().api()
    their_site = new_site(other)
    prove(txt_records, bind(other, their_site))
    assert bind(other, their_site)["status"] == "verified"


def test_a_proof_that_disappears_fails_but_keeps_the_claim(
    api: Api, site: str, txt_records: Records
) -> None:
    binding = bind(api, site)
    prove(txt_records, binding)
    bind(api, site)
    txt_records.clear()
    assert bind(api, site)["status"] == "failed"
    assert find_domain_claim("www.example.com") is not None
    prove(txt_records, binding)
    assert bind(api, site)["status"] == "verified"


def test_an_unavailable_dns_changes_nothing_and_is_reported(
    api: Api, site: str, txt_records: Records
) -> None:
    binding = bind(api, site)
    prove(txt_records, binding)
    bind(api, site)
    txt_records["_svc-verify.www.example.com"] = None
    answer = api.post(SET, {"id": site, "domain": "www.example.com"})
    assert answer["domain"]["status"] == "verified"
    not_answered = {"code": "dns_not_answered", "host": "_svc-verify.www.example.com"}
    assert not_answered in warned(answer)


def test_a_domain_not_proven_in_72_hours_has_failed_until_the_next_call(
    api: Api, site: str, time: Time
) -> None:
    first = bind(api, site)
    time.pass_by(hours=71.9)
    assert project(api, site)["domain"]["status"] == "pending"
    time.pass_by(hours=0.2)
    late = project(api, site)["domain"]
    assert (late["status"], late["records"]) == ("failed", first["records"])
    assert "72 hours" in late["reason"]
    second = bind(api, site)
    assert (second["status"], second["reason"]) == ("pending", None)
    assert second["records"] == first["records"]


def test_a_domain_is_stored_in_punycode(api: Api, site: str) -> None:
    assert bind(api, site, "Пекарня.рф")["name"] == "xn--80ajpngj0i.xn--p1ai"


@pytest.mark.parametrize("domain", ["", "https://example.com", "127.0.0.1", "\x00.com", "co.uk"])
def test_names_that_cannot_be_owned_are_refused(domain: str, api: Api, site: str) -> None:
    answer = api.call_refused("POST", SET, {"id": site, "domain": domain})
    assert answer.status == 400, answer.body
    assert answer.data["errors"][0]["field"] == "domain"


def test_unbinding_also_requires_the_domain(api: Api, site: str) -> None:
    assert api.call_refused("POST", SET, {"id": site}).status == 400


def test_retries_of_the_write_query_the_dns_once(
    api: Api, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []
    monkeypatch.setattr(dns, "lookup_txt", lambda host: hosts.append(host) or frozenset())
    from tests.fakes.dynamodb_faults import conflict, failing

    with failing("TransactWriteItems", 2, conflict):
        bind(api, site)
    assert len(hosts) == 1


class TestToggleStats:
    PATH = "/api/projects/toggle-stats"

    def test_a_given_value_is_set(self, api: Api, site: str) -> None:
        for enabled in (False, False, True):
            answer = api.post(self.PATH, {"id": site, "enabled": enabled})
            assert answer["statsEnabled"] is enabled
            assert project(api, site)["statsEnabled"] is enabled

    def test_an_omitted_value_toggles_the_setting(self, api: Api, site: str) -> None:
        assert [api.post(self.PATH, {"id": site})["statsEnabled"] for _ in range(3)] == [
            False,
            True,
            False,
        ]
