"""Operations on resources, and their bindings to services."""

import io
from typing import Any
from urllib.parse import urlencode

import pytest
from PIL import Image

from chalicelib.core.ids import new_id
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.services import make_resource, make_service
from tests.fakes.internet import Internet, http_response
from tests.support.effort import slow_but_for
from tests.support.warned import warned

LIST, CREATE, UPDATE, DELETE = (
    f"/api/resources/{call}" for call in ("list", "create", "update", "delete")
)
IMAGE_SERVER = "https://images.example.com"


@pytest.fixture
def image(net: Internet) -> str:
    """The URL of an image on another host."""
    server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
    body = io.BytesIO()
    Image.new("RGB", (9, 8)).save(body, "PNG")
    server.pages["/1.png"] = http_response(body.getvalue(), content_type="image/png")
    return f"{IMAGE_SERVER}/1.png"


def update(api: Api, resource: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": resource["id"], **fields})["resource"]


def read(api: Api, resource: Any) -> Any:
    return api.get(f"/api/resources/{resource['id']}")["resource"]


def find(api: Api, **query: Any) -> list[str]:
    return [r["name"] for r in api.get(f"{LIST}?{urlencode(query)}")["resources"]]


def bound(api: Api, service: Any) -> list[str]:
    resource_ids: list[str] = api.get(f"/api/services/{service['id']}")["service"]["resourceIds"]
    return resource_ids


class TestCreate:
    def test_create_needs_only_a_name(self, new_owner: Any, time: Time) -> None:
        api = new_owner(timezone="Asia/Yekaterinburg").api()
        resource = make_resource(api)
        assert resource == {
            "id": resource["id"],
            "name": "Anna",
            "type": "master",
            "description": None,
            "descriptionTruncated": False,
            "photo": None,
            "timezone": "Asia/Yekaterinburg",
            "capacity": 1,
            "status": "active",
            "serviceIds": [],
            "sortOrder": 0,
            "externalId": None,
            "metadata": {},
            "createdAt": "2027-01-15T12:00:00.000Z",
            "updatedAt": "2027-01-15T12:00:00.000Z",
        }
        assert read(api, resource) == resource

    def test_a_new_resource_comes_last(self, api: Api) -> None:
        for name in "BAC":
            make_resource(api, name)
        assert find(api) == ["B", "A", "C"]

    def test_create_binds_services(self, api: Api) -> None:
        one, two, other = (make_service(api, name) for name in "123")
        boris = make_resource(api, "Boris", serviceIds=[one["id"]])
        resource = make_resource(api, serviceIds=[two["id"], one["id"], two["id"]])
        assert resource["serviceIds"] == [one["id"], two["id"]]
        assert bound(api, one) == [boris["id"], resource["id"]]
        assert bound(api, two) == [resource["id"]]
        assert bound(api, other) == []
        assert read(api, resource) == resource

    @pytest.mark.parametrize("count", slow_but_for([5], [5, 50]))
    def test_all_services_are_bound_in_one_transaction(self, count: int, api: Api) -> None:
        hair = api.post("/api/categories/create", {"name": "Hair", "kind": "service"})["category"]
        ids = [make_service(api, str(n), categoryId=hair["id"])["id"] for n in range(count)]
        resource = make_resource(api, serviceIds=ids)
        assert resource["serviceIds"] == ids
        assert read(api, resource)["serviceIds"] == ids
        assert update(api, resource, serviceIds=[])["serviceIds"] == []
        assert read(api, resource)["serviceIds"] == []

    def test_the_number_of_resources_of_a_service_is_limited(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("chalicelib.domains.services.flows.binding.MAX_RESOURCES", 3)
        ids = [make_resource(api, str(number))["id"] for number in range(3)]
        service = make_service(api, resourceIds=ids)
        answer = api.call_refused(
            "POST", CREATE, {"name": "One more", "serviceIds": [service["id"]]}
        )
        assert (answer.status, answer.data["code"]) == (409, "conflict")
        assert service["id"] in answer.data["message"]

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("timezone", "Atlantis", "expected an IANA name such as Europe/Moscow"),
            ("timezone", "localtime", "expected an IANA name such as Europe/Moscow"),
            ("photo", {}, "expected exactly one of url and fileId"),
        ],
    )
    def test_an_unknown_zone_and_a_photo_without_a_source_are_refused(
        self, field: str, value: Any, message: str, api: Api
    ) -> None:
        answer = api.call_refused("POST", CREATE, {"name": "Anna", field: value})
        (error,) = answer.data["errors"]
        assert error["field"].partition(".")[0] == field
        assert error["message"].startswith(message)

    def test_a_service_with_a_resource_of_another_type_is_a_warning(self, api: Api) -> None:
        service = make_service(api)
        make_resource(api, serviceIds=[service["id"]])
        body = {"name": "Room 1", "type": "room", "serviceIds": [service["id"]]}
        (warning,) = warned(api.post(CREATE, body))
        assert warning == {"code": "mixed_resource_types", "types": ["master", "room"]}


