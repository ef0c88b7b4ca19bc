"""Records that a select or ticks offer: all of them, or the first ones and a search for the others.

The chosen records are offered in any case. A form has a field beside the control, whose text
searches names; the search needs no script, and keeps what was typed into the form.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from chalicelib.core.errors import NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest

# Records that a control offers at once. ``finder`` in ``console/parts.html`` says that there are
# more.
MAX_CHOICES = 50
# Name of the buttons that search, and the beginning of the names of the fields that they read.
SEARCH = "find"
Record = dict[str, Any]


class Offer(NamedTuple):
    """The records that a control offers."""

    control: str
    records: list[Record]
    total: int  # that match ``query``
    query: str  # text of the search

    @property
    def searchable(self) -> bool:
        # The control lacks records.
        return bool(self.query) or self.total > MAX_CHOICES

    @property
    def shown(self) -> int:
        """Number of records that match the search and are offered."""
        return min(self.total, MAX_CHOICES)

    @property
    def is_only(self) -> bool:
        """Whether there is nothing to choose: at most one record, and no other to be found."""
        return len(self.records) < 2 and not self.searchable  # noqa: PLR2004

    @property
    def names(self) -> dict[str, str]:
        return {record["id"]: record["name"] for record in self.records}


@dataclass(frozen=True)
class Choices:
    """The operations that list the records of a kind, and get one."""

    operation: str
    listed_as: str
    get: str
    got_as: str
    search: str = "q"  # argument that searches names
    label: str = "name"  # field of the name
    id: str = "id"

    def offer(
        self,
        request: ConsoleRequest,
        control: str,
        chosen: Iterable[str] = (),
        **arguments: Any,  # noqa: ANN401  of the operation
    ) -> Offer:
        """Return what a control offers, the chosen records that it lacks first, with a ``name``.

        A member who may not list the records is offered none.
        """
        if not request.current_membership.may(self.operation):
            return Offer(control, [], 0, "")
        query = _typed(request, f"{SEARCH}-{control}")[:200]
        if query:
            arguments[self.search] = query
        answer = request.call(self.operation, size=MAX_CHOICES, **arguments)
        listed = answer[self.listed_as]
        total = answer.get("total", answer.get("pagination", {}).get("total"))
        found = []
        if query or total > len(listed):
            listed_ids = {record["id"] for record in listed}
            missing = (one for one in dict.fromkeys(chosen) if one and one not in listed_ids)
            found = [record for one in missing if (record := self._find(request, one))]
            if "status" in arguments:
                found = [record for record in found if record["status"] == arguments["status"]]
        records = [{**record, "name": record[self.label]} for record in [*found, *listed]]
        return Offer(control, records, total, query)

    def names(self, request: ConsoleRequest) -> Mapping[str, str]:
        # Each name is read when it is looked up.
        return _Names(self, request)

    def name_of(self, request: ConsoleRequest, record_id: str) -> str | None:
        record = self._find(request, record_id)
        return str(record[self.label]) if record else None

    def _find(self, request: ConsoleRequest, record_id: str) -> Record | None:
        try:
            record: Record = request.call(self.get, **{self.id: record_id})[self.got_as]
        except NotFoundError:
            return None
        return record


class _Names(dict[str, str]):
    """Names by id, as ``Field.names`` returns them."""

    def __init__(self, choices: Choices, request: ConsoleRequest) -> None:
        super().__init__()
        self._choices, self._request = choices, request

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401  as dict
        if key and key not in self:
            self[key] = self._choices.name_of(self._request, key) or default
        return self[key] if key else default


def is_search(request: ConsoleRequest) -> bool:
    """Whether a submitted form only searches for records to choose from."""
    return SEARCH in request.form or any(
        name.startswith(f"{SEARCH}-") and any(map(str.strip, values))
        for name, values in request.form.items()
    )


def _typed(request: ConsoleRequest, name: str) -> str:
    is_form = request.http.method == "POST"
    return (request.form_value(name) if is_form else request.query_value(name)).strip()


SERVICES = Choices("list_services", "services", "get_service", "service")
STAFF = Choices("list_resources", "resources", "get_resource", "resource")
FORMS = Choices("list_forms", "forms", "get_form", "form", label="title")
SITES = Choices(
    *("list_sites", "projects", "list_deleted_pages", "project"),
    search="search",
    label="title",
    id="projectId",
)
