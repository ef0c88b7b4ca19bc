"""Copy the bytes of a replaced file to the keys of its URLs (ADR 126).

The row of the file names the latest content, and a transaction changes it. Its URLs show the bytes
at other keys, which no transaction can change. So whoever copies reads the row again afterwards,
and copies again if the row names another content.
"""

from collections.abc import Collection

from chalicelib.domains.files.rules import file_types, stored_files
from chalicelib.domains.files.store.files import FILES, FileRow
from chalicelib.gateways.object_store import delete_unused, object_store


def publish(workspace_id: str, file_id: str, keys: Collection[str | None]) -> FileRow | None:
    """Show a file's latest content at its URLs, and return the file.

    The ``keys`` are those of its URLs. If the file is deleted, nothing remains there.
    """
    copied = None
    while file := FILES.find(workspace_id, record_id=file_id):
        if file.content_key == copied:
            return file
        _copy(file.content_key, file.key)
        _copy(file.content_thumbnail_key, file.thumbnail_key)
        copied = file.content_key
    delete_unused(keys)
    return None


def put_public(key: str, body: bytes) -> None:
    """Store an object under a public key, with the headers that its bytes and name need."""
    headers = stored_files.headers_for_file(body, key.rpartition("/")[2])
    object_store().put(key, body, file_types.sniff(body), headers)


def _copy(source: str | None, target: str | None) -> None:
    if source is None or target is None:
        return
    body = object_store().get(source)
    # Without it, the content was copied an hour ago, before its own objects were removed.
    if body is not None:
        put_public(target, body)
