"""Functions that upload and list files over REST, and read the object store."""

import base64
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image

from chalicelib.core.settings import settings
from chalicelib.domains.files.store import files
from chalicelib.gateways.object_store import FolderStore, object_store
from tests.conftest import Api, Owner

LIST, FOLDERS, UPLOAD, DELETE = (
    "/api/files/list",
    "/api/file-folders",
    "/api/files/upload",
    "/api/files/delete",
)


UPDATE, FOLDER_UPDATE, FOLDER_DELETE = (
    "/api/files/update",
    "/api/file-folders/update",
    "/api/file-folders/delete",
)


ANNOUNCE, COMPLETE = "/api/files/uploads/create", "/api/files/uploads/complete"


def upload(api: Api, name: str = "a.txt", body: bytes = b"hello", **more: Any) -> Any:
    content = base64.b64encode(body).decode()
    return api.post(UPLOAD, {"name": name, "content": content, **more})["file"]


def folder(api: Api, name: str, **more: Any) -> Any:
    return api.post(FOLDERS, {"name": name, **more})["folder"]


def list_files(api: Api, **query: Any) -> Any:
    return api.get(f"{LIST}?{urlencode(query)}")


def announce(api: Api, size: int, name: str = "big.bin", **more: Any) -> Any:
    return api.post(ANNOUNCE, {"name": name, "size": size, **more})["upload"]


def store() -> FolderStore:
    store = object_store()
    assert isinstance(store, FolderStore)
    return store


def put(announced: Any, body: bytes) -> bool:
    return store().put_upload(announced["url"].rpartition("/")[2], body)


def key(url: str) -> str:
    return url.removeprefix(f"{settings().public_url}/")


def list_stored_files() -> set[str]:
    """Return the keys of all objects in the store."""
    root = Path(settings().object_store.removeprefix("file://"))
    paths = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return paths - {".upload-secret", ".master-key"}


def used(owner: Owner) -> int:
    return files.used_bytes(owner.workspace.id)


def photo(kind: str = "JPEG", size: tuple[int, int] = (640, 480), mode: str = "RGB") -> bytes:
    body = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "taken at home, 55.75 N 37.61 E"
    Image.effect_noise(size, 60).convert(mode).save(body, kind, exif=exif)
    return body.getvalue()
