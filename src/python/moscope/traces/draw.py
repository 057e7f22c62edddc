# SPDX-License-Identifier: BSD-3-Clause
"""A drawing as a list of shapes in pixels (y grows downwards), and the two files it can become: SVG, written here,
and PNG, by matplotlib. The same font is named in both, so a layout made with `text_width` fits both."""

import io
from dataclasses import dataclass, field
from html import escape
from typing import Any

FONT = "DejaVu Sans"
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
    """Width in pixels, rather too large than too small."""
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


def to_png(drawing: Drawing, scale: float = 2.0) -> bytes:
    """The drawing at `scale` pixels per unit; less where the picture would grow beyond what viewers take."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scale = min(scale, 30000 / max(drawing.width, drawing.height))
    dpi = 72 * scale  # one unit is then one point
    figure = Figure(figsize=(drawing.width / 72, drawing.height / 72), dpi=dpi)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    for order, shape in enumerate(drawing.shapes):
        _paint(axes, shape, order + 1)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, pil_kwargs={"compress_level": 3})  # half the time, little more to store
    return out.getvalue()


def _paint(axes: Any, s: Shape, z: int) -> None:
    from matplotlib import patches, patheffects
    from matplotlib.lines import Line2D

    if isinstance(s, Line):
        style: Any = (0, tuple(d / s.width for d in s.dash)) if s.dash else "-"
        axes.add_line(Line2D([s.x1, s.x2], [s.y1, s.y2], color=s.colour, linewidth=s.width, linestyle=style, zorder=z,
                             solid_capstyle="butt"))
    elif isinstance(s, Box):
        edge = s.stroke if s.stroke != "none" else (0, 0, 0, 0)
        axes.add_patch(patches.FancyBboxPatch(
            (s.x, s.y), s.width, s.height, boxstyle=patches.BoxStyle.Round(pad=0, rounding_size=s.radius)
            if s.radius else patches.BoxStyle.Square(pad=0),
            facecolor=s.fill, edgecolor=edge, linewidth=1 if s.stroke != "none" else 0, zorder=z))
    elif isinstance(s, Head):
        axes.add_patch(patches.Polygon(s.corners(), closed=True, facecolor="#ffffff" if s.hollow else s.colour,
                                       edgecolor=s.colour, linewidth=1, zorder=z))
    else:
        effects = [patheffects.withStroke(linewidth=3, foreground="#ffffff")] if s.halo else []
        axes.text(s.x, s.y, s.text.replace("$", r"\$"), fontsize=s.size, color=s.colour, zorder=z, family=FONT,
                  fontweight="bold" if s.bold else "normal", va="baseline", path_effects=effects,
                  ha={"start": "left", "middle": "center", "end": "right"}[s.anchor])
