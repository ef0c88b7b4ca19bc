"""The OpenAPI document describes the registry in valid OpenAPI 3.1."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.settings import settings
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.chat.flows.stream_answer import Done, Failed, Shown
from chalicelib.engine import limits
from chalicelib.transports.chat.chat_stream import encode
from tests.conftest import Answer, Api, Time
from tests.contract.conftest import World
from tests.contract.test_registry import check_node, nodes
from tests.factories.chat import ask, propose_booking
from tests.factories.examples import every_operation, example, send, sweep_of_operations


@pytest.fixture(scope="module")
def answer() -> Answer:
    return Api(None).call("GET", "/api/openapi.json")


@pytest.fixture(scope="module")
def document(answer: Answer) -> Any:
    return json.loads(answer.body)


def test_the_document_is_valid_and_needs_no_key(answer: Answer) -> None:
    assert answer.status == 200
    OpenAPIV31SpecValidator(json.loads(answer.body)).validate()


@sweep_of_operations
def test_the_document_has_every_operation(operation: Operation, document: Any) -> None:
    entry = document["paths"][operation.path][operation.method.lower()]
    assert entry["operationId"] == operation.name
    names = {p["name"] for p in entry["parameters"] if p["in"] != "header"}
    if "requestBody" in entry:
        body = entry["requestBody"]["content"]["application/json"]["schema"]
        names |= set(resolved(body, document)["properties"])
    assert names == set(operation.input_schema["properties"])


def resolved(schema: dict[str, Any], document: Any) -> dict[str, Any]:
    """Return the component that a schema refers to, or the schema itself."""
    if "$ref" not in schema:
        return schema
    components: dict[str, Any] = document["components"]["schemas"]
    component: dict[str, Any] = components[schema["$ref"].rpartition("/")[2]]
    return component


def test_records_and_inputs_are_named_components(document: Any) -> None:
    components = document["components"]["schemas"]
    assert {
        *("Workspace", "Site", "Page", "Product", "Category", "File", "Folder", "Photo"),
        *("Pagination", "Failure", "ProductCreate", "ProductPatch", "ProductResult"),
    } <= components.keys()
    for name, schema in components.items():
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", name), name
        for path, node in nodes(schema):
            if name != "Failure":
                check_node(f"{name}{path}", node)
    product = components["ProductResult"]["properties"]["product"]
    assert product["$ref"] == "#/components/schemas/Product"
    children = components["FolderTree"]["properties"]["children"]
    assert children["items"] == {"$ref": "#/components/schemas/FolderTree"}


@sweep_of_operations
def test_a_body_is_documented_with_the_same_schema_as_the_tool(
    operation: Operation, document: Any
) -> None:
    if operation.reads_query:
        return
    entry = document["paths"][operation.path][operation.method.lower()]
    body = resolved(entry["requestBody"]["content"]["application/json"]["schema"], document)
    declarations = operation.input_schema["properties"]
    for name in declarations.keys() - set(operation.path_parameters):
        declared = declarations[name]
        bounds = {key: value for key, value in declared.items() if key in BOUNDS}
        shown_field = body["properties"][name]
        solid = shown_field.get("anyOf", [shown_field])[0]
        published = {key: solid.get(key) for key in bounds}
        if published.get("enum") and shown_field.get("x-null-omits"):
            published["enum"] = [allowed for allowed in published["enum"] if allowed is not None]
        assert bounds == published


BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "enum"}


def test_an_upload_is_documented_as_the_form_of_the_readme(document: Any) -> None:
    """The form is inline and a map: openapi-generator's code would import a missing model."""
    content = document["paths"]["/api/files/upload"]["post"]["requestBody"]["content"]
    assert list(content) == ["application/json", "multipart/form-data"]
    form = content["multipart/form-data"]["schema"]
    assert form["type"] == "object"
    assert form["additionalProperties"]["format"] == "binary"
    assert {"`file`", "`name`"} <= set(re.findall("`[^`]*`", form["description"]))
    assert not {"$ref", "properties", "title", "required"} & set(form)


