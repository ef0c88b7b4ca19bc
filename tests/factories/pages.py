"""Functions that create, read and change pages over REST."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from chalicelib.core import settings as service_settings
from tests.conftest import Api, Owner, all_rows

LIST, CREATE, SAVE, UPDATE, DELETE = (
    f"/api/pages/{call}" for call in ("list", "create", "save-html", "update", "delete")
)


MIB = 2**20


def new_site(api: Api, title: str = "Bakery") -> str:
    site: str = api.post("/api/projects/create", {"title": title})["project"]["id"]
    return site


def create(api: Api, site: str, title: str = "Page", **fields: Any) -> Any:
    return api.post(CREATE, {"projectId": site, "title": title, **fields})["page"]


def update(api: Api, page: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": page["id"], **fields})["page"]


def save(api: Api, page: Any, html: str, **fields: Any) -> Any:
    return api.post(SAVE, {"id": page["id"], "html": html, **fields})["page"]


def record(page: Any) -> Any:
    """Return a page without its HTML and sections, as most responses show it."""
    return {name: value for name, value in page.items() if name not in {"html", "sections"}}


def delete(api: Api, page: Any) -> Any:
    return api.post(DELETE, {"id": page["id"], "confirm": True})


def read(api: Api, page: Any, **query: Any) -> Any:
    return api.get(f"/api/pages/{page['id']}?{urlencode(query)}")


def list_pages(api: Api, site: str) -> list[Any]:
    pages: list[Any] = api.get(f"{LIST}?projectId={site}")["pages"]
    return pages


def titles(api: Api, site: str) -> list[str]:
    return [page["title"] for page in list_pages(api, site)]


def homes(api: Api, site: str) -> list[str]:
    return [page["title"] for page in list_pages(api, site) if page["isHome"]]


def refused_field(api: Api, path: str, body: Any, status: int = 400) -> Any:
    """Send a value that must be refused for one field, and return that field's error."""
    answer = api.call_refused("POST", path, body)
    code = {400: "validation_error", 413: "payload_too_large"}[status]
    assert (answer.status, answer.data["code"]) == (status, code)
    (error,) = answer.data["errors"]
    assert error["field"] in answer.data["message"]
    return error


def objects(owner: Owner) -> list[bytes]:
    """Return the files that the object store holds for a workspace."""
    root = Path(service_settings.settings().object_store.removeprefix("file://"))
    return sorted(
        path.read_bytes() for path in (root / owner.workspace.id).rglob("*") if path.is_file()
    )


class Killed(BaseException):
    """The simulated end of a process."""

    @classmethod
    def now(cls, *_: object) -> None:
        raise cls


def rows_of(owner: Owner, noun: str) -> list[Any]:
    """Return a workspace's stored records of one type."""
    prefix = f"content/W#{owner.workspace.id}#{noun}/"
    return [row for key, row in all_rows().items() if key.startswith(prefix)]
