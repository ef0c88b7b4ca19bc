"""Every list has pages, a total, an order and a filter by the time of changes, and strict calls."""

from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from chalicelib.core.clock import iso
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import PLATFORM, Audience
from chalicelib.core.wire.list_names import other_names
from chalicelib.core.wire.lists import ListQuery, ListResult, PageQuery
from chalicelib.domains.blog.store.posts import POSTS
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.knowledge.store.sources import SOURCES
from chalicelib.engine.listing import queries
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.query import Query
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import ContentRow, Record
from chalicelib.engine.unit import UnitOfWork
from chalicelib.transports.tools import tool
from tests.conftest import Answer, Api, Time
from tests.contract.conftest import World
from tests.factories.examples import Things, example
from tests.support.sweep import sweep

WITHOUT_PAGES = {
    "list_audit_log": "the next page begins after the last entry, because entries are added",
    "list_key_errors": "as the audit log",
    "list_availability": "the opening hours of one resource",
    "list_webhook_deliveries": "the latest 50",
    "list_webhooks": "all of them, of which a workspace may have few",
}
WITHOUT_TIME_OF_CHANGES = {
    "find_lead": "the leads of one person, who is found by a contact",
    "lead_orders": "leads and bookings, which have lists of their own",
    "list_models": "settings, without a time",
    "list_page_versions": "versions never change",
    "list_public_products": "what visitors see, from caches; programs of the business have a key",
    "list_public_services": "as above",
    "list_starts": "dates are added and removed, and never change",
    "list_time_off": "time off is created and deleted, and never changes",
    "list_workspaces": "memberships of the key's account",
    "search_card_images": "photos of other services",
}
LISTS = [
    operation
    for operation in REGISTRY.select(Audience.KEY, Audience.PUBLIC)
    if operation.method == "GET"
    and (operation.returns_list or issubclass(operation.output, ListResult))
    and operation.name not in WITHOUT_PAGES
]
BY_WORD = {listing.listed_by: listing for listing in LISTINGS.values()}
NOUNS = {
    operation.name: (BY_WORD[operation.word], BY_WORD[operation.word].noun.lower())
    for operation in LISTS
    if operation.word in BY_WORD
} | {"list_knowledge": (SOURCES, "source"), "list_published_posts": (POSTS, "post")}
"""The listing of each list of records, and the name of its example."""
RECORDS = [operation for operation in LISTS if operation.name in NOUNS]
NUMBERED = {"name", "title"}
UNIQUE = {"sku", "barcode", "email", "phone", "phone_entered", "domain_binding"}
SIZE = 2
STRICT = {"Prefer": "handling=strict"}


@sweep("operation", LISTS)
def test_a_list_has_the_common_input_and_output(operation: Operation) -> None:
    assert issubclass(operation.output, ListResult), f"{operation.output} is no ListResult"
    assert issubclass(operation.input, PageQuery), f"{operation.input} is no ListQuery"
    has_time = issubclass(operation.input, ListQuery)
    if has_time:
        sorts = {"sort", "sort_by"} & operation.input.model_fields.keys()
        assert sorts, f"{operation.input} inherits SortedListQuery, or has a sort of its own"
    assert has_time is (operation.name not in WITHOUT_TIME_OF_CHANGES), (
        f"{operation.input} inherits from ListQuery, or {operation.name} has a reason in "
        f"WITHOUT_TIME_OF_CHANGES of {__name__}."
    )
    assert has_time is (operation.name in NOUNS), (
        f"No Listing has {operation.word} as listed_by. Name it there, or the listing of "
        f"{operation.name} in NOUNS of {__name__}."
    )


def test_the_exceptions_exist() -> None:
    assert WITHOUT_TIME_OF_CHANGES.keys() <= {operation.name for operation in LISTS}
    assert WITHOUT_PAGES.keys() <= {operation.name for operation in REGISTRY}


