"""Names, sizes and headers of stored files. The headers prevent uploaded content from running."""

import re

from anyascii import anyascii

from chalicelib.domains.files.rules.file_types import charset, file_type

# Types that a browser may display. All others, such as SVG and HTML, are only downloaded.
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
        "application/json",
    }
)
_TEXTS = frozenset({"application/json", "application/yaml"})
_EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
_MAX_STEM = 80
CACHED_SECONDS = 300  # for which browsers and the edge may show the former bytes of a replaced file
# Paths below ``/files/``, as ``flows.rehosting`` makes them. Other objects are not public.
PATH = re.compile(r"[\w-]{48}/(thumbnail/)?[a-z0-9-]{1,80}(\.[a-z0-9-]{1,10})?", re.ASCII)
# A file's id and the unguessable part that follows (``domains.files.flows.rehosting``).
_FILE_URL = re.compile(r"/files/([0-9A-HJKMNP-TV-Z]{26})[\w-]{22}/", re.ASCII)


def url_name(name: str, *, mime_type: str) -> str:
    """Return a file's name as the last part of its URL: ASCII, with the extension of its type."""
    # A re-encoded image may have another type than its original name suggests.
    stem, extension = name.rsplit(".", 1) if "." in name else (name, "")
    extension = _EXTENSIONS.get(mime_type, _ascii_name(extension)[:10])
    stem = _ascii_name(stem)[:_MAX_STEM] or "file"
    return f"{stem}.{extension}" if extension else stem


def base_name(name: str) -> str:
    """Return a file's name without folders, Windows ones included; empty if no name remains."""
    # Browsers send a bare name; other clients send a local path (RFC 7578, section 4.2).
    base = re.split(r"[/\\]", name)[-1].strip()
    return "" if base in {".", ".."} else base


def headers_for_file(body: bytes, name: str) -> dict[str, str]:
    """Return the response headers for a stored file, by its bytes and the last part of its URL."""
    kind = file_type(body, name)
    return headers(kind, charset=charset(body)) if is_text(kind) else headers(kind)


def is_text(mime_type: str) -> bool:
    """Return whether a type is served with its encoding."""
    return mime_type.startswith("text/") or mime_type in _TEXTS


def file_ids_in(text: str) -> list[str]:
    """Return the ids of the files whose URLs occur in a string, each once."""
    return list(dict.fromkeys(_FILE_URL.findall(text)))


def _ascii_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", anyascii(text).lower()).strip("-")


def headers(mime_type: str, *, charset: str = "utf-8") -> dict[str, str]:
    """Return the headers of a stored file: its fixed type, and a policy against active content."""
    # Pages of any origin may read a file, since it is public. Browsers ask for that before they use
    # a font, and pages at the platform's own address have no origin.
    disposition = "inline" if mime_type in _INLINE else "attachment"
    kind = f"{mime_type}; charset={charset}" if is_text(mime_type) else mime_type
    return {
        "Content-Type": kind,
        "Content-Disposition": disposition,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        # A file can be replaced under its URL (ADR 126). ``FilesHeaders`` of the edge has the same.
        "Cache-Control": f"public, max-age={CACHED_SECONDS}",
    }
