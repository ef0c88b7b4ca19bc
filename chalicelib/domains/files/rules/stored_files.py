"""Names, sizes and headers of stored files. The headers prevent uploaded content from running.

Types of files, detected from their content. A declared type or a file name is not trusted.

The table is short and our own. The type is fixed on the files that we serve, so the table needs
only the formats that users upload. ``filetype`` has had no release since 2022. ``puremagic`` has a
table of thousands of formats and guesses among them. libmagic is not a Python library.
"""

import re

from anyascii import anyascii

from chalicelib.core.text import lazy_pattern

UNKNOWN = "application/octet-stream"

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"II+\x00", "image/tiff"),
    (0, b"MM\x00+", "image/tiff"),
    (0, b"IIRO", "image/x-olympus-orf"),
    (0, b"IIRS", "image/x-olympus-orf"),
    (0, b"IIU\x00", "image/x-panasonic-rw2"),
    (0, b"FUJIFILMCCD-RAW", "image/x-fuji-raf"),
    (0, b"II\xbc\x01", "image/jxr"),
    (0, b"\x00\x00\x00\x0cjP  \r\n\x87\n", "image/jp2"),
    (0, b"\xffO\xffQ", "image/jp2"),
    (0, b"8BPS", "image/vnd.adobe.photoshop"),
    (0, b"\xff\x0a", "image/jxl"),
    (0, b"\x00\x00\x00\x0cJXL ", "image/jxl"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"%!PS", "application/postscript"),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"\x1f\x8b\x08", "application/gzip"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (0, b"OggS", "application/ogg"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"OTTO", "font/otf"),
    (0, b"\x00\x01\x00\x00\x00", "font/ttf"),
)

_IN_RIFF = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})

_BRANDS: tuple[tuple[bytes, str], ...] = (
    (b"avif", "image/avif"),
    (b"avis", "image/avif"),
    (b"heic", "image/heic"),
    (b"heix", "image/heic"),
    (b"heim", "image/heic"),
    (b"heis", "image/heic"),
    (b"hevc", "image/heic"),
    (b"hevx", "image/heic"),
    (b"hevm", "image/heic"),
    (b"hevs", "image/heic"),
    (b"mif1", "image/heif"),
    (b"mif2", "image/heif"),
    (b"msf1", "image/heif"),
    (b"crx ", "image/x-canon-cr3"),
    (b"qt  ", "video/quicktime"),
    (b"M4A ", "audio/mp4"),
    (b"M4B ", "audio/mp4"),
)
"""Brands of the ISO base media format (ISO/IEC 14496-12, 4.3), the most specific first."""

_OFFICE = "application/vnd.openxmlformats-officedocument."
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"word/document.xml", _OFFICE + "wordprocessingml.document"),
    (b"xl/workbook.xml", _OFFICE + "spreadsheetml.sheet"),
    (b"ppt/presentation.xml", _OFFICE + "presentationml.presentation"),
)

