"""Every operation treats null, unknown fields and published bounds in the same way."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.batch_items import InvalidItem
from chalicelib.core.wire.fields import fields_of
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.core.wire.parsing import parse
from chalicelib.core.wire.schema import Patch, Wire
from tests.conftest import Api
from tests.contract.conftest import World
from tests.factories.examples import Things, every_operation, example, send
from tests.support.sweep import sweep
from tests.support.warned import warned

sweep_of_inputs = sweep("operation", REGISTRY)
every_read = pytest.mark.parametrize(
    "operation", [o for o in REGISTRY.select(Audience.KEY) if o.reads_query], ids=lambda o: o.name
)


def sample(schema: dict[str, Any], number: int = 0) -> Any:
    """Return a value that fits a schema; each number gives a different value."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "string")
    if "object" in kinds:
        required = schema.get("required", ())
        return {name: sample(schema["properties"][name]) for name in required}
    if "array" in kinds:
        return [sample(schema["items"], index) for index in range(schema.get("minItems", 0))]
    if "integer" in kinds or "number" in kinds:
        return max(schema.get("minimum", 0), 0)
    if "boolean" in kinds:
        return True
    return f"a{number}"


def refusals(model: type[Wire], raw: dict[str, Any]) -> dict[str, str]:
    """Return the messages, by field, with which an input or one item of a batch is refused."""
    try:
        parsed = parse(model, raw)
    except ValidationError as error:
        return {field_error.field: field_error.message for field_error in error.errors} or {
            "": error.message
        }
    errors = {}
    for name, field in fields_of(model).items():
        batch = raw.get(name)
        items = parsed.provided().get(name, ()) if isinstance(batch, list) else ()
        for number, item in enumerate(items or ()):
            for wrong in item.error.errors if isinstance(item, InvalidItem) else ():
                place = f"{name}.{number}"
                errors[f"{place}.{wrong.field}" if field.nested else place] = wrong.message
    return errors


def models(model: type[Wire]) -> Iterator[type[Wire]]:
    """Yield an input model and its nested models."""
    yield model
    for field in fields_of(model).values():
        if field.nested:
            yield from models(field.nested)


class TestNull:
    @sweep_of_inputs
    def test_null_means_omitted_for_fields_that_cannot_be_null(self, operation: Operation) -> None:
        for model in models(operation.input):
            schema = json_schema(model)
            for name, field in fields_of(model).items():
                if field.null_is_value:
                    continue
                declared = schema["properties"][name]
                assert "null" not in declared.get("type", ()), name
                assert None not in declared.get("enum", ()), name
                base = sample(schema)
                if issubclass(model, Patch):
                    base |= {
                        other: None for other, f in fields_of(model).items() if f.null_is_value
                    }
                    base |= sample(schema)
                if field_errors := refusals(
                    model, base
                ):  # the operation requires one of several fields
                    assert refusals(model, {**base, name: None}) == field_errors
                    continue
                omitted, null = parse(model, base), parse(model, {**base, name: None})
                assert (null, null.model_fields_set) == (omitted, omitted.model_fields_set), name

    def test_null_means_the_same_for_every_operation_over_rest_and_tools(
        self, api: Api, things: Things
    ) -> None:
        for name in ("list_sites", "list_products", "create_product", "create_page", "get_page"):
            operation = REGISTRY[name]
            nulls = {n: None for n, f in fields_of(operation.input).items() if not f.null_is_value}
            failed, answer = api.tool(str(operation.tool), **nulls | example(operation, things))
            assert not failed, answer
            if not operation.reads_query:
                arguments = example(operation, things) | {"slug": "again", "name": "Again"}
                answer = send(api, operation, nulls | arguments).data
            assert not [w for w in answer.get("warnings", ()) if "null" in w]

    def test_null_is_refused_where_omission_has_an_effect(self, api: Api, things: Things) -> None:
        site = things.site
        answer = api.call_refused(
            "POST", "/api/projects/toggle-stats", {"id": site, "enabled": None}
        )
        message = "expected true or false, received null"
        assert answer.data["errors"] == [
            {"field": "enabled", "message": message, "key": "invalid_type"}
        ]
        flipped = api.post("/api/projects/toggle-stats", {"id": site})
        assert flipped["statsEnabled"] is False

    def test_null_clears_the_fields_that_an_update_may_clear(
        self, api: Api, things: Things
    ) -> None:
        changes = {"id": things.product, "sku": None, "stock": None, "price": None, "name": None}
        product = api.post("/api/products/update", changes)["product"]
        assert (product["sku"], product["stock"]) == (None, None)
        assert (product["name"], product["price"]) == ("Loaf", 9900)

    def test_an_update_with_only_nulls_counts_as_empty(self, api: Api) -> None:
        things = Things.made_with(api)
        body = {"id": things.site, "title": None}
        answer = api.call_refused("POST", "/api/projects/update", body)
        assert (answer.data["code"], answer.data["key"]) == ("validation_error", "no_changes")
        assert "title" in answer.data["message"]
        assert "errors" not in answer.data