class Sample(NamedTuple):
    """Records of a list, and how it is called."""

    operation: Operation
    api: Api
    arguments: dict[str, str]
    records: list[Record]
    """The copies, in the order of changes. The second, third and fourth changed at one time."""

    def call(self, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        return call(self.api, self.operation, self.arguments | more, headers)

    def read(self, **more: Any) -> list[dict[str, Any]]:
        """Return the records of all pages, and check the total and the pagination of each."""
        shown: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self.call(page=page, **({"size": SIZE} | more))
            assert answer.status == 200, answer.body
            assert not answer.data.get("warnings"), answer.data["warnings"]
            total, pagination = answer.data["total"], answer.data["pagination"]
            size = int(more.get("limit", SIZE))
            assert pagination == {"total": total, "page": page, "size": size, "limit": size}
            records = records_of(self.operation, answer)
            assert len(records) <= size
            shown += records
            page += 1
            if not records:
                assert len(shown) == total
                return shown


def call(
    api: Api, operation: Operation, arguments: dict[str, Any], headers: dict[str, str] | None = None
) -> Answer:
    path, query = operation.path, dict(arguments)
    for name in operation.path_parameters:
        path = path.replace(f"{{{name}}}", query.pop(name))
    caller = Api(None) if Audience.PUBLIC in operation.audience else api
    return caller.call(operation.method, f"{path}?{urlencode(query)}", headers=headers)


def records_of(operation: Operation, answer: Answer) -> list[dict[str, Any]]:
    """Return the records of an answer, which are in the field that the list names first."""
    fields = [
        info.alias or name
        for name, info in operation.output.model_fields.items()
        if info.annotation is not None and getattr(info.annotation, "__origin__", None) is list
    ]
    name = "files" if operation.name == "list_files" else fields[0]
    records: list[dict[str, Any]] = answer.data[name]
    return records


def required(operation: Operation, things: Things) -> dict[str, str]:
    """Return what a call of a list needs: ids of its parents."""
    names = {*operation.input_schema.get("required", ()), *operation.path_parameters}
    return {n: v for n, v in example(operation, things).items() if n in names}


def copied(listing: Listing[Any], workspace_id: str, record: Record, number: int) -> Record:
    values = record.copied_values(*UNIQUE)
    unique = {lookup.name for lookup in listing.lookups if lookup.unique} - {"slug"}
    values |= {name: f"{values[name]} {number}" for name in NUMBERED | unique if values.get(name)}
    if "slug" in values:
        values["slug"] = f"{values['slug']}-{number}"
    if listing is POSTS:
        values |= {"status": "published", "published_at": record.created_at}
    copy: Record = listing.new(workspace_id, **values)
    return copy


def saved(unit_of: str, record: Record, *, is_new: bool) -> None:
    unit = UnitOfWork(unit_of, "test")
    (unit.create if is_new else unit.save)(record)
    unit.commit()


def sample(operation: Operation, world: World, time: Time) -> Sample:
    """Make five more records. The first changes last, and three change at one time."""
    listing, name = NOUNS[operation.name]
    workspace_id = PLATFORM if listing is POSTS else world.workspace_id
    made = listing.require(workspace_id, record_id=getattr(world.things, name))
    copies = [copied(listing, workspace_id, made, number) for number in range(5)]
    for number, copy in enumerate(copies):
        if number in {0, 1, 4}:
            time.pass_by(milliseconds=7)
        saved(workspace_id, copy, is_new=True)
    time.pass_by(milliseconds=1)
    (first,) = listing.fetch(workspace_id, [copies[0].id])
    saved(workspace_id, first, is_new=False)
    ids = [copy.id for copy in (*copies[1:], copies[0])]
    time.pass_by(seconds=1)
    records = sorted(listing.fetch(workspace_id, ids), key=lambda row: (row.updated_at, row.id))
    assert [record.id for record in records[3:]] == ids[3:]
    return Sample(operation, world.api, required(operation, world.things), records)


def forget_update_times(records: list[Record]) -> None:
    """Leave the rows as an earlier release has written them."""
    for record in records:
        ContentRow(record.pk, record.sk).update([ContentRow.y2.remove()])


every_list = pytest.mark.parametrize("operation", RECORDS, ids=lambda o: o.name)


@pytest.mark.store
@every_list
def test_a_list_returns_what_changed_since_a_time_in_the_order_of_changes(
    operation: Operation, world: World, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sample(operation, world, time)
    for large in (False, True):
        if large:
            monkeypatch.setattr(queries, "SMALL_ROWS", 0)
            monkeypatch.setattr(queries, "CONSISTENT_ROWS", 1)
            forget_update_times(made.records[::2])
        check_changes(made)


def check_changes(made: Sample) -> None:
    for since in sorted({record.updated_at for record in made.records}):
        expected = [record.id for record in made.records if record.updated_at >= since]
        args = {"updatedSince": iso(since), "sort": "updatedAt"}
        up, down = ([*made.read(**args, sortDir=way)] for way in ("asc", "desc"))
        assert ids(up) == expected
        assert ids(down) == expected[::-1]
        assert [record["updatedAt"] for record in up] == sorted(r["updatedAt"] for r in up)
        assert sorted(ids(made.read(updatedSince=iso(since)))) == sorted(expected)
    later = made.records[-1].updated_at + timedelta(milliseconds=1)
    assert made.read(updatedSince=iso(later)) == []
    in_order = made.read(sort="updatedAt", sortDir="asc")
    assert in_order == sorted(in_order, key=lambda record: (record["updatedAt"], record["id"]))
    assert ids(in_order)[-len(made.records) :] == [record.id for record in made.records]
    if made.operation.name != "list_folders":  # Without an order, a tree.
        assert sorted(ids(in_order)) == sorted(ids(made.read()))


def ids(records: list[dict[str, Any]]) -> list[str]:
    return [record["id"] for record in records]


@every_list
def test_other_names_of_arguments_mean_the_same(
    operation: Operation, world: World, time: Time
) -> None:
    made = sample(operation, world, time)
    others = other_names(operation.input)
    assert "limit" in others
    assert made.read(limit=SIZE, size=SIZE) == made.read()
    by_limit, by_size = (made.call(**{name: 3}) for name in ("limit", "size"))
    assert by_limit.data == by_size.data
    assert by_limit.data["pagination"]["limit"] == 3
    refuse(made.call(limit=3, size=2), "limit")
    refuse(made.call(limit=0), "limit")
    for other in {"q", "search"} & others.keys():
        found = [made.call(**{name: "no such text"}).data for name in (other, others[other])]
        assert found[0] == found[1]
        assert found[0]["total"] == 0
        refuse(made.call(q="a", search="b"), other)


def refuse(answer: Answer, field: str) -> None:
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    assert [error["field"] for error in answer.data["errors"]] == [field]


@every_list
def test_a_strict_call_of_a_list_refuses_unknown_arguments(
    operation: Operation, world: World, time: Time
) -> None:
    made = sample(operation, world, time)
    answer = made.call(STRICT, updatedSince="2027-01-01", page=1, size=SIZE)
    assert answer.status == 200, answer.body
    assert answer.headers["Preference-Applied"] == "handling=strict"
    answer = made.call(STRICT, updatedsince="2027-01-01", pageSize=SIZE)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    errors = {error["field"]: error["message"] for error in answer.data["errors"]}
    assert errors.keys() == {"updatedsince", "pageSize"}
    assert all("updatedSince" in message for message in errors.values())
    assert answer.headers["Preference-Applied"] == "handling=strict"
    assert "warnings" not in answer.data
    lenient = made.call(updatedsince="2027-01-01")
    assert lenient.status == 200
    assert "updatedsince" in lenient.data["warnings"][0]
    assert "Preference-Applied" not in lenient.headers


@sweep("operation", [operation for operation in LISTS if operation.name not in NOUNS])
def test_a_list_without_a_time_of_changes_has_pages_and_a_total(
    operation: Operation, world: World
) -> None:
    arguments = {**example(operation, world.things), "page": 1}
    arguments.pop("size", None)
    if "workspace" in arguments:
        arguments["workspace"] = workspaces.get(world.workspace_id).slug
    whole = call(world.api, operation, arguments)
    records = records_of(operation, whole)
    total = whole.data["total"]
    assert whole.data["pagination"]["total"] == total
    paged = call(world.api, operation, arguments | {"limit": 1})
    assert records_of(operation, paged) == records[:1]
    assert (paged.data["total"], paged.data["pagination"]["size"]) == (total, 1)
    if operation.name != "search_card_images":
        after = call(world.api, operation, arguments | {"limit": 1, "page": total + 1})
        assert (records_of(operation, after), after.data["total"]) == ([], total)
    refuse(call(world.api, operation, arguments | {"limit": 1, "size": 2}), "limit")
    strict = call(world.api, operation, arguments | {"updatedSince": "2027-01-01"}, STRICT)
    refuse(strict, "updatedSince")


def test_a_tool_accepts_what_its_schema_leaves_to_programs(world: World, time: Time) -> None:
    made = sample(REGISTRY["list_products"], world, time)
    properties = tool(made.operation)["inputSchema"]["properties"]
    assert not {"updatedSince", "limit", "search"} & properties.keys()
    assert "updatedAt" not in properties["sort"]["enum"]
    assert {"page", "size", "q", "sort", "sortDir"} <= properties.keys()
    assert tool(REGISTRY["list_pages"])["inputSchema"]["properties"].keys() == {"projectId"}
    since = iso(made.records[3].updated_at)
    failed, answer = world.api.tool("svc_list_products", updatedSince=since, sort="updatedAt")
    assert not failed
    assert ids(answer["data"]["products"]) == [record.id for record in made.records[3:]]


def test_a_sort_that_names_a_direction_takes_no_other(world: World) -> None:
    refuse(world.api.call("GET", "/api/bookings/list?sort=startAtAsc&sortDir=asc"), "sortDir")
    path = "/api/services/list?sort=createdAt&sortDir="
    up, down = (world.api.get(f"{path}{way}")["services"] for way in ("asc", "desc"))
    assert up == down[::-1]


def test_a_large_list_by_changes_counts_as_heavy_calls(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sample(REGISTRY["list_products"], world, time)
    monkeypatch.setattr(queries, "SMALL_ROWS", 0)
    monkeypatch.setattr(queries, "CONSISTENT_ROWS", 1)
    charged: list[int] = []
    for sort, weights in (("createdAt", []), ("updatedAt", [6])):
        query = Query(page=1, size=SIZE, sort=sort, charge=charged.append)
        assert PRODUCTS.page(world.workspace_id, query).total == len(made.records) + 1
        assert charged == weights
