"""Hosts of custom domains, from the proof to the release."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.sites.flows import domain_binding
from chalicelib.domains.sites.operations import custom_domains, sites
from chalicelib.engine import jobs
from chalicelib.gateways import site_hosts
from chalicelib.gateways.site_hosts import Address, HostState, LocalHosts
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.domains.sites.test_site_domains import Records, bind, new_site, project
from tests.support import aws_calls
from tests.support.warned import warned
from tests.transports.web.test_blog_pages import get

HOST = "www.example.com"
PUBLIC_URL = "http://127.0.0.1:8000"


class FakeHosts(LocalHosts):
    """Hosts whose state the test sets."""

    def __init__(self) -> None:
        self.states: dict[str, HostState] = {}
        self.asked: list[str] = []
        self.served: set[str] = set()
        self.releases_left = 0
        self.during: Callable[[], object] = lambda: None

    def address(self, *, apex: bool) -> Address:
        return Address("ALIAS" if apex else "CNAME", "edge.example.net")

    def serve(self, host: str) -> HostState:
        self.asked.append(host)
        self.served.add(host)
        self.during()
        return self.states.get(host, HostState("active"))

    def release(self, host: str) -> bool:
        if self.releases_left:
            self.releases_left -= 1
            return False
        self.served.discard(host)
        return True


@pytest.fixture
def _local_hosts(reload_settings: Callable[[], None]) -> Iterator[None]:
    os.environ["SITE_HOSTS"] = "local"
    reload_settings()
    yield
    os.environ.pop("SITE_HOSTS")
    reload_settings()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> FakeHosts:
    fake = FakeHosts()
    for module in (domain_binding, sites, custom_domains):
        monkeypatch.setattr(module, "site_hosts", lambda: fake)
    return fake


@pytest.fixture
def site(api: Api) -> str:
    site = new_site(api)
    for title, html in (("Home", "<h1>Bread</h1>"), ("Rolls", "<h1>Rolls</h1>")):
        page = api.post("/api/pages/create", {"projectId": site, "title": title})["page"]
        api.post("/api/pages/save-html", {"id": page["id"], "html": html})
    return site


def prove(records: Records, binding: dict[str, Any]) -> None:
    for record in binding["records"]:
        if record["type"] == "TXT":
            records[record["host"]] = {record["value"]}


def state(api: Api, site: str) -> tuple[str, str | None]:
    domain = project(api, site)["domain"]
    return domain["status"], domain["reason"]


def waiting_jobs(kind: str) -> list[Any]:
    return [row for row in all_rows().values() if row.get("kind") == {"S": kind}]


@pytest.mark.usefixtures("_local_hosts")
class TestLocal:
    """The life of a host with the gateway of ``make dev``."""

    def test_a_domain_becomes_active_and_is_released_again(
        self, api: Api, site: str, txt_records: Records, time: Time
    ) -> None:
        pending = bind(api, site)
        assert [record["type"] for record in pending["records"]] == ["TXT", "A"]
        time.pass_by(minutes=3)
        run_jobs()
        assert state(api, site) == ("pending", None)
        prove(txt_records, pending)
        time.pass_by(minutes=3)
        run_jobs()
        assert state(api, site) == ("active", None)
        assert project(api, site)["url"] == f"http://{HOST}:8000"
        assert b"<h1>Bread</h1>" in get(f"/s/{HOST}", host=f"{HOST}:8000").body
        answer = get("/s/bakery/rolls?a=%D1%85&b=1")
        assert (answer.status, answer.headers["Location"]) == (
            308,
            f"http://{HOST}:8000/rolls?a=%D1%85&b=1",
        )
        assert bind(api, site, None) is None
        run_jobs()
        assert get(f"/s/{HOST}", host=HOST).status == 404
        assert get("/s/bakery/").status == 200
        assert not waiting_jobs(domain_binding.CHECK)

    def test_a_name_below_localhost_needs_no_proof(self, api: Api, site: str) -> None:
        assert bind(api, site, "shop.localhost")["status"] == "verified"
        run_jobs()
        assert state(api, site) == ("active", None)
        assert project(api, site)["url"] == "http://shop.localhost:8000"

    def test_a_later_proof_moves_the_host_to_the_other_site(
        self,
        api: Api,
        site: str,
        new_owner: Callable[..., Owner],
        txt_records: Records,
    ) -> None:
        prove(txt_records, bind(api, site))
        bind(api, site)
        run_jobs()
        other = new_owner().api()
        theirs = new_site(other)
        page = other.post("/api/pages/create", {"projectId": theirs, "title": "Home"})["page"]
        other.post("/api/pages/save-html", {"id": page["id"], "html": "<h1>Theirs</h1>"})
        prove(txt_records, bind(other, theirs))
        bind(other, theirs)
        run_jobs()
        assert state(other, theirs) == ("active", None)
        assert state(api, site)[0] == "failed"
        assert b"Theirs" in get(f"/s/{HOST}", host=HOST).body
        assert get("/s/bakery/").status == 200, "the former holder is at the platform again"

    def test_job_moves_a_domain_to_the_only_proven_owner(
        self,
        api: Api,
        site: str,
        new_owner: Callable[..., Owner],
        txt_records: Records,
        time: Time,
    ) -> None:
        prove(txt_records, bind(api, site))
        bind(api, site)
        other = new_owner().api()
        theirs = new_site(other)
        prove(txt_records, bind(other, theirs))
        time.pass_by(minutes=3)
        run_jobs()
        assert state(other, theirs) == ("active", None)
        assert state(api, site)[0] == "failed"

    @pytest.mark.parametrize("requested_host", ["127.0.0.1", "other.example.com", f"evil.{HOST}"])
    def test_a_host_in_the_path_must_be_the_requested_one(
        self, requested_host: str, api: Api, site: str, txt_records: Records
    ) -> None:
        prove(txt_records, bind(api, site))
        bind(api, site)
        run_jobs()
        assert get(f"/s/{HOST}", host=requested_host).status == 404

    def test_a_suspended_site_shows_its_notice_on_its_domain(
        self, api: Api, site: str, txt_records: Records
    ) -> None:
        prove(txt_records, bind(api, site))
        bind(api, site)
        run_jobs()
        api.post("/api/projects/update", {"id": site, "status": "inactive"})
        answer = get(f"/s/{HOST}", host=HOST, accept_language="en")
        assert answer.status == 404
        assert "switched off" in answer.body.decode()


class TestProgress:
    """States of a host in the order in which the gateway reports them."""

    @pytest.fixture
    def verified_site(
        self, time: Time, api: Api, site: str, txt_records: Records, hosts: FakeHosts
    ) -> str:
        hosts.states[HOST] = HostState("waiting", "It does not lead to edge.example.net yet.")
        prove(txt_records, bind(api, site))
        assert bind(api, site)["status"] == "verified"
        return site

    def test_the_answer_has_every_record(self, api: Api, site: str, hosts: FakeHosts) -> None:
        _, address = bind(api, site)["records"]
        assert address == {"type": "CNAME", "host": HOST, "value": "edge.example.net"}
        _, address = bind(api, site, "example.co.uk")["records"]
        assert address == {"type": "ALIAS", "host": "example.co.uk", "value": "edge.example.net"}

    def test_jobs_move_a_domain_on(
        self, api: Api, verified_site: str, hosts: FakeHosts, time: Time
    ) -> None:
        run_jobs()
        reason = "It does not lead to edge.example.net yet."
        assert state(api, verified_site) == ("verified", reason)
        hosts.states[HOST] = HostState("certificate", "Being made.")
        time.pass_by(minutes=3)
        run_jobs()
        assert state(api, verified_site) == ("certificate", "Being made.")
        assert project(api, verified_site)["url"].startswith(PUBLIC_URL)
        assert get("/s/bakery/").status == 200
        hosts.states[HOST] = HostState("active")
        time.pass_by(minutes=5)
        run_jobs()
        assert state(api, verified_site) == ("active", None)
        assert project(api, verified_site)["url"] == f"https://{HOST}"
        assert not waiting_jobs(domain_binding.CHECK)

    def test_the_checks_become_rarer_and_end_after_72_hours(
        self, api: Api, verified_site: str, hosts: FakeHosts, time: Time
    ) -> None:
        for _ in range(12):
            run_jobs()
            time.pass_by(minutes=5)
        assert 6 <= len(hosts.asked) <= 13
        for _ in range(73):
            run_jobs()
            time.pass_by(hours=1)
        assert len(hosts.asked) < 50
        status, reason = state(api, verified_site)
        assert (status, "edge.example.net" in (reason or "")) == ("failed", True)
        assert "72 hours" in (reason or "")
        assert not waiting_jobs(domain_binding.CHECK)
        assert not hosts.served, "what was set up is released"
        hosts.states.clear()
        assert bind(api, verified_site)["status"] == "verified"
        run_jobs()
        assert state(api, verified_site) == ("active", None)

    def test_a_failure_of_the_gateway_is_tried_again(
        self, api: Api, verified_site: str, hosts: FakeHosts, time: Time
    ) -> None:
        def fail() -> None:
            raise UnavailableError

        hosts.during = fail
        run_jobs()
        assert state(api, verified_site) == ("verified", None)
        hosts.during, hosts.states = lambda: None, {}
        time.pass_by(minutes=3)
        run_jobs()
        assert state(api, verified_site) == ("active", None)

    def test_killed_check_is_finished_by_the_next(
        self,
        api: Api,
        verified_site: str,
        hosts: FakeHosts,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        hosts.states.clear()
        with monkeypatch.context() as patched:
            patched.setattr(jobs, "remove_finished", lambda _: 1 / 0)
            run_jobs()
        time.pass_by(minutes=10)
        run_jobs()
        assert state(api, verified_site) == ("active", None)
        assert not waiting_jobs(domain_binding.CHECK)

    def test_a_failed_certificate_fails_the_domain(
        self, api: Api, verified_site: str, hosts: FakeHosts
    ) -> None:
        hosts.states[HOST] = HostState("failed", "The certificate was not made.")
        run_jobs()
        run_jobs()
        assert state(api, verified_site) == ("failed", "The certificate was not made.")
        assert not hosts.served
        hosts.states.clear()
        bind(api, verified_site)
        run_jobs()
        assert state(api, verified_site) == ("active", None)

    @pytest.mark.parametrize("how", ["unbind", "rebind", "delete"])
    def test_slow_release_of_a_host_is_finished(
        self, how: str, api: Api, verified_site: str, hosts: FakeHosts, time: Time
    ) -> None:
        hosts.states.clear()
        run_jobs()
        assert hosts.served == {HOST}
        hosts.releases_left = 2
        match how:
            case "unbind":
                bind(api, verified_site, None)
            case "rebind":
                bind(api, verified_site, "shop.example.com")
            case "delete":
                api.post("/api/projects/delete", {"id": verified_site})
        assert hosts.served == {HOST}
        for _ in range(3):
            run_jobs()
            time.pass_by(minutes=6)
        assert not hosts.served
        assert not waiting_jobs(domain_binding.RELEASE)

    def test_host_bound_again_is_not_released(
        self, api: Api, verified_site: str, hosts: FakeHosts, txt_records: Records
    ) -> None:
        hosts.states.clear()
        run_jobs()
        bind(api, verified_site, None)
        prove(txt_records, bind(api, verified_site))
        bind(api, verified_site)
        run_jobs()
        assert hosts.served == {HOST}
        assert state(api, verified_site) == ("active", None)

    def test_host_set_up_during_an_unbind_is_released(
        self, api: Api, verified_site: str, hosts: FakeHosts, time: Time
    ) -> None:
        def unbind() -> None:
            hosts.during = lambda: None
            bind(api, verified_site, None)
            with aws_calls.entered(None):
                (release,) = waiting_jobs(domain_binding.RELEASE)
                jobs.remove_finished(jobs.JobRow.from_raw_data(release))

        hosts.states.clear()
        hosts.during = unbind
        run_jobs()
        time.pass_by(minutes=6)
        run_jobs()
        assert not hosts.served

    def test_a_domain_whose_proof_disappears_is_no_longer_served(
        self, api: Api, verified_site: str, hosts: FakeHosts, txt_records: Records
    ) -> None:
        hosts.states.clear()
        run_jobs()
        proofs = dict(txt_records)
        txt_records.clear()
        assert bind(api, verified_site)["status"] == "failed"
        run_jobs()
        assert not hosts.served
        assert get(f"/s/{HOST}", host=HOST).status == 404
        txt_records.update(proofs)
        bind(api, verified_site)
        run_jobs()
        assert state(api, verified_site) == ("active", None)

    def test_a_host_that_is_gone_is_set_up_again_by_a_call(
        self, api: Api, verified_site: str, hosts: FakeHosts
    ) -> None:
        hosts.states.clear()
        run_jobs()
        hosts.states[HOST] = HostState("certificate", "Being made.")
        assert bind(api, verified_site)["status"] == "active"
        run_jobs()
        assert state(api, verified_site) == ("certificate", "Being made.")


def test_sites_url_is_kept_without_hosts(
    api: Api, site: str, txt_records: Records, time: Time
) -> None:
    prove(txt_records, bind(api, site))
    answer = api.post("/api/projects/set-domain", {"id": site, "domain": HOST})
    assert answer["domain"]["status"] == "verified"
    assert warned(answer) == [{"code": "no_custom_domains"}]
    assert [record["type"] for record in answer["domain"]["records"]] == ["TXT"]
    time.pass_by(hours=100)
    run_jobs()
    assert state(api, site) == ("verified", None)
    assert project(api, site)["url"] == f"{PUBLIC_URL}/s/bakery"


@pytest.mark.usefixtures("_local_hosts")
def test_domain_verified_before_hosts_is_served_after_the_next_call(
    api: Api, site: str, txt_records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(domain_binding, "site_hosts", lambda: None)
        prove(txt_records, bind(api, site))
        bind(api, site)
        run_jobs()
    assert site_hosts.site_hosts() is not None
    bind(api, site)
    run_jobs()
    assert state(api, site) == ("active", None)
