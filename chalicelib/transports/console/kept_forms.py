"""Forms that arrived after their session had ended, and are offered again after signing in.

The sign-in form carries the fields of the former form. Once the user has signed in, a page shows
the typed values, with a button that sends them under the new session.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from chalicelib.transports.console.console_request import (
    CODE_FIELD,
    MAX_FIELDS,
    PASSWORD_FIELD,
    SEEN,
    ConsoleRequest,
)
from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from chalicelib.transports.http import HttpRequest

PATH_FIELD, FIELDS_FIELD = "kept_path", "kept_fields"
# Fields that no page shows again. The user types them into the form that is sent again.
SECRETS = frozenset({"secret", CODE_FIELD, PASSWORD_FIELD, "current", "password"})
_HIDDEN = frozenset({"csrf", "once", "ifVersion", SEEN})  # Fields that users do not type.
_SEGMENT = "[A-Za-z0-9_-]+"


class KeptForm(NamedTuple):
    """A form of a workspace's page, with the path that it was sent to and its fields."""

    path: str
    fields: list[tuple[str, str]]

    @property
    def encoded(self) -> str:
        """The fields as one text, for a hidden field."""
        return urlencode(self.fields)

    @property
    def visible_values(self) -> list[str]:
        return [value for name, value in self.fields if value.strip() and name not in _HIDDEN]


def from_request(request: HttpRequest) -> KeptForm | None:
    """Return the form of a request, without its token and secrets; None outside a workspace."""
    if not request.route.startswith(WORKSPACE):
        return None
    path = request.route
    for name, value in request.path.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return _parse_form(path, encoded=urlencode(ConsoleRequest(request, "").form, doseq=True))


def from_sign_in(request: ConsoleRequest) -> KeptForm | None:
    """Return the form that the sign-in form carries, or None if its path accepts no forms."""
    path = request.form_value(PATH_FIELD)
    accepted = (route for route, page in ROUTES.items() if page.post and WORKSPACE in route)
    if not any(re.fullmatch(re.sub(r"{\w+}", _SEGMENT, pattern), path) for pattern in accepted):
        return None
    return _parse_form(path, encoded=request.form_value(FIELDS_FIELD))


def _parse_form(path: str, *, encoded: str) -> KeptForm | None:
    try:
        fields = parse_qsl(encoded, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    dropped = SECRETS | {"csrf"}
    return KeptForm(path, [(name, value) for name, value in fields if name not in dropped])
