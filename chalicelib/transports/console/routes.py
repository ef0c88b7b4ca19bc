"""What is where in the console. Nothing else of it is imported before somebody asks for it."""

from typing import NamedTuple

PREFIX = "/console"
WORKSPACE = f"{PREFIX}/w/{{workspace}}"
BOT = f"{WORKSPACE}/bots/{{id}}"


class Page(NamedTuple):
    """What answers on a path: a module of this package, and its functions for GET and POST.

    A ``guest`` page is for those who are not signed in, too. In a workspace, forms are taken from
    managers alone, and a page ``for_managers`` is one that plain members, who may only look, have
    no use for.
    """

    module: str
    get: str = ""
    post: str = ""
    guest: bool = False
    for_managers: bool = False


ROUTES = {
    PREFIX: Page("account", get="home"),
    f"{PREFIX}/sign-in": Page("account", get="ask", post="sign_in", guest=True),
    f"{PREFIX}/sign-out": Page("account", post="sign_out"),
    f"{PREFIX}/account": Page("account", get="show"),
    f"{PREFIX}/account/password": Page("account", post="change_password"),
    f"{PREFIX}/account/sessions": Page("account", post="end_session"),
    f"{PREFIX}/account/sign-out": Page("account", post="sign_out_everywhere"),
    WORKSPACE: Page("overview", get="show"),
    f"{WORKSPACE}/keys": Page("keys", get="index", post="create"),
    f"{WORKSPACE}/keys/new": Page("keys", get="ask", for_managers=True),
    f"{WORKSPACE}/keys/{{id}}/revoke": Page(
        "keys", get="ask_to_revoke", post="revoke", for_managers=True
    ),
    f"{WORKSPACE}/bots": Page("bots", get="index"),
    BOT: Page("bots", get="show"),
    f"{BOT}/keys": Page("bots", get="keys", post="create_key"),
    f"{BOT}/keys/{{key}}/delete": Page(
        "bots", get="ask_to_delete_key", post="delete_key", for_managers=True
    ),
    f"{BOT}/limits": Page("bots", get="limits", post="set_limits"),
    f"{BOT}/chat": Page("bots", get="chat"),
    f"{BOT}/embed": Page("bots", get="embed"),
    f"{WORKSPACE}/balance": Page("balance", get="show"),
    f"{WORKSPACE}/audit": Page("audit", get="show"),
}
