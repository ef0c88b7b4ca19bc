"""Records that programs make have an id in the program's system, and metadata."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest
from pydantic.alias_generators import to_camel

from chalicelib.application import records
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.listing.registry import NOUNS as LISTED_NOUNS
from chalicelib.engine.tables import ProgramRecord
from chalicelib.transports.tools import tool
from tests.conftest import Api, Owner, all_rows
from tests.contract.test_access import drop_key_usage
from tests.factories.examples import KeyRecipes, Things, call
from tests.factories.pages import new_site
from tests.factories.salon import Salon
from tests.support.sweep import sweep

load_all()
NOUNS = sorted(
    listing.noun.lower() for row, listing in LISTINGS.items() if issubclass(row, ProgramRecord)
)
NEW: dict[str, dict[str, Any]] = {
    "category": {"name": "Bread"},
    "client": {"name": "Ada"},
    "form": {"title": "Contact us", "fields": [{"name": "email"}]},
    "page": {"title": "About"},
    "product": {"name": "Loaf", "price": 9900},
    "resource": {"name": "Anna"},
    "service": {"name": "Tasting", "durationMin": 30},
    "site": {"title": "Bakery"},
}
"""What a new record needs. A page needs a site, too."""
UPSERTED = sorted(NEW.keys() - {"category", "form", "page", "site"})
DELETIONS = {"client": "erase_client"}

every_noun = pytest.mark.parametrize("noun", NOUNS)
every_upserted_noun = pytest.mark.parametrize("noun", UPSERTED)


def list_of(noun: str) -> str:
    """Return the operation that lists the records of a noun."""
    listed_by = LISTED_NOUNS[noun.upper()].listed_by
    (name,) = (entry.name for entry in REGISTRY.entries() if entry.word == listed_by)
    return name


class Calls(NamedTuple):
    """Calls about the records of a noun. Pages are those of one site."""

    api: Api
    noun: str
    site: dict[str, str]

    @property
    def field(self) -> str:
        return "project" if self.noun == "site" else to_camel(self.noun)

    def create(self, **values: Any) -> dict[str, Any]:
        if self.noun in NEW:
            record: dict[str, Any] = call(
                self.api, f"create_{self.noun}", **NEW[self.noun], **self.site, **values
            )[self.field]
            return record
        recipes = KeyRecipes(partial(call, self.api))
        record = recipes.record(self.noun.upper())
        return self.update(record["id"], **values) if values else self.get(record["id"])

    def update(self, record_id: str, **values: Any) -> dict[str, Any]:
        record: dict[str, Any] = call(self.api, f"update_{self.noun}", id=record_id, **values)[
            self.field
        ]
        return record

    def get(self, record_id: str) -> dict[str, Any]:
        record: dict[str, Any] = call(self.api, f"get_{self.noun}", id=record_id)[self.field]
        return record

    def find(self, external_id: str) -> list[str]:
        data = call(self.api, list_of(self.noun), externalId=external_id, **self.site)
        (records,) = [value for value in data.values() if isinstance(value, list)]
        assert data["total"] == len(records)
        return [record["id"] for record in records]

    def refused(self, **values: Any) -> Any:
        operation = REGISTRY[f"update_{self.noun}"]
        return self.api.call_refused(operation.method, operation.path, values)

    def upsert(self, *items: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
        data = call(self.api, f"upsert_{self.noun}s", items=list(items), **options)
        results: list[dict[str, Any]] = data["results"]
        return results


@pytest.fixture
def calls(noun: str, api: Api, things: Things) -> Calls:
    return Calls(api, noun, {"projectId": new_site(api)} if noun == "page" else {})


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api)


def external_lookups() -> list[str]:
    """Return the keys of the stored look-ups from external ids to records."""
    return [key for key in all_rows() if f"#BY#{EXTERNAL_ID.name}#" in key]


@every_noun
def test_a_record_is_found_by_the_id_in_the_callers_system(calls: Calls) -> None:
    record = calls.create(externalId="erp:1", metadata={"shelf": "A7"})
    other = calls.create()
    assert (record["externalId"], record["metadata"]) == ("erp:1", {"shelf": "A7"})
    assert (other["externalId"], other["metadata"]) == (None, {})
    assert calls.get(record["id"])["externalId"] == "erp:1"
    assert calls.find("erp:1") == [record["id"]]
    assert calls.find("ERP:1") == []


@every_noun
def test_an_external_id_that_another_record_has_is_a_conflict_with_its_id(calls: Calls) -> None:
    holder, other = calls.create(externalId="1"), calls.create()
    refused = calls.refused(id=other["id"], externalId="1")
    assert (refused.status, refused.data["code"]) == (409, "external_id_taken")
    assert refused.data["recordId"] == holder["id"]
    assert calls.get(other["id"])["externalId"] is None


@every_noun
def test_a_changed_or_cleared_external_id_is_free_for_another_record(calls: Calls) -> None:
    first, second = calls.create(externalId="1"), calls.create(externalId="2")
    calls.update(first["id"], externalId="3")
    calls.update(second["id"], externalId="1")
    assert (calls.find("1"), calls.find("2"), calls.find("3")) == (
        [second["id"]],
        [],
        [first["id"]],
    )
    calls.update(second["id"], externalId=None)
    assert calls.find("1") == []
    assert len(external_lookups()) == 1
    assert calls.update(first["id"], externalId="3")["externalId"] == "3"


@every_noun
def test_metadata_are_merged_by_key(calls: Calls) -> None:
    record = calls.create(metadata={"shelf": "A7", "buyer": "Eve", "empty": "", "null": None})
    assert record["metadata"] == {"shelf": "A7", "buyer": "Eve"}
    changed = calls.update(record["id"], metadata={"shelf": "B1", "buyer": "", "season": "spring"})
    assert changed["metadata"] == {"shelf": "B1", "season": "spring"}
    assert calls.update(record["id"], metadata={"shelf": None})["metadata"] == {"season": "spring"}
    assert calls.update(record["id"], metadata=None)["metadata"] == {}


@every_noun
def test_metadata_have_limits_stored_values_included(calls: Calls) -> None:
    record = calls.create(metadata={f"k{number}": "v" for number in range(20)})
    for metadata, key in (
        ({"one more": "v"}, "too_long"),
        ({"k" * 41: "v"}, "too_long"),
        ({"k1": "v" * 501}, "too_long"),
        ({f"k{number}": "я" * 100 for number in range(20)}, "too_large"),
        ({"": "v"}, "too_short"),
        ({"k1": 5}, "invalid_type"),
        ({"k1": {"nested": "v"}}, "invalid_type"),
    ):
        refused = calls.refused(id=record["id"], metadata=metadata)
        assert (refused.status, refused.data["code"]) == (400, "validation_error")
        (error,) = refused.data["errors"]
        assert error["field"].startswith("metadata")
        assert error["key"] == key
    assert calls.get(record["id"])["metadata"] == record["metadata"]


@every_noun
def test_a_record_without_an_external_id_has_no_look_up(calls: Calls) -> None:
    record = calls.create(metadata={"place": "top shelf"})
    assert external_lookups() == []
    rows = {key: row for key, row in all_rows().items() if "top shelf" in repr(row)}
    (row,) = rows.values()
    assert (row["sk"], row["metadata"]) == ({"S": record["id"]}, {"S": '{"place":"top shelf"}'})


@every_noun
def test_tools_have_neither_argument(noun: str) -> None:
    for name in (f"create_{noun}", f"update_{noun}", list_of(noun)):
        if name in {entry.name for entry in REGISTRY.entries()} and REGISTRY[name].tool:
            definition = tool(REGISTRY[name])
            assert "externalId" not in json.dumps(definition)
            assert "metadata" not in definition["inputSchema"]["properties"]


@every_upserted_noun
def test_an_upsert_creates_then_updates_then_changes_nothing(calls: Calls) -> None:
    item = {"externalId": "1", "metadata": {"shelf": "A7"}, **NEW[calls.noun]}
    (created,) = calls.upsert(item)
    assert (created["code"], created["created"]) == ("created", True)
    (updated,) = calls.upsert({"externalId": "1", "name": "Eve"})
    assert (updated["code"], updated["id"]) == ("updated", created["id"])
    record = calls.get(created["id"])
    assert (record["name"], record["metadata"]) == ("Eve", {"shelf": "A7"})
    assert calls.find("1") == [created["id"]]


@every_upserted_noun
def test_an_equal_upsert_writes_no_row(
    calls: Calls,
) -> None:
    item = {"externalId": "1", "metadata": {"a": "1", "b": "2"}, **NEW[calls.noun]}
    calls.upsert(item)
    before = drop_key_usage(all_rows())
    (outcome,) = calls.upsert({**item, "metadata": {"b": "2"}})
    assert (outcome["code"], outcome["created"]) == ("unchanged", False)
    assert drop_key_usage(all_rows()) == before


@every_upserted_noun
def test_a_dry_run_of_an_upsert_says_what_would_happen(calls: Calls) -> None:
    calls.upsert({"externalId": "1", **NEW[calls.noun]})
    before = drop_key_usage(all_rows())
    items = (
        {"externalId": "1", "name": "Eve"},
        {"externalId": "1 ", **NEW[calls.noun]},
        {"externalId": "2", **NEW[calls.noun]},
        {"externalId": "3", **NEW[calls.noun], "name": ""},
    )
    outcomes = calls.upsert(*items, dryRun=True)
    assert [outcome["status"] for outcome in outcomes] == [400, 400, 200, 400]
    assert (outcomes[2]["message"], outcomes[2]["id"]) == ("would create", None)
    (outcome,) = calls.upsert(items[0], dryRun=True)
    assert (outcome["message"], outcome["code"]) == ("would update", "updated")
    assert drop_key_usage(all_rows()) == before


@every_upserted_noun
def test_an_item_fails_alone(calls: Calls) -> None:
    outcomes = calls.upsert(
        {"externalId": "1", **NEW[calls.noun]},
        {"externalId": "2"},
        {"externalId": "x" * 101, **NEW[calls.noun]},
        {**NEW[calls.noun]},
        {"externalId": "5", **NEW[calls.noun]},
    )
    assert [outcome["status"] for outcome in outcomes] == [200, 400, 400, 400, 200]
    assert [outcome["externalId"] for outcome in outcomes] == ["1", "2", "x" * 100, "", "5"]


@every_upserted_noun
def test_a_deleted_records_external_id_is_free(calls: Calls, api: Api) -> None:
    (first,) = calls.upsert({"externalId": "1", **NEW[calls.noun]})
    call(api, DELETIONS.get(calls.noun, f"delete_{calls.noun}"), id=first["id"])
    assert calls.find("1") == []
    (second,) = calls.upsert({"externalId": "1", **NEW[calls.noun]})
    assert (second["code"], second["id"] != first["id"]) == ("created", True)


@every_upserted_noun
@pytest.mark.store
def test_upserts_at_once_make_one_record(calls: Calls) -> None:
    names = [f"Ada {number}" for number in range(6)]

    def upsert(name: str) -> dict[str, Any]:
        (outcome,) = calls.upsert({"externalId": "1", **NEW[calls.noun], "name": name})
        return outcome

    with ThreadPoolExecutor(len(names)) as threads:
        outcomes = list(threads.map(upsert, names))
    assert {outcome["status"] for outcome in outcomes} == {200}
    assert sum(outcome["created"] for outcome in outcomes) == 1
    assert len({outcome["id"] for outcome in outcomes}) == 1
    assert calls.find("1") == [outcomes[0]["id"]]


@every_upserted_noun
def test_a_repeated_upsert_with_a_key_returns_the_first_response(calls: Calls, api: Api) -> None:
    body = {"items": [{"externalId": "1", **NEW[calls.noun]}]}
    path = REGISTRY[f"upsert_{calls.noun}s"].path
    first = api.post(path, body, key="k")
    call(api, f"update_{calls.noun}", id=first["results"][0]["id"], name="Eve")
    assert api.post(path, body, key="k") == first
    assert calls.get(first["results"][0]["id"])["name"] == "Eve"


@every_noun
def test_webhooks_get_both_fields(calls: Calls, owner: Owner) -> None:
    record = calls.create(externalId="1", metadata={"shelf": "A7"})
    types = [name for name, event in EVENT_TYPES.items() if event.record == calls.noun]
    for event_type in types:
        sent = records.read(owner.workspace.id, event_type=event_type, record_id=record["id"])
        assert sent is not None
        assert (sent["externalId"], sent["metadata"]) == ("1", {"shelf": "A7"})
    assert types or not LISTED_NOUNS[calls.noun.upper()].events


@sweep("operation", [o for o in REGISTRY if Audience.PUBLIC in o.audience])
def test_no_public_result_has_either_field(operation: Operation) -> None:
    names = re.findall(r'"(externalId|metadata)"', json.dumps(json_schema(operation.output)))
    assert names == []


def test_no_page_for_visitors_shows_either_field(api: Api) -> None:
    marks = {"externalId": "mark-1", "metadata": {"mark-2": "mark-3"}}
    site = Calls(api, "site", {}).create(slug="bakery", **marks)
    form = Calls(api, "form", {"projectId": site["id"]}).create(**marks)
    page = Calls(api, "page", {"projectId": site["id"]}).create(**marks)
    call(api, "save_page_html", id=page["id"], html=f"<h1>About</h1>{form['embedHtml']}")
    for path in ("/s/bakery/", "/s/bakery/sitemap.xml", f"/form/{form['id']}"):
        answer = Api(None).call("GET", path)
        assert answer.status == 200
        assert "mark-" not in str(answer.body)


def test_a_booking_that_was_made_is_found_by_a_repeated_call(api: Api, salon: Salon) -> None:
    body = salon.order("2027-01-18T10:00") | {"externalId": "visit-1"}
    booking = api.post("/api/bookings/create", body)["booking"]
    refused = api.call_refused("POST", "/api/bookings/create", body)
    assert (refused.status, refused.data["code"]) == (409, "external_id_taken")
    assert refused.data["recordId"] == booking["id"]


def test_a_copy_of_a_product_has_the_metadata_only(api: Api) -> None:
    product = Calls(api, "product", {}).create(externalId="1", metadata={"shelf": "A7"})
    copy = api.post("/api/products/duplicate", {"id": product["id"]})["product"]
    assert (copy["externalId"], copy["metadata"]) == (None, {"shelf": "A7"})


def test_a_client_with_the_contacts_of_another_is_a_conflict_with_its_id(api: Api) -> None:
    clients = Calls(api, "client", {})
    ada = clients.create(email="ada@example.com")
    outcomes = clients.upsert(
        {"externalId": "1", "email": "ADA@example.com"}, {"externalId": "2", "phone": "12"}
    )
    codes = [(outcome["status"], outcome["code"]) for outcome in outcomes]
    assert codes == [(409, "duplicate_client"), (400, "validation_error")]
    assert outcomes[0]["conflictId"] == ada["id"]
    clients.update(ada["id"], externalId="1")
    (outcome,) = clients.upsert({"externalId": "1", "email": "ADA@example.com", "tags": ["vip"]})
    assert (outcome["code"], outcome["id"]) == ("updated", ada["id"])


def test_staff_are_bound_by_an_upsert(api: Api) -> None:
    services, staff = Calls(api, "service", {}), Calls(api, "resource", {})
    first, second = services.create(), services.create()
    item = {"externalId": "1", "name": "Grace", "serviceIds": [first["id"]], "status": "inactive"}
    (created,) = staff.upsert(item)
    resource = staff.get(created["id"])
    assert (resource["status"], resource["serviceIds"]) == ("inactive", [first["id"]])
    before = drop_key_usage(all_rows())
    assert staff.upsert(item)[0]["code"] == "unchanged"
    assert drop_key_usage(all_rows()) == before
    bound = {"externalId": "1", "serviceIds": [second["id"]]}
    assert staff.upsert(bound)[0]["code"] == "updated"
    assert staff.get(created["id"])["serviceIds"] == [second["id"]]
    assert staff.upsert({"externalId": "1", "serviceIds": ["none"]})[0]["status"] == 404


def test_an_equal_upsert_of_a_service_with_a_category_writes_no_row(api: Api) -> None:
    services, staff = Calls(api, "service", {}), Calls(api, "resource", {})
    category = api.post("/api/categories/create", {"name": "Care", "kind": "service"})["category"]
    item = {
        **NEW["service"],
        "externalId": "1",
        "categoryId": category["id"],
        "resourceIds": [staff.create()["id"]],
        "tags": ["hair"],
    }
    assert services.upsert(item)[0]["code"] == "created"
    before = drop_key_usage(all_rows())
    assert services.upsert(item)[0]["code"] == "unchanged"
    assert drop_key_usage(all_rows()) == before


def test_deletions_of_many_products_free_their_external_ids(api: Api) -> None:
    products = Calls(api, "product", {})
    ids = [products.create(externalId=external_id)["id"] for external_id in "12"]
    api.post("/api/products/bulk", {"ids": ids, "action": "delete", "confirm": True})
    assert (products.find("1"), products.find("2"), external_lookups()) == ([], [], [])
    assert products.create(externalId="1")["externalId"] == "1"
