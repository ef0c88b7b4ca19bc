"""Images of a bakery's goods, classes and people, drawn on the spot.

Flat, bright, the same on every machine.
"""

import math
import random
from collections.abc import Callable
from io import BytesIO

from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 640, 480
SMOOTHING = 2
"""Images are drawn so many times larger and made smaller at the end, which smooths edges."""
UNITS = 800
"""A drawing is so many units wide, and three quarters of that high."""
SCALE = WIDTH * SMOOTHING / UNITS
CRUST, DARK, CRUMB, CREAM = "#c9853f", "#8f5423", "#f0cf96", "#fff6e6"
RYE, RYE_DARK = "#7d4d2b", "#553018"
BERRY, CHOCOLATE, LEAF = "#c8324a", "#4f2d1b", "#6f9a55"

Box = tuple[float, float, float, float]
_CLEAR = (0, 0, 0, 0)


class Sketch:
    """A transparent sheet, 800 units wide and 600 high."""

    def __init__(self, name: str) -> None:
        self.image = Image.new("RGBA", (WIDTH * SMOOTHING, HEIGHT * SMOOTHING), _CLEAR)
        self.dice = random.Random(name)  # noqa: S311  repeatable by intent
        self._pen = ImageDraw.Draw(self.image)

    def oval(self, x: float, y: float, across: float, high: float, colour: str) -> None:
        """Draw an ellipse around a point."""
        box = (x - across / 2, y - high / 2, x + across / 2, y + high / 2)
        self._pen.ellipse(_scaled(box), fill=colour)

    def block(self, box: Box, colour: str, radius: float = 0) -> None:
        """Draw a rectangle with round corners."""
        self._pen.rounded_rectangle(_scaled(box), radius * SCALE, fill=colour)

    def line(self, box: Box, colour: str, width: float) -> None:
        """Draw a line with round ends."""
        self._pen.line(_scaled(box), fill=colour, width=round(width * SCALE))
        for x, y in (box[:2], box[2:]):
            self.oval(x, y, width, width, colour)

    def ring(self, box: Box, colour: str, width: float) -> None:
        """Draw the outline of an ellipse."""
        self._pen.ellipse(_scaled(box), outline=colour, width=round(width * SCALE))

    def sprinkle(self, place: tuple[int, int, int], count: int, size: int, colour: str) -> None:
        """Scatter dots around a point, within a radius."""
        x, y, radius = place
        for _ in range(count):
            angle, far = self.dice.random() * math.tau, radius * math.sqrt(self.dice.random())
            self.oval(
                x + far * math.cos(angle), y + far * math.sin(angle) * 0.8, size, size, colour
            )


def _scaled(box: Box) -> Box:
    left, top, right, bottom = box
    return left * SCALE, top * SCALE, right * SCALE, bottom * SCALE


def _loaf(on: Sketch, crust: str = CRUST, cuts: str = CRUMB) -> None:
    on.oval(400, 340, 520, 270, crust)
    on.block((140, 330, 660, 475), crust, 60)
    for x in (270, 390, 510):
        on.line((x, 370, x + 50, 265), cuts, 22)


def _rye(on: Sketch) -> None:
    _loaf(on, RYE, RYE_DARK)
    on.sprinkle((400, 350, 150), 40, 7, CRUMB)


def _baguette(on: Sketch) -> None:
    on.line((170, 430, 630, 230), CRUST, 110)
    for step in range(6):
        x, y = 210 + step * 76, 415 - step * 33
        on.line((x - 12, y + 26, x + 22, y - 34), CRUMB, 16)


def _bun(on: Sketch) -> None:
    on.oval(400, 345, 400, 320, CRUST)
    on.oval(385, 320, 320, 230, "#d99a55")
    for step in range(40):
        angle = step * 0.42
        far = 16 + step * 3.1
        x, y = 395 + far * math.cos(angle), 325 + far * 0.75 * math.sin(angle)
        on.oval(x, y, 20, 18, DARK)
    on.sprinkle((395, 325, 150), 45, 6, CREAM)


