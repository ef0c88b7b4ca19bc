"""Web pages that a bot answers from. They are read daily, from public addresses only."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.knowledge.flows import indexing
from chalicelib.domains.knowledge.rules import parsing
from chalicelib.engine import audit, limits
from chalicelib.gateways import isolation
from tests.domains.knowledge.conftest import Bot
from tests.factories.pdf import pdf
from tests.fakes.dynamodb_faults import TRANSACTION, closed, faulty
from tests.fakes.internet import Internet, http_response, to

URL = "https://bakery.example.com/delivery"
HTML = "<!doctype html><h1>Доставка</h1><p>Везём по субботам.</p>".encode()
"""A page."""


@pytest.fixture(autouse=True)
def _parse_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process for each page. ``test_file_sources`` covers the separate process."""

    def call(function: str, body: bytes, *arguments: str | None) -> str:
        module, _, name = function.partition(":")
        parse: Callable[..., str] = getattr(import_module(module), name)
        try:
            return parse(arguments[0], body, *arguments[1:])
        except parsing.UnreadableError as error:
            raise isolation.RaisedError(*error.args) from None

    monkeypatch.setattr(isolation, "call", call)


def test_a_page_is_read_and_found_with_its_url(bot: Bot, net: Internet) -> None:
    server = net.serve(URL, http_response(HTML, content_type="text/html; charset=utf-8"))
    source = bot.add("Page", url=URL)
    assert (source["kind"], source["status"]) == ("url", "pending")
    bot.run_jobs()
    assert bot.source(source["id"])["status"] == "ready"
    (passage,) = bot.find("Когда доставка?")
    assert (passage.title, passage.url) == ("Page", URL)
    assert passage.text == "Доставка\n\nВезём по субботам."
    assert server.paths == ["/delivery"]


def test_servers_charset_decodes_a_page(bot: Bot, net: Internet) -> None:
    body = "<p>Везём всё</p>".encode("cp1251")
    net.serve(URL, http_response(body, content_type='text/html; charset="windows-1251"'))
    bot.add("Page", url=URL)
    bot.run_jobs()
    assert [passage.text for passage in bot.find("везём")] == ["Везём всё"]


def test_a_pdf_is_read_from_a_url(bot: Bot, net: Internet) -> None:
    net.serve(URL, http_response(pdf("Rye bread."), content_type="application/pdf"))
    bot.add("Menu", url=URL)
    bot.run_jobs()
    assert bot.finds("bread") == ["Menu"]


def test_page_is_refreshed_daily_with_a_conditional_request(bot: Bot, net: Internet) -> None:
    server = net.serve(
        URL,
        http_response(b"<p>Old bread", etag='"one"', last_modified="Fri, 15 Jan 2027 00:00:00 GMT"),
        http_response(b"", "304 Not Modified"),
        http_response(b"<p>New bread", etag='"two"'),
        http_response(b"<p>New bread"),
    )
    bot.add("Page", url=URL)
    bot.run_jobs()
    assert "If-None-Match" not in server.requests[0]
    files_before = bot.stored_files
    bot.run_jobs(hours=23)
    assert len(server.requests) == 1
    bot.run_jobs(hours=1)
    assert 'If-None-Match: "one"\r\n' in server.requests[1]
    assert "If-Modified-Since: Fri, 15 Jan 2027 00:00:00 GMT\r\n" in server.requests[1]
    assert [passage.text for passage in bot.find("bread")] == ["Old bread"]
    assert bot.stored_files == files_before
    bot.run_jobs(hours=25)
    bot.run_jobs()
    assert [passage.text for passage in bot.find("bread")] == ["New bread"]
    bot.run_jobs(hours=25)
    assert 'If-None-Match: "two"\r\n' in server.requests[3]
    assert "If-Modified-Since" not in server.requests[3]
    assert bot.sources[0]["error"] is None


def test_the_validators_of_one_url_are_not_sent_to_another(bot: Bot, net: Internet) -> None:
    other = "https://other.example.com/"
    first = net.serve(URL, http_response(b"<p>Bread", etag='"secret"'), to(other))
    second = net.serve(other, http_response(b"<p>Cake"), address="93.184.216.35")
    bot.add("Page", url=URL)
    bot.run_jobs()
    bot.run_jobs(hours=25)
    bot.run_jobs()
    assert 'If-None-Match: "secret"' in first.requests[1]
    assert "If-None-Match" not in second.requests[0]
    assert bot.finds("cake") == ["Page"]


@pytest.mark.parametrize("etag", ["a\tb", "é", "x" * 501])
def test_invalid_validator_is_not_sent_back(bot: Bot, net: Internet, etag: str) -> None:
    server = net.serve(URL, http_response(b"<p>Bread", etag=etag))
    bot.add("Page", url=URL)
    bot.run_jobs()
    bot.run_jobs(hours=25)
    assert len(server.requests) == 2
    assert "If-None-Match" not in server.requests[1]


def test_failed_refresh_keeps_the_former_text_with_a_note(bot: Bot, net: Internet) -> None:
    net.serve(URL, http_response(b"<p>Bread"), http_response(b"gone", "404 Not Found"))
    source = bot.add("Page", url=URL)
    bot.run_jobs()
    bot.run_jobs(hours=25)
    refreshed = bot.source(source["id"])
    assert (refreshed["status"], refreshed["chars"]) == ("ready", len("Bread"))
    assert bot.problem_codes(source["id"]) == ["not_fetched", "still_answers"]
    assert "expected status 200" in refreshed["errorDetails"][0]["reason"]
    assert bot.finds("bread") == ["Page"]


