"""Services that cannot be booked, and what each one lacks."""

from collections.abc import Callable

from tests.conftest import Api, Owner, call_console
from tests.factories.services import make_resource, make_service, open_up


class TestUnbookableServices:
    def reason(self, owner: Owner, service: str) -> tuple[str, str | None] | None:
        response = call_console(owner.workspace.id, "list_unbookable_services", ids=[service])
        for unbookable in response["services"]:
            assert unbookable["serviceId"] == service
            return unbookable["reason"], unbookable["resourceId"]
        return None

    def test_the_first_missing_requirement_of_a_service_is_returned(
        self, owner: Owner, api: Api
    ) -> None:
        service = make_service(api)["id"]
        assert self.reason(owner, service) == ("no_resource", None)
        one = make_resource(api, serviceIds=[service])["id"]
        assert self.reason(owner, service) == ("no_hours", one)
        open_up(api, one, end="09:30")
        assert self.reason(owner, service) == ("does_not_fit", one)
        open_up(api, one)
        assert self.reason(owner, service) is None
        api.post("/api/resources/update", {"id": one, "status": "inactive"})
        assert self.reason(owner, service) == ("inactive_resource", one)
        other = make_resource(api, "Boris", serviceIds=[service])["id"]
        assert self.reason(owner, service) == ("no_hours", other)
        api.post("/api/services/update", {"id": service, "status": "inactive"})
        assert self.reason(owner, service) == ("inactive", None)
        api.post("/api/services/delete", {"id": service})
        assert self.reason(owner, service) is None

    def test_services_of_another_workspace_are_left_out(
        self, api: Api, new_owner: Callable[..., Owner]
    ) -> None:
        service = make_service(api)["id"]
        assert self.reason(new_owner(), service) is None