def _croissant(on: Sketch) -> None:
    for step in range(-4, 5):
        x, y = 400 + step * 58, 290 + step * step * 9
        size = 190 - abs(step) * 30
        on.oval(x, y, 92, size, DARK)
        on.oval(x, y - 6, 76, size - 14, CRUST if step % 2 else "#d99a55")


def _pie(on: Sketch) -> None:
    on.oval(400, 350, 480, 340, CRUST)
    on.oval(400, 345, 410, 280, BERRY)
    for step in range(-2, 3):
        reach = 125 - abs(step) * 22
        on.line((400 + step * 72, 345 - reach, 400 + step * 72, 345 + reach), CRUMB, 24)
        across = 190 - abs(step) * 34
        on.line((400 - across, 345 + step * 50, 400 + across, 345 + step * 50), CRUMB, 24)


def _cake(on: Sketch, icing: str = CREAM, layer: str = "#e7b56c", top: str = BERRY) -> None:
    on.oval(400, 470, 520, 70, "#ffffff")
    for number, colour in enumerate((layer, icing, layer, icing, layer)):
        on.block((210, 250 + number * 42, 590, 296 + number * 42), colour, 6)
    on.oval(400, 250, 380, 90, icing)
    for step in range(8):
        drop = on.dice.randrange(40, 90)
        on.block((212 + step * 48, 245, 250 + step * 48, 245 + drop), icing, 18)
    for step in range(7):
        on.oval(260 + step * 47, 238 - 14 * (step % 2), 46, 46, top)


def _chocolate_cake(on: Sketch) -> None:
    _cake(on, CHOCOLATE, "#8a5a3c", CREAM)


def _cookies(on: Sketch) -> None:
    for x, y in ((290, 390), (510, 390), (400, 290)):
        on.oval(x, y, 230, 190, "#b97a3c")
        on.oval(x - 4, y - 8, 210, 168, "#dba45f")
        on.sprinkle((x - 4, y - 8, 80), 14, 22, CHOCOLATE)


def _pasty(on: Sketch) -> None:
    on.oval(400, 360, 470, 230, CRUST)
    on.oval(390, 340, 400, 160, "#d99a55")
    for step in range(9):
        x = 220 + step * 45
        on.line((x, 345 - 12 * (step % 2), x + 30, 318 + 12 * (step % 2)), DARK, 10)
    on.sprinkle((390, 330, 140), 18, 9, LEAF)


def _cup(on: Sketch) -> None:
    on.oval(400, 480, 430, 70, "#ffffff")
    on.ring((520, 270, 650, 400), "#ffffff", 26)
    on.block((250, 220, 550, 470), "#ffffff", 70)
    on.oval(400, 232, 300, 76, "#e9e3da")
    on.oval(400, 236, 262, 56, CHOCOLATE)
    on.oval(400, 238, 120, 26, CRUMB)
    for x in (340, 400, 460):
        on.line((x, 170, x + 14, 130), "#ffffff", 12)


def _tea(on: Sketch) -> None:
    _cup(on)
    on.oval(400, 236, 262, 56, "#b5642a")
    on.oval(430, 240, 50, 16, LEAF)


def _rolling_pin(on: Sketch) -> None:
    on.oval(400, 400, 520, 220, CREAM)
    on.oval(400, 392, 470, 180, CRUMB)
    on.line((130, 470, 670, 250), DARK, 26)
    on.line((220, 433, 580, 287), CRUST, 96)
    on.sprinkle((400, 385, 125), 40, 7, "#ffffff")


def _mixing_bowl(on: Sketch) -> None:
    for reach in (-46, 0, 46):
        on.ring((400 + reach - 60, 60, 400 + reach + 60, 330), "#8f99a3", 9)
    on.line((400, 30, 400, 90), DARK, 26)
    on.oval(400, 400, 480, 200, "#5f8fb4")
    on.block((160, 300, 640, 400), "#5f8fb4", 10)
    on.oval(400, 300, 480, 110, "#4a7697")
    on.oval(400, 306, 420, 84, CREAM)
    on.oval(400, 490, 240, 36, "#4a7697")


