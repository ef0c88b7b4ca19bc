"""CPU time of a REST read, compared with Powertools for AWS Lambda and with plain Chalice.

All three run in turn in this process, with the same models, store and key look-up. Powertools is
installed in the environment of the tool server's peers, which is added to the end of ``sys.path``.
"""

import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from chalice.app import Chalice, Response

import app as our_app
from chalicelib.application.invoke import authorize
from chalicelib.core.operations import REGISTRY
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.sites.operations.sites import SiteList, SiteListQuery, SiteOut
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.listing.query import Query, ResultPage
from chalicelib.transports.auth import authenticate
from infra.bench import our_handler
from infra.bench.timing import cpu_ms_in_turns

ROOT = Path(__file__).parents[2]
PATH = "/api/projects/list"
QUERY = {"page": ["1"], "size": ["10"], "sortBy": ["title"], "sortDir": ["asc"]}
OURS = "ours"
Call = Callable[[dict[str, Any]], Any]


class Answer(SiteList):
    """A page of sites inside the envelope."""

    status: Literal[True] = True


class Envelope(Wire):
    """The envelope of every response."""

    data: Answer


def section() -> str:
    """Measure and return this section of the page."""
    handlers = {OURS: lambda event: our_app.app(event, None), **_peers()}
    with our_handler.stubs() as stubs:
        ten = _measured(handlers)
        stubs.enter_context(our_handler.page_of_sites(0))
        none = _measured(handlers)
    rows = [_row(name, (ten[name], none[name])) for name in handlers]
    return f"""\
## REST

CPU time of a warm `GET {PATH}` in the Lambda handler, from the API Gateway event to the response,
without a database. Each handler looks up the key, checks its scope, validates the query and builds
the answer from records through pydantic models. The peers use our models and functions. Powertools
runs with `enable_validation`. Only ours also sets a deadline, warns about unknown fields and logs;
log lines are not written. The handlers run in turn, and ratios are medians of the rounds.

| handler | version | ten sites | times ours | none | times ours |
|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def _row(name: str, measured: tuple[tuple[float, float], ...]) -> str:
    package, _, _ = name.partition(" (")
    cells = [name, "" if name == OURS else version(package)]
    for milliseconds, ratio in measured:
        cells += [f"{milliseconds:.3f} ms", f"{ratio:.2f}"]
    return f"| {' | '.join(cells)} |"


def _measured(handlers: Mapping[str, Call]) -> dict[str, tuple[float, float]]:
    """Return the CPU milliseconds of each handler, and their ratio to ours."""
    answers = {name: json.loads(handle(_event())["body"]) for name, handle in handlers.items()}
    if any(answer != answers[OURS] for answer in answers.values()):
        raise RuntimeError("the handlers return different answers")
    return cpu_ms_in_turns({name: _add_event(handle) for name, handle in handlers.items()})


def _add_event(handle: Call) -> Callable[[], object]:
    return lambda: handle(_event())


def _event() -> dict[str, Any]:
    return {
        **our_handler.event("GET", path=PATH, body=None),
        "path": PATH,
        "httpMethod": "GET",
        "queryStringParameters": {name: values[-1] for name, values in QUERY.items()},
        "multiValueQueryStringParameters": QUERY,
    }


def _peers() -> dict[str, Call]:
    return {
        "aws-lambda-powertools (APIGatewayRestResolver)": powertools(),
        "chalice (plain)": plain_chalice(),
    }


def powertools() -> Call:
    """Return a handler built with Powertools.

    Raises:
        click.ClickException: Powertools is not installed.
    """
    folders = list((ROOT / "build" / "bench" / "lib").glob("python*/site-packages"))
    if not folders:
        raise click.ClickException("build/bench is missing. Run make bench, which installs it.")
    sys.path += map(str, folders)
    event_handler = import_module("aws_lambda_powertools.event_handler")
    params = import_module("aws_lambda_powertools.event_handler.openapi.params")
    resolver = event_handler.APIGatewayRestResolver(enable_validation=True)

    def list_sites(args: Annotated[SiteListQuery, params.Query()]) -> Envelope:
        return _answer(resolver.current_event.headers, args)

    resolver.get(PATH)(list_sites)
    return lambda event: resolver.resolve(event, None)


def plain_chalice() -> Call:
    """Return a handler built with Chalice, with validation and serialisation written by hand."""
    chalice = Chalice(app_name="bench", configure_logs=False)

    def list_sites() -> Response:
        request: Any = chalice.current_request
        args = SiteListQuery.model_validate(dict(request.query_params))
        body = _answer(request.headers, args).model_dump_json(by_alias=True)
        return Response(body, headers={"Content-Type": "application/json"})

    chalice.route(PATH)(list_sites)
    return lambda event: chalice(event, None)


def _answer(headers: Mapping[str, str], args: SiteListQuery) -> Envelope:
    """Authenticate, authorize, and return the same response as our ``list_sites``."""
    lower_case = {name.lower(): value for name, value in headers.items()}
    principal = authenticate(lower_case, "127.0.0.1")
    authorize(REGISTRY["list_sites"], principal)
    page: ResultPage[Any] = SITES.page(
        principal.workspace_id,
        Query(
            page=args.page,
            size=args.size,
            sort=args.sort_by,
            descending=args.sort_dir == "desc",
            filters={"status": args.status},
            search=args.search,
        ),
    )
    sites = [SiteOut.from_record(site) for site in page.records]
    return Envelope(data=Answer(projects=sites, **args.counted(page.total)))
