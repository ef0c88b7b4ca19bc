"""Tests of creating, updating and listing services."""

import io
from typing import Any
from urllib.parse import urlencode

import pytest
from PIL import Image

from chalicelib.domains.services.store import services
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Api, Owner, Time, call_operator, run_concurrently
from tests.domains.services.rows import WORKSPACE, store_resource, store_service
from tests.factories.examples import AGENT
from tests.factories.services import make_resource, make_service, new_category
from tests.fakes.internet import Internet, http_response
from tests.support.warned import warned

LIST, CREATE, UPDATE, DELETE = (
    f"/api/services/{call}" for call in ("list", "create", "update", "delete")
)
IMAGE_SERVER = "https://images.example.com"


@pytest.fixture
def images(net: Internet) -> list[str]:
    """The URLs of ten images on another host."""
    server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
    for number in range(10):
        body = io.BytesIO()
        Image.new("RGB", (8 + number, 8)).save(body, "PNG")
        server.pages[f"/{number}.png"] = http_response(body.getvalue(), content_type="image/png")
    return [f"{IMAGE_SERVER}/{number}.png" for number in range(10)]


def update(api: Api, service: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": service["id"], **fields})["service"]


def find(api: Api, **query: Any) -> list[str]:
    return [s["name"] for s in api.get(f"{LIST}?{urlencode(query)}")["services"]]


def site(api: Api) -> str:
    site_id: str = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
    return site_id


def bot(api: Api) -> str:
    bot_id: str = api.post("/api/agents/create", AGENT)["agent"]["id"]
    return bot_id


class TestCreate:
    def test_create_needs_only_a_name_and_a_length(self, api: Api, time: Time) -> None:
        service = make_service(api)
        assert service == {
            "id": service["id"],
            "name": "Haircut",
            "durationMin": 60,
            "price": 0,
            "description": None,
            "descriptionTruncated": False,
            "categoryId": None,
            "siteId": None,
            "agentId": None,
            "resourceIds": [],
            "resourceOverrides": [],
            "images": [],
            "tags": [],
            "status": "active",
            "slotStepMin": None,
            "bufferBeforeMin": 0,
            "bufferAfterMin": 0,
            "minNoticeMin": 0,
            "horizonDays": 60,
            "requirePayment": False,
            "unverifiedPerHour": 60,
            "visitorMails": True,
            "bookAgainDays": None,
            "fixedStarts": False,
            "reminders": [1440, 120],
            "sortOrder": 0,
            "externalId": None,
            "metadata": {},
            "createdAt": "2027-01-15T12:00:00.000Z",
            "updatedAt": "2027-01-15T12:00:00.000Z",
        }
        assert api.get(f"/api/services/{service['id']}")["service"] == service

    def test_create_accepts_all_fields(self, api: Api) -> None:
        resource = make_resource(api)
        fields = {
            "price": 250_000,
            "description": "Wash and cut.",
            "categoryId": new_category(api),
            "siteId": site(api),
            "agentId": bot(api),
            "resourceIds": [resource["id"]],
            "tags": ["hair", "women"],
            "status": "inactive",
            "slotStepMin": 15,
            "bufferBeforeMin": 5,
            "bufferAfterMin": 10,
            "minNoticeMin": 120,
            "horizonDays": 30,
            "requirePayment": True,
            "unverifiedPerHour": 5,
            "visitorMails": False,
            "reminders": [60, 15],
        }
        service = make_service(api, **fields)
        assert {name: service[name] for name in fields} == fields

    def test_a_new_service_comes_last(self, api: Api) -> None:
        for name in "BAC":
            make_service(api, name)
        assert find(api) == ["B", "A", "C"]

    def test_referenced_records_must_belong_to_the_workspace(
        self, api: Api, new_owner: Any, images: list[str], net: Internet
    ) -> None:
        theirs = new_owner().api()
        for strange in (
            {"categoryId": new_category(api, kind="product")},
            {"resourceIds": [make_resource(api)["id"], make_resource(theirs)["id"]]},
        ):
            body = {"name": "x", "durationMin": 60, "images": [{"url": images[0]}], **strange}
            assert api.call_refused("POST", CREATE, body).status == 404, strange
        assert find(api) == []
        assert net.connections == []  # A refused call fetches nothing.

    def test_images_become_files_in_the_folder_for_services(
        self, api: Api, images: list[str]
    ) -> None:
        broken = f"{IMAGE_SERVER}/broken.png"
        body = {"name": "x", "durationMin": 60, "images": [{"url": images[3]}, {"url": broken}]}
        answer = api.post(CREATE, body)
        (image,) = answer["service"]["images"]
        assert (image["width"], IMAGE_SERVER in image["url"]) == (11, False)
        assert any(broken in warning for warning in answer["warnings"])
        (folder,) = api.get("/api/file-folders")["folders"]
        assert folder["name"] == "services"
        (file,) = api.get(f"/api/files/list?folderId={folder['id']}")["files"]
        assert (file["id"], file["url"]) == (image["fileId"], image["url"])

    @pytest.mark.slow
    def test_fifty_resources_and_ten_images_fit_into_a_transaction(
        self, api: Api, images: list[str]
    ) -> None:
        resources = [make_resource(api, str(number))["id"] for number in range(50)]
        image_inputs = [{"url": url} for url in images]
        fields = {"categoryId": new_category(api), "siteId": site(api), "agentId": bot(api)}
        service = make_service(api, resourceIds=resources, images=image_inputs, **fields)
        assert (len(service["resourceIds"]), len(service["images"])) == (50, 10)

    def test_resources_of_several_types_are_a_warning(self, api: Api) -> None:
        ids = [make_resource(api, type=kind)["id"] for kind in ("master", "room")]
        answer = api.post(CREATE, {"name": "x", "durationMin": 60, "resourceIds": ids})
        (warning,) = warned(answer)
        assert warning == {"code": "mixed_resource_types", "types": ["master", "room"]}
        assert "warnings" not in api.post(
            CREATE, {"name": "y", "durationMin": 60, "resourceIds": ids[:1]}
        )

    def test_a_resource_listed_twice_counts_once(self, api: Api) -> None:
        resource = make_resource(api)["id"]
        assert make_service(api, resourceIds=[resource] * 2)["resourceIds"] == [resource]


class TestUpdate:
    def test_an_update_changes_only_the_given_fields(self, api: Api, time: Time) -> None:
        service = make_service(api, price=100, tags=["hair"], slotStepMin=30)
        time.pass_by(minutes=5)
        updated_service = update(api, service, price=200, slotStepMin=None)
        assert updated_service == service | {
            "price": 200,
            "slotStepMin": None,
            "updatedAt": "2027-01-15T12:05:00.000Z",
        }

    def test_an_update_binds_and_unbinds_resources(self, api: Api) -> None:
        anna, boris = (make_resource(api, name)["id"] for name in ("Anna", "Boris"))
        service = make_service(api, resourceIds=[anna])
        assert update(api, service, resourceIds=[boris, anna])["resourceIds"] == [boris, anna]
        assert update(api, service, resourceIds=[])["resourceIds"] == []
        assert update(api, service, name="Cut")["resourceIds"] == []

    def test_images_that_cannot_be_imported_leave_the_old_ones(
        self, api: Api, images: list[str]
    ) -> None:
        service = make_service(api, images=[{"url": images[0]}])
        bad = [{"url": f"{IMAGE_SERVER}/broken.png"}]
        assert update(api, service, images=bad)["images"] == service["images"]
        assert update(api, service, images=[])["images"] == []


class TestSuspendedSite:
    @pytest.mark.parametrize("target", [None, "another"])
    def test_a_service_stays_on_its_site_while_the_site_is_suspended(
        self, target: str | None, api: Api
    ) -> None:
        place, other = site(api), site(api)
        service = make_service(api, siteId=place)
        target_id = other if target else None
        path = f"/api/public/services/{service['id']}/slots"
        call_operator("suspend_site", id=place)
        answer = api.call_refused("POST", UPDATE, {"id": service["id"], "siteId": target_id})
        assert (answer.status, answer.data["code"]) == (409, "conflict")
        assert "suspended" in answer.data["message"]
        assert api.get(f"/api/services/{service['id']}")["service"]["siteId"] == place
        assert Api(None).call_refused("GET", path).status == 404
        assert update(api, service, siteId=place, name="Cut")["name"] == "Cut"
        call_operator("resume_site", id=place)
        assert update(api, service, siteId=target_id)["siteId"] == target_id
        assert Api(None).get(path)

    def test_deleting_a_suspended_site_makes_its_services_not_bookable(self, api: Api) -> None:
        place = site(api)
        service = make_service(api, siteId=place)
        call_operator("suspend_site", id=place)
        api.post("/api/projects/delete", {"id": place})
        assert api.call_refused("POST", UPDATE, {"id": service["id"], "siteId": None}).status == 409
        assert (
            Api(None).call_refused("GET", f"/api/public/services/{service['id']}/slots").status
            == 404
        )

    def test_services_of_a_deleted_site_stay_bookable_and_can_leave_it(self, api: Api) -> None:
        place = site(api)
        service = make_service(api, siteId=place)
        api.post("/api/projects/delete", {"id": place})
        assert Api(None).get(f"/api/public/services/{service['id']}/slots")
        assert update(api, service, siteId=None)["siteId"] is None

    @pytest.mark.store
    def test_a_service_may_not_leave_a_site_suspended_during_the_update(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The site is suspended between the update's reads and its commit."""
        place = site(api)
        service = make_service(api, siteId=place)
        commit, begun = UnitOfWork.commit, []

        def suspended_first(unit: UnitOfWork, *event: Any) -> None:
            if not begun:
                begun.append(True)
                call_operator("suspend_site", id=place)
            commit(unit, *event)

        monkeypatch.setattr(UnitOfWork, "commit", suspended_first)
        answer = api.call_refused("POST", UPDATE, {"id": service["id"], "siteId": None})
        assert (answer.status, answer.data["code"]) == (409, "conflict")


class TestList:
    @pytest.fixture
    def three_services(self, api: Api, time: Time) -> dict[str, Any]:
        hair, place = new_category(api), site(api)
        services_by_name = {}
        for name, fields in {
            "Cut": {"price": 300, "categoryId": hair},
            "Ёлка": {"price": 100, "siteId": place, "status": "inactive"},
            "Dye": {"price": 200, "categoryId": hair, "siteId": place},
        }.items():
            time.pass_by(minutes=1)
            services_by_name[name] = make_service(api, name, **fields)
        return services_by_name

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({}, ["Cut", "Ёлка", "Dye"]),
            ({"sort": "createdAt"}, ["Dye", "Ёлка", "Cut"]),
            ({"sort": "price"}, ["Ёлка", "Dye", "Cut"]),
            ({"sort": "name"}, ["Cut", "Dye", "Ёлка"]),
            ({"status": "active"}, ["Cut", "Dye"]),
            ({"status": "inactive", "q": "ЕЛ"}, ["Ёлка"]),
            ({"minPrice": 200}, ["Cut", "Dye"]),
            ({"minPrice": 100, "maxPrice": 200, "sort": "price"}, ["Ёлка", "Dye"]),
            ({"q": "nothing"}, []),
            ({"categoryId": "nobodys"}, []),
            ({"siteId": "nobodys"}, []),
            ({"agentId": "nobodys"}, []),
            ({"id": "nobodys"}, []),
            ({"page": 2, "size": 2}, ["Dye"]),
            ({"page": 9}, []),
        ],
    )
    def test_the_list_filters_and_sorts(
        self, query: dict[str, Any], names: list[str], api: Api, three_services: dict[str, Any]
    ) -> None:
        assert find(api, **query) == names

    def test_a_bots_services_are_found_by_its_id(self, api: Api) -> None:
        first, second = bot(api), bot(api)
        cut = make_service(api, "Cut", agentId=first)
        make_service(api, "Dye", agentId=second)
        make_service(api, "Wash")
        assert (find(api, agentId=first), find(api, agentId=second)) == (["Cut"], ["Dye"])
        assert update(api, cut, agentId=second)["agentId"] == second
        assert (find(api, agentId=first), find(api, agentId=second)) == ([], ["Cut", "Dye"])
        assert update(api, cut, agentId=None)["agentId"] is None
        assert find(api, agentId=second) == ["Dye"]

    def test_filters_by_category_site_and_id(
        self, api: Api, three_services: dict[str, Any]
    ) -> None:
        hair, place = three_services["Cut"]["categoryId"], three_services["Dye"]["siteId"]
        assert find(api, categoryId=hair, sort="price") == ["Dye", "Cut"]
        assert find(api, siteId=place) == ["Ёлка", "Dye"]
        assert find(api, siteId=place, categoryId=hair) == ["Dye"]
        assert find(api, id=three_services["Dye"]["id"]) == ["Dye"]
        assert find(api, id=three_services["Dye"]["id"], status="inactive") == []

    def test_the_list_reports_the_page_and_the_total(
        self, api: Api, three_services: dict[str, Any]
    ) -> None:
        page = api.get(f"{LIST}?page=2&size=2&minPrice=100")
        assert page["pagination"] == {"total": 3, "page": 2, "size": 2, "limit": 2}
        assert len(page["services"]) == 1

    def test_reversed_bounds_are_400(self, api: Api) -> None:
        answer = api.call_refused("GET", f"{LIST}?minPrice=2&maxPrice=1")
        assert (answer.status, answer.data["key"]) == (400, "bounds")
        assert "minPrice" in answer.data["message"]

    def test_long_descriptions_are_cut_except_for_one_service(self, api: Api) -> None:
        service = make_service(api, description="x" * 501)
        page = api.get(LIST)
        assert page["services"][0]["description"] == "x" * 499 + "…"
        assert "shortened to 500 characters" in page["warnings"][0]
        full_response = api.get(f"{LIST}?id={service['id']}")
        assert full_response["services"] == [service]
        assert "warnings" not in full_response
        (short,) = page["services"]
        assert (short["descriptionTruncated"], service["descriptionTruncated"]) == (True, False)
        body = {"id": service["id"], "description": short["description"]}
        response = api.call_refused("POST", "/api/services/update", body)
        assert (response.status, response.data["errors"][0]["field"]) == (400, "description")
        assert api.get(f"{LIST}?id={service['id']}") == full_response


