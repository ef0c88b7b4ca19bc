"""A member with the role *staff* sees and changes the own bookings, and nothing else."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from chalicelib.application.invoke import authorize
from chalicelib.core.errors import AppError, ForbiddenError, NotFoundError, ValidationError
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience, Role, SessionPrincipal
from chalicelib.domains.identity.store import api_keys, connections
from tests.conftest import all_rows, call_console
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage
from tests.factories.examples import Things
from tests.factories.oauth import GRANT
from tests.factories.people import Account
from tests.factories.salon import Salon
from tests.support.restoring import Snapshots

pytestmark = pytest.mark.usefixtures("telegram", "mail_enabled")

OWN_CALENDAR = {
    *("get_staff_calendar", "list_bookings", "get_booking", "list_own_services"),
    *("create_booking", "set_booking_status", "reschedule_booking", "get_available_slots"),
    *("get_calendar_links", "create_calendar_link", "delete_calendar_link", "get_busy_times"),
}
"""Operations about the own calendar."""
OWN_ACCOUNT = {
    *("get_notifications", "set_notifications", "leave_workspace"),
    *("get_telegram", "link_telegram", "unlink_telegram"),
}
"""Operations about the own account in the workspace."""
ALLOWED = sorted(OWN_CALENDAR | OWN_ACCOUNT)
# Whatever belongs to other members of the staff, or is not for the staff, has one of these words.
HIDDEN = ("OTHERS", "hidden@example.com", "4957654321")
OWN_PHONE = "+74951112233"
NOON, LATER = "2027-01-18T12:00:00+03:00", "2027-01-18T15:00:00+03:00"


@dataclass(frozen=True)
class Desk:
    """A salon of two, of whom Vera has the role *staff*. Each has a booking, and so has Olga."""

    vera: Account
    workspace_id: str
    service: str
    own: str
    other: str
    own_booking: str
    other_booking: str
    things: Things

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation as Vera."""
        return self.vera.call(self.workspace_id, operation, **arguments)

    def as_owner(self, operation: str, **arguments: Any) -> Any:
        return call_console(self.workspace_id, operation, **arguments)


@pytest.fixture
def desk(world: World, snapshots: Snapshots) -> Desk:
    def make() -> Desk:
        salon = Salon.opened(
            world.api,
            [{"name": "Vera", "metadata": {"a": "OTHERS"}}, {"name": "Olga OTHERS"}],
            metadata={"a": "OTHERS"},
        )
        own, other = salon.resources
        bodies = [
            (own, {"name": "Ada Byron", "phone": OWN_PHONE, "email": "hidden@example.com"}),
            (other, {"name": "Eve OTHERS", "phone": "+74957654321"}),
        ]
        bookings = [
            world.api.post(
                "/api/bookings/create",
                {
                    "serviceId": salon.service,
                    "startAt": NOON,
                    "resourceId": resource,
                    "client": client,
                    "externalId": f"OTHERS-{resource}",
                    "metadata": {"a": "OTHERS"},
                    "notes": "Decaf" if resource == own else "OTHERS",
                },
            )["booking"]
            for resource, client in bodies
        ]
        world.api.post(
            "/api/clients/update",
            {"id": bookings[0]["client"]["id"], "notes": "OTHERS", "tags": ["OTHERS"]},
        )
        absence = {"startAt": "2027-02-01", "endAt": "2027-02-02", "reason": "OTHERS"}
        world.api.post("/api/resources/create-time-off", {"resourceId": other, **absence})
        call_console(world.workspace_id, "create_calendar_link")
        call_console(world.workspace_id, "create_calendar_link", resourceId=other)
        vera = Account.create("vera")
        vera.joins(world.workspace_id, "staff", own)
        return Desk(
            vera,
            world.workspace_id,
            salon.service,
            own,
            other,
            bookings[0]["id"],
            bookings[1]["id"],
            world.things,
        )

    made: Desk = snapshots.once("desk of the staff", make)
    return made


def refused(call: Callable[[], Any]) -> AppError:
    """Return the error of a call that must fail and change nothing."""
    rows_before = drop_key_usage(all_rows())
    with pytest.raises(AppError) as caught:
        call()
    assert drop_key_usage(all_rows()) == rows_before
    return caught.value


