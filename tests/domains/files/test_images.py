"""Images from untrusted sources: decoded, cleaned and re-encoded."""

import contextlib
import io
import struct
import time
import tracemalloc
import zlib
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageCms, ImageSequence, ImageStat, PngImagePlugin

from chalicelib.domains.files.rules import images
from chalicelib.domains.files.rules.images import (
    MAX_FRAMES,
    MAX_PIXELS,
    MAX_SIDE,
    THUMBNAIL_SIDE,
    CleanImage,
    ImageError,
    sanitize,
)
from tests.support.effort import examples, slow_but_for

pytestmark = pytest.mark.filterwarnings("ignore")
"""As in production, a warning from Pillow does not stop the conversion."""

PAYLOAD = b"<script>alert('payload')</script>"
STAYS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
BECOMES = {"GIF": "image/png", "BMP": "image/png", "AVIF": "image/webp"}
FORMATS = STAYS | BECOMES


def drawn(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Draw an image whose left half is red and whose right half is blue."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (size[0] // 2, 0, *size))
    return image.convert(mode)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    body = io.BytesIO()
    image.save(body, kind, **options)
    return body.getvalue()


@cache
def sample(kind: str) -> bytes:
    return saved(Image.effect_noise((64, 48), 90).convert("RGB"), kind)


def opened(body: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(body))
    image.load()
    return image


def is_red(image: Image.Image, place: tuple[int, int]) -> bool:
    pixel = image.convert("RGB").getpixel(place)
    assert isinstance(pixel, tuple)
    return pixel[0] > 180 and pixel[2] < 80


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png(width: int, height: int, *extra: bytes, pixels: bytes = b"") -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + body


def gif(width: int, height: int, *frames: tuple[int, int]) -> bytes:
    body = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    for size in frames:
        body += b"\x2c" + struct.pack("<HHHHB", 0, 0, *size, 0) + b"\x02\x02\x44\x01\x00"
    return body + b";"


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def animation(kind: str, count: int = 3) -> bytes:
    frames = [Image.new("RGB", (30, 20), color) for color in ("red", "green", "blue") * count]
    return saved(
        frames[0], kind, save_all=True, append_images=frames[1:count], duration=[100, 200, 300]
    )


def reason(body: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        sanitize(body)
    assert str(caught.value) == caught.value.reason
    return caught.value.reason


class TestConversion:
    @pytest.mark.parametrize(("kind", "mime_type"), FORMATS.items())
    def test_size_and_colours_are_kept(self, kind: str, mime_type: str) -> None:
        clean = sanitize(saved(drawn(), kind))
        image = opened(clean.body).convert("RGB")
        assert clean.mime_type == mime_type == Image.MIME[opened(clean.body).format or ""]
        assert (clean.width, clean.height) == image.size == (60, 40)
        assert is_red(image, (5, 20))
        assert not is_red(image, (55, 20))

    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    def test_the_content_of_every_kind_of_png_is_kept_in_the_smallest_mode(self, mode: str) -> None:
        grey = Image.linear_gradient("L").resize((40, 40))
        if mode == "I;16":
            source = Image.new("I;16", (40, 40))
            source.putdata([value * 257 for value in grey.tobytes()])
        else:
            source = grey.convert("RGB").convert(mode)
        clean = sanitize(saved(source, "PNG"))
        smallest = {"1": "L", "LA": "L", "I;16": "L", "RGBA": "RGB"}
        assert opened(clean.body).mode == smallest.get(mode, mode)
        shown = opened(clean.body).convert("L")
        expected = source.convert("L") if mode in {"1", "P"} else grey
        most = 0 if mode == "I;16" else 2
        assert all(
            abs(a - b) <= most for a, b in zip(shown.tobytes(), expected.tobytes(), strict=True)
        )

    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "AVIF"])
    def test_transparency_is_kept(self, kind: str) -> None:
        source = Image.new("RGBA", (40, 40), (255, 0, 0, 255))
        source.paste((0, 0, 0, 0), (0, 0, 20, 40))
        clean = sanitize(saved(source, kind))
        for body in (clean.body, clean.thumbnail):
            alpha = opened(body).convert("RGBA").getchannel("A")
            assert (alpha.getpixel((5, 20)), alpha.getpixel((35, 20))) == (0, 255)
        assert clean.thumbnail_type == "image/webp"

    @pytest.mark.parametrize(("mode", "transparency"), [("RGB", (255, 0, 0)), ("L", 76)])
    def test_a_transparent_colour_is_kept(self, mode: str, transparency: Any) -> None:
        image = opened(sanitize(saved(drawn(mode), "PNG", transparency=transparency)).body)
        assert image.mode == "RGBA"
        alpha = image.getchannel("A")
        assert (alpha.getpixel((5, 20)), alpha.getpixel((55, 20))) == (0, 255)

    def test_a_transparent_grey_image_stays_grey(self) -> None:
        source = drawn("LA")
        source.putalpha(Image.linear_gradient("L").resize(source.size))
        assert opened(sanitize(saved(source, "PNG")).body).mode == "LA"

    def test_print_colours_become_screen_colours(self) -> None:
        image = opened(sanitize(saved(drawn("CMYK"), "JPEG")).body)
        assert image.mode == "RGB"
        assert is_red(image, (5, 20))

    @pytest.mark.parametrize(
        ("kind", "mode"), [("JPEG", "RGB"), ("PNG", "RGB"), ("PNG", "P"), ("WEBP", "RGB")]
    )
    def test_colours_are_converted_by_the_profile_which_is_removed(
        self, kind: str, mode: str
    ) -> None:
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        swapped = srgb.replace(b"rXYZ", b"....").replace(b"bXYZ", b"rXYZ").replace(b"....", b"bXYZ")
        for profile, left_is_red in ((srgb, True), (swapped, False), (b"none", True)):
            image = opened(sanitize(saved(drawn(mode), kind, icc_profile=profile)).body)
            assert "icc_profile" not in image.info
            assert is_red(image, (5, 20)) == left_is_red

    @pytest.mark.parametrize(
        ("kind", "mode", "target"), [("JPEG", "CMYK", "RGB"), ("PNG", "RGBA", "RGBA")]
    )
    def test_print_colours_and_transparent_ones_are_converted_by_the_profile(
        self, kind: str, mode: str, target: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        modes = []

        def convert(image: Image.Image, *_: object, outputMode: str) -> Image.Image:  # noqa: N803
            modes.append((image.mode, outputMode))
            return image.convert(outputMode)

        monkeypatch.setattr(ImageCms, "profileToProfile", convert)
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        sanitize(saved(drawn(mode), kind, icc_profile=srgb))
        assert modes == [(mode, target)]

    @pytest.mark.parametrize(
        ("kind", "mode", "profile"),
        [("PNG", "L", b"x"), ("PNG", "LA", b"x"), ("WEBP", "RGB", bytes((4 << 20) + 1))],
    )
    def test_a_profile_of_a_grey_image_or_a_huge_one_is_ignored(
        self, kind: str, mode: str, profile: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ImageCms, "ImageCmsProfile", lambda _: 1 / 0)
        assert sanitize(saved(drawn(mode), kind, icc_profile=profile)).width == 60

    def test_a_profile_of_4_mib_is_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes: list[int] = []
        profile = bytes(4 << 20)
        monkeypatch.setattr(
            ImageCms, "ImageCmsProfile", lambda file: sizes.append(len(file.read()))
        )
        monkeypatch.setattr(ImageCms, "profileToProfile", lambda image, *_, **__: image)
        sanitize(saved(drawn(), "WEBP", icc_profile=profile))
        assert sizes == [len(profile)]

    @pytest.mark.parametrize("kind", FORMATS)
    def test_a_thumbnail_has_at_most_400_pixels(self, kind: str) -> None:
        clean = sanitize(saved(drawn(size=(1200, 300)), kind))
        assert clean.thumbnail_type == "image/jpeg"
        assert opened(clean.thumbnail).size == (THUMBNAIL_SIDE, 100)
        assert len(clean.thumbnail) < 20_000
        assert opened(sanitize(saved(drawn(), kind)).thumbnail).size == (60, 40)

    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
    @pytest.mark.parametrize("mode", ["RGB", "P"])
    def test_a_large_image_is_scaled_down_for_pages(self, kind: str, mode: str) -> None:
        source = drawn(mode if kind == "PNG" else "RGB", (MAX_SIDE * 2, 64))
        clean = sanitize(saved(source, kind))
        assert (clean.width, clean.height) == (MAX_SIDE, 32) == opened(clean.body).size
        assert opened(clean.body).mode == "RGB"

    def test_an_image_of_the_largest_side_keeps_its_palette(self) -> None:
        assert opened(sanitize(saved(drawn("P", (MAX_SIDE, 2)), "PNG")).body).mode == "P"

    def test_only_lossless_webp_stays_lossless(self) -> None:
        assert sanitize(saved(drawn(), "WEBP")).body[12:16] == b"VP8 "
        other = bytearray(saved(drawn(), "JPEG"))
        other[12:16] = b"VP8L"
        assert sanitize(bytes(other)).mime_type == "image/jpeg"
        source = Image.effect_noise((50, 50), 90).convert("RGB")
        clean = sanitize(saved(source, "WEBP", lossless=True))
        assert opened(clean.body).convert("RGB").tobytes() == source.tobytes()

    @pytest.mark.parametrize("kind", ["GIF", "WEBP"])
    def test_animations_stay_animated(self, kind: str) -> None:
        clean = sanitize(animation(kind))
        image = opened(clean.body)
        assert clean.mime_type == "image/webp"
        assert image.info["loop"] == (1 if kind == "GIF" else 0)
        shown = []
        for frame in ImageSequence.Iterator(image):
            pixel = frame.convert("RGB").getpixel((5, 5))
            assert isinstance(pixel, tuple)
            shown.append((frame.info["duration"], pixel.index(max(pixel))))
        assert shown == [(100, 0), (200, 1), (300, 2)]

    def test_a_large_animation_is_scaled_down(self) -> None:
        assert sanitize(gif(MAX_SIDE * 2, 2, *[(1, 1)] * 2)).width == MAX_SIDE

    def test_frames_are_shown_as_long_as_browsers_show_them(self) -> None:
        frames = [Image.new("RGB", (30, 20), color) for color in ("red", "green", "blue")]
        durations = [10, 20, 70_000]
        body = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=durations)
        image = opened(sanitize(body).body)
        shown = [frame.copy().info["duration"] for frame in ImageSequence.Iterator(image)]
        assert shown == [100, 20, 60_000]

    @pytest.mark.parametrize("kind", ["GIF", "WEBP"])
    def test_the_times_that_an_animation_repeats_are_kept(self, kind: str) -> None:
        frames = [drawn(), drawn("L")]
        body = saved(frames[0], kind, save_all=True, append_images=frames[1:], loop=3)
        assert opened(sanitize(body).body).info["loop"] == 3

    def test_the_main_image_of_a_phones_multi_image_jpeg_is_used(self) -> None:
        small = drawn(size=(30, 20))
        source = saved(drawn(), "MPO", save_all=True, append_images=[small])
        assert opened(source).format == "MPO"
        clean = sanitize(source)
        assert (clean.mime_type, clean.width) == ("image/jpeg", 60)
        assert b"MPF" not in clean.body

    def test_the_first_frame_of_an_animated_png_is_used(self) -> None:
        image = opened(sanitize(animation("PNG")).body)
        assert getattr(image, "n_frames", 1) == 1
        assert image.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


