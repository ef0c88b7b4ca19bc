"""The Python package of ``make sdk``: generated functions, and connections that repeat requests."""

import asyncio
import sys
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from typing import Any

import httpx
import pytest

from chalicelib.transports.api_docs import openapi
from infra.local import sdk
from tests.conftest import Api

PACKAGE = sdk.PACKAGE


class Transport(httpx.BaseTransport):
    """Passes the client's requests to the application without a network."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        headers = {name.title(): value for name, value in request.headers.items()}
        answer = self.api.call(request.method, path, request.read(), headers)
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


@pytest.fixture(scope="module")
def _generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put the package on the import path."""
    folder = tmp_path_factory.mktemp("sdk")
    sdk.write_python(openapi.document(), folder)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


class Client:
    """The package's client, connected to the application."""

    def __init__(self, api: Api) -> None:
        connect = import_module(PACKAGE).connect
        self.client = connect("http://app", api_key=str(api.token), transport=Transport(api))

    def __call__(self, tag: str, operation: str, **arguments: Any) -> Any:
        """Call an operation, and return the ``data`` of its response as the client types it."""
        module = import_module(f"{PACKAGE}.api.{tag}.{operation}")
        return import_module(PACKAGE).data(module.sync(client=self.client, **arguments))

    @staticmethod
    def model(model: str, /, **fields: Any) -> Any:
        """Create an input model."""
        return getattr(import_module(f"{PACKAGE}.models"), model)(**fields)


@pytest.fixture
def client(_generated: None, api: Api) -> Client:
    return Client(api)


def test_the_client_covers_sites_and_pages(client: Client) -> None:
    body = client.model("SiteCreate", title="Bakery")
    site = client("projects", "create_site", body=body).project
    (listed_site,) = client("projects", "list_sites", search="bak").projects
    assert listed_site == site
    assert type(site).__name__ == "Site"
    body = client.model("PageCreate", project_id=site.id, title="Home")
    page = client("pages", "create_page", body=body).page
    assert [page.id for page in client("pages", "list_pages", project_id=site.id).pages] == [
        page.id
    ]
    assert client("pages", "get_page", id=page.id).page.title == "Home"


def test_the_client_covers_products_and_categories(client: Client) -> None:
    body = client.model("CategoryCreate", name="Bread")
    category = client("products", "create_category", body=body).category
    assert client("products", "list_categories", kind="product").categories == [category]
    body = client.model("ProductCreate", name="Loaf", price=9900, category_id=category.id)
    product = client("products", "create_product", body=body, idempotency_key="k").product
    assert type(product).__name__ == "Product"
    assert (product.price, product.category_id, product.sku) == (9900, category.id, None)
    assert client("products", "get_product", id=product.id).product == product
    listing = client("products", "list_products", sort="price", size=5)
    assert (listing.products, listing.total) == ([product], 1)


def test_the_client_covers_files_and_folders(client: Client) -> None:
    body = client.model("FolderCreate", name="Papers")
    folder = client("files", "create_folder", body=body).folder
    (tree,) = client("files", "list_folders").folders
    assert (tree.id, tree.children) == (folder.id, [])
    types = import_module(f"{PACKAGE}.types")
    upload = types.File(payload=BytesIO(b"hello"), file_name="menu.txt", mime_type="text/plain")
    body = client.model("UploadFileFilesBody")
    body["file"] = upload
    body["folderId"] = types.File(payload=BytesIO(folder.id.encode()))
    file = client("files", "upload_file", body=body).file
    assert (file.name, file.size, file.folder_id) == ("menu.txt", 5, folder.id)
    listing = client("files", "list_files", folder_id=folder.id)
    assert (listing.files, listing.pagination.total) == ([file], 1)
    assert listing.current_folder.id == folder.id


def test_the_client_covers_forms_leads_and_clients(client: Client) -> None:
    fields = [client.model("FormFieldIn", name="email", type_="email")]
    body = client.model("FormCreate", title="Contact", fields=fields)
    form = client("crm", "create_form", body=body).form
    assert [form.id for form in client("crm", "list_forms").forms] == [form.id]
    Api(None).post(f"/api/public/forms/{form.id}/submit", {"email": "ada@example.com"})
    (lead,) = client("crm", "list_leads", size=5).collections
    assert (type(lead).__name__, lead.email) == ("Lead", "ada@example.com")
    assert client("crm", "get_lead", id=lead.id).lead.form_id == form.id
    (person,) = client("crm", "list_clients").clients
    assert client("crm", "get_client", id=person.id).client.id == lead.client_id