def _person(on: Sketch, hair: str, coat: str) -> None:
    on.block((210, 420, 590, 600), coat, 110)
    on.block((360, 360, 440, 460), "#e8b58c", 36)
    on.oval(400, 300, 230, 260, hair)
    on.oval(400, 310, 190, 226, "#f2c6a0")
    on.block((295, 170, 505, 236), "#ffffff", 14)
    for x in (330, 400, 470):
        on.oval(x, 140, 120, 110, "#ffffff")
    for x in (362, 438):
        on.oval(x, 306, 20, 24, CHOCOLATE)
    on.oval(400, 372, 70, 20, BERRY)
    for y in (480, 530):
        on.oval(400, y, 18, 18, CREAM)


def _baker(on: Sketch) -> None:
    _person(on, RYE, "#b5642a")


def _confectioner(on: Sketch) -> None:
    _person(on, "#e8b58c", "#4a7697")
    for x, end in ((396, 340), (404, 460)):
        on.line((x, 350, end, 358), CHOCOLATE, 22)


DRAWINGS: dict[str, Callable[[Sketch], None]] = {
    "loaf": _loaf,
    "rye": _rye,
    "baguette": _baguette,
    "bun": _bun,
    "croissant": _croissant,
    "pie": _pie,
    "pasty": _pasty,
    "cake": _cake,
    "chocolate cake": _chocolate_cake,
    "cookies": _cookies,
    "cup": _cup,
    "tea": _tea,
    "rolling pin": _rolling_pin,
    "mixing bowl": _mixing_bowl,
    "baker": _baker,
    "confectioner": _confectioner,
}
"""What can be drawn, by name."""
_WALLS = ("#f7d9c4", "#dbe7d3", "#d5e3ee", "#f4e3b8", "#ead9ec")


def image(name: str) -> bytes:
    """Return a JPEG of one of the drawings, on a table before a wall."""
    sheet = _drawn(name)
    wall = _WALLS[list(DRAWINGS).index(name) % len(_WALLS)]
    scene = Image.new("RGB", (WIDTH, HEIGHT), wall)
    ImageDraw.Draw(scene).rectangle((0, HEIGHT * 2 // 3, WIDTH, HEIGHT), fill="#fbf1e2")
    shadow = Image.new("L", (WIDTH, HEIGHT), 0)
    left, _, right, bottom = sheet.getbbox() or (0, 0, WIDTH, HEIGHT)
    ImageDraw.Draw(shadow).ellipse((left, bottom - 36, right, bottom + 20), fill=90)
    shadow = shadow.filter(ImageFilter.GaussianBlur(11))
    scene.paste(Image.new("RGB", scene.size, "#6b4a2f"), mask=shadow)
    scene.paste(sheet, mask=sheet)
    return _jpeg(scene)


def showcase(*names: str) -> bytes:
    """Return a wide JPEG of some drawings beside each other, as in a shop's window."""
    scene = Image.new("RGB", (WIDTH * 2, HEIGHT), "#f7d9c4")
    ImageDraw.Draw(scene).rectangle((0, 345, WIDTH * 2, HEIGHT), fill="#a9754a")
    room = WIDTH * 2 // len(names)
    for number, name in enumerate(names):
        sheet = _drawn(name).crop((80, 80, 560, 440))
        sheet = sheet.resize((room, room * 3 // 4), Image.Resampling.BILINEAR)
        _, _, _, bottom = sheet.getbbox() or (0, 0, 0, 0)
        scene.paste(sheet, (number * room, 415 - bottom), mask=sheet)
    return _jpeg(scene)


def _drawn(name: str) -> Image.Image:
    sketch = Sketch(name)
    DRAWINGS[name](sketch)
    return sketch.image.reduce(SMOOTHING)


def _jpeg(image: Image.Image) -> bytes:
    body = BytesIO()
    image.save(body, "JPEG", quality=88)
    return body.getvalue()
