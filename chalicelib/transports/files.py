"""Redirect ``/files/…`` to the bucket, on a stage without an edge.

Behind an edge, CloudFront reads the files from the bucket. Locally, the development server does.
"""

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.files.rules import stored_files
from chalicelib.gateways.object_store import object_store
from chalicelib.transports.http import HttpRequest, HttpResponse

VALID_SECONDS = 900
_HEADERS = {
    # Shorter than the URL is valid.
    "Cache-Control": "private, max-age=600",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


def serve(request: HttpRequest) -> HttpResponse:
    """Redirect to a public file in the bucket, or raise NotFoundError."""
    folder = "thumbnail/" if "/thumbnail/" in request.route else ""
    path = f"{request.path['folder']}/{folder}{request.path['name']}"
    if not stored_files.PATH.fullmatch(path):
        raise NotFoundError("This file does not exist.", key="file")
    url = object_store().download_url(f"files/{path}", VALID_SECONDS)
    return HttpResponse(302, b"", {**_HEADERS, "Location": url})