def scene(mode: str, size: tuple[int, int]) -> Image.Image:
    """Draw an image with smooth areas, edges and noise, like a photo."""
    image = Image.merge("RGB", [Image.radial_gradient("L").resize(size)] * 3)
    image.paste(Image.effect_noise((size[0] // 2 + 1, size[1]), 40).convert("RGB"))
    image.paste("teal", (size[0] // 3, size[1] // 3, size[0] // 3 * 2, size[1] // 3 * 2))
    return image.convert(mode)


class TestJpegs:
    """Re-encoding a JPEG never makes it larger, and keeps its appearance."""

    @pytest.mark.parametrize("quality", [1, 5, 20, 40, 60, 75, 88, 95, 100])
    @pytest.mark.parametrize("size", [(1, 1), (60, 40), (801, 597)])
    def test_a_jpeg_never_grows(self, size: tuple[int, int], quality: int) -> None:
        for mode in ("RGB", "L", "CMYK"):
            for options in (
                {"progressive": True, "optimize": True},
                {"subsampling": "4:4:4"},
                {"subsampling": "4:2:0", "optimize": True},
            ):
                body = saved(scene(mode, size), "JPEG", quality=quality, **options)
                clean = sanitize(body)
                assert (clean.width, clean.height) == size
                headers = 320 if mode == "CMYK" else 0  # The RGB result has one more table.
                # With the coarsest tables, noise may cost a few bytes that nothing can save.
                noise = 8 if quality == 1 else 0
                assert len(clean.body) <= max(len(body) + noise, headers)

    @pytest.mark.parametrize("turn", range(1, 9))
    def test_a_jpeg_never_grows_when_it_is_rotated_upright(self, turn: int) -> None:
        exif = Image.Exif()
        exif[0x0112] = turn
        body = saved(scene("RGB", (801, 603)), "JPEG", quality=50, optimize=True, exif=exif)
        assert len(sanitize(body).body) <= len(body)

    @pytest.mark.parametrize("quality", [20, 50, 80, 95])
    def test_a_jpeg_keeps_its_appearance(self, quality: int) -> None:
        body = saved(scene("RGB", (640, 480)), "JPEG", quality=quality)
        before, after = (opened(one).convert("L") for one in (body, sanitize(body).body))
        difference = ImageStat.Stat(ImageChops.difference(before, after)).mean[0]
        assert difference < 2.5

    def test_a_finer_jpeg_gets_our_quality(self) -> None:
        images._our_tables.cache_clear()  # made for the first JPEG of a process
        source = scene("RGB", (200, 200))
        finer, ours = (saved(source, "JPEG", quality=quality) for quality in (95, 88))
        clean: Any = opened(sanitize(finer).body)
        expected: Any = opened(ours)
        assert clean.quantization == expected.quantization

    def test_a_jpeg_of_10_kb_is_progressive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        body = saved(scene("RGB", (200, 200)), "JPEG", quality=95)
        for size, progressive in ((len(body), True), (len(body) + 1, False)):
            monkeypatch.setattr(images, "_PROGRESSIVE_FROM", size)
            assert opened(sanitize(body).body).info.get("progressive", False) == progressive


class TestRemovedData:
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
    def test_place_and_author_of_a_photo_are_removed(self, kind: str) -> None:
        exif = Image.Exif()
        exif[0x010E] = PAYLOAD.decode()
        exif.get_ifd(0x8825)[1] = "N"
        exif.get_ifd(0x8825)[2] = (55.0, 45.0, 7.0)
        source = saved(drawn(), kind, exif=exif)
        assert opened(source).getexif().get_ifd(0x8825)
        clean = sanitize(source)
        for body in (clean.body, clean.thumbnail):
            assert not opened(body).getexif()
            assert PAYLOAD not in body
            assert b"Exif" not in body

    @pytest.mark.parametrize("kind", FORMATS)
    def test_data_after_the_last_byte_is_removed(self, kind: str) -> None:
        clean = sanitize(sample(kind) + PAYLOAD + b"PK\x05\x06" + bytes(18))
        assert PAYLOAD not in clean.body + clean.thumbnail
        assert b"PK\x05\x06" not in clean.body

    @pytest.mark.parametrize("kind", ["JPEG", "GIF"])
    def test_comments_are_removed(self, kind: str) -> None:
        source = saved(drawn(), kind, comment=PAYLOAD)
        assert PAYLOAD in source
        assert PAYLOAD not in sanitize(source).body

    def test_texts_and_profiles_of_a_png_are_removed(self) -> None:
        texts = PngImagePlugin.PngInfo()
        texts.add_text("Comment", PAYLOAD.decode())
        texts.add_itxt("XML:com.adobe.xmp", PAYLOAD.decode())
        source = saved(drawn(), "PNG", pnginfo=texts, icc_profile=PAYLOAD, dpi=(96, 96))
        assert PAYLOAD in source
        clean = sanitize(source)
        assert PAYLOAD not in clean.body
        assert set(opened(clean.body).info) <= {"transparency"}

    @pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
    def test_xmp_is_removed(self, kind: str) -> None:
        source = saved(drawn(), kind, xmp=PAYLOAD)
        assert PAYLOAD in source
        assert PAYLOAD not in sanitize(source).body

    def test_a_script_inside_a_gif_is_removed(self) -> None:
        # GIF89a=1/* … */ parses as JavaScript: the width is "/*".
        source = bytearray(saved(Image.new("P", (0x2F3D, 10)), "GIF"))
        source[6:8] = b"=1"
        clean = sanitize(bytes(source) + b"*/;alert(1)//")
        assert clean.body.startswith(b"\x89PNG")
        assert b"alert" not in clean.body

    def test_the_orientation_is_applied_and_removed(self) -> None:
        source = Image.new("RGB", (60, 40), "blue")
        source.paste("red", (0, 0, 30, 20))
        corners = ("top left", "top right", "bottom right", "bottom left")
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            clean = sanitize(saved(source, "JPEG", exif=exif))
            width, height = (40, 60) if orientation > 4 else (60, 40)
            assert (clean.width, clean.height) == (width, height)
            image = opened(clean.body)
            places = [(5, 5), (width - 5, 5), (width - 5, height - 5), (5, height - 5)]
            red = [name for name, at in zip(corners, places, strict=True) if is_red(image, at)]
            assert red == [corners[(orientation - 1) % 4]], orientation

    def test_malformed_exif_data_is_removed(self) -> None:
        for exif in (b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0" + b"\xff" * 50):
            clean = sanitize(saved(drawn(), "JPEG", exif=exif))
            assert (clean.width, clean.height) == (60, 40)


class TestRefusedImages:
    @pytest.mark.parametrize(
        ("body", "word"),
        [
            (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "SVG can carry scripts"),
            (b"<!doctype html><img>", "web page"),
            (b"%!PS-Adobe-3.0 EPSF-3.0\n", "but this is application/postscript"),
            (b"8BPS\0\1", "photoshop"),
            (b"\x00\x00\x01\x00\x01\x00" + bytes(40), "image/x-icon is not supported"),
            (b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00", "save it as JPEG (an iPhone"),
            (b"%PDF-1.4", "but this is application/pdf"),
            (b"hello", "but this is text/plain"),
            (b"", "but this is application/octet-stream"),
        ],
    )
    def test_a_file_that_is_not_an_image_is_refused_with_advice(
        self, body: bytes, word: str
    ) -> None:
        assert word in reason(body)
        assert reason(body).startswith("expected a JPEG, PNG, GIF, WebP, AVIF or BMP image")

    @pytest.mark.parametrize("kind", ["image/tiff", "image/heic", "image/x-canon-cr3"])
    def test_a_photo_that_cannot_be_cleaned_is_not_stored(self, kind: str) -> None:
        with pytest.raises(ImageError, match="not supported"):
            images.check_storable(kind)

    @pytest.mark.parametrize("kind", ["image/png", "image/svg+xml", "application/pdf"])
    def test_other_files_are_stored(self, kind: str) -> None:
        images.check_storable(kind)

    def test_formats_with_untrusted_decoders_are_refused(self) -> None:
        for kind in ("TIFF", "PPM", "ICO", "PCX", "TGA", "JPEG2000", "EPS", "ICNS"):
            reason(saved(drawn(), kind))

    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("tenth", range(1, 10))
    def test_a_truncated_file_is_refused(self, kind: str, tenth: int) -> None:
        whole = sample(kind)
        assert "expected a" in reason(whole[: len(whole) * tenth // 10])

    @pytest.mark.parametrize("kind", ["GIF", "WEBP"])
    def test_a_too_long_animation_is_refused(self, kind: str) -> None:
        tiny = [Image.new("L", (1, 1), number % 2 * 255) for number in range(MAX_FRAMES + 1)]
        body = saved(tiny[0], kind, save_all=True, append_images=tiny[1:])
        if kind == "GIF":
            body = gif(1, 1, *[(1, 1)] * (MAX_FRAMES + 1))
        assert str(MAX_FRAMES) in reason(body)

    def test_an_animation_with_too_many_pixels_in_total_is_refused(self) -> None:
        assert "25 megapixels" in reason(gif(4000, 4000, *[(1, 1)] * 3))

    @pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF"])
    def test_an_image_may_have_as_many_pixels_as_the_limit(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # restored after the test
        monkeypatch.setattr(images, "MAX_PIXELS", 2400)
        monkeypatch.setattr(images, "MAX_PIXELS_OF_FRAMES", 2400)
        assert sanitize(saved(drawn(), kind)).width == 60
        assert "at most" in reason(saved(drawn(size=(60, 41)), kind))

    def test_all_frames_of_an_animation_may_have_as_many_pixels_as_the_limit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(images, "MAX_PIXELS_OF_FRAMES", 200)
        assert sanitize(gif(10, 10, *[(1, 1)] * 2)).width == 10
        assert "in all its frames" in reason(gif(10, 10, *[(1, 1)] * 3))


class TestDecompressionBombs:
    """Small files that declare a huge size are refused before memory is allocated for them."""

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
    def test_a_bomb_is_refused_at_once(self, body: bytes) -> None:
        tracemalloc.start()
        began = time.process_time()
        try:
            assert "50 megapixels" in reason(body)
            assert time.process_time() - began < 5  # CPU seconds; usually 0.01
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("kind", slow_but_for(["WEBP"], ["WEBP", "AVIF"]))
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
        most = 64 - source.count(b"\xff\xda")
        assert sanitize(source[:-2] + source[last:-2] * most + source[-2:]).width == 400


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
    def test_damage_after_a_valid_beginning_is_refused(self, start: bytes, rest: bytes) -> None:
        sanitized_or_refused(start + rest)

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