class TestPhoto:
    def test_a_photo_becomes_a_file_in_the_folder_for_services(self, api: Api, image: str) -> None:
        resource = make_resource(api, photo={"url": image})
        assert resource["photo"]["width"] == 9
        assert IMAGE_SERVER not in resource["photo"]["url"]
        (folder,) = api.get("/api/file-folders")["folders"]
        assert folder["name"] == "services"
        boris = make_resource(api, "Boris", photo={"fileId": resource["photo"]["fileId"]})
        assert boris["photo"] == resource["photo"]

    def test_a_failed_photo_keeps_the_old_one_and_null_removes_it(
        self, api: Api, image: str
    ) -> None:
        resource = make_resource(api, photo={"url": image})
        response = api.post(
            UPDATE, {"id": resource["id"], "photo": {"url": f"{IMAGE_SERVER}/none.png"}}
        )
        assert response["resource"]["photo"] == resource["photo"]
        assert response["warnings"]
        assert update(api, resource, name="Anna B.")["photo"] == resource["photo"]
        assert update(api, resource, photo=None)["photo"] is None

    def test_a_photo_that_is_not_an_image_is_named(self, api: Api) -> None:
        file = api.post("/api/files/upload", {"name": "a.txt", "content": "aGVsbG8="})["file"]
        body = {"name": "Anna", "photo": {"fileId": file["id"]}}
        (error,) = api.call_refused("POST", CREATE, body).data["errors"]
        assert error["field"] == "photo.fileId"

    def test_a_photo_is_removed_when_its_file_is_deleted_by_force(
        self, api: Api, image: str
    ) -> None:
        resource = make_resource(api, photo={"url": image})
        body = {"id": resource["photo"]["fileId"]}
        assert api.call_refused("POST", "/api/files/delete", body).data["code"] == "file_in_use"
        api.post("/api/files/delete", body | {"force": True})
        assert read(api, resource)["photo"] is None


