"""REST clients that generators make of the OpenAPI document, used against the service."""

import base64
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx
import openapi_generator_cli
import pytest

from tests.clients.client import JAVASCRIPT
from tests.support.patience import PATIENCE

HERE = Path(__file__).parent
FIND_JDK = HERE.parents[1] / "infra" / "local" / "find-jdk"
JAR = Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
"""The generator. It contains Jackson, which generated Java clients use."""
PARTS = "apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The OpenAPI document of the running service."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    url = f"{os.environ['BASE_URL']}/api/openapi.json"
    path.write_bytes(httpx.get(url, timeout=PATIENCE).raise_for_status().content)
    return path


def run(*command: object, **options: Any) -> str:
    """Run a command that must succeed. Return its output."""
    words = [str(argument) for argument in command]
    process = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE, check=False, **options
    )
    assert process.returncode == 0, f"{process.stdout[-5_000:]}\n{process.stderr[-5_000:]}"
    return process.stdout


def generate(language: str, document: Path, output: Path, *options: str) -> Path:
    """Generate a client, and return its folder."""
    command = Path(sys.executable).with_name("openapi-generator-cli")
    run(command, "generate", "-i", document, "-g", language, "-o", output, *options,
        "--global-property", PARTS)  # fmt: skip
    return output


@pytest.fixture(scope="session")
def salon(document: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated Python package."""
    folder = generate(
        "python",
        document,
        tmp_path_factory.mktemp("python"),
        "--additional-properties=packageName=salon",
    )
    sys.path.insert(0, str(folder))
    yield import_module("salon")
    sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def client(salon: ModuleType) -> Any:
    """The generated client, with the demo's key."""
    host, key = os.environ["BASE_URL"], os.environ["API_KEY"]
    return salon.ApiClient(salon.Configuration(host=host, access_token=key))


class TestPython:
    def test_it_creates_reads_lists_and_changes_a_record(
        self, salon: ModuleType, client: Any
    ) -> None:
        products, name = salon.ProductsApi(client), f"Булка {uuid4().hex[:12]}"
        created = products.create_product(salon.ProductCreate(name=name, price=12900, stock=3)).data
        assert (created.status, created.product.price, created.product.sku) == (True, 12900, None)
        assert products.get_product(created.product.id).data.product == created.product
        products_page = products.list_products(q=name, size=5).data
        assert (products_page.status, products_page.total, products_page.products) == (
            True,
            1,
            [created.product],
        )
        patch = salon.ProductPatch(id=created.product.id, price=13900, stock_delta=-1)
        updated = products.update_product(patch).data.product
        assert (updated.price, updated.stock) == (13900, 2)

    def test_a_failure_is_an_exception_with_the_typed_envelope(
        self, salon: ModuleType, client: Any
    ) -> None:
        with pytest.raises(salon.ApiException) as failed:
            salon.ProductsApi(client).get_product("nobody")
        data = salon.Failure.from_json(failed.value.body).data
        assert (failed.value.status, data.code, data.status) == (404, "not_found", False)

    def test_a_file_is_uploaded(self, salon: ModuleType, client: Any) -> None:
        content = base64.b64encode(b"hello").decode()
        upload = salon.FileUpload(name="menu.txt", content=content)
        stored_file = salon.FilesApi(client).upload_file(upload).data.file
        assert (stored_file.name, stored_file.size) == ("menu.txt", 5)

    def test_fields_of_several_types_and_without_a_value_are_read(
        self, salon: ModuleType, client: Any
    ) -> None:
        products = salon.ProductsApi(client)
        request = salon.ProductDraftRequest(name="Loaf")
        draft = products.ai_fill_product(product_draft_request=request).data.draft
        assert draft.sku is None
        product = products.create_product(salon.ProductCreate(name="Loaf", price=100)).data.product
        value = salon.BulkProductsValue(150)
        change = salon.BulkProducts(ids=[product.id], action="setPrice", value=value, dry_run=True)
        (outcome,) = products.bulk_products(change).data.results
        assert (outcome.before.actual_instance, outcome.after.actual_instance) == (100, 150)

    def test_every_list_of_the_demo_is_read(self, salon: ModuleType, client: Any) -> None:
        called = []
        for group, group_class in inspect.getmembers(salon, inspect.isclass):
            for name, method in inspect.getmembers(group_class, inspect.isfunction):
                needed = [
                    parameter
                    for parameter in list(inspect.signature(method).parameters.values())[1:]
                    if parameter.default is inspect.Parameter.empty
                ]
                is_list = name.startswith(("list_", "get_", "search_"))
                if group.endswith("Api") and is_list and not needed and "_with" not in name:
                    if "blog" in name or "post" in name:  # for ADMIN accounts, or without a key
                        continue
                    assert getattr(group_class(client), name)().data.status is True, name
                    called.append(name)
        assert {"list_products", "list_leads", "list_bookings", "list_agents"} <= set(called)


class TestJava:
    """With the library ``native``, the HTTP client of the JDK, and without ``JsonNullable``."""

    def test_it_is_compiled_and_creates_reads_lists_changes_and_fails(
        self, document: Path, tmp_path: Path
    ) -> None:
        if not (compiler := run(FIND_JDK).strip()):
            pytest.skip("no Java compiler was found, nor could apt install it")
        folder = generate(
            "java",
            document,
            tmp_path / "java",
            "--library=native",
            "--additional-properties=openApiNullable=false",
        )
        sources = [*(folder / "src" / "main").rglob("*.java"), *(HERE / "java").glob("*.java")]
        source_list = tmp_path / "sources"
        source_list.write_text("\n".join(map(str, sources)))
        classes = tmp_path / "classes"
        run(compiler, "-nowarn", "-proc:none", "-d", classes, "-cp", JAR, f"@{source_list}")
        name = f"Loaf {uuid4().hex[:12]}"
        java = Path(compiler).with_name("java")
        assert run(java, "-cp", f"{classes}:{JAR}", "Main", name).splitlines() == [
            "created true 12900",
            "read true null",
            "listed 1 true",
            "changed 13900 3",
            "failed 404 not_found false",
        ]


@pytest.fixture(scope="session")
def compiled(document: Path) -> Path:
    """The folder of the compiled TypeScript clients, whose types were checked."""
    if not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("npm was not found, so no JavaScript client was installed")
    programs = JAVASCRIPT / "node_modules" / ".bin"
    run(programs / "openapi-typescript", document, "--output", "openapi-typescript.ts",
        cwd=JAVASCRIPT)  # fmt: skip
    run(programs / "orval", "--input", document, "--output", "orval-client.ts", "--client",
        "axios", cwd=JAVASCRIPT)  # fmt: skip
    run(programs / "tsc", "--project", JAVASCRIPT)
    return JAVASCRIPT / "compiled"


class TestTypescript:
    """With TypeScript's strict mode."""

    @pytest.mark.parametrize("client", ["openapi-fetch", "orval"])
    def test_it_creates_reads_lists_changes_fails_and_counts_a_visit(
        self, client: str, compiled: Path
    ) -> None:
        environment = {**os.environ, "NAME": f"Loaf {uuid4().hex[:12]}"}
        assert run("node", compiled / f"{client}.js", env=environment).splitlines() == [
            "created true 12900",
            "read true null",
            "listed 1 true",
            "changed 13900 active",
            "failed 404 not_found false",
            "counted true false",
        ]
