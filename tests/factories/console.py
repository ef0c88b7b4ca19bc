"""Users of the console in their browsers.

Tests keep the session's cookie by hand, because HTTP clients do not send a ``Secure`` cookie
without TLS.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar
from unittest.mock import patch
from urllib.parse import quote, urlencode

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import PLATFORM, VisitorPrincipal
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.chat.store import messages
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.clients.store.clients import new_client
from chalicelib.domains.identity.flows import emails, reset_links, sign_up_links
from chalicelib.domains.identity.store import (
    accounts,
    invitations,
    password_resets,
    sign_ups,
    workspaces,
)
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.sites.operations import deletion, page_deletion
from chalicelib.domains.webhooks.store import deliveries
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import CODE_FIELD, PASSWORD_FIELD, SEEN
from chalicelib.transports.console.routes import BOOKING, BOT, PREFIX, ROUTES, SITE, WORKSPACE
from infra.local.demo.examples import words_in
from tests.conftest import PASSWORD, Answer, Api, Owner, call_console, call_operator
from tests.factories.examples import top_up
from tests.factories.oauth import connect
from tests.factories.payments import record_payments
from tests.factories.recipes import Ids, Recipes

FORM = "application/x-www-form-urlencoded"
BOUNDARY = "0f8fad5b-d9cb-469f-a165-70867728950e"
Fields = dict[str, str] | list[tuple[str, str]]
Files = Sequence[tuple[str, str, bytes]]
UPDATES = [
    route
    for route, page in ROUTES.items()
    if page.get
    and page.posts.startswith(("set_", "update_"))
    and route not in {BOOKING, f"{WORKSPACE}/client-channels"}
] + [f"{PREFIX}/account", f"{SITE}/pages/{{page}}/sections"]
"""Pages whose form changes a record. It has marks of what the page showed. The buttons of a booking
have its version instead."""
FEW_CHOICES = (f"{WORKSPACE}/booking-page/assistants", f"{WORKSPACE}/client-channels")
"""Pages whose forms have marks too. Their few choices do not suit the tests of lost updates."""
_UPDATES = [re.compile(re.sub(r"{\w+}", "[^/]+", route)) for route in (*UPDATES, *FEW_CHOICES)]

CONFIRMED = re.compile(
    r"/oauth/authorize\?.*|/console/account"
    r"|/console/w/[^/]+/(keys|apps/[^/]+/allow|members(/[^/]+)?|payment-settings(/former/[^/]+)?|exports|close|reopen|services/[^/]+/payment"
    r"|bookings/[^/]+(/payments/[^/]+)?)"
)
"""Paths of the forms that ask for the password, or for a code of a second factor."""


@dataclass
class Person:
    """A user of the console.

    ``token``, ``device`` and ``remembered`` are the values of the browser's cookies.
    """

    email: str
    token: str = ""
    device: str = ""
    remembered: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The cookie header that a browser sends."""
        cookies = {
            access.COOKIE: self.token,
            access.DEVICE_COOKIE: self.device,
            access.REMEMBERED_COOKIE: self.remembered,
        }
        pairs = [f"{name}={value}" for name, value in cookies.items() if value]
        return {"Cookie": "; ".join(pairs)} if pairs else {}

    @property
    def csrf(self) -> str:
        """The CSRF token in the user's forms."""
        return access.csrf_token(self.token)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request. New cookies in the response are kept."""
        all_headers = self.headers | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        answer = Api(None).call(method, path, body or None, all_headers)
        for name, value in cookies(answer).items():
            if name == access.COOKIE:
                self.token = value
            if name == access.DEVICE_COOKIE:
                self.device = value
            if name == access.REMEMBERED_COOKIE:
                self.remembered = value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        """Open a page."""
        return self.request("GET", path, **headers)

    def post(
        self,
        path: str,
        fields: Fields | None = None,
        csrf: str | None = None,
        files: Files = (),
        **headers: str,
    ) -> Answer:
        """Send a form with the user's own CSRF token, or with another one.

        The user types the password where a form asks for it. Without ``seen``, the form is from a
        page which the user opens just before. ``files`` are the names of controls, and of the
        files, with their content. A value such as ``@note.txt`` stands for a file of this name, as
        in curl.
        """
        pairs = self.marked(path, fields)
        if CONFIRMED.fullmatch(path) and not {CODE_FIELD, PASSWORD_FIELD} & dict(pairs).keys():
            pairs.append((PASSWORD_FIELD, PASSWORD))
        pairs.append(("csrf", self.csrf if csrf is None else csrf))
        files = [*files, *((name, text[1:], b"hi") for name, text in pairs if text[:1] == "@")]
        if not files:
            body = urlencode(pairs).encode()
            return self.request("POST", path, body, **{"Content_Type": FORM} | headers)
        parts = [(f'name="{name}"', text.encode()) for name, text in pairs if text[:1] != "@"]
        parts += [(f'name="{name}"; filename="{file}"', body) for name, file, body in files]
        body_of_parts = b"".join(
            f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode()
            + body
            + b"\r\n"
            for head, body in parts
        )
        kind = {"Content_Type": f"multipart/form-data; boundary={BOUNDARY}"}
        return self.request(
            "POST", path, body_of_parts + f"--{BOUNDARY}--\r\n".encode(), **kind | headers
        )

    def marked(self, path: str, fields: Fields | None) -> list[tuple[str, str]]:
        """Return the fields as a browser sends them: with the marks of the page."""
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields or [])
        if SEEN in dict(pairs) or not any(pattern.fullmatch(path) for pattern in _UPDATES):
            return pairs
        seen = re.search(f'name="{SEEN}" value="([^"]*)"', self.get(path).body.decode())
        return [*pairs, (SEEN, seen[1])] if seen else pairs

    def start_session(self, password: str = PASSWORD, **fields: str) -> Answer:
        """Open the page and send its form."""
        self.get("/console/sign-in")
        return self.post("/console/sign-in", {"email": self.email, "password": password} | fields)


def cookies(answer: Answer) -> dict[str, str]:
    """Return the values of the cookies that a response sets."""
    pairs = (header.partition(";")[0] for header in answer.headers.get("Set-Cookie", []))
    return dict(pair.split("=", 1) for pair in pairs)


def begun(email: str, password: str = PASSWORD, *, visitor: str = "v", browser: str = "") -> str:
    """Sign in without HTTP, and return the session's token."""
    fields = {"email": email, "password": password, "browser": browser}
    visiting = VisitorPrincipal(visitor=visitor)
    reply = invoke(REGISTRY["sign_in"], visiting, lambda: fields, request_id="r")
    token: str = json.loads(reply.body)["data"]["token"]
    return token