def test_the_client_covers_workspaces(client: Client) -> None:
    listing = client("workspace", "list_workspaces")
    assert [workspace.id for workspace in listing.workspaces] == [listing.active_workspace_id]


def test_the_client_types_failures_and_keeps_warnings(client: Client) -> None:
    with pytest.raises(import_module(PACKAGE).ApiError) as failed:
        client("products", "get_product", id="nobody")
    failure = failed.value
    assert (failure.code, failure.key, failure.data.status) == ("not_found", "product", False)
    assert failure.request_id == failure.data.request_id
    create = import_module(f"{PACKAGE}.api.products.create_product")
    body = client.model("ProductCreate", name="Loaf", price=199.9)
    refused_body = create.sync(client=client.client, body=body).data
    assert [error.field for error in refused_body.errors] == ["price"]


@pytest.mark.usefixtures("_generated")
def test_the_client_covers_the_whole_document() -> None:
    for path in openapi.document()["paths"].values():
        for entry in path.values():
            import_module(f"{PACKAGE}.api.{entry['tags'][0]}.{entry['operationId']}")


def failure(status: int, code: str, **headers: str) -> httpx.Response:
    """A failure in the envelope of the service."""
    data = {"status": False, "message": code, "code": code, "requestId": "r1"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"data": data}, headers=names)


LOST = httpx.ReadError("The connection ended.")
PRODUCTS, CREATE, DELETE = "/api/products/list", "/api/products/create", "/api/products/delete"
COUNT = "/api/public/hit"  # Each call counts a visit.


