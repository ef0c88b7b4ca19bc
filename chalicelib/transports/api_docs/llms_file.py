"""``/llms.txt`` of the service: where a model finds its documents (llmstxt.org).

Sites and booking pages have files of their own, which describe a business
(``transports.web.discovery``).
"""

from collections.abc import Iterator

from chalicelib import SERVICE
from chalicelib.transports.api_docs import prose
from chalicelib.transports.api_docs.model import Reference

_SUMMARY = (
    "The API of a platform for small businesses and their sites: pages, products, online booking, "
    "forms, leads, clients and chat bots. Programs call it over REST, AI clients over MCP, and "
    "visitors chat with bots."
)


def text(reference: Reference) -> str:
    """Return the file."""
    return "\n".join(_lines(reference))


def _lines(reference: Reference) -> Iterator[str]:
    base = reference.base_url
    docs = f"{base}/api/docs"
    yield from (f"# {SERVICE}", "", f"> {_SUMMARY}", "")
    yield f"- Version {reference.version}. REST is below {base}/api, MCP is POST {base}/api/mcp."
    yield "- Calls need an API key: `Authorization: Bearer svc_live_…`. A user makes it in the"
    yield f"  console, {base}/console."
    yield '- Responses are `{"data": {"status": true, …}}`. Money is in kopecks (rubles / 100).'
    yield from ("", "## Guides", "")
    for guide in (prose.START, *prose.GUIDES):
        title = "Getting started" if guide is prose.START else guide.title
        yield f"- [{title}]({docs}/{guide.name}.md): {guide.about}"
    yield from ("", "## Operations", "")
    for area in reference.areas:
        yield f"- [{area.title}]({docs}/{area.name}.md): {area.description}"
    yield from ("", "## OpenAPI", "")
    yield f"- [OpenAPI 3.1]({base}/api/openapi.json): all operations in one document."
    names = ", ".join(f"`{area.name}`" for area in reference.areas)
    yield (
        f"- [Single areas]({base}/api/openapi.json?tags=products,crm): the document with the "
        f"operations of some areas. They are {names}."
    )
    yield from ("", "## Optional", "")
    yield f"- [{prose.CHANGELOG.title}]({docs}/changelog.md): {prose.CHANGELOG.about}"
    yield f"- [Blog]({base}/blog): news of the platform."
    yield ""