def test_no_schema_uses_what_generators_of_clients_misread(document: Any) -> None:
    """openapi-generator reads a constant boolean as a string, and stops at a type of only null."""
    places = [("", document["components"]["schemas"]), ("paths", document["paths"])]
    located_nodes = [(path, node) for at, part in places for path, node in nodes(part, at)]
    constants = [p for p, node in located_nodes if isinstance(node.get("const"), bool)]
    boolean_enums = [
        p
        for p, node in located_nodes
        if True in node.get("enum", ()) or False in node.get("enum", ())
    ]
    nullable = [
        variant
        for _, node in located_nodes
        for variant in node.get("anyOf", ())
        if "$ref" in node["anyOf"][0]
    ]
    nulls = [
        p
        for p, node in located_nodes
        if node.get("type") in ("null", ["null"])
        and not any(node is variant for variant in nullable)
    ]
    unions = [
        p
        for p, node in located_nodes
        for variant in node.get("anyOf", ())
        if not {"$ref"} & variant.keys() and variant.get("type") != "null"
    ]
    assert (constants, boolean_enums, nulls, unions) == ([], [], [], [])


@sweep_of_operations
def test_no_field_of_a_body_has_a_default_keyword(operation: Operation, document: Any) -> None:
    """openapi-typescript requires fields with ``default``; descriptions name the default."""
    if operation.reads_query:
        return
    entry = document["paths"][operation.path][operation.method.lower()]
    with_default = [
        f"{path}.{name}"
        for content in entry["requestBody"]["content"].values()
        for path, node in reachable_nodes(content["schema"], document)
        for name, field in node.get("properties", {}).items()
        if "default" in field
    ]
    assert with_default == []


