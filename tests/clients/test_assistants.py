"""Each kind of client as a visitor's assistant, from the question to the prepared booking."""

import json
from typing import Any

import httpx

from tests.support.patience import PATIENCE


def ask(assistant: Any, tool: str, **arguments: Any) -> Any:
    """Let an assistant call a tool of the booking page, and return the result."""
    outcome = assistant.call(tool, arguments)
    assert not outcome.failed, outcome.text
    return json.loads(outcome.text)


def test_an_assistant_prepares_a_booking_that_the_visitor_finds_filled_in(assistant: Any) -> None:
    business = ask(assistant, "get_business")
    service = next(
        offer for offer in ask(assistant, "list_services")["services"] if not offer["byPhone"]
    )
    free_times = ask(assistant, "find_free_times", serviceId=service["id"])
    start = (free_times["times"] or [free_times["next"]])[0]["startAt"]
    prepared = ask(assistant, "prepare_booking", serviceId=service["id"], startAt=start)
    assert prepared["startAt"] == start
    assert prepared["url"].startswith(business["bookingUrl"])
    page = httpx.get(prepared["url"], timeout=PATIENCE)
    assert page.status_code == 200
    assert 'name="prepared"' in page.text
    refusal = assistant.call("prepare_booking", {"serviceId": service["id"], "startAt": start[:16]})
    assert refusal.failed
    assert "offset" in refusal.text
