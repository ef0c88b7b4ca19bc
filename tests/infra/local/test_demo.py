"""The demo is created once in an empty database, and completed after a kill.

Most tests use the English demo. Both languages have the same records.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from PIL import Image

from chalicelib.application import invoke as runner
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, PlanRequiredError
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.gateways.object_store import object_store
from chalicelib.lib import barcodes
from infra.local.data_dir import DataDir
from infra.local.demo import bakery, busy_times, caller, pages, posts, school
from infra.local.demo import seed as demo
from infra.local.demo.bakery import Bakery
from infra.local.demo.examples import ListedRecords, words_of
from infra.local.demo.seed import EMAIL, seed
from infra.local.demo.texts import LANGUAGES, Language
from tests.conftest import Api, call_operator
from tests.factories.examples import call
from tests.support.registers import check_register
from tests.support.restoring import Snapshots

pytestmark = pytest.mark.usefixtures("database")
BAKERY, SCHOOL, POSTS = bakery.load("en"), school.load("en"), posts.load("en")
load_all()
NOT_LISTED = {
    *(
        "BUSY_CALENDAR_ID",
        "CALENDAR_LINK_ID",
        "CLASS_ID",
        "DELETED_PAGE_ID",
        "DELETED_SITE_ID",
        "EXPORT_ID",
        "IMPORT_ID",
        "WAITING_ENTRY_ID",
    ),
    *("TABLE_ID", "UPLOAD_ID"),
}
"""Words for what no list shows, which the reference of the demo keeps."""
OF_WEBHOOK = {"WEBHOOK_ID", "DELIVERY_ID"}
"""The demo's webhook is made where webhooks may lead to this machine, as in ``TestWebhook``."""
LISTS = [
    operation
    for operation in REGISTRY.select(Audience.KEY)
    if operation.name.startswith("list_")
    and "webhook" not in operation.name
    # No call of the demo's key has failed yet, and no list says which service has dates.
    and operation.name not in {"list_key_errors", "list_starts"}
]


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path / "data")


def seeded(data: DataDir) -> Api:
    """Seed the demo as a start of the local stack does. Return the API with the demo key."""
    return Api(seed(data, language="en"))


@pytest.fixture
def small_bakery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the bakery smaller, with some records of each type."""
    load_bakery, site = bakery.load, pages.load

    def load(language: Language) -> Bakery:
        ordered = {sku for lead in load_bakery(language).leads for sku in lead.items}
        products = [product for product in load_bakery(language).products if product.sku in ordered]
        return replace(load_bakery(language), products=products)

    monkeypatch.setattr(bakery, "load", load)
    monkeypatch.setattr(pages, "load", lambda language: site(language)[::3])


@pytest.fixture
def api(small_bakery: None, data: DataDir, snapshots: Snapshots) -> Api:
    """The API with the demo key, after the demo was seeded with a small bakery."""

    def make() -> dict[str, Any]:
        seed(data, language="en")
        return data.demo

    restored = snapshots.once("demo", make)
    with data.lock_demo():
        data.demo = restored
    return Api(restored["key"])


def sites(api: Api) -> list[dict[str, Any]]:
    return api.get("/api/projects/list")["projects"]


def resources(api: Api) -> list[dict[str, Any]]:
    return api.get("/api/resources/list")["resources"]


def everything_shown(api: Api) -> dict[str, Any]:
    """Return the demo's records without ids and times."""
    contents: dict[str, Any] = {
        "sites": [site["title"] for site in sites(api)],
        "products": [
            (p["sku"], p["stock"], len(p["images"]))
            for p in api.get("/api/products/list?size=100")["products"]
        ],
        "categories": [c["name"] for c in api.get("/api/categories/list")["categories"]],
        "pages": sorted(
            (page["title"], page["description"], page["htmlBytes"] > 0, page["isHome"])
            for site in sites(api)
            for page in api.get(f"/api/pages/list?projectId={site['id']}")["pages"]
        ),
    }
    leads = api.get("/api/forms/collection-list?size=500")["collections"]
    contents["leads"] = sorted((lead["name"], lead["status"], len(lead["data"])) for lead in leads)
    contents["clients"] = sorted(
        (client["name"], client["leadsCount"]) for client in api.get("/api/clients/list")["clients"]
    )
    contents["services"] = [
        (s["name"], s["durationMin"], len(s["resourceIds"]), len(s["images"]))
        for s in api.get("/api/services/list")["services"]
    ]
    contents["teachers"] = [
        (r["name"], len(api.get(f"/api/resources/availability?resourceId={r['id']}")["rules"]))
        for r in resources(api)
        if r["photo"]
    ]
    contents["time off"] = [t["reason"] for t in api.get("/api/resources/time-off")["timeOff"]]
    contents["bookings"] = sorted(
        (b["client"]["name"], b["serviceName"], b["status"])
        for b in api.get("/api/bookings/list")["bookings"]
    )
    contents["forms"] = [form["title"] for form in api.get("/api/forms/list")["forms"]]
    contents["agents"] = [agent["name"] for agent in api.get("/api/agents/list")["agents"]]
    folders = [{"id": None, "name": "", "children": api.get("/api/file-folders")["folders"]}]
    while folders:
        folder = folders.pop()
        folders += folder["children"]
        query = f"folderId={folder['id']}" if folder["id"] else ""
        files = api.get(f"/api/files/list?size=100&{query}")["files"]
        contents[f"files in {folder['name']}"] = sorted(file["name"] for file in files)
    return contents