def person(owner: Owner) -> Person:
    """Return the owner of a workspace, signed in."""
    return Person(accounts.get(owner.workspace.owner_id).email, owner.start_session())


HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{733*733}}"
"""The name of every record that has one."""
BROWSER = f"Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0 {HOSTILE}"
ZONE = "Asia/Vladivostok"
"""This zone is ten hours ahead of UTC all year."""


EVENT = "evt_1"
"""The event that a workspace's webhook has failed to deliver."""
PHONE = "+74951234567"
PROMPT = "You are a bakery. Rye bread costs 120 rubles, and is baked at eight every morning."


class Place(Ids):
    """A workspace with an API key, a private bot with a key and a source, a webhook and an app.

    It has a service of one resource, with hours, time off and a closed day. ``reset`` is the token
    of a link for a new password of its owner, ``sign_up`` that of a link of a newcomer. It has one
    record of each other noun that a page is about, from the example of the operation that creates
    it.

    All records with a text have hostile names. The webhook has an event to which its receiver gave
    a hostile reply. ``member`` is the account of a member. ``invitation`` is the token of an
    invitation. In a ``World``, it invites the owner to the other workspace.
    """

    @property
    def path(self) -> str:
        """The workspace's path in the console."""
        return f"/console/w/{self.slug}"

    def path_of(self, route: str) -> str:
        """Return the path of one of the workspace's pages."""
        return route.format(**self.values_of(route))

    def values_of(self, route: str) -> dict[str, str]:
        """Return the values of the variables in a route."""
        api_key = self.bot if route.startswith(BOT) else self.key
        return vars(self) | {
            "workspace": self.slug,
            "id": api_key,
            "key": self.bot_key,
            "proof": self.proof,
        }

    @property
    def proof(self) -> str:
        """The token by which the owner proves the address of the account."""
        owner = accounts.get(workspaces.get(self.workspace_id).owner_id)
        return emails.proof_page_url(owner).rpartition("/")[2]

    def filled(self, fields: dict[str, str]) -> dict[str, str]:
        """Return the fields of a form, with this workspace's id for a value such as ``{page}``."""
        return {
            name: getattr(self, value[1:-1]) if value.startswith("{") else value
            for name, value in fields.items()
        }

    @classmethod
    def made_by(cls, email: str, name: str = HOSTILE) -> "Place":
        """Create a workspace that belongs to an account."""
        workspace = call_operator("create_workspace", owner=email, name=name, timezone=ZONE)
        home = workspace["workspaceId"]
        who = accounts.require_by_email(email).id

        def call(operation: str, /, **arguments: Any) -> Any:
            return call_console(home, operation, account_id=who, **arguments)

        key = call("create_key", name=name, scopes=["projects:read", "agents:write"])
        agent = {"name": name[:100], "systemPrompt": PROMPT, "model": "demo"}
        bot = call("create_agent", **agent, isPrivate=True)["agent"]["id"]
        bot_key = call("create_bot_key", agentId=bot, name=name)
        source = call("add_knowledge", id=bot, title=name, text=PROMPT)["source"]["id"]
        url = f"https://bakery.example/events?name={quote(name)}"
        webhook = call("create_webhook", url=url, events=["client.erased"])["webhook"]["id"]
        delivery = deliveries.row(
            home,
            webhook_id=webhook,
            event_id=EVENT,
            type="lead.created",
            record_id=source,
            occurred_at=clock.now(),
            attempts=2,
            status=500,
            milliseconds=1_234,
            reply=name,
        )
        delivery.state, delivery.o1 = deliveries.FAILED, None
        run_unit(home, None, lambda unit: unit.create(delivery))
        phone = {"name": "phone", "label": name, "type": "phone", "required": True}
        form = FORMS.new(home, title=name, fields=[phone])
        run_unit(home, None, lambda unit: unit.create(form))
        client, dialog = _client(home, name), _dialog(home, bot, name)
        lead = _lead(home, form.id, client, name)
        file = call_operator(
            "add_file", workspaceId=home, name=f"{name[:100]}.txt", folder="F", content="aGk="
        )["file"]["id"]
        top_up(who, 1_000_000)
        bookable = _bookable_service(call, name)
        call("set_booking_page", isOn=True, phone=name[:50], offer=[bookable["service"]])
        call("admit_assistants", isOn=True, orderFormId=form.id)
        sites = _edited_site(Owner(workspaces.get(home)).api(), name)
        place = cls(
            workspace_id=home,
            slug=workspace["slug"],
            key=key["keyId"],
            token=key["token"],
            bot=bot,
            bot_key=bot_key["keyId"],
            bot_token=bot_key["token"],
            source=source,
            webhook=webhook,
            client=client,
            connection=connect(workspaces.get(home), clientName=name[:100]).id,
            lead=lead,
            dialog=dialog,
            member=who,
            form=form.id,
            file=file,
            **_payment(home, who, bookable["booking"]),
            invitation=_lasting_invitation(home, f"new-{home.lower()}@example.com"),
            reset=_lasting_reset(email),
            sign_up=_lasting_sign_up(f"newcomer-{home.lower()}@example.com"),
            consent="terms",
            **sites,
            **bookable,
        )
        return place.completed(_HostileRecipes(call, name))

    def completed(self, recipes: Recipes) -> "Place":
        """Return the place with a record of each other noun that a page is about."""
        others = _VARIABLES - self.values_of("").keys()
        return self.changed(**{noun: recipes.record(noun.upper())["id"] for noun in others})

    def changed(self, **values: str) -> "Place":
        """Return the place with other values."""
        return Place(**vars(self) | values)