class TestUnknownNames:
    @every_read
    def test_an_unknown_query_parameter_is_a_warning(
        self, operation: Operation, world: World
    ) -> None:
        arguments = example(operation, world.things)
        answer = send(world.api, operation, arguments | {"someParameter": "1"})
        assert answer.status == 200
        found = [(detail["code"], detail.get("field")) for detail in warned(answer.data)]
        assert ("unknown_field", "someParameter") in found
        (warning,) = [w for w in answer.data["warnings"] if "someParameter" in w]
        # A list names the call, because its user may take all records for the filtered ones.
        assert (f"{operation.method} {operation.path}" in warning) is operation.returns_list

    @sweep(
        "operation",
        [
            operation
            for operation in REGISTRY
            if operation.path and not operation.reads_query and not operation.file_field
        ],
    )
    def test_an_unknown_field_of_a_write_is_kept_or_named(
        self, operation: Operation, world: World
    ) -> None:
        visitor = Audience.PUBLIC in operation.audience
        arguments = example(operation, world.things if visitor else Things.unknown())
        caller = Api(None) if visitor else world.api
        arguments |= {"someField": "x"}
        if operation.name == "record_hit":  # Hits of programs are not read.
            browser = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"}
            answer = caller.call("POST", operation.path, arguments, browser)
        else:
            answer = send(caller, operation, arguments)
        if operation.name == "submit_form":
            lead = world.api.get(f"/api/forms/collection/{answer.data['id']}")["lead"]
            assert lead["data"]["someField"] == "x"
        else:
            found = [(detail["code"], detail["field"]) for detail in warned(answer.data)]
            assert ("unknown_field", "someField") in found

    def test_a_warning_suggests_the_nearest_known_name(self, api: Api) -> None:
        body = {"title": "x", "sluk": "x", "Title": "y"}
        assert warned(api.post("/api/projects/create", body)) == [
            {"code": "unknown_field", "field": "sluk", "suggestion": "slug"},
            {"code": "unknown_field", "field": "Title", "suggestion": "title"},
        ]

    def test_an_ignored_filter_of_a_list_is_a_warning_that_names_the_call(self, api: Api) -> None:
        listing = api.get("/api/products/list?runningLow=true")
        assert "GET /api/products/list" in listing["warnings"][0]
        _, answer = api.tool("svc_list_products", runningLow=True)
        assert "svc_list_products" in answer["data"]["warnings"][0]
        for data in (listing, answer["data"]):
            assert warned(data)[0]["field"] == "runningLow"
        assert list(answer["data"])[:3] == ["status", "warnings", "warningDetails"]

    def test_a_warning_about_an_ignored_filter_suggests_the_nearest_known_one(
        self, api: Api
    ) -> None:
        answer = api.get("/api/products/list?sise=5&Sort=name")
        assert [detail["suggestion"] for detail in warned(answer)] == ["size", "sort"]
        assert '"size"' in answer["warnings"][0]

    def test_a_warning_names_the_route_in_rest_and_the_tool_in_tools(self, api: Api) -> None:
        reason = api.call_refused("GET", "/api/products/nobody").data["message"]
        assert "(GET /api/products/list)" in reason
        failed, answer = api.tool("svc_get_product", id="nobody")
        assert failed
        message = answer["data"]["message"]
        assert "(svc_list_products)" in message

    def test_a_failure_also_carries_the_warning(self, api: Api) -> None:
        answer = api.call_refused(
            "POST", "/api/products/delete", {"productId": "x", "dry_run": True}
        )
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("id", "required")
        assert '"productId"' in error["message"]
        assert answer.data["message"] == f"id: {error['message']}"
        ignored = {"code": "unknown_field", "field": "dry_run", "suggestion": "dryRun"}
        assert ignored in warned(answer.data)
        missing = api.call_refused("GET", "/api/products/nobody?fields=name")
        assert missing.data["code"] == "not_found"
        assert [detail["field"] for detail in warned(missing.data)] == ["fields"]

    def test_a_tool_gives_the_same_warning(self, api: Api) -> None:
        failed, answer = api.tool("svc_get_product", productId="x")
        assert failed
        (error,) = answer["data"]["errors"]
        assert (error["field"], error["key"]) == ("id", "required")
        assert '"productId"' in error["message"]
        assert [detail["field"] for detail in warned(answer["data"])] == ["productId"]