def test_every_list_has_records(
    small_bakery: None, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "settings", lambda: replace(settings(), demo_balance=1000))
    api = seeded(data)
    records = ListedRecords(partial(call, api))
    for operation in LISTS:
        answer = call(api, operation.name, **records.arguments(operation))
        assert any(answer[name] for name in answer if isinstance(answer[name], list)), (
            f"{operation.name} shows nothing in the demo. Make a record of it in "
            "infra/local/demo/seed.py: a function, and its place in STEPS."
        )
    words = set(words_of(Audience.KEY)) - OF_WEBHOOK
    listed = records.values(words).keys()
    assert not listed & NOT_LISTED
    check_register(
        listed | NOT_LISTED,
        declared=words,
        place="The demo (infra/local/demo/seed.py)",
        line="a record that a list shows; NOT_LISTED here has what no list shows",
    )


def test_the_demo_has_a_visit_of_two_services(api: Api) -> None:
    (planned,) = [booking for booking in SCHOOL.bookings if booking.then]
    bookings = api.get("/api/bookings/list")["bookings"]
    visit = [each for each in bookings if each["client"]["name"] == planned.client]
    names = {SCHOOL.services[each].name for each in (planned.service, *planned.then)}
    assert {each["serviceName"] for each in visit} == names
    assert len({each["visitId"] for each in visit}) == 1


def test_two_places_of_a_date_are_sold(api: Api) -> None:
    services = api.get("/api/services/list?size=100")["services"]
    (service,) = [each for each in services if each["fixedStarts"]]
    starts = api.get(f"/api/services/starts?serviceId={service['id']}")["starts"]
    assert max(each["booked"] for each in starts) == 2


def test_the_site_of_the_demo_shows_its_active_products(api: Api) -> None:
    (site,) = sites(api)
    active = api.get("/api/products/list?status=active&size=100")["products"]
    path = site["productsUrl"].removeprefix(settings().public_url)
    feed = api.call("GET", f"{path}/feed.xml").body.decode()
    assert feed.count("<item>") == len(active) > 0
    for product in active:
        assert api.call("GET", f"{path}/{product['id']}").status == 200


def test_a_calendar_of_the_demo_is_busy_at_times_that_are_not_offered(api: Api) -> None:
    (calendar,) = api.get("/api/busy-calendars")["busyCalendars"]
    assert (calendar["name"], calendar["status"]) == (SCHOOL.teachers[0].name, "read")
    period = {"from": clock.iso(clock.now()), "to": clock.iso(clock.now() + timedelta(days=60))}
    query = urlencode({"resourceId": calendar["resourceId"], **period})
    times = api.get(f"/api/busy-calendars/times?{query}")["busyTimes"]
    assert len(times) == len(busy_times.PLACES)
    service = next(
        each["id"]
        for each in api.get("/api/services/list")["services"]
        if calendar["resourceId"] in each["resourceIds"]
    )
    query = urlencode({"serviceId": service, "resourceId": calendar["resourceId"], "limit": 100})
    slots = api.get(f"/api/bookings/slots?{query}")["slots"]
    assert slots
    assert not [
        slot
        for slot in slots
        for busy in times
        if slot["startAt"] < busy["endAt"] and busy["startAt"] < slot["endAt"]
    ]