_VARIABLES = {
    variable
    for route, page in ROUTES.items()
    if not page.admin
    for variable in re.findall(r"{(\w+)}", route)
}
"""The variables of routes. A variable stands for the id of a record."""


class _HostileRecipes(Recipes):
    """Records in whose examples each text is replaced by a name."""

    differences: ClassVar = {"create_product": {"categoryId": None}}

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        super().__init__(call)
        self._name = name

    def arguments(self, name: str) -> dict[str, Any]:
        fields = REGISTRY[name].input_schema["properties"]
        example = REGISTRY[name].example or {}
        return super().arguments(name) | {
            field: self._name[: fields[field].get("maxLength")]
            for field, value in example.items()
            if isinstance(value, str) and not words_in(value) and is_text(fields[field])
        }


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a field takes any text, as its JSON Schema says."""
    return "string" in schema.get("type", "") and not {"enum", "format", "pattern"} & schema.keys()


def _client(workspace_id: str, name: str) -> str:
    """Create a client of one lead that has this name, and return its id."""
    client = new_client(
        workspace_id,
        name=name[:200],
        leads_count=1,
        bookings_count=0,
        phone=PHONE,
        tags=[name[:50]],
        notes=name,
    )
    run_unit(workspace_id, None, lambda unit: unit.create(client))
    return str(client.id)


def _lead(workspace_id: str, form_id: str, client_id: str, name: str) -> str:
    """Create a lead of a client that has this name, and return its id."""
    source = {"name": "direct", "page": f"https://bakery.example/{name}", "referrer": None}
    lead = LEADS.new(
        workspace_id,
        status="new",
        form_id=form_id,
        client_id=client_id,
        name=name,
        phone=PHONE,
        tags=[name[:50]],
        notes=name,
        data={"phone": PHONE, "message": name},
        source=source,
        source_name="direct",
        day="2026-01-01",
    )
    run_unit(workspace_id, None, lambda unit: unit.create(lead))
    return str(lead.id)


def _dialog(workspace_id: str, bot: str, name: str) -> str:
    """Create a dialog in which the visitor wrote one message, and return its id."""
    now = clock.now()
    dialog = DIALOGS.new(
        workspace_id,
        agent_id=bot,
        channel="widget",
        words=name,
        page_url=f"https://bakery.example/{name}",
        handover_at=now,
        handover_reason=name,
        last_number=2,
        messages_count=2,
        last_message_at=now,
    )

    def stage(unit: UnitOfWork) -> None:
        unit.create(dialog)
        messages.stage_exchange(
            unit,
            dialog.id,
            1,
            name,
            channel="widget",
            session_hash="-",
            input_tokens=1,
            sources=[],
        )

    run_unit(workspace_id, None, stage)
    return str(dialog.id)


def invite(workspace_id: str, email: str, role: str = "member") -> str:
    """Invite a user in the name of the owner, and return the token of the link."""
    invitation = call_operator("invite_member", workspaceId=workspace_id, email=email, role=role)
    url: str = invitation["url"]
    return url.rpartition("/")[2]


def _bookable_service(call: Callable[..., Any], name: str) -> dict[str, str]:
    """Create a service that is booked.

    Its resource has hours, a special date, time off and a closed day.
    """
    service = call("create_service", name=name, durationMin=60, price=150_000, tags=[name[:30]])
    service_id = service["service"]["id"]
    staff = call("create_resource", name=name, description=name, serviceIds=[service_id])
    staff_id = staff["resource"]["id"]
    week = {"weekdays": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "18:00"}
    holiday = {"date": "2036-01-01", "intervals": []}
    call("set_availability", resourceId=staff_id, rules=[week, holiday])
    for of in ({"resourceId": staff_id}, {}):
        call("create_time_off", startAt="2036-05-01", endAt="2036-05-09", reason=name, **of)
    booking = call(
        "create_booking",
        serviceId=service_id,
        startAt="2027-01-18T10:00",
        ignoreSchedule=True,
        client={"name": name, "phone": "+74951234567"},
        notes=name,
    )
    return {"service": service_id, "staff": staff_id, "booking": booking["booking"]["id"]}


def _payment(workspace_id: str, account_id: str, booking_id: str) -> dict[str, str]:
    """Set up payments, pay the booking, and return the ids of payment and former account."""
    ids = record_payments(workspace_id, account_id, booking_id)
    booking = BOOKINGS.require(workspace_id, record_id=booking_id)
    booking.payment_ids = [ids.payment]
    run_unit(workspace_id, None, lambda unit: unit.save(booking))
    return {"payment": ids.payment, "merchant": ids.former_merchant}


def _lasting_invitation(workspace_id: str, email: str) -> str:
    """Create an invitation that is valid for years, because tests use this world much later."""
    with patch.object(invitations, "LIFE", timedelta(days=3650)):
        return invite(workspace_id, email)


def reset_link(email: str) -> str:
    """Request a new password without an e-mail, and return the token of the link."""
    token = reset_links.token(new_id())
    row = password_resets.row(token, address_hash=accounts.email_hash(email), language="en")
    run_unit(PLATFORM, None, lambda unit: unit.create(row))
    return token


def _lasting_reset(email: str) -> str:
    """Return a link for a new password that works for years, as the world's invitation does."""
    with patch.object(password_resets, "LIFE", timedelta(days=3650)):
        return reset_link(email)