_TEXT_TYPES = {
    "csv": "text/csv",
    "ics": "text/calendar",
    "json": "application/json",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "tsv": "text/tab-separated-values",
    "vcf": "text/vcard",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
"""Types of plain text by file extension.

The content cannot distinguish them, and no such file runs.
"""

_HTML = lazy_pattern(
    rb"<(?:!doctype\s+html|(?:html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p"
    rb"|meta|link|img|form|span|section|header|main|nav|ul)(?=[\s/>]))",
    re.IGNORECASE,
)
_BEFORE_MARKUP = lazy_pattern(
    rb"(?:\s+|<!--.*?-->|<\?.*?\?>|<!doctype\s+svg[^>\[]*(?:\[.*?\])?[^>]*>)++",
    re.IGNORECASE | re.DOTALL,
)
_SVG = lazy_pattern(rb"<(?:[a-z]+:)?svg(?=[\s/>])", re.IGNORECASE)
_BINARY = bytes(set(range(0x20)) - set(b"\t\n\f\r\x1b"))
"""Control characters that never occur in text (WHATWG MIME Sniffing, section 3)."""
_SNIFFED_BYTES = 8192
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def sniff(body: bytes) -> str:
    """Return the MIME type of a file by its content, or ``application/octet-stream`` if unknown.

    If a file is valid as two types, such as a GIF that is also a script, its first bytes decide.
    Text of any encoding is ``text/plain`` unless it is HTML, SVG or other XML.
    """
    for offset, magic, mime_type in _SIGNATURES:
        if body.startswith(magic, offset) and (
            mime_type not in _IN_RIFF or body.startswith(b"RIFF")
        ):
            return mime_type
    if body.startswith(b"PK\x03\x04"):
        return next(
            (mime_type for name, mime_type in _ZIP_MEMBERS if name in body), "application/zip"
        )
    if body.startswith(b"ftyp", 4):
        return _media(body)
    if body.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm" if b"webm" in body[:64] else "video/x-matroska"
    if _is_mpeg_audio(body):
        return "audio/mpeg"
    return _text(body)


def file_type(body: bytes, name: str) -> str:
    """Return a file's type by its content and, for plain text, by its name."""
    mime_type = sniff(body)
    extension = name.rpartition(".")[2].lower()
    return _TEXT_TYPES.get(extension, mime_type) if mime_type == "text/plain" else mime_type


def charset(body: bytes) -> str:
    """Return a file's text encoding, under the name that the web uses.

    It is UTF-8 if the bytes are valid UTF-8. Otherwise a byte-order mark decides, or the encoding
    is guessed from the content.
    """
    try:
        body.decode()
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    from turbohtml.detect import detect

    return (detect(body).encoding or "utf-8").lower()


def _media(body: bytes) -> str:
    """Return the type of a file in the ISO base media format, by its brands."""
    size = min(int.from_bytes(body[:4], "big"), 256)
    brands = [body[8:12], *(body[at : at + 4] for at in range(16, size - 3, 4))]
    return next((mime_type for brand, mime_type in _BRANDS if brand in brands), "video/mp4")


def _is_mpeg_audio(body: bytes) -> bool:
    """Return whether a file begins with the header of an MPEG layer III frame of some bitrate."""
    return (
        len(body) > 3  # noqa: PLR2004  the header's length
        and body[0] == 0xFF  # noqa: PLR2004  eleven bits of sync
        and body[1] & 0xE6 == 0xE2  # noqa: PLR2004  and layer III
        and body[2] >> 4 not in {0, 15}
    )


def _text(body: bytes) -> str:
    start = body[:_SNIFFED_BYTES]
    if not start:
        return UNKNOWN
    wide = start.startswith(_BOMS[1:])
    if not wide and len(start.translate(None, _BINARY)) != len(start):
        return UNKNOWN
    # Without its zero bytes, UTF-16 markup can be recognised, which is enough here.
    plain = start.translate(None, b"\x00\xff\xfe") if wide else start.removeprefix(_BOMS[0])
    prefix = _BEFORE_MARKUP.match(plain)
    at = prefix.end() if prefix else 0
    if _SVG.match(plain, at):
        return "image/svg+xml"
    if _HTML.match(plain, at) or plain[at:].startswith(b"<!--"):
        return "text/html"
    return "application/xml" if plain.lstrip().startswith(b"<?xml") else "text/plain"


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
"""Types that a browser may display. All others, such as SVG and HTML, are only downloaded."""
_TEXTS = frozenset({"application/json", "application/yaml"})
_EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
_MAX_STEM = 80
PATH = lazy_pattern(r"[\w-]{48}/(thumbnail/)?[a-z0-9-]{1,80}(\.[a-z0-9-]{1,10})?", re.ASCII)
"""Paths below ``/files/``, as ``flows.rehosting`` makes them. Other objects are not public."""
_FILE_URL = lazy_pattern(r"/files/([0-9A-HJKMNP-TV-Z]{26})[\w-]{22}/", re.ASCII)
"""A file's id and the unguessable part that follows (``domains.files.flows.rehosting``)."""


def url_name(name: str, mime_type: str) -> str:
    """Return a file's name as the last part of its URL: ASCII, with the extension of its type.

    A re-encoded image may have another type than its original name suggests.
    """
    stem, extension = name.rsplit(".", 1) if "." in name else (name, "")
    extension = _EXTENSIONS.get(mime_type, _ascii_name(extension)[:10])
    stem = _ascii_name(stem)[:_MAX_STEM] or "file"
    return f"{stem}.{extension}" if extension else stem


def base_name(name: str) -> str:
    """Return a file's name without folders, Windows ones included; empty if no name remains.

    Browsers send a bare name; other clients send a local path (RFC 7578, section 4.2).
    """
    base = re.split(r"[/\\]", name)[-1].strip()
    return "" if base in {".", ".."} else base


def headers_for_file(body: bytes, name: str) -> dict[str, str]:
    """Return the response headers for a stored file, by its bytes and the last part of its URL."""
    kind = file_type(body, name)
    return headers(kind, charset(body)) if is_text(kind) else headers(kind)


def is_text(mime_type: str) -> bool:
    """Return whether a type is served with its encoding."""
    return mime_type.startswith("text/") or mime_type in _TEXTS


def file_ids_in(text: str) -> list[str]:
    """Return the ids of the files whose URLs occur in a string, each once."""
    return list(dict.fromkeys(_FILE_URL.findall(text)))


def _ascii_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", anyascii(text).lower()).strip("-")


def headers(mime_type: str, charset: str = "utf-8") -> dict[str, str]:
    """Return the headers of a stored file: its fixed type, and a policy against active content.

    ``charset`` is the encoding of a text file.
    """
    disposition = "inline" if mime_type in _INLINE else "attachment"
    kind = f"{mime_type}; charset={charset}" if is_text(mime_type) else mime_type
    return {
        "Content-Type": kind,
        "Content-Disposition": disposition,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": "public, max-age=31536000, immutable",
    }
