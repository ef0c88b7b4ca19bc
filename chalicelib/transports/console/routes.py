"""The pages of the console by path. Their modules are imported with the first request."""

from typing import TYPE_CHECKING, NamedTuple

from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy

if TYPE_CHECKING:
    from chalicelib.transports.console.console_request import ConsoleRequest  # noqa: F401  ruff does not see its use below

View = Lazy[["ConsoleRequest"], HttpResponse]

PREFIX = "/console"
CONSENT = "/oauth/authorize"
"""The page on which a person connects an AI client. It uses the console's sessions."""
WORKSPACE = f"{PREFIX}/w/{{workspace}}"
SITE = f"{WORKSPACE}/sites/{{site}}"
BOT = f"{WORKSPACE}/bots/{{id}}"
WEBHOOK = f"{WORKSPACE}/webhooks/{{webhook}}"
MAX_FORM_BYTES = 64_000
MAX_TEXT_FORM_BYTES = 640_000
"""Size limit of a form with a long text. A form has up to three bytes for each byte of the text."""


def _view(target: str) -> View:
    """Return a function of a module of this package, imported at the first call."""
    return Lazy(f"{__package__}.{target}")


class Page(NamedTuple):
    """Handlers of a path: the functions for GET and POST.

    Visitors who are not signed in may open a ``guest`` page. Within a workspace, only managers may
    send forms, except on a page of the member's ``own`` settings. Plain members, who have read
    access, cannot open a page ``for_managers``. A form that ``signs_out`` succeeds even if the
    session has already ended. ``max_bytes`` is the size limit of a form.
    """

    get: View | None = None
    post: View | None = None
    guest: bool = False
    for_managers: bool = False
    own: bool = False
    signs_out: bool = False
    max_bytes: int = MAX_FORM_BYTES


ROUTES = {
    PREFIX: Page(get=_view("account:home")),
    f"{PREFIX}/sign-in": Page(
        get=_view("account:sign_in_page"), post=_view("account:sign_in"), guest=True
    ),
    f"{PREFIX}/sign-out": Page(post=_view("account:sign_out"), signs_out=True),
    f"{PREFIX}/account": Page(get=_view("account:show")),
    f"{PREFIX}/account/password": Page(post=_view("account:change_password")),
    f"{PREFIX}/account/sessions": Page(post=_view("account:end_session")),
    f"{PREFIX}/account/sign-out": Page(post=_view("account:sign_out_everywhere"), signs_out=True),
    WORKSPACE: Page(get=_view("overview:show")),
    f"{WORKSPACE}/keys": Page(get=_view("keys:index"), post=_view("keys:create")),
    f"{WORKSPACE}/keys/new": Page(get=_view("keys:new_key_page"), for_managers=True),
    f"{WORKSPACE}/keys/{{id}}/revoke": Page(
        get=_view("keys:confirm_revoke"), post=_view("keys:revoke"), for_managers=True
    ),
    f"{WORKSPACE}/apps": Page(get=_view("apps:index")),
    f"{WORKSPACE}/apps/{{connection}}/disconnect": Page(
        get=_view("apps:confirm_disconnect"), post=_view("apps:disconnect"), for_managers=True
    ),
    f"{WORKSPACE}/sites": Page(get=_view("sites:index")),
    f"{WORKSPACE}/deleted-sites/{{deleted_site}}": Page(post=_view("sites:restore_site")),
    SITE: Page(get=_view("sites:show")),
    f"{SITE}/deleted-pages/{{deleted_page}}": Page(post=_view("sites:restore_page")),
    f"{SITE}/pages/{{page}}": Page(get=_view("sites:versions")),
    f"{SITE}/pages/{{page}}/{{version}}": Page(
        get=_view("sites:compare"), post=_view("sites:restore_version")
    ),
    f"{WORKSPACE}/bots": Page(get=_view("bots:index")),
    BOT: Page(get=_view("bots:show")),
    f"{BOT}/keys": Page(get=_view("bots:keys"), post=_view("bots:create_key")),
    f"{BOT}/keys/{{key}}/delete": Page(
        get=_view("bots:confirm_delete_key"), post=_view("bots:delete_key"), for_managers=True
    ),
    f"{BOT}/limits": Page(get=_view("bots:limits"), post=_view("bots:set_limits")),
    f"{BOT}/capabilities": Page(
        get=_view("bot_capabilities:show"), post=_view("bot_capabilities:save")
    ),
    f"{BOT}/knowledge": Page(
        get=_view("bot_knowledge:index"),
        post=_view("bot_knowledge:add"),
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{BOT}/knowledge/{{source}}": Page(
        get=_view("bot_knowledge:confirm_delete"),
        post=_view("bot_knowledge:delete"),
        for_managers=True,
    ),
    f"{BOT}/chat": Page(get=_view("bots:chat")),
    f"{BOT}/embed": Page(get=_view("bots:embed")),
    f"{WORKSPACE}/webhooks": Page(get=_view("webhooks:index"), post=_view("webhooks:create")),
    f"{WORKSPACE}/webhooks/new": Page(get=_view("webhooks:new_webhook_page"), for_managers=True),
    WEBHOOK: Page(get=_view("webhooks:show"), post=_view("webhooks:save")),
    f"{WEBHOOK}/status": Page(post=_view("webhooks:set_status")),
    f"{WEBHOOK}/test": Page(post=_view("webhooks:send_test")),
    f"{WEBHOOK}/deliveries": Page(post=_view("webhooks:send_again")),
    f"{WEBHOOK}/secret": Page(
        get=_view("webhooks:confirm_replace_secret"),
        post=_view("webhooks:replace_secret"),
        for_managers=True,
    ),
    f"{WEBHOOK}/delete": Page(
        get=_view("webhooks:confirm_delete"), post=_view("webhooks:delete"), for_managers=True
    ),
    f"{WORKSPACE}/balance": Page(get=_view("balance:show")),
    f"{WORKSPACE}/audit": Page(get=_view("audit:show")),
    f"{WORKSPACE}/notifications": Page(
        get=_view("notifications:show"), post=_view("notifications:save"), own=True
    ),
}