def own_calls(desk: Desk) -> dict[str, dict[str, Any]]:
    """Return a valid call of each operation that is allowed."""
    return {
        "create_booking": {
            "serviceId": desk.service,
            "startAt": LATER,
            "client": {"name": "Ann", "phone": "+74952223344"},
        },
        "create_calendar_link": {},
        "delete_calendar_link": {"id": desk.own},
        "get_available_slots": {"serviceId": desk.service, "bookingId": desk.own_booking},
        "get_booking": {"id": desk.own_booking},
        "get_busy_times": {"resourceId": desk.own, "from": NOON, "to": LATER},
        "get_calendar_links": {},
        "get_notifications": {},
        "get_staff_calendar": {"view": "week", "date": "2027-01-18"},
        "get_telegram": {},
        "leave_workspace": {},
        "link_telegram": {},
        "list_bookings": {},
        "list_own_services": {},
        "reschedule_booking": {"id": desk.own_booking, "startAt": LATER},
        "set_booking_status": {"id": desk.own_booking, "status": "cancelled", "reason": "Ill"},
        "set_notifications": {"language": "en"},
        "unlink_telegram": {},
    }


@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda o: o.name)
def test_each_operation_refuses_the_staff_or_is_on_the_short_list(operation: Operation) -> None:
    who = SessionPrincipal(
        account_id="a", workspace_id="w", plan="business", membership=Role.STAFF, resource_id="r"
    )
    if operation.role is Role.ACCOUNT:
        return  # It is about the account, or about the platform's blog, for ADMIN accounts only.
    if operation.name in ALLOWED:
        authorize(operation, who)
        return
    with pytest.raises(ForbiddenError) as caught:
        authorize(operation, who)
    is_for_members = Audience.SESSION in operation.audience
    assert caught.value.key == ("role_required" if is_for_members else "wrong_caller")


def test_operations_for_any_account_say_nothing_about_a_workspace() -> None:
    # A member of the staff may call these. One that is added must not show what is hidden.
    names = {operation.name for operation in REGISTRY if operation.role is Role.ACCOUNT}
    assert names == {
        *("accept_invitation", "add_workspace", "change_password", "create_test_workspace"),
        *("create_blog_post", "delete_blog_post", "get_blog_post", "list_blog_posts"),
        *("update_blog_post", "end_second_factor", "end_session", "forget_browsers"),
        *("get_account", "get_invitation", "list_sessions", "prepare_second_factor"),
        *("prove_email", "request_proof", "set_second_factor", "set_sign_in_factor"),
        *("sign_out_everywhere", "update_account"),
    }


@pytest.mark.parametrize("name", ALLOWED)
def test_no_result_has_what_belongs_to_others(desk: Desk, name: str) -> None:
    if name == "delete_calendar_link":
        desk.call("create_calendar_link")
    result = json.dumps(desk.call(name, **own_calls(desk)[name]), ensure_ascii=False)
    shown = [word for word in (*HIDDEN, desk.other, desk.other_booking) if word in result]
    assert not shown
    assert not [thing for thing in vars(desk.things).values() if thing in result]


@pytest.mark.parametrize("name", sorted(OWN_CALENDAR))
def test_ids_of_others_are_refused_and_change_nothing(desk: Desk, name: str) -> None:
    fields = REGISTRY[name].input.model_fields
    arguments = own_calls(desk)[name]
    foreign = {
        "resource_id": [{"resourceId": desk.other}, {"resourceId": "0" * 26}],
        "booking_id": [{"bookingId": desk.other_booking}],
    }
    if name == "delete_calendar_link":
        foreign["id"] = [{"id": desk.other}, {"id": desk.workspace_id}]
    elif "id" in arguments:
        foreign["id"] = [{"id": desk.other_booking}, {"id": desk.things.booking}]
    for field in foreign.keys() & fields.keys():
        for ids in foreign[field]:
            error = refused(lambda ids=ids: desk.call(name, **{**arguments, **ids}))
            assert (error.status, error.key) in {(403, "not_own_calendar"), (404, "booking")}