def test_the_search_for_records_ends_where_every_list_is_refused() -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotFoundError("No record.")

    assert ListedRecords(refuse).values(words_of(Audience.KEY, Audience.PUBLIC)) == {}


@pytest.mark.slow
def test_the_demo_is_a_bakery_with_images_of_products_and_on_pages(data: DataDir) -> None:
    api = seeded(data)
    contents = everything_shown(api)
    assert contents["sites"] == [BAKERY.site]
    assert [sku for sku, *_ in contents["products"]] == [p.sku for p in BAKERY.products]
    assert {images for *_, images in contents["products"]} == {1}
    assert {page[0] for page in contents["pages"] if page[3]} == {"Home"}
    site = sites(api)[0]["id"]
    home = api.get(f"/api/pages/list?projectId={site}")["pages"][0]
    html = api.get(f"/api/pages/{home['id']}")["page"]["html"]
    product = api.get("/api/products/list?size=1")["products"][0]
    object_key = product["images"][0]["url"].split("/", 3)[3]
    assert f'src="/{object_key}"' in html
    cover = Image.open(BytesIO(object_store().get(object_key) or b""))
    assert cover.size == (640, 480)


def test_an_older_demo_gets_missing_pages_and_keeps_the_others(api: Api, data: DataDir) -> None:
    (site,) = sites(api)
    there = {p["slug"]: p for p in api.get(f"/api/pages/list?projectId={site['id']}")["pages"]}
    api.post("/api/pages/save-html", {"id": there["home"]["id"], "html": "<h1>Mine</h1>"})
    api.post("/api/pages/delete", {"id": there["classes"]["id"], "confirm": True})
    with data.lock_demo():
        steps = [step for step in data.demo["steps"] if step != "make_pages"]
        data.demo = {**data.demo, "steps": steps}
    seed(data)
    now = {p["slug"]: p for p in api.get(f"/api/pages/list?projectId={site['id']}")["pages"]}
    assert set(now) == {"home", "classes"}
    assert api.get(f"/api/pages/{now['home']['id']}")["page"]["html"] == "<h1>Mine</h1>"
    assert now["classes"]["htmlBytes"] > 0


