# SPDX-License-Identifier: BSD-3-Clause
"""A drawing as a list of shapes in pixels (y grows downwards), and the two formats in which it can be written: SVG, written here,
and PNG, by Pillow. The same font is named in both, so a layout made with `text_width` fits both."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FONT_STACK = "'DejaVu Sans', Verdana, sans-serif"


@dataclass(frozen=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "none"
    radius: float = 0.0
    tip: str = ""


@dataclass(frozen=True)
class Head:
    """An arrow head: a triangle with its point at (x, y), coming from the direction (dx, dy)."""

    x: float
    y: float
    dx: float
    dy: float
    colour: str
    size: float = 7.0
    hollow: bool = False

    def corners(self) -> list[tuple[float, float]]:
        length = (self.dx**2 + self.dy**2) ** 0.5 or 1.0
        ux, uy = self.dx / length, self.dy / length
        back = (self.x - ux * self.size * 1.25, self.y - uy * self.size * 1.25)
        half = self.size * 0.5
        return [(self.x, self.y), (back[0] - uy * half, back[1] + ux * half), (back[0] + uy * half, back[1] - ux * half)]


@dataclass(frozen=True)
class Text:
    x: float
    y: float  # of the base line
    text: str
    size: float = 11.0
    colour: str = "#222222"
    anchor: str = "start"  # start, middle, end
    bold: bool = False
    halo: bool = False
    tip: str = ""


Shape = Line | Box | Head | Text


@dataclass
class Drawing:
    width: float = 0.0
    height: float = 0.0
    title: str = ""
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes += shapes


# Advance widths of DejaVu Sans in thousandths of the size, by class of character.
_NARROW, _WIDE = set("iIjl|.,:;'!()[]/ tfr-"), set("mwMW@%")


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width in pixels; an estimate that is rather too large than too small."""
    thousandths = sum(400 if c in _NARROW else 950 if c in _WIDE else 700 if c.isupper() else 625 for c in text)
    return thousandths * size / 1000 * (1.1 if bold else 1.0)


def to_svg(drawing: Drawing) -> str:
    w, h = round(drawing.width), round(drawing.height)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
           f'font-family="{FONT_STACK}">', f"<title>{escape(drawing.title)}</title>",
           f'<rect width="{w}" height="{h}" fill="#ffffff"/>']
    out += [_svg(shape) for shape in drawing.shapes]
    out.append("</svg>\n")
    return "\n".join(out)


def _svg(s: Shape) -> str:
    if isinstance(s, Line):
        dash = f' stroke-dasharray="{" ".join(f"{d:g}" for d in s.dash)}"' if s.dash else ""
        return (f'<line x1="{s.x1:.1f}" y1="{s.y1:.1f}" x2="{s.x2:.1f}" y2="{s.y2:.1f}" stroke="{s.colour}" '
                f'stroke-width="{s.width:g}"{dash}/>')
    if isinstance(s, Box):
        return (f'<rect x="{s.x:.1f}" y="{s.y:.1f}" width="{s.width:.1f}" height="{s.height:.1f}" rx="{s.radius:g}" '
                f'fill="{s.fill}" stroke="{s.stroke}">{_tip(s.tip)}</rect>')
    if isinstance(s, Head):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in s.corners())
        fill = "#ffffff" if s.hollow else s.colour
        return f'<polygon points="{points}" fill="{fill}" stroke="{s.colour}"/>'
    weight = ' font-weight="bold"' if s.bold else ""
    halo = ' stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' if s.halo else ""
    return (f'<text x="{s.x:.1f}" y="{s.y:.1f}" font-size="{s.size:g}" fill="{s.colour}" text-anchor="{s.anchor}"'
            f'{weight}{halo}>{_tip(s.tip)}{escape(s.text)}</text>')


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


SMOOTH = 2  # pixels drawn for one pixel of the picture, in each direction
STRIP = 1500  # rows of the picture that are drawn at a time
SCALE = 2.0  # pixels per unit
MOST_PIXELS = 30000  # of a side; viewers take no larger pictures


def too_large(drawing: Drawing) -> bool:
    """Whether a picture that viewers take would have less than a pixel for a unit, so that it could not be read."""
    return max(drawing.width, drawing.height) > MOST_PIXELS