def test_a_booking_of_another_is_like_one_that_does_not_exist(desk: Desk) -> None:
    calls = {
        "get_booking": {},
        "set_booking_status": {"status": "cancelled"},
        # Neither may a booking be taken over from another member of the staff.
        "reschedule_booking": {"resourceId": desk.own, "startAt": LATER},
    }
    for name, fields in calls.items():
        foreign, unknown = (
            refused(partial(desk.call, name, id=booking_id, **fields))
            for booking_id in (desk.other_booking, "0" * 26)
        )
        assert (foreign.status, foreign.message) == (unknown.status, unknown.message)


def test_a_booking_shows_name_and_phone_of_the_client_and_the_price(desk: Desk) -> None:
    booking = desk.call("get_booking", id=desk.own_booking)["booking"]
    assert booking["client"] == {
        "id": None,
        "name": "Ada Byron",
        "phone": OWN_PHONE,
        "phoneEntered": OWN_PHONE,
        "email": None,
    }
    assert (booking["price"], booking["notes"]) == (150_000, "Decaf")
    assert (booking["externalId"], booking["metadata"]) == (None, {})


def test_lists_and_counts_are_of_the_own_bookings(desk: Desk) -> None:
    listed = desk.call("list_bookings")
    assert [each["id"] for each in listed["bookings"]] == [desk.own_booking]
    assert listed["pagination"]["total"] == 1
    calendar = desk.call("get_staff_calendar", date="2027-01-18")
    assert (calendar["total"], calendar["staffTotal"]) == (1, 1)
    assert [each["id"] for each in calendar["staff"]] == [desk.own]
    assert [each["id"] for each in calendar["days"][0]["staff"][0]["bookings"]] == [
        desk.own_booking
    ]


def test_the_staff_books_in_the_own_calendar(desk: Desk) -> None:
    arguments = own_calls(desk)["create_booking"]
    made = desk.call("create_booking", **arguments)
    assert (made["manageUrl"], made["icsUrl"]) == (None, None)
    stored = desk.as_owner("get_booking", id=made["booking"]["id"])["booking"]
    assert stored["resourceId"] == desk.own
    assert stored["client"]["phone"] == "+74952223344"
    assert stored["source"] == "console"


def test_the_staff_neither_names_a_client_by_id_nor_uses_ids_of_programs(desk: Desk) -> None:
    booking = desk.as_owner("get_booking", id=desk.other_booking)["booking"]
    arguments = own_calls(desk)["create_booking"]
    by_id = {name: arguments[name] for name in ("serviceId", "startAt")}
    for fields in (
        {**by_id, "clientId": booking["client"]["id"]},
        {**arguments, "externalId": booking["externalId"]},
        {**arguments, "metadata": {"a": "b"}},
        {**arguments, "includeManageUrl": True},
    ):
        error = refused(lambda fields=fields: desk.call("create_booking", **fields))
        assert (error.status, error.key) == (403, "not_for_staff")


def test_no_filter_finds_out_what_is_hidden_of_the_own_clients(desk: Desk) -> None:
    booking = desk.as_owner("get_booking", id=desk.own_booking)["booking"]
    for fields in (
        {"q": "hidden@"},
        {"clientId": booking["client"]["id"]},
        {"externalId": booking["externalId"]},
    ):
        error = refused(partial(desk.call, "list_bookings", **fields))
        assert (error.status, error.key) == (403, "not_for_staff")


def test_alternatives_are_in_the_own_calendar(desk: Desk) -> None:
    arguments = {**own_calls(desk)["create_booking"], "startAt": NOON}
    error = refused(lambda: desk.call("create_booking", **arguments))
    assert error.code == "slot_unavailable"
    assert error.details["alternatives"]
    assert not [word for word in (*HIDDEN, desk.other) if word in json.dumps(error.details)]
    desk.call("set_booking_status", id=desk.own_booking, status="cancelled")
    desk.call("create_booking", **arguments)
    for fields in ({"status": "confirmed"}, {"status": "confirmed", "startAt": NOON}):
        error = refused(
            lambda fields=fields: desk.call("set_booking_status", id=desk.own_booking, **fields)
        )
        assert error.code == "slot_unavailable"
        assert not [word for word in (*HIDDEN, desk.other) if word in json.dumps(error.details)]


