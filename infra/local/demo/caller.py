"""Operations called as the demo's API key may, and the files that it uploads."""

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
    """Calls operations as the demo key may."""

    def __init__(self, key: str) -> None:
        self._principal = authenticate({"authorization": f"Bearer {key}"}, "")

    @property
    def workspace_id(self) -> str:
        """The workspace that the key is of."""
        return self._principal.workspace_id

    @property
    def is_admin(self) -> bool:
        """Whether it may write the blog."""
        return self._principal.role == "admin"

    def __call__(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Call an operation and return what is inside the envelope."""
        reply = invoke(
            REGISTRY[operation], self._principal, lambda: arguments, request_id="seed-demo"
        )
        data: dict[str, Any] = json.loads(reply.body)["data"]
        return data


class Folder:
    """A folder of files, None for the root; what it lacks is made when asked for."""

    def __init__(self, do: Caller, folder_id: str | None) -> None:
        self._do, self._id = do, folder_id
        found = do("list_files", folderId=folder_id, size=100)
        self.files, self._folders = by_name(found["files"]), by_name(found["folders"])

    def folder(self, name: str) -> "Folder":
        """Return a folder in this one."""
        if name not in self._folders:
            made = self._do("create_folder", name=name, parentId=self._id)
            self._folders[name] = made["folder"]
        return Folder(self._do, self._folders[name]["id"])

    def file(self, name: str, make: Callable[[], bytes]) -> str:
        """Return a file's URL."""
        if name not in self.files:
            content = base64.b64encode(make()).decode()
            made = self._do("upload_file", name=name, content=content, folderId=self._id)
            self.files[name] = made["file"]
        url: str = self.files[name]["url"]
        return url


def image(name: str) -> Callable[[], bytes]:
    """Return what reads a JPEG of ``images``, if it turns out to be needed."""
    return (IMAGES / f"{name}.jpg").read_bytes


def by_name(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return records by their names."""
    return {record["name"]: record for record in records}