@pytest.mark.store
class TestRaces:
    def test_no_service_is_bound_to_a_concurrently_deleted_resource(
        self, api: Api, owner: Owner
    ) -> None:
        for _ in range(3):
            resource = make_resource(api)["id"]

            def act(number: int, resource: str = resource) -> int:
                body = {"name": "x", "durationMin": 60, "resourceIds": [resource]}
                if number:
                    return api.call("POST", CREATE, body).status
                return api.call("POST", "/api/resources/delete", {"id": resource}).status

            statuses = run_concurrently(6, act)
            assert statuses[0] == 200
            assert set(statuses[1:]) <= {200, 404}
            entries = SERVICES.entries(owner.workspace.id)
            rows = SERVICES.fetch(owner.workspace.id, [entry.id for entry in entries])
            assert not [row for row in rows if resource in row.resource_ids]


@pytest.mark.store
@pytest.mark.usefixtures("database")
def test_a_service_is_found_by_its_id_and_by_its_resources() -> None:
    anna, boris = store_resource(), store_resource("Boris")
    both = store_service(resource_ids=[anna.id, boris.id], slot_step_min=15)
    one = store_service(resource_ids=[boris.id], category_id="c")
    assert SERVICES.workspace_of(one.id) == WORKSPACE
    assert SERVICES.workspace_of("nobody") is None
    expected = {anna.id: [both.id], boris.id: [both.id, one.id]}
    bindings = services.Bindings(WORKSPACE)
    assert {id_: bindings.get_service_ids(id_) for id_ in (anna.id, boris.id)} == expected
    assert services.bound_to(WORKSPACE, resource_id=anna.id) == [both.id]
    assert (
        bindings.get_service_ids("nobody")
        == services.bound_to(WORKSPACE, resource_id="nobody")
        == []
    )
    assert both.rules == (60, 15, 0, 5, 0, 60, {}, both.id, False)
    assert one.rules.step_min == 60
