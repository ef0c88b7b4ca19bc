"""Images that are damaged, malicious, too large or of another format."""

import contextlib
import re
import struct
import time
import tracemalloc
import zlib
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from chalicelib.domains.files.rules import images
from chalicelib.domains.files.rules.images import (
    MAX_FRAMES,
    MAX_PIXELS,
    CleanImage,
    ImageError,
    sanitize,
)
from tests.factories.images import (
    FORMATS,
    chunk,
    drawn,
    gif,
    opened,
    png,
    reason,
    refused_image,
    riff,
    sample,
    saved,
)
from tests.support.effort import examples, slow_but_for
from tests.support.sweep import sweep

pytestmark = pytest.mark.filterwarnings("ignore")
"""As in production, a warning from Pillow does not stop the conversion."""


class TestRefusedImages:
    @pytest.mark.parametrize(
        ("body", "word"),
        [
            (
                b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
                "SVG, which can contain scripts",
            ),
            (b"<!doctype html><img>", "web page"),
            (b"%!PS-Adobe-3.0 EPSF-3.0\n", "received application/postscript"),
            (b"8BPS\0\1", "photoshop"),
            (b"\x00\x00\x01\x00\x01\x00" + bytes(40), "received image/x-icon"),
            (b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00", "save the image as JPEG (on an iPhone"),
            (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00", "save the image as JPEG (on an iPhone"),
            (b"%PDF-1.4", "received application/pdf"),
            (b"hello", "received text/plain"),
            (b"", "received application/octet-stream"),
        ],
    )
    def test_a_file_that_is_not_an_image_is_refused_with_advice(
        self, body: bytes, word: str
    ) -> None:
        assert word in reason(body)
        assert refused_image(body).key == "unsupported_image"

    @pytest.mark.parametrize("kind", ["image/tiff", "image/heic", "image/x-canon-cr3"])
    def test_a_photo_that_cannot_be_cleaned_is_not_stored(self, kind: str) -> None:
        with pytest.raises(ImageError) as refusal:
            images.check_storable(kind)
        assert refusal.value.key == "unsupported_image"

    @pytest.mark.parametrize("kind", ["image/png", "image/svg+xml", "application/pdf"])
    def test_other_files_are_stored(self, kind: str) -> None:
        images.check_storable(kind)

    def test_formats_with_untrusted_decoders_are_refused(self) -> None:
        for kind in ("TIFF", "PPM", "ICO", "PCX", "TGA", "JPEG2000", "EPS", "ICNS"):
            reason(saved(drawn(), kind))

    @sweep(("kind", "tenth"), product(FORMATS, range(1, 10)))
    def test_a_truncated_file_is_refused(self, kind: str, tenth: int) -> None:
        body = sample(kind)
        cut = refused_image(body[: len(body) * tenth // 10])
        assert cut.key in {"unsupported_image", "damaged_image", "incomplete_image"}

    @sweep(
        ("mode", "options", "size"),
        product(
            ["RGB", "L", "CMYK"],
            [{}, {"progressive": True}, {"restart_marker_rows": 1}, {"quality": 20}],
            [(1, 1), (16, 16), (301, 203)],
        ),
    )
    def test_a_jpeg_may_lack_its_end_marker_but_no_pixels(
        self, mode: str, options: dict[str, Any], size: tuple[int, int]
    ) -> None:
        body = saved(Image.effect_noise(size, 90).convert(mode), "JPEG", **options)
        expected = opened(body)
        for ending in (b"", b"\xff", b"\0\0", b"\xff\xff"):
            assert opened(sanitize(body[:-2] + ending).body).size == expected.size
        for part in (2, 3, 10):
            cut = body[: -len(body) // part]
            assert refused_image(cut).key == "incomplete_image"

    def test_a_progressive_jpeg_that_lacks_whole_scans_is_refused(self) -> None:
        body = saved(Image.effect_noise((80, 60), 90).convert("RGB"), "JPEG", progressive=True)
        scans = [match.start() for match in re.finditer(b"\xff\xda", body)]
        assert len(scans) > 5
        for start in scans:
            for cut in (start, start + 1, start + 5, start + 15):
                assert refused_image(body[:cut]).key == "incomplete_image"

    @pytest.mark.parametrize("kind", ["GIF", "WEBP"])
    def test_a_too_long_animation_is_refused(self, kind: str) -> None:
        tiny = [Image.new("L", (1, 1), number % 2 * 255) for number in range(MAX_FRAMES + 1)]
        body = saved(tiny[0], kind, save_all=True, append_images=tiny[1:])
        if kind == "GIF":
            body = gif(1, 1, *[(1, 1)] * (MAX_FRAMES + 1))
        assert str(MAX_FRAMES) in reason(body)

    def test_an_animation_with_too_many_pixels_in_total_is_refused(self) -> None:
        assert "25 megapixels" in reason(gif(3000, 3000, *[(1, 1)] * 3))

    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF"])
    def test_an_image_may_have_as_many_pixels_as_the_limit(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # restored after the test
        monkeypatch.setattr(images, "MAX_PIXELS", 2400)
        monkeypatch.setattr(images, "MAX_PIXELS_OF_FRAMES", 2400)
        assert sanitize(saved(drawn(), kind)).width == 60
        assert "at most" in reason(saved(drawn(size=(60, 41)), kind))

    def test_an_image_of_a_format_with_frames_has_the_lower_limit_of_pixels(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(images, "MAX_PIXELS_OF_FRAMES", 2399)
        assert sanitize(saved(drawn(), "PNG")).width == 60
        for kind in ("WEBP", "AVIF"):
            assert "at most" in reason(saved(drawn(), kind))

    def test_all_frames_of_an_animation_may_have_as_many_pixels_as_the_limit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(images, "MAX_PIXELS_OF_FRAMES", 200)
        assert sanitize(gif(10, 10, *[(1, 1)] * 2)).width == 10
        assert refused_image(gif(10, 10, *[(1, 1)] * 3)).key == "too_long_animation"


class TestDecompressionBombs:
    """Small files that declare a huge size are refused before any memory is allocated."""

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param(png(MAX_PIXELS, 2), id="PNG"),
            pytest.param(png(10_000, 5_001), id="PNG just above the limit"),
            pytest.param(png(2**31 - 1, 2**31 - 1), id="PNG of 2**62 pixels"),
            pytest.param(gif(65535, 65535, (1, 1)), id="GIF with a huge screen"),
            pytest.param(gif(1, 1, (65535, 65535)), id="GIF with a huge frame"),
            pytest.param(gif(1, 1, (1, 1), (65535, 65535)), id="GIF with a huge second frame"),
            pytest.param(
                b"BM"
                + struct.pack("<IIIIiiHHIIiiII", 58, 0, 54, 40, 60000, 60000, 1, 24, *[0] * 6),
                id="BMP",
            ),
            pytest.param(
                b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\x00\x02\x11\x00\x03"
                b"\x11\x00\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00\xff\xd9",
                id="JPEG",
            ),
            pytest.param(
                riff(b"VP8L" + struct.pack("<IBI", 5, 0x2F, 16382 | 16382 << 14) + b"\0"), id="WebP"
            ),
            pytest.param(
                riff(
                    b"VP8X" + struct.pack("<II", 10, 2) + (16382).to_bytes(3, "little") * 2,
                    b"ANIM" + struct.pack("<IIH", 6, 0, 0),
                    b"ANMF" + struct.pack("<I", 16 + 14) + bytes(16),
                    b"VP8L" + struct.pack("<IBI", 5, 0x2F, 0) + b"\0",
                ),
                id="WebP animation",
            ),
        ],
    )
    def test_a_bomb_is_refused_before_decoding(self, body: bytes) -> None:
        tracemalloc.start()
        began = time.process_time()
        try:
            assert "50 megapixels" in reason(body)
            assert time.process_time() - began < 5  # CPU seconds; usually 0.01
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()

    def test_a_header_of_webp_may_name_half_the_pixels(self) -> None:
        size = (5001 - 1) | (5000 - 1) << 14
        body = riff(b"VP8L" + struct.pack("<IBI", 5, 0x2F, size) + b"\0")
        assert "25 megapixels" in reason(body)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["WEBP", "AVIF"])
    def test_formats_that_need_more_memory_may_have_half_the_pixels(self, kind: str) -> None:
        fast: dict[str, Any] = {"speed": 10} if kind == "AVIF" else {"method": 0}
        body = saved(Image.new("RGB", (5001, 5000)), kind, **fast)
        assert "25 megapixels" in reason(body)

    @pytest.mark.parametrize("kind", slow_but_for([b"iTXt"], [b"zTXt", b"iCCP", b"iTXt"]))
    def test_a_bomb_in_the_texts_of_a_png_is_ignored(self, kind: bytes) -> None:
        head = b"a\0\0" if kind != b"iTXt" else b"a\0\1\0\0\0"
        bomb = chunk(kind, head + zlib.compress(bytes(200_000_000), 9))
        body = png(1, 1, bomb, pixels=b"\0\1\2\3")
        tracemalloc.start()
        try:
            clean = sanitized_or_refused(body)
            assert clean is None or len(clean.body) < 200
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()

    def test_surplus_pixels_of_a_png_are_not_decoded(self) -> None:
        body = png(1, 1, pixels=b"\0\1\2\3" + bytes(100_000_000))
        clean = sanitize(body)
        assert (clean.width, clean.height) == (1, 1)

    def test_endless_scans_are_refused_without_decoding(self) -> None:
        source = saved(drawn(size=(400, 400)), "JPEG", progressive=True)
        last = source.rindex(b"\xff\xda")
        bomb = source[:-2] + source[last:-2] * 200 + source[-2:]
        assert "scans" in reason(bomb)
        assert sanitize(sample("PNG") + b"\xff\xda" * 65).width == 64
        max_scans = 64 - source.count(b"\xff\xda")
        assert sanitize(source[:-2] + source[last:-2] * max_scans + source[-2:]).width == 400


class TestDamage:
    @examples(150)
    @given(st.sampled_from(sorted(FORMATS)), st.data())
    def test_a_damaged_image_is_converted_or_refused_without_other_errors(
        self, kind: str, data: st.DataObject
    ) -> None:
        body = bytearray(sample(kind))
        places = st.integers(0, len(body) - 1)
        for _ in range(data.draw(st.integers(1, 12))):
            body[data.draw(places)] ^= 1 << data.draw(st.integers(0, 7))
        sanitized_or_refused(bytes(body))

    @examples(150)
    @given(
        st.sampled_from([sample(kind)[:30] for kind in sorted(FORMATS)]), st.binary(max_size=400)
    )
    def test_damage_after_a_valid_beginning_is_refused(self, start: bytes, tail: bytes) -> None:
        sanitized_or_refused(start + tail)

    @examples(60)
    @given(st.binary(max_size=400))
    def test_random_bytes_are_refused(self, body: bytes) -> None:
        sanitized_or_refused(body)


def sanitized_or_refused(body: bytes) -> CleanImage | None:
    began = time.process_time()
    clean = None
    with contextlib.suppress(ImageError):
        clean = sanitize(body)
        assert opened(clean.body).size == (clean.width, clean.height)
    assert time.process_time() - began < 20  # CPU seconds; 0.3 at most
    return clean
