# SPDX-License-Identifier: BSD-3-Clause
"""How figures look: a palette by role, with a light and a dark value each, and the conversion of a matplotlib figure to PNG and to
an SVG within the page, which takes its colours from the page.

The colours are distinguishable with the common kinds of colour blindness (after Okabe and Ito, and Paul Tol). Where a colour carries
meaning, order, labels or markers carry it too. No colour has two roles, because the SVG's colours are replaced by value.
"""

import html
import io
import re
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from PIL import Image

from analysis.described import CLASSES, SPIN, TIME_KIND, WAIT
from moscope.errors import unknown_name

# Colours of values that src/schema describes, by name: (light, dark).
DESCRIBED = {name: colours for e in (WAIT, TIME_KIND) for name in e.names if (colours := e[name].colours)}
# role: (light, dark)
PALETTE: dict[str, tuple[str, str]] = {
    "ink": ("#1c2126", "#e7eaed"), "muted": ("#59636d", "#9ba6b1"), "grid": ("#dde2e6", "#30373e"), "page": ("#fefefe", "#15191d"),
    "user": ("#4477aa", "#6c9fd2"), "kernel": ("#99c8e3", "#2f6690"), "without_class": ("#6b4226", "#a9785a"),
    "heat": ("#0b4f8c", "#7cc0f8"), "onheat": ("#fdfefe", "#0a1621"), "dark": ("#1c2127", "#0a1622"),
    "series1": ("#0072b2", "#56a9e0"), "series2": ("#d55e00", "#f08a3c"), "series3": ("#009e73", "#35c79b"),
    "series4": ("#cc79a7", "#e09cc3"), **DESCRIBED,
}
LABELS = {
    "user": "busy, user", "kernel": "busy, kernel", "without_class": "without a class",
    **{name: e.label(name) for e in (WAIT, TIME_KIND) for name in e.names},
}

# Parts into which figures divide a kind of time, where the run knows them: (part, kind).
PARTS = (("user", "busy"), ("kernel", "busy"), (SPIN, "core"), *((c, "memory") for c in CLASSES), ("without_class", "memory"))
CONTRAST = 4.5  # that small text on an area needs on a light and on a dark page (WCAG 2)
SERIES = (("series1", "o"), ("series2", "s"), ("series3", "^"), ("series4", "D"))
POINTS_PER_INCH = 72
# A share of the longest bar. A smaller area is at most half a pixel high, and a legend leaves it out.
SEEN = 0.002
WIDE, NARROW, TITLE = 10.3, 4.3, 0.4  # inches; the last is the height of a PNG's title
PNG_DPI = 160


class UnknownRole(LookupError):
    """A figure asks for a colour by a role that the palette does not have."""


def color(role: str) -> str:
    if role not in PALETTE:
        raise UnknownRole(f"{unknown_name('colour', 'role', role, PALETTE)}")
    return PALETTE[role][0]


