"""Secrets of a local stack, stored in files with random bytes that survive restarts."""

import secrets
from contextlib import suppress
from pathlib import Path


def local_secret(path: Path) -> bytes:
    """Return the 32 random bytes in a file, which is created on first use, or raise OSError.

    Processes that create it at the same time return the same bytes.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(32))
        # A link fails if the file exists, so of several processes the first one wins.
        with suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
        return path.read_bytes()