class Service:
    """A service with these answers, one to each request."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def keys(self) -> list[str | None]:
        """The idempotency keys of the requests."""
        return [request.headers.get("Idempotency-Key") for request in self.requests]


@pytest.mark.usefixtures("_generated")
class TestRetries:
    @pytest.fixture(autouse=True)
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The pauses in seconds, which end at once."""
        waits: list[float] = []

        async def pause(seconds: float) -> None:
            waits.append(seconds)

        connection = import_module(f"{PACKAGE}.connection")
        monkeypatch.setattr(connection.time, "sleep", waits.append)
        monkeypatch.setattr(connection.asyncio, "sleep", pause)
        return waits

    @pytest.fixture(params=["sync", "async"])
    def send(self, request: pytest.FixtureRequest) -> Any:
        """Send a request to a service, by both kinds of connection."""
        connect = import_module(PACKAGE).connect

        def send(service: Service, method: str, path: str, **options: Any) -> httpx.Response:
            transport = httpx.MockTransport(service)
            client = connect("http://service.test/prod", api_key="k", transport=transport)
            if request.param == "sync":
                response: httpx.Response = client.get_httpx_client().request(
                    method, path, **options
                )
                return response

            async def call() -> httpx.Response:
                connection = client.get_async_httpx_client()
                found: httpx.Response = await connection.request(method, path, **options)
                return found

            return asyncio.run(call())

        return send

    @pytest.mark.parametrize(
        "lost",
        [
            LOST,
            failure(500, "internal_error"),
            failure(503, "unavailable", Retry_After="2"),
            httpx.Response(504, text="<html>"),
            failure(409, "in_progress"),
        ],
        ids=str,
    )
    def test_a_creation_is_repeated_with_one_key(self, send: Any, lost: Any) -> None:
        service = Service(lost, httpx.Response(200, json={}))
        assert send(service, "POST", CREATE, json={"name": "Rye"}).status_code == 200
        first, second = service.keys
        assert first == second is not None
        assert [request.content for request in service.requests] == [b'{"name":"Rye"}'] * 2

    def test_a_given_key_is_sent(self, send: Any) -> None:
        service = Service(httpx.Response(200))
        send(service, "POST", CREATE, headers={"Idempotency-Key": "mine"})
        assert service.keys == ["mine"]

    def test_a_call_without_a_key_is_repeated_if_a_second_execution_has_the_effect_of_one(
        self, send: Any
    ) -> None:
        for lost in (LOST, failure(500, "internal_error"), httpx.Response(408)):
            service = Service(lost, httpx.Response(200))
            assert send(service, "POST", DELETE).status_code == 200
            assert service.keys == [None, None]

    def test_any_other_call_is_repeated_only_if_it_was_not_carried_out(self, send: Any) -> None:
        for lost in (failure(500, "internal_error"), failure(503, "unavailable")):
            service = Service(lost)
            assert send(service, "POST", COUNT).status_code == lost.status_code
            assert service.keys == [None]
        with pytest.raises(httpx.ReadError):
            send(Service(LOST), "POST", COUNT)
        refused = failure(429, "rate_limited", Retry_After="1")
        assert send(Service(refused, httpx.Response(200)), "POST", COUNT).status_code == 200

    def test_a_page_of_something_in_between_is_an_error_without_a_code(self, send: Any) -> None:
        pages = [httpx.Response(status, text="<html>") for status in (403, 502, 502, 502)]
        for answers in (pages[:1], pages[1:]):
            with pytest.raises(import_module(PACKAGE).ApiError) as failed:
                send(Service(*answers), "GET", PRODUCTS)
            assert failed.value.code == ""
            assert str(answers[0].status_code) in str(failed.value)

    def test_a_date_in_retry_after_counts_from_the_date_of_the_response(
        self, send: Any, waits: list[float]
    ) -> None:
        def asked(minute: str) -> httpx.Response:
            day = "Wed, 01 Jan 2020 10:{} GMT"
            dates = {"Date": day.format("05:00"), "Retry_After": day.format(minute)}
            return failure(503, "unavailable", **dates)

        send(Service(asked("05:07"), asked("04:53"), httpx.Response(200)), "GET", PRODUCTS)
        assert send(Service(asked("06:01")), "GET", PRODUCTS).status_code == 503
        first, second = waits
        assert 7 <= first <= 7.25
        assert 0.75 <= second <= 1

    def test_each_event_loop_has_connections_of_its_own(self) -> None:
        async def connection() -> httpx.AsyncClient:
            found: httpx.AsyncClient = client.get_async_httpx_client()
            assert client.get_async_httpx_client() is found
            return found

        client = import_module(PACKAGE).connect("http://service.test")
        assert asyncio.run(connection()) is not asyncio.run(connection())

    def test_no_refusal_is_repeated_that_a_repetition_does_not_change(self, send: Any) -> None:
        refusals = {400: "validation_error", 409: "sku_taken", 429: "limit_daily"}
        for status, code in {**refusals, 503: "not_configured"}.items():
            assert send(Service(failure(status, code)), "POST", CREATE).status_code == status

    def test_pauses_grow_and_are_as_long_as_the_service_asks_up_to_a_minute(
        self, send: Any, waits: list[float]
    ) -> None:
        asked = failure(429, "rate_limited", Retry_After="7")
        send(Service(failure(500, "a"), asked, httpx.Response(200)), "GET", PRODUCTS)
        too_long = failure(429, "rate_limited", Retry_After="61")
        assert send(Service(too_long), "GET", PRODUCTS).status_code == 429
        three = [failure(500, code) for code in "abc"]
        assert send(Service(*three), "GET", PRODUCTS).json()["data"]["code"] == "c"
        bounds = [(0.375, 0.5), (7, 7.25), (0.375, 0.5), (0.75, 1)]
        assert len(waits) == len(bounds)
        for wait, (least, most) in zip(waits, bounds, strict=True):
            assert least <= wait <= most

    def test_a_client_with_other_headers_or_another_timeout_repeats_too(self) -> None:
        for change in ("with_headers", "with_timeout"):
            service = Service(failure(500, "internal_error"), httpx.Response(200))
            transport = httpx.MockTransport(service)
            client = import_module(PACKAGE).connect("http://a", api_key="k", transport=transport)
            value = {"X-Name": "1"} if change == "with_headers" else httpx.Timeout(5)
            changed = getattr(client, change)(value)
            assert changed.get_httpx_client().get(PRODUCTS).status_code == 200
            assert service.requests[1].headers["Authorization"] == "Bearer k"

    def test_the_key_of_a_client_is_not_in_logs(self) -> None:
        client = import_module(PACKAGE).connect("http://a.test", api_key="svc_live_secret")
        client.get_httpx_client()
        assert repr(client) == "<client of http://a.test>"

    def test_a_stream_is_repeated_before_it_begins(self) -> None:
        service = Service(failure(503, "unavailable"), httpx.Response(200, text="data: {}\n"))
        transport = httpx.MockTransport(service)
        client = import_module(PACKAGE).connect("http://service.test", transport=transport)
        path = "/api/agents/public/chat-stream"
        with client.get_httpx_client().stream("POST", path, json={}) as answer:
            assert list(answer.iter_lines()) == ["data: {}"]
        assert service.keys[0] == service.keys[1] is not None
        assert "Authorization" not in service.requests[0].headers
