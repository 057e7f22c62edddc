# SPDX-License-Identifier: BSD-3-Clause
"""A drawing as PNG: shapes stand where the drawing has them, in whatever strip they are drawn, and matplotlib is not loaded."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import moscope
from moscope import errors, paths
from moscope.traces import diagram, files
from moscope.traces.draw import STRIP, Box, Drawing, Head, Line, Text, to_png


def test_shapes_stand_at_their_places_in_every_strip() -> None:
    tall = 2 * STRIP + 100
    drawing = Drawing(200, tall)
    drawing.add(Line(100, 0, 100, tall, "#0000ff", 4))
    edge = STRIP / 2  # a strip ends here at two pixels per unit
    drawing.add(Box(20, edge - 20, 40, 40, "#ff0000"), Box(20, tall - 60, 40, 40, "#00ff00", "none", 6))
    drawing.add(Head(150, 50, 1, 0, "#000000", 20), Text(20, 40, "M", 30, "#ff00ff"))
    picture = Image.open(io.BytesIO(to_png(drawing)))
    assert picture.size == (400, 2 * tall)
    colours = {at: picture.getpixel(at) for at in [(200, 10), (200, 2 * tall - 10), (80, STRIP - 2), (80, STRIP + 2), (80, 2 * tall - 80),
                                                   (280, 100), (380, 100)]}
    assert list(colours.values()) == [(0, 0, 255), (0, 0, 255), (255, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 0), (255, 255, 255)]
    assert (255, 0, 255) in [picture.getpixel((x, y)) for x in range(40, 100) for y in (50, 60, 70)]


def test_a_dashed_line_has_gaps() -> None:
    drawing = Drawing(100, 20)
    drawing.add(Line(0, 10, 100, 10, "#000000", 2, (10, 10)))
    picture = Image.open(io.BytesIO(to_png(drawing)))
    assert [picture.getpixel((x, 20)) for x in (10, 30, 50)] == [(0, 0, 0), (255, 255, 255), (0, 0, 0)]


def test_a_png_loads_no_plotting_library() -> None:
    program = ("import sys; from moscope.traces.draw import Drawing, to_png; to_png(Drawing(10, 10)); "
               "assert 'matplotlib' not in sys.modules and 'numpy' not in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(paths.import_dir())})


def test_the_legend_explains_the_name_of_a_segment_that_its_bar_has() -> None:
    access = {"home": 0, "step": 0, "issued": 0, "done": 900, "text": "c0 ld A@n0", "op": "ld", "line": "A@n0", "address": "0x0", "core": 0,
              "latency_cycles": 900.0, "latency_ns": 375.0, "latency_fs": 900, "supplier": "own", "hops": 0, "supplier_number": None,
              "segments": [{"name": "home_queue", "fs": 800, "cycles": 800.0}, {"name": "dram", "fs": 100, "cycles": 100.0}]}
    document = {"script": "c0 ld A@n0", "machine": "small", "protocol": "MSI", "controllers": [], "permissions": {}, "accesses": [access],
                "transitions": [], "messages": [], "clock": {"core_period_fs": [1, 1]}, "vnets": {}}
    texts = [shape.text for shape in diagram.draw(document).shapes if isinstance(shape, Text)]
    assert {"home queue 800.0", "home queue: waiting at the home node", "dram: DRAM access"} <= set(texts)


def test_a_picture_that_is_too_large_to_be_read_is_refused_or_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagram, "draw", lambda document: Drawing(700, 30001))
    document: dict[str, Any] = {"accesses": [{}] * 50}
    with pytest.raises(errors.UserError, match="--png: 50 accesses in a picture of 700 by 30,001: expected at most 30,000 by 30,000"):
        files.write_diagrams(document, tmp_path / "t.svg", tmp_path / "t.png")
    assert not list(tmp_path.iterdir())
    assert "no trace.png" in files.write_folder(tmp_path / "out", document)
    with pytest.warns(UserWarning, match="no trace.png"):
        moscope.Trace(moscope.Machine("small"), document).save(tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "out").glob("trace.*")) == ["trace.json", "trace.svg"]