def test_page_is_not_read_after_7_failures_in_a_row(bot: Bot, net: Internet) -> None:
    ok, broken = http_response(b"<p>Bread"), http_response(b"", "500 Oops")
    server = net.serve(URL, ok, *[broken] * 6, ok, *[broken] * 20)
    source = bot.add("Page", url=URL)
    for _ in range(14):
        bot.run_jobs(hours=25)
        assert bot.source(source["id"])["status"] == "ready"
    bot.run_jobs(hours=25)
    refreshed = bot.source(source["id"])
    assert refreshed["status"] == "failed"
    assert bot.problem_codes(source["id"]) == ["not_fetched", "still_answers", "given_up"]
    assert bot.finds("bread") == ["Page"], "the former text goes on answering"
    for _ in range(3):
        bot.run_jobs(hours=25)
    assert len(server.requests) == 15


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.0.0.1", "expected a host on the public internet"),
        (None, "does not exist; check the spelling"),
    ],
)
def test_internal_or_unknown_host_fails_with_a_reason(
    bot: Bot, net: Internet, address: str | None, reason: str
) -> None:
    net.names["bakery.example.com"] = [address] if address else []
    source = bot.add("Page", url=URL)
    bot.run_jobs()
    refreshed = bot.source(source["id"])
    assert refreshed["status"] == "failed"
    assert bot.problem_codes(source["id"]) == ["not_fetched"]
    assert reason in refreshed["errorDetails"][0]["reason"]
    assert net.connections == []


def test_redirect_to_an_internal_address_is_refused(bot: Bot, net: Internet) -> None:
    net.serve(URL, to("http://169.254.169.254/latest/meta-data/"))
    source = bot.add("Page", url=URL)
    bot.run_jobs()
    refreshed = bot.source(source["id"])
    assert refreshed["status"] == "failed"
    assert bot.problem_codes(source["id"]) == ["not_fetched"]
    assert "expected a host on the public internet" in refreshed["errorDetails"][0]["reason"]
    assert len(net.connections) == 1


def test_a_page_above_10_mb_or_of_another_type_fails_with_a_reason(bot: Bot, net: Internet) -> None:
    net.serve(
        URL,
        http_response(b"x", content_length="10485761"),
        http_response(b"\x89PNG\r\n\x1a\n" + bytes(99)),
    )
    source = bot.add("Page", url=URL)
    bot.run_jobs()
    (detail,) = bot.source(source["id"])["errorDetails"]
    assert detail["code"] == "not_fetched"
    assert "10 MB" in detail["reason"]
    bot.run_jobs(hours=25)
    (detail,) = bot.source(source["id"])["errorDetails"]
    assert (detail["code"], detail["received"]) == ("wrong_type", "image/png")


def test_pages_beyond_the_daily_budget_are_read_the_next_day(
    make_bot: Callable[..., Bot], net: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=2 / 500))
    server = net.serve(URL, http_response(b"<p>Bread"))
    bots = [make_bot(name) for name in ("One", "Two", "Three")]
    for bot in bots:
        bot.add("Page", url=URL)
    bots[0].run_jobs()
    assert len(server.requests) == 2
    states = sorted(bot.sources[0]["status"] for bot in bots)
    assert states == ["pending", "ready", "ready"]
    (waiting,) = [bot for bot in bots if bot.sources[0]["status"] == "pending"]
    assert waiting.problem_codes(waiting.sources[0]["id"]) == ["over_budget"]


def test_repeated_job_reads_no_page(bot: Bot, net: Internet) -> None:
    server = net.serve(URL, http_response(b"<p>Bread"))
    bot.add("Page", url=URL)
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(indexing, "refresh", lambda *_: 1 / 0)
        bot.run_jobs()
    bot.run_jobs(minutes=30)
    assert len(server.requests) == 1
    assert bot.finds("bread") == ["Page"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_lost_response_of_a_commit_records_one_read(bot: Bot, net: Internet, when: str) -> None:
    server = net.serve(URL, http_response(b"<p>Bread"))
    source = bot.add("Page", url=URL)
    with faulty(TRANSACTION, closed, when):
        bot.run_jobs()
    bot.run_jobs(minutes=30)
    bot.run_jobs()
    assert bot.source(source["id"])["status"] == "ready"
    assert bot.finds("bread") == ["Page"]
    bot.run_jobs(hours=2)
    assert len(bot.stored_files) == 2, "one text and one index"
    requests = len(server.requests)
    bot.run_jobs(hours=25)
    assert len(server.requests) == requests + 1, "one read a day"


def test_reads_of_pages_are_not_in_the_audit_log(bot: Bot, net: Internet) -> None:
    net.serve(URL, http_response(b"<p>Bread"))
    bot.add("Page", url=URL)
    operations_before = [row.operation for row in audit.AuditRow.scan()]
    assert "add_knowledge" in operations_before
    bot.run_jobs()
    assert [row.operation for row in audit.AuditRow.scan()] == operations_before