@dataclass(frozen=True)
class InputLocation:
    """A location in the input of an operation: its path, and a function that puts a value there."""

    path: str
    schema: dict[str, Any]
    holding: Callable[[Any], dict[str, Any]]


def input_locations(operation: Operation) -> Iterator[InputLocation]:
    """Yield each location in an operation's input, including nested ones."""
    schema = operation.input_schema
    base = sample(schema)
    if Audience.KEY in operation.audience:
        base = example(operation, Things.unknown())
    for name, declared in schema["properties"].items():
        yield from _inside(InputLocation(name, declared, lambda v, name=name: {**base, name: v}))


def _inside(spot: InputLocation) -> Iterator[InputLocation]:
    yield spot
    schema = spot.schema
    if "items" in schema:
        yield from _inside(
            InputLocation(f"{spot.path}.0", schema["items"], lambda value: spot.holding([value]))
        )
    for name, declared in schema.get("properties", {}).items():
        base = sample(schema)

        def holding(value: Any, name: str = name, base: Any = base) -> dict[str, Any]:
            return spot.holding({**base, name: value})

        yield from _inside(InputLocation(f"{spot.path}.{name}", declared, holding))


HUGE = 10**15
PATTERNED = [
    "",
    "a",
    "A",
    "7",
    "-",
    "a-",
    "-a",
    "a-b",
    "RU",
    "ru",
    "RUS",
    "pt-BR",
    "é",
    "a\n",
    "a b",
]
PATTERNED += ["a" * length for length in (35, 36, 63, 64)]


