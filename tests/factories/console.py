"""People with browsers in the console.

They keep the session's cookie by hand: HTTP clients do not send a ``Secure`` one without TLS.
"""

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.flows.invoke import invoke
from chalicelib.store import accounts
from chalicelib.transports.console import door
from tests.conftest import PASSWORD, Answer, Api, Owner

FORM = "application/x-www-form-urlencoded"
Fields = dict[str, str] | list[tuple[str, str]]


@dataclass
class Person:
    """Somebody in the console; ``token`` is that of the session's cookie."""

    email: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The cookie, as browsers send it."""
        return {"Cookie": f"{door.COOKIE}={self.token}"} if self.token else {}

    @property
    def csrf(self) -> str:
        """What the person's forms carry."""
        return door.csrf_token(self.token)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request; of what is answered, a new cookie is kept."""
        sent = self.headers | {name.replace("_", "-"): text for name, text in headers.items()}
        answer = Api(None).call(method, path, body or None, sent)
        for name, value in cookies(answer).items():
            if name == door.COOKIE:
                self.token = value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        """Open a page."""
        return self.ask("GET", path, **headers)

    def post(
        self, path: str, fields: Fields | None = None, csrf: str | None = None, **headers: str
    ) -> Answer:
        """Send a form of one's own, or with another token."""
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields or [])
        body = urlencode([*pairs, ("csrf", self.csrf if csrf is None else csrf)]).encode()
        return self.ask("POST", path, body, **{"content_type": FORM} | headers)

    def signs_in(self, password: str = PASSWORD, **fields: str) -> Answer:
        """Open the page and send its form."""
        self.get("/console/sign-in")
        return self.post("/console/sign-in", {"email": self.email, "password": password} | fields)


def cookies(answer: Answer) -> dict[str, str]:
    """Return the values of the cookies that an answer sets."""
    pairs = (header.partition(";")[0] for header in answer.headers.get("Set-Cookie", []))
    return dict(pair.split("=", 1) for pair in pairs)


def begun(email: str, password: str = PASSWORD, *, visitor: str = "v", browser: str = "") -> str:
    """Sign in past HTTP; return the session's token."""
    asked = {"email": email, "password": password, "browser": browser}
    visiting = VisitorPrincipal(visitor=visitor)
    reply = invoke(REGISTRY["sign_in"], visiting, lambda: asked, request_id="r")
    token: str = json.loads(reply.body)["data"]["token"]
    return token


def person(owner: Owner) -> Person:
    """Return the owner of a workspace, signed in."""
    return Person(accounts.get(owner.workspace.owner_id).email, owner.signs_in())
