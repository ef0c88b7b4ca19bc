"""The scans of a JPEG (ITU-T T.81): the passes over its pixels, one after another in the file."""

import re

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_SCAN = 0xDA
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""The beginning of a segment after pixel data."""


def has_all_scans(body: bytes) -> bool:
    """Whether a JPEG ends within its last scan (ITU-T T.81, B.2 and G.1).

    A progressive one has scans for each range of coefficients, down to the lowest bit.
    """
    position, is_progressive = 2, False
    missing: dict[int, set[int]] = {}
    while len(segment := body[position + 4 : position + 2 + _length(body, position)]) > 0:
        marker, position = body[position + 1], position + 2 + _length(body, position)
        if position > len(body):
            return False
        if marker in _FRAMES:
            is_progressive = marker in _PROGRESSIVE_FRAMES
            missing = {number: set(range(64)) for number in segment[6::3]}
        if marker == _SCAN:
            numbers = segment[1 : 1 + 2 * segment[0] : 2]
            first, last, bits = segment[-3:] if is_progressive else (0, 63, 0)
            for number in numbers if bits % 16 == 0 else ():
                missing.get(number, set()).difference_update(range(first, last + 1))
            following = _MARKER.search(body, position)
            if following is None:
                return not any(missing.values())
            position = following.start()
    return False


def _length(body: bytes, position: int) -> int:
    """Return the length of the segment at a position, without its marker."""
    return int.from_bytes(body[position + 2 : position + 4])
