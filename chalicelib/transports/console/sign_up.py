"""The pages on which people make an account and workspaces, if sign-up is open.

One page requests a link, and the other is behind the link. Neither reveals whether an address has
an account, and opening a page changes nothing.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pydantic.alias_generators import to_camel

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConflictError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.identity.flows import sign_up_links
from chalicelib.domains.identity.rules.consent_texts import CONSENTS, REQUIRED, VERSIONS
from chalicelib.lib import phones, zoned_times
from chalicelib.transports.console import access, sign_in
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.routes import PREFIX, SIGN_UP
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import render, texts

_REGION = re.compile(r"(?:^|,)\s*[a-z]{2,3}(?:-[a-z]{4})?-([a-z]{2})\b", re.ASCII | re.IGNORECASE)


class Place(NamedTuple):
    """A choice of the list of countries: a country, or a part of one with a clock of its own."""

    value: str  # the code of the country, and of a part its zone
    label: str


def index(request: ConsoleRequest) -> HttpResponse:
    """Show the form in which a person types an e-mail address."""
    return _request_page(request, 200)


def send(request: ConsoleRequest) -> HttpResponse:
    """Request a link. The response is the same for all addresses."""
    try:
        _drop_session(request).call(
            "request_sign_up", email=request.form_value("email"), language=request.language
        )
    except AppError as error:
        return _request_page(request, error.status, request.problem(error))
    language = {"lang": request.http.language} if request.http.language else {}
    return redirect(f"{SIGN_UP}?{urlencode({'done': 'sign_up_requested', **language})}")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the form in which a person types what an account and a workspace need."""
    return _link_page(request, 200)


def save(request: ConsoleRequest) -> HttpResponse:
    """Make the account and its workspace. The person is signed in, and sees the first steps."""
    country, _, zone = request.form_value("country").partition(" ")
    try:
        signed_up = _drop_session(request).call(
            "sign_up",
            token=request.http.path["sign_up"],
            name=request.form_value("name"),
            password=request.form_value("password"),
            workspace=request.form_value("workspace"),
            country=country,
            timezone=zone or None,
            terms=bool(request.form_value("terms")),
            personalData=bool(request.form_value("personalData")),
            advertising=bool(request.form_value("advertising")),
            browser=request.http.headers.get("user-agent", "")[:200],
            language=request.language,
        )
    except NotFoundError:
        return _gone(request)
    except ConflictError:  # The address has an account since the page was opened.
        return _link_page(request, ConflictError.status)
    except AppError as error:
        return _link_page(request, error.status, _problem(request, error))
    if request.account is not None:
        sign_in.end_session(request, request.session_id)
    start = f"{PREFIX}/w/{signed_up['slug']}?done=signed_up"
    return redirect(start, access.start_cookies(request, signed_up))


def show_text(request: ConsoleRequest) -> HttpResponse:
    """Show a text to which a person agrees."""
    name = request.http.path["consent"]
    if name not in CONSENTS:
        raise NotFoundError("This text does not exist.", key="page")
    return request.page(
        "consent_text",
        consent=name,
        version=VERSIONS[name],
    )


def new_workspace(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a further workspace."""
    return _workspace_page(request, 200)


def create_workspace(request: ConsoleRequest) -> HttpResponse:
    """Create a further workspace of the account, and open it."""
    country, _, zone = request.form_value("country").partition(" ")
    try:
        created = request.call_once(
            "add_workspace",
            name=request.form_value("name"),
            country=country,
            timezone=zone or None,
        )
    except AppError as error:
        return _workspace_page(request, error.status, _problem(request, error))
    return redirect(f"{PREFIX}/w/{created['slug']}?done=workspace_created")


def _drop_session(request: ConsoleRequest) -> ConsoleRequest:
    # The session may belong to another account.
    return ConsoleRequest(request.http, request.csrf)


def _request_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    return request.page(
        "sign_up",
        status,
        problem=problem,
        is_open=sign_up_links.is_open(),
        email=request.form_value("email"),
        language_query=request.query_with(lang=request.http.language),
    )


def _link_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    try:
        link = _drop_session(request).call("get_sign_up", token=request.http.path["sign_up"])
    except NotFoundError:
        return _gone(request)
    if link["hasAccount"]:
        # Without script, Back leads here after signing up.
        if request.account is not None and request.account.email == link["email"]:
            return redirect(PREFIX)
        return _gone(request)
    return request.page(
        "sign_up_link",
        status,
        problem=problem,
        link=link,
        path=request.path,
        typed={name: request.form_value(name) for name in ("name", "workspace")},
        ticked=[box for name in CONSENTS if (box := to_camel(name)) in request.form],
        consents=[(name, to_camel(name), name in REQUIRED) for name in CONSENTS],
        **_places(request),
    )


def _workspace_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    return request.page(
        "workspace_new",
        status,
        problem=problem,
        is_open=settings().is_sign_up_open,
        typed_name=request.form_value("name"),
        **_places(request),
    )


def _places(request: ConsoleRequest) -> dict[str, Any]:
    codes = settings().sign_up_countries or phones.countries()
    # Without a region, such as in ``en``, nobody knows the country.
    regions = [match.upper() for match in _REGION.findall(_accepted(request))]
    if request.language == "ru":
        regions.append("RU")
    first = next((code for code in regions if code in codes), "")
    if len(codes) == 1:
        (first,) = codes
    places: list[Place] = []
    own: list[Place] = []
    for code, name in texts.countries(request.language, codes):
        found = _places_of(request, code, name)
        places += found
        if code == first:
            own = found
    typed = request.form_value("country")
    # Russians live in the zone of Moscow mostly. Elsewhere the person chooses.
    likely = next((place.value for place in own if place.value.endswith("/Moscow")), "")
    chosen = typed or likely or (own[0].value if len(own) == 1 else "")
    return {"places": places, "own_places": own, "chosen": chosen, "is_typed": bool(typed)}


def _places_of(request: ConsoleRequest, code: str, name: str) -> list[Place]:
    zones = zoned_times.zones_that_differ().get(code, [])
    if len(zones) < 2:  # noqa: PLR2004  one clock, or none that the database knows
        return [Place(code, name)] if zones else []
    now = clock.now()
    offsets = sorted((texts.offset(now, zone), zone) for zone in zones)
    return [
        Place(
            f"{code} {zone}",
            f"{name}: {texts.city(request.language, zone)}, {texts.zone(offset)}",
        )
        for offset, zone in offsets
    ]


def _accepted(request: ConsoleRequest) -> str:
    header: str = request.http.headers.get("accept-language", "")
    return header[:200]


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    problem = request.problem(error)
    if "name" not in problem.fields or request.account is not None:
        return problem
    text = request.translate("wrong_person_name")
    return problem._replace(fields={**problem.fields, "name": text})


def _gone(request: ConsoleRequest) -> HttpResponse:
    return render.notice(
        request.http,
        404,
        icon="ban",
        title="reset_gone",
        about="sign_up_gone_about",
        link=(access.SIGN_IN, "sign_in"),
    )