def series(number: int) -> tuple[str, str]:
    """Role and marker of one of several series; those of the first sixteen differ."""
    around = len(SERIES)
    return SERIES[number % around][0], SERIES[(number + number // around) % around][1]


def causes() -> tuple[str, ...]:
    """What a core's time goes to, in the order of stacked bars: the kinds of time, each before its parts."""
    return tuple(cause for kind in TIME_KIND.ranked for cause in (kind, *(part for part, of in PARTS if of == kind)))


def text_on(role: str) -> str:
    """The colour of text on an area of this role's colour."""
    return color(role_on(role))


def role_on(role: str) -> str:
    """The role of text on an area: `onheat`, or the role with the most contrast where that has too little."""
    def least_contrast(text: str) -> float:
        return min(contrast(a, b) for a, b in zip(PALETTE[text], PALETTE[role], strict=True))

    return "onheat" if least_contrast("onheat") >= CONTRAST else max(("onheat", "dark", "ink"), key=least_contrast)


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours (WCAG 2): 1 to 21."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2): 0 to 1."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def figure(wide: bool, height: float, **kw: object) -> Figure:
    """An empty figure in the house style; `height` in inches."""
    with house():
        return Figure(figsize=(WIDE if wide else NARROW, height), layout="constrained", **kw)  # type: ignore[arg-type]


RC: dict[Any, Any] = {
    "font.size": 10, "font.family": "DejaVu Sans", "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": color("muted"), "axes.labelcolor": color("ink"), "axes.titlecolor": color("ink"), "text.color": color("ink"),
    "xtick.color": color("muted"), "ytick.color": color("muted"), "xtick.labelcolor": color("ink"), "ytick.labelcolor": color("ink"),
    "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelsize": 10, "legend.fontsize": 9,
    "legend.frameon": False, "axes.grid": False, "grid.color": color("grid"), "grid.linewidth": 0.8, "axes.axisbelow": True,
    "xtick.labelsize": 9.5, "ytick.labelsize": 9.5, "axes.facecolor": "none", "figure.facecolor": "none", "lines.linewidth": 2,
    "lines.markersize": 6.5, "hatch.linewidth": 0.6, "text.parse_math": False,  # names may have dollars
    "axes.formatter.useoffset": False, "axes.formatter.limits": (-5, 12),
}


def house() -> AbstractContextManager[None]:
    """While this lasts, figures are drawn in the house style."""
    return mpl.rc_context(RC)


def legend_above(fig: Figure, handles: list[Any], labels: list[str], columns: int) -> None:
    if not labels:
        return
    fig.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.1, handleheight=1.0, columnspacing=1.3,
               handletextpad=0.5, borderaxespad=0.2)


class Grouped(ScalarFormatter):
    """Ticks as matplotlib writes them, with commas between thousands."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return re.sub(r"(?<![\d.])\d{4,}", lambda digits: f"{int(digits[0]):,}", super().__call__(x, pos))


def bar_limits(bars: int) -> tuple[float, float]:
    """The axis of bars at 0, 1, ..; one alone stands in the middle, and is not twice as wide as one of two."""
    beside = 0.6 if bars > 1 else 1.1
    return -beside, bars - 1 + beside


def horizontal_grid(ax: Axes) -> None:
    ax.grid(axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def apart(values: list[int], distance: float) -> list[int]:
    """The values, such as numbers of cores, without those that are too close to the one before: ticks of an axis."""
    kept: list[int] = []
    for v in values:
        if not kept or v - kept[-1] >= distance:
            kept.append(v)
    return kept


def heat_scale(fig: Figure, ax: Axes, most: float, label: str, wide: bool) -> None:
    """A bar below or beside `ax`: the scale of the heat colour."""
    inset = ax.inset_axes((0.0, -0.11, 0.45 if wide else 0.8, 0.03))
    steps = 16
    inset.barh([0] * steps, [most / steps] * steps, left=[most * i / steps for i in range(steps)], height=1.0,
               color=[(color("heat"), heat_alpha((i + 1) / steps)) for i in range(steps)], linewidth=0)
    inset.set(xlim=(0, most), ylim=(-0.5, 0.5), yticks=[])
    inset.set_xlabel(label)
    inset.spines[:].set_visible(False)
    inset.locator_params(axis="x", nbins=4)


def heat_alpha(share: float) -> float:
    """Strength of the heat colour for a value that is `share` of the largest."""
    return float(0.06 + 0.94 * max(0.0, min(share, 1.0)) ** 0.6)


def text_on_heat(share: float) -> str:
    return color("onheat") if heat_alpha(share) > 0.55 else color("ink")


def shortened(name: str, most: int) -> str:
    """A long name without its middle: both ends are informative."""
    if len(name) <= most:
        return name
    head = (most - 1) * 3 // 5
    return name[:head] + "\u2026" + name[len(name) - (most - 1 - head):]


def wrapped(name: str, most: int, lines: int = 4) -> str:
    """A name on as many lines of `most` characters as it needs, broken after punctuation. A name longer than `lines` lines loses its
    middle."""
    rows = [""]
    for piece in re.findall(r"[^_./+: ]+[_./+: ]*|[_./+: ]+", shortened(name, most * lines)):
        if rows[-1] and len(rows[-1]) + len(piece.rstrip()) > most:
            rows.append("")
        for at in range(0, len(piece), most):
            if at:
                rows.append("")
            rows[-1] += piece[at:at + most]
    return "\n".join(row.rstrip(" ") for row in rows)


def png(fig: Figure, title: str) -> bytes:
    """The figure below its title. The two are drawn separately, because legends outside the axes ignore a title."""
    head = figure(True, TITLE)
    head.set_layout_engine("none")
    with house():
        head.text(0.01, 0.5, title, ha="left", va="center", fontsize=12.5, weight="bold", color=color("ink"))
    parts = [_drawn(head), _drawn(fig)]
    whole = Image.new("RGB", (parts[1].width, sum(p.height for p in parts)), color("page"))
    whole.paste(parts[0], (0, 0))
    whole.paste(parts[1], (0, parts[0].height))
    out = io.BytesIO()
    whole.save(out, "png", dpi=(PNG_DPI, PNG_DPI))  # `optimize` takes four times as long, for a file that is 2 % smaller
    return out.getvalue()


def _drawn(fig: Figure) -> Image.Image:
    _lay_out(fig)
    canvas = FigureCanvasAgg(fig)
    with house():
        fig.set_dpi(PNG_DPI)
        fig.set_facecolor(color("page"))
        canvas.draw()  # type: ignore[no-untyped-call]
        fig.set_facecolor("none")
    return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba())  # type: ignore[no-untyped-call]


def _lay_out(fig: Figure) -> None:
    """Places what the figure holds, once. `Figure.savefig` does this again for each file, and draws all of it twice."""
    with house():
        for ax in fig.axes:
            for axis in (ax.xaxis, ax.yaxis):
                if type(axis.get_major_formatter()) is ScalarFormatter:
                    axis.set_major_formatter(Grouped())
    engine = fig.get_layout_engine()
    if engine is None:
        return
    with house():
        fig.set_dpi(PNG_DPI)
        engine.execute(fig)
    fig.set_layout_engine("none")


_NUMBERED = re.compile(r'\b(id="|xlink:href="#|href="#|url\(#)')


def svg(fig: Figure, key: str, title: str, css_class: str) -> str:
    """SVG within a page: colours are the page's, text stays text, and identifiers begin with `key`."""
    _lay_out(fig)
    out = io.StringIO()
    with mpl.rc_context({**RC, "svg.hashsalt": key}):
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FigureCanvasSVG(fig).print_svg(out, metadata=no_metadata)  # type: ignore[no-untyped-call]
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for role, (light, _) in PALETTE.items():
        text = re.sub(re.escape(light) + r"\b", f"var(--{role})", text, flags=re.IGNORECASE)
    text = _NUMBERED.sub(lambda m: f"{m[1]}{key}-", text)
    text = re.sub(r"font-family: [^;\"]*|(font: [^'\";]*px) [^;\"]*",
                  lambda m: f"{m[1]} var(--font)" if m[1] else "font-family: var(--font)", text)
    text = re.sub(r"\n\s*", "\n", text)
    width = re.search(r'width="([\d.]+)pt"', text)
    px = round(float(width[1]) * 96 / POINTS_PER_INCH) if width else 900
    head = f'<svg class="{css_class}" style="max-width:{px}px" role="img" aria-label="{html.escape(title)}"'
    return re.sub(r'<svg( xmlns:xlink="[^"]*")? width="[^"]*" height="[^"]*"| version="1.1"',
                  lambda m: head if m[0].startswith("<svg") else "", text, count=2)
