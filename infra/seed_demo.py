"""The demo workspace: made in an empty database, its key kept for later starts."""

import json
import secrets
from typing import Any

from chalicelib.core.errors import NotFoundError
from chalicelib.core.operations import REGISTRY
from chalicelib.flows.invoke import invoke
from chalicelib.store import accounts, api_keys, tables, workspaces
from chalicelib.store.connection import connection
from chalicelib.transports.auth import authenticate
from infra.admin import call
from infra.data_dir import DataDir

EMAIL = "demo@example.com"
HOME = """<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Demo site</title></head>
  <body><h1>Demo site</h1><p>Its pages are yours to change.</p></body>
</html>
"""


def seed(data: DataDir) -> str | None:
    """Make what is missing of the demo and return its key; None if the database belongs to others.

    A start that was killed half-way is finished by the next one: the password is kept before the
    account is made, the key when all the rest is there.
    """
    demo = data.demo
    key: str = demo.get("key", "")
    if api_keys.authenticate(key):
        return key
    try:
        account = accounts.by_email(EMAIL)
    except NotFoundError:
        if not _is_empty():
            return None
        demo = {"email": EMAIL, "password": secrets.token_urlsafe(12)}
        data.demo = demo
        call("create_account", {"email": EMAIL, "password": demo["password"], "name": "Demo"})
        account = accounts.by_email(EMAIL)
    owned = [workspace.id for workspace, _ in workspaces.of_account(account.id)]
    if owned:
        workspace = owned[0]
    else:
        workspace = call("create_workspace", {"owner": EMAIL, "name": "Demo"})["workspaceId"]
    scopes = ["*:read", "*:write"]
    key = call("create_key", {"workspaceId": workspace, "name": "Demo", "scopes": scopes})["token"]
    _make_site(key)
    data.demo = {**demo, "email": EMAIL, "workspaceId": workspace, "key": key}
    return key


def _is_empty() -> bool:
    name = tables.IdentityRow.Meta.table_name
    return not connection().client.scan(TableName=name, Limit=1)["Items"]


def _make_site(key: str) -> None:
    """Make the demo site with its home page, unless the workspace has sites."""
    if _call(key, "list_sites", size=1)["projects"]:
        return
    site = _call(key, "create_site", title="Demo site")["project"]
    page = _call(key, "create_page", projectId=site["id"], title="Home")["page"]
    _call(key, "save_page_html", id=page["id"], html=HOME)


def _call(key: str, operation: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    """Call an operation as the demo key may, and return what is inside the envelope."""
    principal = authenticate({"authorization": f"Bearer {key}"}, "")
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="seed-demo")
    data: dict[str, Any] = json.loads(reply.body)["data"]
    return data
