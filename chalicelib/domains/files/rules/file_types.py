"""Detect types of files from their content. A declared type or a file name is not trusted.

The table is short and our own. The type is fixed on the files that we serve, so the table needs
only the formats that users upload. ``filetype`` has had no release since 2022. ``puremagic`` has a
table of thousands of formats and guesses among them. libmagic is not a Python library.
"""

import re

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
# Brands of the ISO base media format (ISO/IEC 14496-12, 4.3), the most specific first.
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
_OFFICE = "application/vnd.openxmlformats-officedocument."
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"word/document.xml", _OFFICE + "wordprocessingml.document"),
    (b"xl/workbook.xml", _OFFICE + "spreadsheetml.sheet"),
    (b"ppt/presentation.xml", _OFFICE + "presentationml.presentation"),
)
# By file extension. The content cannot distinguish them, and no such file runs.
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
_HTML = re.compile(
    rb"<(?:!doctype\s+html|(?:html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p"
    rb"|meta|link|img|form|span|section|header|main|nav|ul)(?=[\s/>]))",
    re.IGNORECASE,
)
_BEFORE_MARKUP = re.compile(
    rb"(?:\s+|<!--.*?-->|<\?.*?\?>|<!doctype\s+svg[^>\[]*(?:\[[^\]]*\][^>]*)?>)++",
    re.IGNORECASE | re.DOTALL,
)
_SVG = re.compile(rb"<(?:[a-z]+:)?svg(?=[\s/>])", re.IGNORECASE)
# Control characters that never occur in text (WHATWG MIME Sniffing, section 3).
_BINARY = bytes(set(range(0x20)) - set(b"\t\n\f\r\x1b"))
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


def is_page_code(name: str) -> bool:
    """Return whether a file's name is that of a style sheet or a script."""
    # Both are served as text, because scripts of users must not run. Browsers then refuse them.
    return name.rpartition(".")[2].lower() in {"css", "js", "mjs"}


def charset(body: bytes) -> str:
    """Return a text's encoding under its web name: UTF-8 if valid, else by BOM or by guess."""
    try:
        body.decode()
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    from turbohtml.detect import detect

    return (detect(body).encoding or "utf-8").lower()


def _media(body: bytes) -> str:
    size = min(int.from_bytes(body[:4], "big"), 256)
    brands = [body[8:12], *(body[at : at + 4] for at in range(16, size - 3, 4))]
    return next((mime_type for brand, mime_type in _BRANDS if brand in brands), "video/mp4")


def _is_mpeg_audio(body: bytes) -> bool:
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
