"""The picture of a soak: an SVG with one panel for each measure, in light and dark."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

WIDTH, PANEL, GAP = 760, 92, 40
LEFT, RIGHT, TOP = 64, 16, 34
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.frame, .grid { stroke: #d1d9e0; fill: none }
.line { stroke: #0969da; fill: none; stroke-width: 1.5; stroke-linejoin: round }
.warm-up { fill: #818b981f }
.paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .frame, .grid { stroke: #3d444d }
  .line { stroke: #4493f8 }
  .paper { fill: #0d1117 }
}
"""


class Panel(NamedTuple):
    """A measure over time. Points are minutes and values, and ``unit`` titles the vertical axis."""

    title: str
    unit: str
    points: Sequence[tuple[float, float]]


def svg(panels: Sequence[Panel], minutes: float, warm_up: float, about: str) -> str:
    """Return the picture. ``warm_up`` are the shaded minutes at the beginning."""
    height = TOP + len(panels) * (PANEL + GAP) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(about)}</title><style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
    ]
    for number, panel in enumerate(panels):
        is_last = number == len(panels) - 1
        top = TOP + number * (PANEL + GAP)
        parts += _panel(panel, top, minutes, warm_up, is_last=is_last)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: int, minutes: float, warm_up: float, *, is_last: bool) -> list[str]:
    width = WIDTH - LEFT - RIGHT
    highest = _round_up(max((value for _, value in panel.points), default=0))

    def x(minute: float) -> float:
        return round(LEFT + width * min(1.0, minute / minutes), 1)

    def y(value: float) -> float:
        return round(top + PANEL * (1 - value / highest), 1)

    line = " ".join(f"{x(minute)},{y(value)}" for minute, value in panel.points)
    parts = [
        f'<text class="title" x="{LEFT}" y="{top - 10}">{escape(panel.title)}</text>',
        _box("warm-up", top, x(warm_up) - LEFT),
        _box("frame", top, width),
        f'<path class="grid" d="M{LEFT} {y(highest / 2)}h{width}" stroke-dasharray="2 4"/>',
        f'<polyline class="line" points="{line}"/>',
        _label(f'transform="translate(14 {top + PANEL // 2}) rotate(-90)"', panel.unit),
    ]
    for value in (0.0, highest / 2, highest):
        place = f'x="{LEFT - 6}" y="{y(value) + 4}"'
        parts.append(_label(place, f"{value:g}", anchor="end"))
    for minute in range(0, floor(minutes) + 1, ceil(_round_up(minutes / 10))):
        unit = " min" if is_last and minute else ""
        parts.append(_label(f'x="{x(minute)}" y="{top + PANEL + 15}"', f"{minute}{unit}"))
    return parts


def _box(style: str, top: int, width: float) -> str:
    size = f'width="{width:g}" height="{PANEL}"'
    return f'<rect class="{style}" x="{LEFT}" y="{top}" {size}/>'


def _label(place: str, text: str, anchor: str = "middle") -> str:
    return f'<text {place} text-anchor="{anchor}">{escape(text)}</text>'


def _round_up(value: float) -> float:
    """Return the next round number, for an axis."""
    if value <= 0:
        return 1.0
    scale: float = 10 ** floor(log10(value))
    return next(factor * scale for factor in (1, 2, 3, 4, 5, 6, 8, 10) if value <= factor * scale)
