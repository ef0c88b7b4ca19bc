"""Stored files under ``chalice local``: what the edge does from the bucket on AWS (contract)."""

import re
from urllib.parse import unquote

from chalicelib.core.errors import AppError, ForbiddenError, MethodNotAllowedError, NotFoundError
from chalicelib.gateways.object_store import UPLOAD_PATH, FolderStore, object_store
from chalicelib.rules import file_types, stored_files
from chalicelib.transports.http import HttpRequest, HttpResponse, failure, handle
from chalicelib.transports.local import RequestHandler

FILES = "files/"
_ADDRESS = re.compile(r"files/[\w-]{48}/(thumbnail/)?[a-z0-9-]{1,80}(\.[a-z0-9-]{1,10})?", re.ASCII)
"""What ``flows.rehosting`` gives; no other object of the store is public."""
MAX_UPLOAD_BYTES = 20_000_000


def handle_early(handler: RequestHandler) -> bool:
    """Answer a request for a stored file, or a signed upload; leave the rest to the ``App``."""
    path = unquote(handler.path.partition("?")[0]).removeprefix("/")
    if not path.startswith(FILES):
        return False
    request = HttpRequest(handler.command, f"/{FILES}", {})
    try:
        response = _response(handler, path)
    except AppError as error:
        refused = failure(error, request.request_id)
        response = handle(request, lambda _: refused)
    handler.respond(response)
    return True


def _response(handler: RequestHandler, path: str) -> HttpResponse:
    if path.startswith(UPLOAD_PATH):
        return _upload(handler, path.removeprefix(UPLOAD_PATH))
    if handler.command not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("Files are read with GET.", headers={"Allow": "GET, HEAD"})
    body = object_store().get(path) if _ADDRESS.fullmatch(path) else None
    if body is None:
        raise NotFoundError("No such file.")
    return HttpResponse(200, body, stored_files.headers(file_types.sniff(body)))


def _upload(handler: RequestHandler, token: str) -> HttpResponse:
    """Store a signed upload, as S3 does behind its presigned URL."""
    if handler.command != "PUT":
        raise MethodNotAllowedError("Uploads are sent with PUT.", headers={"Allow": "PUT"})
    body = handler.read_body(MAX_UPLOAD_BYTES)
    store = object_store()
    if not isinstance(store, FolderStore) or not store.put_upload(token, body):
        msg = "This upload URL is not valid, has expired, or was made for another size."
        raise ForbiddenError(msg)
    return HttpResponse(200, b"")
