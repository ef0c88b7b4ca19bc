"""Names of the users who saved the versions of a page."""

from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.identity.flows import names
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.sites.operations.pages import PageRef, existing_page
from chalicelib.domains.sites.store import page_versions


class PageSaver(Wire):
    """A caller who saved a version."""

    saved_by: str = Field(description="The caller, as versions name it.")
    kind: Literal["account", "key", "app"] = Field(description="account, key or app.")
    name: str = Field(description="Name of the account, the key or the app.")


class PageSavers(Wire):
    """The callers who saved a page's versions."""

    savers: list[PageSaver] = Field(description="Those whose names are known.")


@operation(role=Role.MANAGER, title="Name who saved a page's versions", example={"id": "PAGE_ID"})
def list_page_savers(ctx: Context, args: PageRef) -> PageSavers:
    """Return the names of the accounts, keys and apps that saved a page's versions."""
    page = existing_page(ctx, args.id)
    versions = page_versions.find_all(ctx.workspace_id, page_id=page.id)
    callers = {version.saved_by for version in versions if version.saved_by}
    parts = {caller: caller.partition(":")[::2] for caller in callers}
    keys = names.read_key_names(
        ctx.workspace_id, {n for kind, n in parts.values() if kind == "key"}
    )
    people = accounts.read_by_id({n for kind, n in parts.values() if kind == "account"})
    savers = []
    for caller, (kind, caller_id) in sorted(parts.items()):
        if kind == "key" and caller_id in keys:
            key = keys[caller_id]
            savers.append(
                PageSaver(saved_by=caller, kind="app" if key.is_app else "key", name=key.name)
            )
        elif kind == "account" and caller_id in people:
            savers.append(PageSaver(saved_by=caller, kind="account", name=people[caller_id].name))
    return PageSavers(savers=savers)
