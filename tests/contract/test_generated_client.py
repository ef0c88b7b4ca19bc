"""The client that openapi-python-client generates from the OpenAPI document."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from tests.conftest import Api

PACKAGE = "workspace_client"


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
    """Put the generated client's package on the import path."""
    folder = tmp_path_factory.mktemp("generated")
    document = folder / "openapi.json"
    document.write_bytes(Api(None).call("GET", "/api/openapi.json").body)
    problems = generate(
        config=Config.from_sources(
            ConfigFile(post_hooks=[], literal_enums=True),
            MetaType.NONE,
            document,
            file_encoding="utf-8",
            overwrite=False,
            output_path=Path(folder / PACKAGE),
        )
    )
    assert not problems, problems
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


class Client:
    """The generated client, connected to the application."""

    def __init__(self, api: Api) -> None:
        client = import_module(f"{PACKAGE}.client").AuthenticatedClient
        self.client = client(
            base_url="http://app", token=str(api.token), httpx_args={"transport": Transport(api)}
        )

    def __call__(self, tag: str, operation: str, **arguments: Any) -> Any:
        """Call an operation, and return the ``data`` of its response as the client types it."""
        module = import_module(f"{PACKAGE}.api.{tag}.{operation}")
        answer = module.sync(client=self.client, **arguments)
        assert type(answer).__name__ != "Failure", answer
        return answer.data

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
    module = import_module(f"{PACKAGE}.api.products.get_product")
    failure = module.sync(client=client.client, id="nobody")
    assert type(failure).__name__ == "Failure"
    assert (failure.data.code, failure.data.status) == ("not_found", False)
    create = import_module(f"{PACKAGE}.api.products.create_product")
    body = client.model("ProductCreate", name="Loaf", price=199.9)
    refused_body = create.sync(client=client.client, body=body).data
    assert [error.field for error in refused_body.errors] == ["price"]


@pytest.mark.usefixtures("_generated")
def test_the_client_covers_the_whole_document() -> None:
    paths = json.loads(Api(None).call("GET", "/api/openapi.json").body)["paths"]
    for path in paths.values():
        for entry in path.values():
            import_module(f"{PACKAGE}.api.{entry['tags'][0]}.{entry['operationId']}")
