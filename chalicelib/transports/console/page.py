"""A page of the console, with the handlers of a path and the required rights."""

from typing import Any, NamedTuple

from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy

View = Lazy[[Any], HttpResponse]
"""A handler. Its argument is the console's request, whose module imports the routes."""

MAX_FORM_BYTES = 64_000
MAX_UPLOAD_BYTES = 4_400_000
"""Size limit of a form with files. Lambda accepts 6 MB, in base64."""


class Page(NamedTuple):
    """Handlers of a path, for GET and POST.

    Visitors who are not signed in may open a ``guest`` page. Within a workspace, ``shows`` and
    ``posts`` are the operations that the page and its form are for: members who may not call them
    are refused. An ``admin`` page is for ADMIN accounts. A form that ``signs_out`` succeeds even if
    the session has already ended. ``max_bytes`` is the size limit of a form.
    """

    get: View | None = None
    post: View | None = None
    shows: str = ""
    posts: str = ""
    guest: bool = False
    signs_out: bool = False
    admin: bool = False
    max_bytes: int = MAX_FORM_BYTES