def sign_up_link(email: str) -> str:
    """Ask to sign up without an e-mail, and return the token of the link."""
    token = sign_up_links.token(new_id())
    row = sign_ups.row(token, email=email, language="en", workspace_id=new_id())
    run_unit(PLATFORM, None, lambda unit: unit.create(row))
    return token


def _lasting_sign_up(email: str) -> str:
    """Return a link to sign up that works for years, as the world's invitation does."""
    with patch.object(sign_ups, "LIFE", timedelta(days=3650)):
        return sign_up_link(email)


def _edited_site(api: Api, name: str) -> dict[str, str]:
    """Create a site with a page and a saved version, and delete another site and another page."""

    def new_site() -> str:
        site: str = api.post("/api/projects/create", {"title": name})["project"]["id"]
        return site

    def new_page() -> str:
        page: str = api.post("/api/pages/create", {"projectId": site, "title": name})["page"]["id"]
        return page

    site, gone = new_site(), new_site()
    page, deleted = new_page(), new_page()
    long = timedelta(days=3650)  # Tests use this world long after the time at which it was made.
    with (
        patch.object(deletion, "KEPT_AFTER_DELETION", long),
        patch.object(page_deletion, "KEPT_AFTER_DELETION", long),
    ):
        api.post("/api/projects/delete", {"id": gone})
        api.post("/api/pages/delete", {"id": deleted, "confirm": True})
    # The version is one that was on the page for a while, so it is kept for longer than a day.
    hour_ago = clock.now() - timedelta(hours=1)
    with clock.using(lambda: hour_ago):
        api.post("/api/pages/save-html", {"id": page, "html": name})
    api.post("/api/pages/save-html", {"id": page, "html": f"{name}\n<p>"})
    (version,) = api.get(f"/api/pages/{page}/versions")["versions"]
    return {
        "site": site,
        "deleted_site": gone,
        "page": page,
        "deleted_page": deleted,
        "version": version["id"],
    }