@pytest.mark.parametrize("name", sorted(OWN_CALENDAR))
def test_without_a_link_there_is_no_calendar(desk: Desk, name: str) -> None:
    desk.as_owner("link_member", accountId=desk.vera.id, resourceId=None)
    error = refused(lambda: desk.call(name, **own_calls(desk)[name]))
    assert (error.status, error.key) == (403, "no_staff_link")


@pytest.mark.parametrize("name", sorted(OWN_ACCOUNT))
def test_without_a_link_the_own_account_can_be_managed(desk: Desk, name: str) -> None:
    desk.as_owner("link_member", accountId=desk.vera.id, resourceId=None)
    desk.call(name, **own_calls(desk)[name])


def test_another_link_is_another_calendar_at_the_next_call(desk: Desk) -> None:
    desk.as_owner("link_member", accountId=desk.vera.id, resourceId=desk.other)
    listed = desk.call("list_bookings")["bookings"]
    assert [each["id"] for each in listed] == [desk.other_booking]
    refused(lambda: desk.call("get_booking", id=desk.own_booking))


def test_a_deleted_resource_leaves_its_former_bookings_only(desk: Desk) -> None:
    desk.as_owner("delete_resource", id=desk.own, force=True)
    calendar = desk.call("get_staff_calendar", date="2027-01-18")
    assert calendar["staff"] == []
    assert [each["id"] for each in desk.call("list_bookings")["bookings"]] == [desk.own_booking]
    for name in ("list_own_services", "create_calendar_link"):
        assert refused(partial(desk.call, name)).status == 404


def test_a_booking_that_is_moved_to_another_is_gone(desk: Desk) -> None:
    desk.as_owner("reschedule_booking", id=desk.own_booking, resourceId=desk.other, startAt=LATER)
    refused(lambda: desk.call("get_booking", id=desk.own_booking))
    assert desk.call("list_bookings")["bookings"] == []


@pytest.mark.parametrize("role", ["member", "manager"])
def test_another_role_sees_all_of_it_and_the_staff_again_only_the_own(
    desk: Desk, role: str
) -> None:
    desk.as_owner("set_member_role", email=desk.vera.email, role=role)
    assert desk.call("list_bookings")["pagination"]["total"] > 1
    assert "hidden@example.com" in json.dumps(desk.call("get_booking", id=desk.own_booking))
    # The link stays with the membership.
    desk.as_owner("set_member_role", email=desk.vera.email, role="staff")
    assert desk.call("list_bookings")["pagination"]["total"] == 1


def test_keys_and_apps_end_when_a_manager_becomes_staff(desk: Desk) -> None:
    desk.as_owner("set_member_role", email=desk.vera.email, role="manager")
    desk.call("create_key", name="Laptop", scopes=["bookings:read"])
    desk.call("grant_access", **GRANT)
    desk.as_owner("set_member_role", email=desk.vera.email, role="staff")
    assert desk.vera.id not in {key.account_id for key in api_keys.live(desk.workspace_id)}
    assert desk.vera.id not in {app.account_id for app in connections.live(desk.workspace_id)}
    for name, fields in (
        ("create_key", {"name": "Laptop", "scopes": ["bookings:read"]}),
        ("grant_access", GRANT),
    ):
        assert refused(partial(desk.call, name, **fields)).key == "role_required"


def test_the_role_needs_a_member_of_the_staff(desk: Desk) -> None:
    ivy = Account.create("ivy")
    with pytest.raises(ValidationError) as caught:
        ivy.joins(desk.workspace_id, "staff")
    assert [(e.field, e.key) for e in caught.value.errors] == [("resourceId", "no_staff_member")]
    with pytest.raises(NotFoundError):
        ivy.joins(desk.workspace_id, "staff", "0" * 26)
    assert ivy.role_in(desk.workspace_id) is None
    ivy.joins(desk.workspace_id, "staff", desk.other)
    listed = ivy.call(desk.workspace_id, "list_bookings")["bookings"]
    assert [each["id"] for each in listed] == [desk.other_booking]


