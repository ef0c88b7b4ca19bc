"""A dozen calls of the deployed service, one or more to each of its surfaces."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.deployed.conftest import Owner, Stage, balance, say
from tests.factories.chat import read_events
from tests.factories.files import COMPLETE, announce
from tests.factories.salon import Salon
from tests.support.patience import PATIENCE


def test_health_is_answered_at_the_base_url(stage: Stage) -> None:
    data = stage.api(None).get("/api/health")
    assert data["fullTextSearch"] is True


def test_a_site_is_created_listed_and_deleted(owner: Owner) -> None:
    site = owner.api.post("/api/projects/create", {"title": "Shop"})["project"]["id"]
    listed_ids = [project["id"] for project in owner.api.get("/api/projects/list")["projects"]]
    owner.api.post("/api/projects/delete", {"id": site})
    remaining_ids = [project["id"] for project in owner.api.get("/api/projects/list")["projects"]]
    assert site in listed_ids
    assert site not in remaining_ids


def test_a_call_without_a_key_is_401(stage: Stage) -> None:
    assert stage.api(None).call_refused("GET", "/api/projects/list").status == 401


def test_the_official_client_lists_and_calls_tools(stage: Stage, owner: Owner) -> None:
    async def use() -> tuple[list[str], bool]:
        trusted = ssl.create_default_context(cafile=stage.environment["REQUESTS_CA_BUNDLE"])
        headers = {"Authorization": f"Bearer {owner.api.token}"}
        proxy = stage.environment["HTTPS_PROXY"]
        async with (
            asyncio.timeout(PATIENCE),
            httpx2.AsyncClient(
                headers=headers, proxy=proxy, verify=trusted, timeout=PATIENCE
            ) as http,
            Client(
                streamable_http_client(f"{stage.result['baseUrl']}/api/mcp", http_client=http)
            ) as client,
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, bool((await client.call_tool("svc_list_sites", {})).is_error)

    names, failed = asyncio.run(use())
    say(f"  POST /api/mcp by the official client: {len(names)} tools, and svc_list_sites")
    assert {"svc_list_sites", "svc_create_page"} <= set(names)
    assert not failed


def test_the_documents_of_oauth_name_the_base_url(stage: Stage) -> None:
    metadata_path, base = "/.well-known/oauth-", stage.result["baseUrl"]
    resource = stage.send("GET", f"{metadata_path}protected-resource/api/mcp").json()
    server = stage.send("GET", f"{metadata_path}authorization-server").json()
    assert resource["authorization_servers"] == [base] == [server["issuer"]]
    assert server["token_endpoint"].startswith(base)


def test_a_large_file_is_uploaded_in_two_steps_and_shown(stage: Stage, owner: Owner) -> None:
    body = b"One line of a large file.\n" * 100_000
    announced = announce(owner.api, len(body), "large.txt")
    assert stage.send("PUT", announced["url"], data=body).status_code == 200
    stored_file = owner.api.post(COMPLETE, {"id": announced["id"]})["file"]
    response = stage.send("GET", stored_file["url"])
    assert response.content == body


def test_a_visitor_submits_a_form(stage: Stage, owner: Owner) -> None:
    fields = [{"name": "email", "label": "E-mail", "type": "email", "required": True}]
    form = owner.api.post("/api/forms/create", {"title": "Cakes", "fields": fields})["form"]
    submission = stage.send("POST", form["submitUrl"], json={"email": "ada@example.com"})
    assert submission.json()["data"]["status"] is True
    leads = owner.api.get("/api/forms/collection-list")["collections"]
    assert "ada@example.com" in [lead["email"] for lead in leads]


def test_a_visitor_books_a_free_time(stage: Stage, owner: Owner) -> None:
    salon, visitor = Salon.opened(owner.api), stage.api(None)
    day = (datetime.now(UTC) + timedelta(days=3)).date()
    slots = f"/api/public/services/{salon.service}/slots?from={day}&to={day}"
    order = {
        "serviceId": salon.service,
        "startAt": visitor.get(slots)["slots"][0]["startAt"],
        "client": {"name": "Ada", "email": "ada@example.com"},
    }
    booked = visitor.post("/api/public/bookings", order)
    assert owner.api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]["status"]


def test_a_page_of_a_site_is_shown(stage: Stage, owner: Owner) -> None:
    site = owner.api.post("/api/projects/create", {"title": "Bread"})["project"]
    page = {"projectId": site["id"], "title": "Rolls"}
    page_made = owner.api.post("/api/pages/create", page)["page"]
    owner.api.post("/api/pages/save-html", {"id": page_made["id"], "html": "<h1>Rolls today</h1>"})
    response = stage.send("GET", f"/s/{site['slug']}/{page_made['slug']}")
    assert "Rolls today" in response.text


def test_a_bot_answers_at_the_functions_url_and_is_paid_once(stage: Stage, owner: Owner) -> None:
    old_balance = balance(stage)
    answer = stage.chat(owner.bot(), "What do you sell?")
    kinds = [event["type"] for event in read_events(answer.content)]
    assert (kinds[0], kinds[1], kinds[-1]) == ("start", "chunk", "done")
    new_balance = balance(stage)
    assert (new_balance["reserved"], new_balance["entries"]) == (0, old_balance["entries"] + 2)
    assert new_balance["available"] < old_balance["available"]
