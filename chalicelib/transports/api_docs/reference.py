"""Serve the OpenAPI document, from the manifest or generated here."""

from functools import cache, lru_cache

from pydantic_core import from_json, to_json

from chalicelib.core import areas, manifest
from chalicelib.core.errors import ValidationError
from chalicelib.core.manifest import SERVER
from chalicelib.core.settings import settings
from chalicelib.transports.chat import chat_route
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, etag

# Ids that examples show in place of words such as ``PRODUCT_ID``. Empty unless the server's data is
# known. Local development fills in the ids of its demo, so that each example runs there unchanged.
EXAMPLE_IDS: dict[str, str] = {}
MAX_SHOWN = 100  # Maximum characters of a refused value in an error.


def openapi_json(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, or the areas of it that ``tags`` names, separated by commas.

    It is built once per process. Clients revalidate copies before use. Raises ValidationError for
    an unknown area.
    """
    names = {name.strip() for value in request.query.get("tags", ()) for name in value.split(",")}
    if not (chosen := names - {""}):
        return _response(document())
    known = [area.name for area in areas.AREAS]
    if unknown := sorted(chosen - {*known}):
        received = ", ".join(unknown)[:MAX_SHOWN]
        msg = f'expected areas from {", ".join(known)}, received "{received}"'
        raise ValidationError.of("tags", message=msg, key="unknown_value")
    return _response(_trimmed(document(), tuple(name for name in known if name in chosen)))


def document() -> bytes:
    """Return the OpenAPI document of this server as JSON."""
    return _document(settings().public_url, chat_url=settings().chat_url)


@lru_cache(maxsize=1)
def _document(base_url: str, *, chat_url: str) -> bytes:
    body = manifest.openapi() or _generate()
    if chat_url:
        operation = to_json(chat_route.PATH) + b':{"post":{'
        servers = to_json({"servers": [{"url": chat_url}]})[1:-1]
        body = body.replace(operation, operation + servers + b",")
        body = body.replace(f"{SERVER}{chat_route.PATH}".encode(), chat_route.url().encode())
    body = body.replace(SERVER.encode(), base_url.encode())
    for word, example_id in EXAMPLE_IDS.items():
        body = body.replace(to_json(word), to_json(example_id))
    return body


@cache
def _generate() -> bytes:
    from chalicelib.transports.api_docs import openapi  # it imports every operation

    return to_json(openapi.document())


@lru_cache(maxsize=8)
def _trimmed(body: bytes, names: tuple[str, ...]) -> bytes:
    from chalicelib.transports.api_docs.trimmed import trimmed  # few requests need it

    return to_json(trimmed(from_json(body), names))


@lru_cache(maxsize=8)
def _response(body: bytes) -> HttpResponse:
    headers = {"Content-Type": JSON_TYPE, "ETag": etag(body), "Cache-Control": "no-cache"}
    return HttpResponse(200, body, headers)
