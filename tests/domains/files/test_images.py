"""Tests of images from untrusted sources, which are decoded, cleaned and re-encoded."""

import struct
import zlib
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageCms, ImageSequence, ImageStat, PngImagePlugin

from chalicelib.domains.files.rules import images
from chalicelib.domains.files.rules.images import MAX_SIDE, THUMBNAIL_SIDE, sanitize
from tests.factories.images import (
    FORMATS,
    PAYLOAD,
    animation,
    chunk,
    drawn,
    gif,
    is_red,
    opened,
    sample,
    saved,
)
from tests.support.effort import matrix

pytestmark = pytest.mark.filterwarnings("ignore")
"""As in production, a warning from Pillow does not stop the conversion."""


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
        actual = opened(clean.body).convert("L")
        expected = source.convert("L") if mode in {"1", "P"} else grey
        limit = 0 if mode == "I;16" else 2
        assert all(
            abs(a - b) <= limit for a, b in zip(actual.tobytes(), expected.tobytes(), strict=True)
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

    @pytest.mark.parametrize("is_reversed", [False, True])
    def test_an_animation_stays_transparent_where_no_frame_draws(self, is_reversed: bool) -> None:
        frames = [Image.new("RGBA", (100, 100)) for _ in range(2)]
        frames[0].paste((255, 0, 0, 255), (0, 0, 50, 50))
        frames[1].paste((0, 0, 255, 255), (50, 50, 100, 100))
        if is_reversed:
            frames.reverse()
        body = saved(
            frames[0], "GIF", save_all=True, append_images=frames[1:], disposal=2, duration=100
        )
        clean = opened(sanitize(body).body)
        assert clean.mode == "RGBA"
        for number, frame in enumerate(frames):
            clean.seek(number)
            alpha = clean.convert("RGBA").getchannel("A")
            assert alpha.tobytes() == frame.getchannel("A").tobytes()

    @pytest.mark.parametrize("alphas", [(255, 255), (255, 0), (0, 255)])
    def test_an_animation_is_transparent_if_any_frame_is(self, alphas: tuple[int, int]) -> None:
        frames = [Image.new("RGBA", (60, 40), (9, 0, 99 * n, 255)) for n in range(2)]
        for frame, alpha in zip(frames, alphas, strict=True):
            frame.putpixel((0, 0), (0, 0, 0, alpha))
        body = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
        clean = sanitize(body).body
        assert clean[12:16] == b"VP8X"
        assert bool(clean[20] & 0x10) is (0 in alphas)

    def test_one_grey_of_a_png_of_16_bits_is_transparent_and_its_neighbours_are_not(self) -> None:
        source = Image.new("I;16", (3, 1))
        source.putdata([1_000, 1_001, 60_000])
        clean = opened(sanitize(saved(source, "PNG", transparency=1_000)).body)
        assert list(clean.convert("RGBA").getchannel("A").tobytes()) == [0, 255, 255]

    def test_one_colour_of_a_png_of_16_bits_is_transparent(self) -> None:
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0))
        pixels = zlib.compress(b"\0" + struct.pack(">6H", 1_000, 2_000, 3_000, 9_000, 9_000, 9_000))
        colour = chunk(b"tRNS", struct.pack(">3H", 1_000, 2_000, 3_000))
        body = b"\x89PNG\r\n\x1a\n" + header + colour + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
        clean = opened(sanitize(body).body)
        assert list(clean.convert("RGBA").getchannel("A").tobytes()) == [0, 255]

    @pytest.mark.parametrize("mode", ["P", "L", "LA", "RGBA", "I;16"])
    def test_an_image_that_is_made_smaller_stays_transparent(self, mode: str) -> None:
        size = (2 * MAX_SIDE, 20)
        options: dict[str, Any] = {} if mode in {"LA", "RGBA"} else {"transparency": 0}
        if mode in {"LA", "RGBA"}:
            source = Image.new(mode, size)
            source.paste("white", (MAX_SIDE, 0, *size))
        else:
            source = Image.new(mode, size, 0)
            source.paste(65_535 if mode == "I;16" else 255, (MAX_SIDE, 0, *size))
        clean = sanitize(saved(source, "PNG", **options))
        for body in (clean.body, clean.thumbnail):
            image = opened(body).convert("RGBA")
            alpha = image.getchannel("A")
            assert alpha.getpixel((0, 0)) == 0
            assert int(str(alpha.getpixel((image.width - 1, 0)))) > 0

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
        frames = []
        for frame in ImageSequence.Iterator(image):
            pixel = frame.convert("RGB").getpixel((5, 5))
            assert isinstance(pixel, tuple)
            frames.append((frame.info["duration"], pixel.index(max(pixel))))
        assert frames == [(100, 0), (200, 1), (300, 2)]

    def test_a_large_animation_is_scaled_down(self) -> None:
        assert sanitize(gif(MAX_SIDE * 2, 2, *[(1, 1)] * 2)).width == MAX_SIDE

    def test_frames_are_shown_as_long_as_browsers_show_them(self) -> None:
        frames = [Image.new("RGB", (30, 20), color) for color in ("red", "green", "blue")]
        durations = [10, 20, 70_000]
        body = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=durations)
        image = opened(sanitize(body).body)
        kept_durations = [frame.copy().info["duration"] for frame in ImageSequence.Iterator(image)]
        assert kept_durations == [100, 20, 60_000]

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

    @matrix("quality, size", [1, 5, 20, 40, 60, 75, 88, 95, 100], [(1, 1), (60, 40), (801, 597)])
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
        original, converted = (opened(one).convert("L") for one in (body, sanitize(body).body))
        difference = ImageStat.Stat(ImageChops.difference(original, converted)).mean[0]
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

    def test_a_jpeg_that_is_larger_as_progressive_is_written_as_baseline(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tables = images._our_tables()
        options = {"format": "JPEG", "optimize": True, "qtables": tables}
        image = scene("RGB", (16, 16))
        baseline = saved(image, "JPEG", optimize=True, qtables=tables)
        assert len(saved(image, "JPEG", optimize=True, qtables=tables, progressive=True)) > len(
            baseline
        )
        monkeypatch.setattr(images, "_PROGRESSIVE_FROM", 0)
        assert images._encode_jpeg(image, options, len(baseline)) == baseline


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