def test_the_demo_has_a_public_bot_with_money(
    small_bakery: None,
    data: DataDir,
    reload_settings: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEMO_BALANCE", "1000")
    reload_settings()
    api = seeded(data)
    (agent,) = api.get("/api/agents/list")["agents"]
    assert (agent["name"], agent["model"]) == (BAKERY.agent["name"], "demo")
    assert (agent["isActive"], agent["isPrivate"]) == (True, False)
    available = call_operator("get_balance", account=EMAIL)["available"]
    assert 900 < available < 1000  # the demo's dialogs have spent the rest
    first, second = api.get(f"/api/agents/dialogs?agentId={agent['id']}")["dialogs"]
    assert (bool(first["leadId"]), second["leadId"]) == (True, None)
    seed(data)
    assert call_operator("get_balance", account=EMAIL)["available"] == available


def test_an_older_demo_bot_keeps_the_capabilities_that_were_chosen(api: Api, data: DataDir) -> None:
    (agent,) = api.get("/api/agents/list")["agents"]
    path = f"/api/agents/{agent['id']}"
    for old_stages, new_stages in ((["slots"], ["slots"]), (["catalog"], list(CAPABILITIES))):
        api.call("PUT", path, {"capabilities": old_stages})
        with data.lock_demo():
            steps = [step for step in data.demo["steps"] if step != "allow_actions"]
            data.demo = {**data.demo, "steps": steps}
        seed(data)
        assert api.get(path)["agent"]["capabilities"] == new_stages
    assert len(api.get("/api/forms/list")["forms"]) == 2


def test_an_older_demo_without_money_gets_some(
    api: Api,
    data: DataDir,
    reload_settings: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEMO_BALANCE", "1000")
    reload_settings()
    with data.lock_demo():
        steps = [step for step in data.demo["steps"] if step != "make_agent"]
        data.demo = {**data.demo, "steps": steps}
    seed(data)
    assert call_operator("get_balance", account=EMAIL)["available"] == 1000
    assert len(api.get("/api/agents/list")["agents"]) == 1


def test_a_later_start_adds_and_restores_nothing(api: Api, data: DataDir) -> None:
    gone = api.get("/api/products/list")["products"][0]["id"]
    api.post("/api/products/delete", {"id": gone})
    old_contents = everything_shown(api)
    seeded_again = seeded(data)
    assert seeded_again.token == api.token
    assert everything_shown(seeded_again) == old_contents


@pytest.mark.slow
def test_another_process_on_the_database_adds_nothing(api: Api, tmp_path: Path) -> None:
    old_contents = everything_shown(api)
    guest = seeded(DataDir(tmp_path / "guest"))
    assert everything_shown(guest) == old_contents


class Killed(BaseException):
    """The simulated end of the process."""


@pytest.mark.parametrize(
    "every", [pytest.param(1, marks=pytest.mark.slow), 16], ids=["each step", "every sixteenth"]
)
@pytest.mark.slow
def test_seeding_continues_after_a_kill_between_any_two_steps(
    every: int,
    small_bakery: None,
    data: DataDir,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    empty_database: Callable[[], None],
) -> None:
    """Seeding is killed after each operation that changes data, and after each write of demo.json.

    ``every`` is the number of such steps from one kill to the next.
    """
    few = replace(bakery.load("en"), leads=BAKERY.leads[::3])
    monkeypatch.setattr(bakery, "load", lambda _: few)
    expected = everything_shown(seeded(DataDir(tmp_path / "unhurt")))
    empty_database()
    run, write = runner.invoke, DataDir.demo.fset
    assert write
    survived: set[str] = set()

    def die_once(*event: Any) -> None:
        if (name := repr(event)) not in survived:
            survived.add(name)
            if len(survived) % every == 0:
                raise Killed

    def invoke(operation: Operation, principal: Any, read: Any, **more: Any) -> Any:
        reply = run(operation, principal, read, **more)
        if not operation.read_only:
            die_once(operation.name, read())
        return reply

    def note(self: DataDir, value: dict[str, Any]) -> None:
        write(self, value)
        die_once(sorted(value), value.get("steps"))

    with monkeypatch.context() as dying:
        for module in (runner, caller, demo):
            dying.setattr(module, "invoke", invoke)
        dying.setattr(DataDir, "demo", DataDir.demo.setter(note))
        while True:
            try:
                api = seeded(data)
                break
            except Killed:
                assert len(survived) < 200
    assert len(survived) > 30
    assert everything_shown(api) == expected


def test_a_start_continues_without_the_steps_that_were_refused(
    api: Api, data: DataDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object, __: object) -> None:
        raise PlanRequiredError("The API needs the Business plan.")

    monkeypatch.setattr(demo, "STEPS", (*demo.STEPS, refuse))
    assert sites(seeded(data))
    assert "The demo is not complete: The API needs the Business plan." in capsys.readouterr().err


def test_a_database_with_other_data_is_left_alone(data: DataDir) -> None:
    call_operator("create_account", email="ada@example.com", password="correct horse")
    assert seed(data) is None
    assert not data.demo


def test_a_demo_without_records_gets_them_at_a_later_start(
    small_bakery: None, data: DataDir
) -> None:
    key = seed(data, records=False)
    assert not sites(Api(key))
    assert seed(data) == key
    assert sites(Api(key))


def test_a_demo_keeps_the_language_in_which_it_was_created(api: Api, data: DataDir) -> None:
    old_contents = everything_shown(api)
    with data.lock_demo():
        data.demo = {**data.demo, "steps": []}
    seed(data, language="ru")
    assert everything_shown(api) == old_contents


def test_both_languages_have_the_same_records() -> None:
    english, russian = (
        {
            "bakery": asdict(bakery.load(language)),
            "school": asdict(school.load(language)),
            "posts": [post._asdict() for post in posts.load(language)],
            "pages": [asdict(page) for page in pages.load(language)],
        }
        for language in LANGUAGES
    )
    del english["bakery"]["categories"], russian["bakery"]["categories"]  # their keys are names
    assert mask_texts(english) == mask_texts(russian)


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_that_records_refer_to_exist(language: Language) -> None:
    shop, offer = bakery.load(language), school.load(language)
    groups = shop.categories
    names = {*groups, *(name for below in groups.values() for name in below)}
    assert {product.category for product in shop.products} <= names
    assert {service.category for service in offer.services} <= set(offer.categories)
    services = {service.name for service in offer.services}
    assert {name for teacher in offer.teachers for name in teacher.services} == services


def mask_texts(value: Any) -> Any:
    """Return a value with the same numbers and types, and ``str`` for each text."""
    if isinstance(value, dict):
        return {key: mask_texts(member) for key, member in value.items()}
    if isinstance(value, list):
        return [mask_texts(element) for element in value]
    return str if isinstance(value, str) else value


def test_the_key_and_the_password_are_stored(api: Api, data: DataDir) -> None:
    stored_demo = json.loads((data.path / "demo.json").read_text())
    assert stored_demo["key"] == api.token
    assert stored_demo["password"]


@pytest.mark.parametrize("product", [p for p in BAKERY.products if p.barcode], ids=lambda p: p.sku)
def test_demo_barcodes_are_reserved_for_use_within_a_store(product: bakery.Product) -> None:
    assert barcodes.parse(product.barcode or "").in_store


class TestWebhook:
    """The demo's webhook leads to the local stack, whose port may change."""

    @pytest.fixture(autouse=True)
    def _steps(
        self, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None], tmp_path: Path
    ) -> None:
        """Leave out the other parts of the demo, and allow webhooks to this machine."""
        monkeypatch.setattr(demo, "STEPS", ())
        monkeypatch.setenv("WEBHOOKS_TO_LOOPBACK", "1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
        monkeypatch.setenv("OBJECT_STORE", f"file://{tmp_path}")
        self._move_to(8000, monkeypatch, reload_settings)

    @staticmethod
    def _move_to(
        port: int, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("PUBLIC_URL", f"http://127.0.0.1:{port}")
        reload_settings()

    @staticmethod
    def _urls(data: DataDir) -> list[str]:
        webhooks = call_operator("list_webhooks", workspaceId=data.demo["workspaceId"])
        return [webhook["url"] for webhook in webhooks["webhooks"]]

    def test_it_is_created_once_and_its_secret_is_kept(self, data: DataDir) -> None:
        seed(data)
        secret = data.demo["webhookSecret"]
        seed(data)
        assert self._urls(data) == ["http://127.0.0.1:8000/dev/webhooks"]
        assert data.demo["webhookSecret"] == secret

    def test_it_follows_the_port(
        self,
        data: DataDir,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        seed(data)
        self._move_to(8001, monkeypatch, reload_settings)
        seed(data)
        assert self._urls(data) == ["http://127.0.0.1:8001/dev/webhooks"]

    def test_one_whose_secret_was_lost_is_replaced(self, data: DataDir) -> None:
        seed(data)
        lost = data.demo["webhookSecret"]
        data.demo = {k: v for k, v in data.demo.items() if not k.startswith("webhook")}
        seed(data)
        assert len(self._urls(data)) == 1
        assert data.demo["webhookSecret"] != lost

    def test_one_that_was_deleted_is_not_made_again(
        self,
        data: DataDir,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        seed(data)
        call_operator("delete_webhook", id=data.demo["webhookId"])
        self._move_to(8001, monkeypatch, reload_settings)
        seed(data)
        assert self._urls(data) == []


def test_reports_of_the_demo_show_the_last_weeks(api: Api) -> None:
    report = api.get("/api/reports")
    assert sum(week["visits"] > 0 for week in report["weeks"]) >= 3
    assert report["totals"]["revenue"] > 0
