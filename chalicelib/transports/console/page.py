"""A page of the console, with the handlers of a path and the required rights."""

from typing import Any, NamedTuple

from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy

# A handler. Its argument is the console's request, whose module imports the routes.
View = Lazy[[Any], HttpResponse]

MAX_FORM_BYTES = 64_000
MAX_UPLOAD_BYTES = 4_400_000  # Size limit of a form with files. Lambda accepts 6 MB, in base64.


class Page(NamedTuple):
    """Handlers of a path, for GET and POST."""

    get: View | None = None
    post: View | None = None
    shows: str = ""  # the operation that the page is for; members who may not call it are refused
    posts: str = ""  # the same for the form
    instead: str = ""  # where such members are led, a path within the workspace
    guest: bool = False  # open without signing in
    signs_out: bool = False  # succeeds even if the session has already ended
    admin: bool = False  # for ADMIN accounts
    max_bytes: int = MAX_FORM_BYTES  # of a form
