"""Calls of operations with the demo's API key, and uploads of its files."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.transports.auth import authenticate

IMAGES = Path(__file__).with_name("images")


class Caller:
    """Calls operations with the rights of the demo key.

    ``password`` is the password of the demo's account.
    """

    def __init__(self, key: str, *, password: str = "") -> None:
        self.password = password
        self._principal = authenticate({"authorization": f"Bearer {key}"}, "")

    @property
    def workspace_id(self) -> str:
        """The workspace of the key."""
        return self._principal.workspace_id

    @property
    def is_admin(self) -> bool:
        """Whether the key may write the blog."""
        return self._principal.role == "admin"

    def __call__(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Call an operation and return the data of the envelope."""
        reply = invoke(
            REGISTRY[operation], self._principal, lambda: arguments, request_id="seed-demo"
        )
        data: dict[str, Any] = json.loads(reply.body)["data"]
        return data


class Folder:
    """A folder of files, or the root without an id.

    Missing contents are created on access.
    """

    def __init__(self, do: Caller, folder_id: str | None) -> None:
        self._do, self._id = do, folder_id
        listing = do("list_files", folderId=folder_id, size=100)
        self.files, self._folders = (
            index_by_name(listing["files"]),
            index_by_name(listing["folders"]),
        )

    def folder(self, name: str) -> "Folder":
        """Return a subfolder."""
        if name not in self._folders:
            folder = self._do("create_folder", name=name, parentId=self._id)
            self._folders[name] = folder["folder"]
        return Folder(self._do, self._folders[name]["id"])

    def file(self, name: str, make: Callable[[], bytes]) -> str:
        """Return the URL of a file."""
        if name not in self.files:
            content = base64.b64encode(make()).decode()
            file = self._do("upload_file", name=name, content=content, folderId=self._id)
            self.files[name] = file["file"]
        url: str = self.files[name]["url"]
        return url


def image(name: str) -> Callable[[], bytes]:
    """Return a function that reads a JPEG from ``images``."""
    return (IMAGES / f"{name}.jpg").read_bytes


def index_by_name(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the records by name."""
    return {record["name"]: record for record in records}
