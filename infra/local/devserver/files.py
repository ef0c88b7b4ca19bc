"""Serve stored files and accept signed uploads, as CloudFront and S3 do on AWS."""

import re

from chalicelib.core.errors import AppError, ForbiddenError, MethodNotAllowedError, NotFoundError
from chalicelib.domains.files.rules import stored_files
from chalicelib.gateways.object_store import DOWNLOAD_PATH, UPLOAD_PATH, FolderStore, object_store
from chalicelib.transports.http import HttpRequest, HttpResponse, etag
from infra.local.devserver.api_gateway import LocalRoute

MAX_UPLOAD_BYTES = 20_000_000


class RangeNotSatisfiableError(AppError):
    """The requested range contains none of the file's bytes."""

    status = 416
    code = "range_not_satisfiable"


def read(request: HttpRequest) -> HttpResponse:
    """Return a stored file, or one range of its bytes."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("Files are read with GET.", headers={"Allow": "GET, HEAD"})
    path = request.path["proxy"]
    body = object_store().get(f"files/{path}") if stored_files.PATH.fullmatch(path) else None
    if body is None:
        raise NotFoundError("No such file.")
    headers = {
        **stored_files.headers_for_file(body, path.rpartition("/")[2]),
        "ETag": etag(body, strong=True),
        "Accept-Ranges": "bytes",
    }
    byte_range = _wanted_range(request, headers["ETag"], len(body))
    if byte_range is None:
        return HttpResponse(200, body, headers)
    headers["Content-Range"] = f"bytes {byte_range.start}-{byte_range.stop - 1}/{len(body)}"
    return HttpResponse(206, body[byte_range.start : byte_range.stop], headers)


def _wanted_range(request: HttpRequest, tag: str, size: int) -> range | None:
    """Return the range of bytes that a request selects, or None for the whole file.

    Like S3, it supports one range. Several ranges or a malformed range return the whole file. With
    ``If-Range``, the client has a part of the file already and needs the whole file if that part is
    of another version (RFC 9110, 13.1.5). Files have no date to compare, so a date never matches.

    Raises:
        RangeNotSatisfiableError: the file has none of these bytes.
    """
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or request.headers.get("if-range", tag).strip() != tag:
        return None
    first, last = match[1], match[2]
    if first:
        byte_range = range(int(first), min(int(last or size), size - 1) + 1)
        # Such a range is invalid, so the header is ignored (RFC 9110, 14.1.1).
        if last and int(last) < int(first):
            return None
    else:
        byte_range = range(max(0, size - int(last)), size)
    if not byte_range:
        msg = (
            f"The file has {size:,} bytes, and none of them is in this range."
            " Request a range within the file."
        )
        raise RangeNotSatisfiableError(msg, headers={"Content-Range": f"bytes */{size}"})
    return byte_range


_RANGE = re.compile(r"bytes=(?=-?[0-9])([0-9]{0,18})-([0-9]{0,18})", re.IGNORECASE)


def upload(request: HttpRequest) -> HttpResponse:
    """Store a signed upload, like S3 behind a presigned URL."""
    if request.method != "PUT":
        raise MethodNotAllowedError("Uploads are sent with PUT.", headers={"Allow": "PUT"})
    store = object_store()
    if not isinstance(store, FolderStore) or not store.put_upload(
        request.path["proxy"], request.body
    ):
        msg = "This upload URL is not valid, has expired, or was made for a file of another size."
        raise ForbiddenError(msg)
    return HttpResponse(200, b"")


def download(request: HttpRequest) -> HttpResponse:
    """Return an object by a signed URL, like S3 by a presigned one."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowedError("Files are read with GET.", headers={"Allow": "GET, HEAD"})
    store = object_store()
    key = store.find_download(request.path["proxy"]) if isinstance(store, FolderStore) else None
    body = store.get(key) if key else None
    if body is None or key is None:
        raise ForbiddenError("This download URL is not valid, or has expired.")
    name = key.rpartition("/")[2]
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(200, body, headers)


ROUTES = (
    LocalRoute(f"/{DOWNLOAD_PATH}", download),
    LocalRoute(f"/{UPLOAD_PATH}", upload, MAX_UPLOAD_BYTES),
    LocalRoute("/files/", read),
)
