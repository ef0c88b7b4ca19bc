"""Deletion of services, and the bookings that remain."""

from chalicelib.domains.services.store.services import SERVICES
from tests.conftest import Api, Owner, Time
from tests.factories.services import make_resource, make_service, new_category, store_booking

DELETE = "/api/services/delete"


def names(api: Api) -> list[str]:
    return [service["name"] for service in api.get("/api/services/list")["services"]]


class TestDelete:
    def test_a_deletion_reports_the_bookings_that_remain(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        service = make_service(api)
        for hours, status in ((1, "confirmed"), (2, "pending_payment"), (3, "cancelled")):
            at = time.now.replace(hour=time.now.hour + hours)
            store_booking(owner.workspace.id, "r", at, service_id=service["id"], status=status)
        past = time.now.replace(hour=1)
        store_booking(owner.workspace.id, "r", past, service_id=service["id"])
        expected = {"id": service["id"], "deleted": False, "futureBookings": 2}
        assert api.post(DELETE, {"id": service["id"], "dryRun": True}) == expected | {
            "status": True
        }
        assert names(api) == ["Haircut"]
        assert api.post(DELETE, {"id": service["id"]}) == expected | {
            "deleted": True,
            "status": True,
        }
        assert names(api) == []
        assert api.call_refused("GET", f"/api/services/{service['id']}").status == 404
        assert api.call_refused("POST", DELETE, {"id": service["id"]}).status == 404
        assert SERVICES.workspace_of(service["id"]) is None

    def test_category_and_resource_no_longer_count_a_deleted_service(self, api: Api) -> None:
        resource = make_resource(api)
        service = make_service(api, categoryId=new_category(api), resourceIds=[resource["id"]])
        (listed_category,) = api.get("/api/categories/list?kind=service")["categories"]
        assert listed_category["itemsCount"] == 1
        api.post(DELETE, {"id": service["id"]})
        (listed_category,) = api.get("/api/categories/list?kind=service")["categories"]
        assert listed_category["itemsCount"] == 0
        assert api.get(f"/api/resources/{resource['id']}")["resource"]["serviceIds"] == []