def reachable_nodes(schema: Any, document: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of a schema and of the components that it refers to, with their paths."""
    waiting, seen = [("", schema)], set()
    while waiting:
        at, part = waiting.pop()
        for path, node in nodes(part, at):
            yield path, node
            name = node.get("$ref", "").rpartition("/")[2]
            if name and name not in seen:
                seen.add(name)
                waiting.append((name, document["components"]["schemas"][name]))


def test_the_description_of_a_field_names_its_default(document: Any) -> None:
    service = component(document, "ServiceCreate")["properties"]
    ends = {
        name: service[name]["description"] for name in ("status", "horizonDays", "visitorMails")
    }
    assert ends["status"].endswith(" Default: active.")
    assert ends["horizonDays"].endswith(" Default: 60.")
    assert ends["visitorMails"].endswith(" Default: true.")
    nested = component(document, "FormFieldIn")["properties"]["required"]
    assert nested["description"].endswith(" Default: false.")


GENERATED_SUFFIXES = [
    *("Result", "QueryResult", "MutationResult", "InfiniteQueryResult", "ClientResult"),  # orval
    *("Params", "QueryParams", "PathParams", "PathParameters", "Header", "Headers"),  # orval
    *("Body", "MutationBody", "QueryError", "MutationError", "Variables", "Context"),  # orval
    *("Data", "Error", "Errors", "Response", "Responses"),  # @hey-api/openapi-ts
    *("Request", "OperationRequest"),  # openapi-generator
    *("Payload", "Output"),  # swagger-typescript-api
]
"""What generators add to the name of an operation when they name the types that they make of it."""


def test_no_component_is_named_as_generators_name_types_of_an_operation(document: Any) -> None:
    """Such a client has two types of one name, and does not compile."""
    components = document["components"]["schemas"]
    made = {
        operation["operationId"].replace("_", "") + suffix.lower()
        for path in document["paths"].values()
        for operation in path.values()
        for suffix in GENERATED_SUFFIXES
    }
    assert [name for name in components if name.lower() in made] == []


def test_failures_are_documented_for_the_operations_that_return_them(document: Any) -> None:
    paths = document["paths"]

    def statuses(method: str, path: str) -> set[str]:
        return set(paths[path][method]["responses"])

    always = {"200", "400", "401", "403", "404", "405", "413", "429", "500", "503"}
    assert statuses("get", "/api/products/{id}") == always
    assert statuses("get", "/api/card-images/search") == always | {"502"}
    assert statuses("post", "/api/products/delete") == always | {"409", "415"}
    assert statuses("post", "/api/files/delete") == always | {"409", "415"}
    assert statuses("post", "/api/pages/import-html") == always | {"409", "415", "502"}


STANDARD = {"Content-Type", "Cache-Control", "Content-Disposition", "Location", "Vary"}
"""Headers whose meaning RFC 9110 and RFC 9111 give, so that the document does not list them."""


def undocumented_headers(answer: Answer, operation: Operation, document: Any) -> set[str]:
    """Return the headers of a response that the document does not declare."""
    entry = document["paths"][operation.path][operation.method.lower()]
    response = entry["responses"][str(answer.status)]
    if reference := response.get("$ref"):
        response = document["components"]["responses"][reference.rpartition("/")[2]]
    assert all(
        named["$ref"].rpartition("/")[2] in document["components"]["headers"]
        for named in response["headers"].values()
    )
    sent = {name for name in answer.headers if not name.startswith(("Access-", "X-Content"))}
    return sent - STANDARD - response["headers"].keys()


def test_headers_of_repeated_and_refused_calls_are_documented(
    api: Api, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, draft = REGISTRY["create_category"], REGISTRY["ai_fill_product"]
    once = {"Idempotency-Key": "once", "Prefer": "handling=strict"}
    for _ in range(2):
        repeated = api.call("POST", create.path, {"name": "Bread"}, headers=once)
    assert {"Idempotency-Replayed", "Preference-Applied"} <= repeated.headers.keys()
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=0))
    refused = api.call_refused("POST", draft.path, {"name": "Bread"})
    assert (refused.status, "Retry-After" in refused.headers) == (429, True)
    wrong = api.call_refused("DELETE", create.path)
    assert "Allow" in wrong.headers
    for answer, operation in ((repeated, create), (refused, draft), (wrong, create)):
        assert undocumented_headers(answer, operation, document) == set()


@every_operation
def test_real_answers_match_the_schema(operation: Operation, world: World, document: Any) -> None:
    from jsonschema import Draft202012Validator

    answer = send(world.api, operation, example(operation, world.things))
    entry = document["paths"][operation.path][operation.method.lower()]
    schema = entry["responses"]["200"]["content"]["application/json"]["schema"]
    complete_schema = {**schema, "components": document["components"]}
    Draft202012Validator(complete_schema).validate(json.loads(answer.body))
    assert undocumented_headers(answer, operation, document) == set()


def test_an_operation_lists_its_error_codes(document: Any) -> None:
    paths = document["paths"]
    codes = paths["/api/projects/create"]["post"]["x-error-codes"]
    assert codes["409"] == [
        "external_id_taken",
        "idempotency_mismatch",
        "in_progress",
        "slug_taken",
        "storage_limit",
        "test_workspace",
    ]
    assert codes["403"] == ["insufficient_scope", "plan_required"]
    assert paths["/api/admin/blog/list"]["get"]["x-error-codes"]["403"] == [
        "admin_required",
        "insufficient_scope",
        "plan_required",
    ]
    assert "401" not in paths["/api/public/hit"]["post"]["x-error-codes"]


def test_an_unchanged_document_is_answered_with_304(answer: Answer) -> None:
    etag = answer.headers["ETag"]
    revalidated = Api(None).call("GET", "/api/openapi.json", headers={"If-None-Match": etag})
    assert (revalidated.status, revalidated.body) == (304, b"")


def test_the_chat_is_documented_although_it_is_not_an_operation(document: Any) -> None:
    entry = document["paths"]["/api/agents/public/chat-stream"]["post"]
    assert entry["security"] == []
    assert set(entry["responses"]["200"]["content"]) == {"text/event-stream"}
    body = resolved(entry["requestBody"]["content"]["application/json"]["schema"], document)
    assert body["required"] == ["agentId", "message"]
    assert {"sessionId", "apiKey", "channel", "pageUrl"} < set(body["properties"])
    assert body["properties"]["message"]["maxLength"] == 10_000


def component(document: Any, name: str) -> dict[str, Any]:
    """Return a component's schema."""
    return resolved({"$ref": f"#/components/schemas/{name}"}, document)


def validator_of(document: Any, name: str) -> Any:
    """Return a validator of a component."""
    from jsonschema import Draft202012Validator

    components = document["components"]
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


def test_no_schema_forbids_unknown_fields(document: Any) -> None:
    components = document["components"]["schemas"]
    closed = [
        f"{name}{path}"
        for name, schema in components.items()
        for path, node in nodes(schema)
        if node.get("additionalProperties") is False
    ]
    assert closed == []


@pytest.mark.parametrize(
    ("name", "min_fields"),
    [
        ("ProductPatch", 2),
        ("AgentPatch", 1),  # The id is in the path.
        ("ImageIn", 1),
        ("BookingCreate", 3),
        ("BookingReschedule", 2),
        ("PageImport", 2),
    ],
)
def test_an_input_states_how_many_optional_fields_it_needs(
    name: str, min_fields: int, document: Any
) -> None:
    schema = component(document, name)
    assert schema["minProperties"] == min_fields
    assert schema["description"].endswith("required.")


def test_alternative_fields_are_named_in_the_description(document: Any) -> None:
    description = component(document, "ImageIn")["description"]
    assert "Exactly one of `url` and `fileId` is required." in description


def test_null_is_published_where_it_is_accepted(document: Any, api: Api) -> None:
    body = {"name": "Loaf", "price": 1, "sku": None, "status": None, "images": None}
    validator_of(document, "ProductCreate").validate(body)
    product = api.post("/api/products/create", body)["product"]
    patch = {"id": product["id"], "name": None, "description": None}
    validator_of(document, "ProductPatch").validate(patch)
    api.post("/api/products/update", patch)
    properties = component(document, "ProductPatch")["properties"]
    assert properties["name"]["x-null-omits"] is True
    assert "x-null-omits" not in properties["description"]
    required = component(document, "ProductCreate")["properties"]["name"]
    assert required["type"] == "string"


def test_a_repeated_id_is_refused_by_schema_and_server(document: Any, api: Api) -> None:
    body = {"ids": ["one", "one"]}
    assert not validator_of(document, "ProductReorder").is_valid(body)
    assert api.call_refused("POST", "/api/products/reorder", body).status == 400


@pytest.mark.parametrize(
    ("day", "is_accepted"),
    [("1970-12-31", False), ("1971-01-02", True), ("2999-12-30", True), ("3000-01-01", False)],
)
def test_the_range_of_years_is_published_as_it_is_enforced(
    day: str, is_accepted: bool, document: Any, api: Api
) -> None:
    parameters = document["paths"]["/api/bookings/list"]["get"]["parameters"]
    (schema,) = (parameter["schema"] for parameter in parameters if parameter["name"] == "from")
    assert bool(re.search(schema["pattern"], day)) == is_accepted
    assert (api.call("GET", f"/api/bookings/list?from={day}").status == 200) == is_accepted


def test_every_integer_query_parameter_has_a_maximum(document: Any) -> None:
    unbounded = [
        f"{entry['operationId']}.{parameter['name']}"
        for path in document["paths"].values()
        for entry in path.values()
        for parameter in entry["parameters"]
        if parameter["schema"].get("type") == "integer" and "maximum" not in parameter["schema"]
    ]
    assert unbounded == []


def test_chat_events_are_documented_by_type(document: Any, world: World, time: Time) -> None:
    entry = document["paths"]["/api/agents/public/chat-stream"]["post"]
    stream = entry["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert stream["contentSchema"] == {"$ref": "#/components/schemas/ChatEvent"}
    mapping = component(document, "ChatEvent")["discriminator"]["mapping"]
    assert set(mapping) == {"start", "chunk", "action", "done", "error"}
    events = ask(world.things.agent, "How much is rye bread?").events
    start = datetime.fromisoformat("2027-03-02T14:00:00+03:00")
    place = (world.things.agent, world.things.service, world.things.resource)
    _, proposal = propose_booking(*place, start)
    ends = (
        Failed("cut_off"),
        Failed("empty_answer", TokenUsage(1, 2)),
        Done(TokenUsage(1, 2), (), is_truncated=True),
    )
    rare = [encode(event).removeprefix(b"data: ") for event in (Shown(proposal), *ends)]
    all_events = [*events, *map(json.loads, rare)]
    assert {event["type"] for event in all_events} == set(mapping)
    for event in all_events:
        validator_of(document, "ChatEvent").validate(event)
        validator_of(document, mapping[event["type"]].rpartition("/")[2]).validate(event)
