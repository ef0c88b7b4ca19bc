"""Stored files and signed uploads: what the edge and the bucket do on AWS (contract)."""

import re

from chalicelib.core.errors import ForbiddenError, MethodNotAllowedError, NotFoundError
from chalicelib.gateways.object_store import UPLOAD_PATH, FolderStore, object_store
from chalicelib.rules import stored_files
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.devserver.api_gateway import LocalRoute

_FILE = re.compile(r"[\w-]{48}/(thumbnail/)?[a-z0-9-]{1,80}(\.[a-z0-9-]{1,10})?", re.ASCII)
"""What ``flows.rehosting`` gives; no other object of the store is public."""
MAX_UPLOAD_BYTES = 20_000_000


def read(request: HttpRequest) -> HttpResponse:
    """Return a stored file."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("Files are read with GET.", headers={"Allow": "GET, HEAD"})
    path = request.path["proxy"]
    body = object_store().get(f"files/{path}") if _FILE.fullmatch(path) else None
    if body is None:
        raise NotFoundError("No such file.")
    return HttpResponse(200, body, stored_files.headers_of(body, path.rpartition("/")[2]))


def upload(request: HttpRequest) -> HttpResponse:
    """Store a signed upload, as S3 does behind its presigned URL."""
    if request.method != "PUT":
        raise MethodNotAllowedError("Uploads are sent with PUT.", headers={"Allow": "PUT"})
    store = object_store()
    if not isinstance(store, FolderStore) or not store.put_upload(
        request.path["proxy"], request.body
    ):
        msg = "This upload URL is not valid, has expired, or was made for another size."
        raise ForbiddenError(msg)
    return HttpResponse(200, b"")


ROUTES = (
    LocalRoute(f"/{UPLOAD_PATH}", upload, MAX_UPLOAD_BYTES),
    LocalRoute("/files/", read),
)