@dataclass(frozen=True)
class Visit:
    """Vera cuts, and Olga colours afterwards. Ada has another visit, all by Vera."""

    own: str
    other: str
    alone: list[str]


@pytest.fixture
def visit(desk: Desk) -> Visit:
    colours = [
        desk.as_owner("create_service", name=name, durationMin=30, price=100, resourceIds=[who])[
            "service"
        ]["id"]
        for name, who in (("Colour OTHERS", desk.other), ("Fringe", desk.own))
    ]
    client = {"name": "Ada Byron", "phone": OWN_PHONE}
    shared, alone = (
        desk.as_owner(
            "create_booking",
            serviceId=desk.service,
            andThen=[colour],
            startAt=start,
            resourceId=desk.own,
            client=client,
            notes="Decaf",
        )["visit"]
        for colour, start in zip(
            colours, ("2027-01-18T09:00:00+03:00", "2027-01-18T16:00:00+03:00"), strict=True
        )
    )
    assert [each["resourceId"] for each in shared] == [desk.own, desk.other]
    return Visit(shared[0]["id"], shared[1]["id"], [each["id"] for each in alone])


def test_of_a_visit_the_staff_sees_the_own_services(desk: Desk, visit: Visit) -> None:
    found = desk.call("get_booking", id=visit.own)
    assert [each["id"] for each in found["visit"]] == [visit.own]
    listed = {each["id"] for each in desk.call("list_bookings")["bookings"]}
    assert listed == {desk.own_booking, visit.own, *visit.alone}
    slots = desk.call("get_available_slots", serviceId=desk.service, bookingId=visit.own)
    for result in (found, slots):
        text = json.dumps(result)
        assert not [word for word in (*HIDDEN, desk.other, visit.other) if word in text]
    refusal = refused(partial(desk.call, "get_booking", id=visit.other))
    assert refusal.status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "cancelled"},
        {"status": "confirmed", "startAt": LATER},
        # It is taken: the other times of the visit are not for the staff.
        {"status": "confirmed", "startAt": NOON},
        {"status": "completed", "wholeVisit": True},
    ],
)
def test_the_staff_changes_no_visit_with_services_of_others(
    desk: Desk, visit: Visit, fields: dict[str, Any]
) -> None:
    error = refused(partial(desk.call, "set_booking_status", id=visit.own, **fields))
    assert (error.status, error.key) == (403, "not_only_own")
    assert not error.details


def test_the_staff_says_what_became_of_the_own_services_of_a_visit(
    desk: Desk, visit: Visit
) -> None:
    written = desk.call("set_booking_status", id=visit.own, status="completed")
    assert [each["status"] for each in written["visit"]] == ["completed"]
    assert desk.as_owner("get_booking", id=visit.other)["booking"]["status"] == "confirmed"
    error = refused(partial(desk.call, "set_booking_status", id=visit.other, status="no_show"))
    assert error.status == 404


def test_the_staff_moves_and_cancels_a_visit_of_its_own(desk: Desk, visit: Visit) -> None:
    moved = desk.call("reschedule_booking", id=visit.alone[1], startAt="2027-01-18T16:00:00+03:00")
    assert [each["startAt"][11:16] for each in moved["visit"]] == ["12:00", "13:00"]
    desk.call("set_booking_status", id=visit.alone[0], status="cancelled")
    statuses = {desk.call("get_booking", id=each)["booking"]["status"] for each in visit.alone}
    assert statuses == {"cancelled"}


def test_the_staff_books_no_visits(desk: Desk) -> None:
    # The times of others would be found, and their calendars written.
    further = {"andThen": [desk.service]}
    slots = {"serviceId": desk.service, **further}
    calls = {
        "create_booking": {**own_calls(desk)["create_booking"], **further},
        "get_available_slots": slots,
    }
    for name, arguments in calls.items():
        error = refused(partial(desk.call, name, **arguments))
        assert (error.status, error.key) == (403, "not_for_staff")