def boundary_values(schema: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return values just inside and just outside every bound of a schema.

    Without a bound, a value far away counts as inside.
    """
    kinds = schema.get("type", ())
    inside: list[Any] = []
    outside: list[Any] = []
    if "enum" in schema:
        return list(schema["enum"]), ["nonsense"]
    if "integer" in kinds or "number" in kinds:
        inside += [schema.get("minimum", -HUGE), schema.get("maximum", HUGE)]
        outside += [schema["minimum"] - 1] if "minimum" in schema else []
        outside += [schema["maximum"] + 1] if "maximum" in schema else []
    if "pattern" in schema:
        fits = re.compile(schema["pattern"].removeprefix("^").removesuffix("$"))
        inside += [text for text in PATTERNED if fits.fullmatch(text)]
        outside += [text for text in PATTERNED if not fits.fullmatch(text)]
    elif "string" in kinds:
        min_length, max_length = schema.get("minLength", 0), schema.get("maxLength")
        inside += ["a" * min_length, "a" * (100_000 if max_length is None else max_length)]
        outside += ["a" * (min_length - 1)] if min_length else []
        outside += ["a" * (max_length + 1)] if max_length is not None else []
    if "array" in kinds:
        min_length, max_length = schema.get("minItems", 0), schema.get("maxItems")

        def items(count: int) -> list[Any]:
            return [sample(schema["items"], number) for number in range(count)]

        inside += [items(min_length), items(1000 if max_length is None else max_length)]
        outside += [items(min_length - 1)] if min_length else []
        outside += [items(max_length + 1)] if max_length is not None else []
    return inside, outside


A_BOUND = re.compile(r"expected (at least|at most) \d|expected '|expected true,")


class TestBounds:
    @sweep_of_inputs
    def test_the_server_enforces_the_bounds_that_a_schema_publishes(
        self, operation: Operation
    ) -> None:
        for spot in input_locations(operation):
            inside, outside = boundary_values(spot.schema)
            for value in inside:
                message = refusals(operation.input, spot.holding(value)).get(spot.path, "")
                assert not A_BOUND.match(message), (spot.path, str(value)[:80], message)
            for value in outside:
                errors = refusals(operation.input, spot.holding(value))
                assert spot.path in errors, (spot.path, str(value)[:80])

    @sweep_of_inputs
    def test_a_required_field_that_is_left_out_is_named(self, operation: Operation) -> None:
        for model in models(operation.input):
            schema = json_schema(model)
            complete = sample(schema)
            for name in schema.get("required", ()):
                incomplete = {other: value for other, value in complete.items() if other != name}
                assert refusals(model, incomplete).get(name) == "is required", name

    @pytest.mark.parametrize(
        ("field", "inside", "outside"),
        [("price", 10**11, 10**11 + 1), ("stock", 10**9, 10**9 + 1), ("sku", "s" * 64, "s" * 65)],
    )
    def test_bounds_are_enforced_over_http(
        self, field: str, inside: Any, outside: Any, api: Api
    ) -> None:
        body = {"name": "Loaf", "price": 1}
        product = api.post("/api/products/create", body | {field: inside})
        assert product["product"][field] == inside
        answer = api.call_refused("POST", "/api/products/create", body | {field: outside})
        assert [error["field"] for error in answer.data["errors"]] == [field]

    def test_the_bounds_of_an_idempotency_key_are_enforced_as_published(self, api: Api) -> None:
        for length, failed in ((1, False), (255, False), (256, True)):
            answer = api.tool("svc_create_site", title="x", idempotencyKey="k" * length)
            assert answer[0] is failed


ODD = [None, True, 0, -1, 1.5, 1e300, 10**400, "", "nonsense", [], [[]], [None], {}, {"a": None}]
OF_A_LIBRARY = re.compile(
    r"Input should|pydantic|valid (string|integer|dict)|[\^$\\]|another value"
)


@sweep_of_inputs
def test_every_refusal_uses_the_services_own_wording(operation: Operation) -> None:
    """No error shows a library's message, a regular expression or the name of a class."""
    for spot in input_locations(operation):
        for value in [*ODD, *boundary_values(spot.schema)[1]]:
            for field, message in refusals(operation.input, spot.holding(value)).items():
                assert not OF_A_LIBRARY.search(message), (field, message)
                assert field != "input"


@every_operation
def test_a_malformed_body_is_refused_in_the_services_own_wording(
    operation: Operation, api: Api
) -> None:
    if operation.reads_query:
        return
    array = api.call_refused(operation.method, operation.path, b"[1]")
    assert array.status == 400
    assert len(array.body) < 2_000
    answer = api.call_refused(operation.method, operation.path, b'{"id": "x",\n "title" "y"}')
    assert (array.data["key"], answer.data["key"]) == ("malformed_body", "malformed_body")
    assert "line 2, column 10" in answer.data["message"]
