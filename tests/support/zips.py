"""Comparison of zips in assertions."""

import hashlib
import io
import zipfile


def digests(content: bytes) -> dict[str, str]:
    """Return the digest of a zip and of each file in it.

    A failed comparison names the files that differ. Pytest would compare the bytes of two zips for
    more than half an hour.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: _digest(archive.read(name)) for name in archive.namelist()}
    return {"": _digest(content), **files}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