PEOPLE = ("boss", "manager", "member", "stranger")


@dataclass(frozen=True)
class World:
    """A workspace with a member in each role, and another account with its own workspace.

    The members are signed in. ``tokens`` has the tokens of sessions that no test uses yet.
    """

    here: Place
    there: Place
    tokens: dict[str, str] = field(default_factory=dict)
    signed_in_at: datetime = field(default_factory=clock.now)

    @classmethod
    def create(cls) -> "World":
        """Create both workspaces and their members."""
        for name in PEOPLE:
            email = f"{name}@example.com"
            call_operator("create_account", email=email, password=PASSWORD, name=name + HOSTILE)
        here, there = Place.made_by("boss@example.com"), Place.made_by("stranger@example.com")
        for role in ("manager", "member"):
            who = {"email": f"{role}@example.com", "role": role}
            call_operator("add_member", workspaceId=here.workspace_id, **who)
        email = "colleague@example.com"
        call_operator("create_account", email=email, password=PASSWORD, name=f"colleague{HOSTILE}")
        call_operator("add_member", workspaceId=there.workspace_id, email=email)
        here = here.changed(
            member=accounts.require_by_email("member@example.com").id,
            invitation=_lasting_invitation(there.workspace_id, "boss@example.com"),
        )
        return cls(here, there.changed(member=accounts.require_by_email(email).id))

    def sign_in_all(self) -> "World":
        """Return the world after its members have signed in."""
        tokens = {name: begun(f"{name}@example.com", browser=BROWSER) for name in PEOPLE}
        return replace(self, tokens=tokens)

    def person(self, name: str) -> Person:
        """Return a signed-in user: ``boss``, ``manager``, ``member`` or ``stranger``.

        Each call returns another session, as in another browser. The first session of each user was
        created with the world. It is used unless the test has moved the clock.
        """
        email, token = f"{name}@example.com", self.tokens.pop(name, None)
        if token is None or abs(clock.now() - self.signed_in_at) > timedelta(hours=1):
            token = begun(email, browser=BROWSER)
        return Person(email, token)
