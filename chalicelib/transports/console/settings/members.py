"""Pages of a workspace's members."""

from contextlib import suppress
from typing import Any

from chalicelib.core.errors import AlreadyCreatedError, AppError, NotFoundError, ValidationError
from chalicelib.core.principals import Role
from chalicelib.core.text import matches_search
from chalicelib.domains.identity.flows.invitation_links import may_invite
from chalicelib.transports.console.choices import STAFF, is_search
from chalicelib.transports.console.console_request import (
    SEARCH_THRESHOLD,
    ConsoleRequest,
    Problem,
    find_by_id,
)
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect

SIZE = 50  # Members on one page.
# Texts by the field of an operation.
FIELDS = {"resourceId": "wrong_staff_link"}
ROLES = ("member", "staff", "manager")


def index(request: ConsoleRequest) -> HttpResponse:
    """List the members, and to managers the open invitations and the form for a new one."""
    return _list(request, 200)


def invite(request: ConsoleRequest) -> HttpResponse:
    """Invite a user and show the link once, or revoke an invitation."""
    if revoked := request.form_value("revoke"):
        with suppress(NotFoundError):  # Another tab or a second click may have revoked it already.
            request.call("revoke_invitation", id=revoked)
        request.require_deleted(revoked)
        return redirect(f"{_path(request)}?done=invitation_revoked")
    if is_search(request):
        return _list(request, 200)
    try:
        response = request.call_once(
            "invite_member", email=request.form_value("email"), **_role(request)
        )
    except AlreadyCreatedError:
        return redirect(f"{_path(request)}?done=invited_before")
    except AppError as error:
        return _list(request, error.status, problem_at_fields(request, error, FIELDS))
    return request.page("invitation_made", made=response, path=_path(request))


def _role(request: ConsoleRequest) -> dict[str, str]:
    """Return the role of a form, and the member of the staff that the role *staff* is for."""
    role, resource_id = request.form_value("role"), request.form_value("resourceId")
    link = {"resourceId": resource_id} if role == Role.STAFF and resource_id else {}
    return {"role": role, **link}


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a member, with the forms to change the role and to remove the member."""
    return _page(request, _member(request))


def _page(
    request: ConsoleRequest,
    member: dict[str, Any],
    status: int = 200,
    problem: Problem | None = None,
) -> HttpResponse:
    staff = STAFF.offer(request, "resource", [member["resourceId"] or ""])
    typed_resource = request.form_value("resourceId") or member["resourceId"] or ""
    return request.page(
        "member",
        status,
        problem=problem,
        member=member,
        staff=[("", request.translate("not_staff")), *staff.names.items()],
        offered_staff=staff,
        is_own=member["accountId"] == request.signed_in_account.id,
        new_roles=[
            (role, request.translate(f"role_{role}")) for role in ROLES if role != member["role"]
        ],
        typed_role=request.form_value("role"),
        typed_resource=typed_resource,
        may_change=request.current_membership.may("set_member_role") and member["role"] != "owner",
        may_remove=not Role(member["role"]).includes(request.current_membership.role),
        path=_path(request),
    )


def change(request: ConsoleRequest) -> HttpResponse:
    """Change a member's role, link the member to the staff, or remove the member."""
    member = _member(request)
    if is_search(request):
        return _page(request, member)
    try:
        if request.form_value("role"):
            request.call("set_member_role", email=member["email"], **_role(request))
            return redirect(f"{_path(request)}?done=role_changed")
        if "resource" in request.form:
            resource_id = request.form_value("resource") or None
            request.call("link_member", accountId=member["accountId"], resourceId=resource_id)
            return redirect(f"{_path(request)}?done=staff_linked")
        request.call("remove_member", email=member["email"])
    except NotFoundError as error:
        if error.key != "member":
            return _page(request, member, error.status, request.problem(error))
        # Another member has removed the member first.
    except ValidationError as error:
        problem = problem_at_fields(request, error, FIELDS)
        return _page(request, member, error.status, problem)
    return redirect(f"{_path(request)}?done=member_removed")


def _list(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    everyone = request.call("list_members")["members"]
    query = request.query_value("q")
    matches = [
        member for member in everyone if matches_search((member["name"], member["email"]), query)
    ]
    membership, page = request.current_membership, request.page_number
    invites = membership.may("invite_member")
    roles = [role for role in ROLES if may_invite(membership.role, invited=Role(role))]
    staff = STAFF.offer(request, "resource", [request.form_value("resourceId")], status="active")
    return request.page(
        "members",
        status,
        problem=problem,
        members=matches[(page - 1) * SIZE : page * SIZE],
        found=len(matches),
        count=len(everyone),
        page=page,
        size=SIZE,
        searchable=len(everyone) > SEARCH_THRESHOLD,
        query=request.query_value("q"),
        invitations=request.call("list_invitations")["invitations"] if invites else [],
        staff=[("", request.translate("not_staff")), *staff.names.items()],
        offered_staff=staff,
        staff_names=STAFF.names(request),
        typed_resource=request.form_value("resourceId"),
        typed_email=request.form_value("email"),
        typed_role=request.form_value("role"),
        roles=roles,
        roles_shown=[(role, request.translate(f"role_{role}")) for role in roles],
        path=_path(request),
    )


def _member(request: ConsoleRequest) -> dict[str, Any]:
    members = request.call("list_members")["members"]
    return find_by_id(members, request.http.path["member"], key="accountId")


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/members"