def to_png(drawing: Drawing) -> bytes:
    """The drawing at SCALE pixels per unit; less where the picture would grow beyond what viewers take."""
    from PIL import Image, ImageDraw

    scale = min(SCALE, MOST_PIXELS / max(drawing.width, drawing.height))
    width, height = round(drawing.width * scale), round(drawing.height * scale)
    picture = Image.new("RGB", (width, height), "#ffffff")
    for top in range(0, height, STRIP):
        rows = min(STRIP, height - top)
        strip = Image.new("RGB", (width * SMOOTH, rows * SMOOTH), "#ffffff")
        pen = _Pen(ImageDraw.Draw(strip), scale * SMOOTH, top / scale)
        for shape in drawing.shapes:
            if _reaches(shape, top / scale, (top + rows) / scale):
                pen.paint(shape)
        picture.paste(strip.reduce(SMOOTH), (0, top))
    out = io.BytesIO()
    picture.save(out, format="png", compress_level=3)  # takes half the time, for a slightly larger file
    return out.getvalue()


def _reaches(s: Shape, top: float, bottom: float) -> bool:
    """Whether a shape may have a part between two heights."""
    if isinstance(s, Line):
        low, high = min(s.y1, s.y2), max(s.y1, s.y2)
    elif isinstance(s, Box):
        low, high = s.y, s.y + s.height
    else:
        low = high = s.y
    return high + MARGIN > top and low - MARGIN < bottom


MARGIN = 30.0  # of a line's width, an arrow's head or a letter's height


@cache
def _font(bold: bool, pixels: float) -> Any:
    """The font that comes with matplotlib's package; matplotlib itself is not imported."""
    from PIL import ImageFont

    found = find_spec("matplotlib")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0], "mpl-data", "fonts", "ttf")
    return ImageFont.truetype(str(folder / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")), pixels)


@dataclass(frozen=True)
class _Pen:
    draw: Any  # PIL.ImageDraw.ImageDraw
    scale: float
    top: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        return x * self.scale, (y - self.top) * self.scale

    def thick(self, width: float) -> int:
        return max(1, round(width * self.scale))

    def paint(self, s: Shape) -> None:
        if isinstance(s, Line):
            for (x1, y1), (x2, y2) in _dashes(s):
                self.draw.line([self.at(x1, y1), self.at(x2, y2)], fill=s.colour, width=self.thick(s.width))
        elif isinstance(s, Box):
            outline = None if s.stroke == "none" else s.stroke
            self.draw.rounded_rectangle([self.at(s.x, s.y), self.at(s.x + s.width, s.y + s.height)], s.radius * self.scale,
                                        fill=None if s.fill == "none" else s.fill, outline=outline, width=self.thick(1))
        elif isinstance(s, Head):
            corners = [self.at(x, y) for x, y in s.corners()]
            self.draw.polygon(corners, fill="#ffffff" if s.hollow else s.colour, outline=s.colour, width=self.thick(1))
        else:
            halo = {"stroke_width": self.thick(1.5), "stroke_fill": "#ffffff"} if s.halo else {}
            self.draw.text(self.at(s.x, s.y), s.text, fill=s.colour, font=_font(s.bold, s.size * self.scale),
                           anchor={"start": "ls", "middle": "ms", "end": "rs"}[s.anchor], **halo)
            if s.halo:  # the outline covers the letters' edges
                self.draw.text(self.at(s.x, s.y), s.text, fill=s.colour, font=_font(s.bold, s.size * self.scale),
                               anchor={"start": "ls", "middle": "ms", "end": "rs"}[s.anchor])


Point = tuple[float, float]


def _dashes(s: Line) -> Iterator[tuple[Point, Point]]:
    """The parts of a line that are drawn: all of it, or its dashes."""
    length = ((s.x2 - s.x1) ** 2 + (s.y2 - s.y1) ** 2) ** 0.5
    if not s.dash or not length:
        yield (s.x1, s.y1), (s.x2, s.y2)
        return

    def at(along: float) -> Point:
        share = min(along, length) / length
        return s.x1 + share * (s.x2 - s.x1), s.y1 + share * (s.y2 - s.y1)

    on, off = s.dash[0], s.dash[1 % len(s.dash)]
    along = 0.0
    while along < length:
        yield at(along), at(along + on)
        along += on + off