class TestUpdate:
    def test_an_update_changes_only_the_given_fields(self, api: Api) -> None:
        service = make_service(api)
        resource = make_resource(api, serviceIds=[service["id"]])
        updated_resource = update(api, resource, capacity=3, status="inactive", sortOrder=-5)
        changes = {"capacity": 3, "status": "inactive", "sortOrder": -5}
        assert updated_resource == resource | changes | {"updatedAt": updated_resource["updatedAt"]}
        assert read(api, resource) == updated_resource

    def test_an_update_replaces_the_bound_services(self, api: Api) -> None:
        one, two, three = (make_service(api, name) for name in "123")
        resource = make_resource(api, serviceIds=[one["id"], two["id"]])
        updated_resource = update(api, resource, serviceIds=[three["id"], two["id"]])
        assert updated_resource["serviceIds"] == [two["id"], three["id"]]
        assert [bound(api, service) for service in (one, two, three)] == [
            [],
            [resource["id"]],
            [resource["id"]],
        ]

    def test_too_many_changes_at_once_are_refused_with_advice(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("chalicelib.domains.services.flows.binding.MAX_CHANGED", 2)
        ids = [make_service(api, name)["id"] for name in "123"]
        resource = make_resource(api)
        answer = api.call_refused("POST", UPDATE, {"id": resource["id"], "serviceIds": ids})
        assert (answer.status, answer.data["key"]) == (409, "too_many_changes")
        assert answer.data["maximum"] == 2
        assert "POST /api/services/update" in answer.data["message"]

    def test_a_new_zone_is_a_warning(self, api: Api) -> None:
        resource = make_resource(api)
        body = {"id": resource["id"], "timezone": "Asia/Omsk"}
        (warning,) = warned(api.post(UPDATE, body))
        assert warning["code"] == "timezone_changed"
        assert "warnings" not in api.post(UPDATE, body)

    @pytest.mark.parametrize(
        "change", [{"timezone": "Asia/Omsk"}, {"capacity": 2}, {"status": "inactive"}]
    )
    def test_every_change_that_affects_slots_raises_the_version(
        self, change: Any, api: Api, owner: Owner
    ) -> None:
        resource = make_resource(api)
        ((old_row, _),) = opening_hours.find_with_schedules(owner.workspace.id, [resource["id"]])
        update(api, resource, **change)
        ((new_row, _),) = opening_hours.find_with_schedules(owner.workspace.id, [resource["id"]])
        assert new_row.version > old_row.version


class TestList:
    def test_the_list_filters(self, api: Api, new_owner: Any) -> None:
        service = make_service(api)
        anna = make_resource(api, serviceIds=[service["id"]])
        room = make_resource(api, "Зелёная", type="room", serviceIds=[service["id"]])
        make_resource(api, "Cabin")
        update(api, anna, status="inactive")
        update(api, room, sortOrder=-1)
        theirs = make_resource(new_owner().api())
        for query, names in (
            ({}, ["Зелёная", "Anna", "Cabin"]),
            ({"status": "active"}, ["Зелёная", "Cabin"]),
            ({"q": "зеленая"}, ["Зелёная"]),
            ({"serviceId": service["id"]}, ["Зелёная", "Anna"]),
            ({"serviceId": service["id"], "status": "active"}, ["Зелёная"]),
            ({"serviceId": service["id"], "q": "ann"}, ["Anna"]),
            ({"serviceId": new_id()}, []),
            ({"id": anna["id"]}, ["Anna"]),
            ({"id": anna["id"], "serviceId": service["id"]}, ["Anna"]),
            ({"id": theirs["id"]}, []),
            ({"page": 2, "size": 2}, ["Cabin"]),
        ):
            assert find(api, **query) == names, query
        assert api.get(f"{LIST}?size=1")["total"] == 3
        assert api.get(f"{LIST}?size=1&serviceId={service['id']}")["total"] == 2

    def test_long_descriptions_are_cut_except_for_one_resource(self, api: Api) -> None:
        resource = make_resource(api, description="x" * 501)
        page = api.get(LIST)
        assert page["resources"][0]["description"] == "x" * 499 + "…"
        assert "shortened to 500 characters" in page["warnings"][0]
        full_response = api.get(f"{LIST}?id={resource['id']}")
        assert full_response["resources"] == [resource]
        assert "warnings" not in full_response
        (short,) = page["resources"]
        assert (short["descriptionTruncated"], resource["descriptionTruncated"]) == (True, False)
        body = {"id": resource["id"], "description": short["description"]}
        response = api.call_refused("POST", "/api/resources/update", body)
        assert (response.status, response.data["errors"][0]["field"]) == (400, "description")
        assert api.get(f"{LIST}?id={resource['id']}") == full_response


@pytest.mark.store
class TestRaces:
    def test_ten_resources_that_bind_one_service_concurrently_are_all_bound(self, api: Api) -> None:
        service = make_service(api)
        new_resources = run_concurrently(
            10, lambda n: make_resource(api, str(n), serviceIds=[service["id"]])
        )
        assert set(bound(api, service)) == {resource["id"] for resource in new_resources}

    def test_concurrent_changes_are_all_stored(self, api: Api, owner: Owner) -> None:
        resource = make_resource(api)
        changes = [{"name": "Anna B."}, {"capacity": 4}, {"timezone": "Asia/Omsk"}]
        old_row = RESOURCES.find(owner.workspace.id, record_id=resource["id"])
        run_concurrently(3, lambda n: update(api, resource, **changes[n]))
        new_row = RESOURCES.find(owner.workspace.id, record_id=resource["id"])
        assert old_row is not None
        assert new_row is not None
        assert (new_row.name, new_row.capacity, new_row.timezone) == ("Anna B.", 4, "Asia/Omsk")
        assert new_row.version == old_row.version + 3
