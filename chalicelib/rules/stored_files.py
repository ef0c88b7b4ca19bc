"""How stored files are named, measured and served (security.md: what is uploaded cannot run)."""

import re

from anyascii import anyascii

_INLINE = frozenset(
    {
        "image/jpeg",
        "image/png",
        "image/gif",
        "image/webp",
        "image/avif",
        "audio/mpeg",
        "audio/mp4",
        "audio/wav",
        "video/mp4",
        "video/webm",
        "text/plain",
    }
)
"""Types that a browser may show; everything else, SVG and HTML first, is only downloaded."""
_EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
_LONGEST = 80


def address_name(name: str, mime_type: str) -> str:
    """Return a file's name as the last part of its URL: ASCII, with an image's own extension.

    A re-encoded image may have become another kind than its name says.
    """
    stem, _, extension = name.rpartition(".") if "." in name else (name, "", "")
    extension = _EXTENSIONS.get(mime_type, _plain(extension)[:10])
    stem = _plain(stem)[:_LONGEST] or "file"
    return f"{stem}.{extension}" if extension else stem


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", anyascii(text).lower()).strip("-")


def headers(mime_type: str) -> dict[str, str]:
    """Return the headers a stored file is served with: its pinned type, and nothing that runs."""
    disposition = "inline" if mime_type in _INLINE else "attachment"
    kind = f"{mime_type}; charset=utf-8" if mime_type.startswith("text/") else mime_type
    return {
        "Content-Type": kind,
        "Content-Disposition": disposition,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": "public, max-age=31536000, immutable",
    }
