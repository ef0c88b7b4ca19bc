"""A REST read's CPU time, beside Powertools for AWS Lambda and bare Chalice doing the same.

All three run in this process, with the same models, store and key look-up, in turns. Powertools is
installed separately, with the peers of the tool server; its modules are found there, after our own.
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

import app as ours_whole
from chalicelib.application.invoke import authorize
from chalicelib.core.operations import REGISTRY
from chalicelib.core.wire.schema import Pagination, Wire
from chalicelib.domains.sites.operations.sites import SiteList, SiteListQuery, SiteOut
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.listing.query import Query, ResultPage
from chalicelib.transports.auth import authenticate
from infra.bench import ours
from infra.bench.timing import beside

ROOT = Path(__file__).parents[2]
PATH = "/api/projects/list"
QUERY = {"page": ["1"], "size": ["10"], "sortBy": ["title"], "sortDir": ["asc"]}
OURS = "ours"
Call = Callable[[dict[str, Any]], Any]


class Answer(SiteList):
    """A page of sites as the envelope has it."""

    status: Literal[True] = True


class Envelope(Wire):
    """Every answer's wrapper."""

    data: Answer


def section() -> str:
    """Measure, and return the page's section."""
    handlers = {OURS: lambda event: ours_whole.app(event, None), **_peers()}
    with ours.stubs() as stubs:
        ten = _measured(handlers)
        stubs.enter_context(ours.page_of_sites(0))
        none = _measured(handlers)
    rows = [_row(name, (ten[name], none[name])) for name in handlers]
    return f"""\
## REST

CPU time of a warm `GET {PATH}` in the Lambda handler, from API Gateway's event to the response,
without a database: the key is looked up and its scope checked, the query validated, the answer made
of records through pydantic models. The peers do that with our own models and functions; Powertools
has `enable_validation` on. Ours also sets a deadline, warns of unknown fields and logs, the others
do not; no line is written. In turns, the median of the rounds' ratios.

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
    """Return each handler's milliseconds, and how often ours they are."""
    answers = {name: json.loads(handle(_event())["body"]) for name, handle in handlers.items()}
    if any(answer != answers[OURS] for answer in answers.values()):
        raise RuntimeError("the handlers do not answer the same")
    return beside({name: _calling(handle) for name, handle in handlers.items()})


def _calling(handle: Call) -> Callable[[], object]:
    return lambda: handle(_event())


def _event() -> dict[str, Any]:
    return {
        **ours.event("GET", PATH, None),
        "path": PATH,
        "httpMethod": "GET",
        "queryStringParameters": {name: values[-1] for name, values in QUERY.items()},
        "multiValueQueryStringParameters": QUERY,
    }


def _peers() -> dict[str, Call]:
    return {
        "aws-lambda-powertools (APIGatewayRestResolver)": powertools(),
        "chalice (bare)": bare_chalice(),
    }


def powertools() -> Call:
    """Return a handler that Powertools makes.

    Raises:
        click.ClickException: it is not installed.
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


def bare_chalice() -> Call:
    """Return a handler that Chalice makes, with what it lacks written by hand."""
    chalice = Chalice(app_name="bench", configure_logs=False)

    def list_sites() -> Response:
        request: Any = chalice.current_request
        args = SiteListQuery.model_validate(dict(request.query_params))
        body = _answer(request.headers, args).model_dump_json(by_alias=True)
        return Response(body, headers={"Content-Type": "application/json"})

    chalice.route(PATH)(list_sites)
    return lambda event: chalice(event, None)


def _answer(headers: Mapping[str, str], args: SiteListQuery) -> Envelope:
    """Do what ``list_sites`` of ours does, and what is done before it."""
    named = {name.lower(): value for name, value in headers.items()}
    principal = authenticate(named, "127.0.0.1")
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
    sites = [SiteOut.of(site) for site in page.records]
    where = Pagination(total=page.total, page=args.page, limit=args.size)
    return Envelope(data=Answer(projects=sites, pagination=where))
