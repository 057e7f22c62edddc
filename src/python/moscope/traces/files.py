# SPDX-License-Identifier: BSD-3-Clause
"""Files that the user names for results, and those that `moscope trace` writes: the document, and sequence diagrams. Each is
complete or not at all."""

import os
from pathlib import Path
from typing import Any

from moscope import aside, jsonio
from moscope.errors import UserError
from moscope.failures import expected

Document = dict[str, Any]


def check_target(path: Path | None, ending: str) -> None:
    """Checks before the run, as far as possible, that a file can be written there. Its name has the ending of its contents, by which
    other programs and commands know them; so no two options name the same file."""
    if path is None:
        return
    if path.is_dir():
        raise UserError(f"{path}: is a folder: expected the name of a file")
    if path.suffix != ending:
        raise UserError(f"{path}: the name does not end in {ending}: expected one that does, such as {path.with_suffix(ending)}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}: expected an existing one")
    if not os.access(path.absolute().parent, os.W_OK):
        raise UserError(f"{path}: the folder {path.parent} cannot be written: expected a writable folder")


def write_whole(path: Path, data: bytes) -> None:
    """`aside.write_whole` for a file that the user has named."""
    try:
        aside.write_whole(path, data)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: expected {expected(error, 'a writable file')}") from error


def write_diagrams(document: Document, svg: Path | None, png: Path | None) -> None:
    """UserError, before any file is written, if the picture would be too large to be read."""
    if svg is None and png is None:
        return
    from moscope.traces import diagram as trace_diagram
    from moscope.traces import draw as trace_draw

    drawing = trace_diagram.draw(document)
    if png and trace_draw.too_large(drawing):
        raise UserError(f"--png: {len(document['accesses'])} accesses in a picture of {drawing.width:,.0f} by "
                        f"{drawing.height:,.0f}: expected at most {trace_draw.MOST_PIXELS:,} by {trace_draw.MOST_PIXELS:,} "
                        "(--steps draws a part; --svg has no limit)")
    if svg:
        write_whole(svg, trace_draw.to_svg(drawing).encode())
    if png:
        write_whole(png, trace_draw.to_png(drawing))


def write_folder(folder: Path, document: Document) -> str:
    """Writes the files of `--out`: the document and both diagrams. Returns a remark if the PNG would be too large to be read; then it
    is left out."""
    from moscope.traces import diagram as trace_diagram
    from moscope.traces import draw as trace_draw

    drawing = trace_diagram.draw(document)
    large = trace_draw.too_large(drawing)
    with jsonio.atomic_dir(folder) as out:
        (out / "trace.json").write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
        (out / "trace.svg").write_text(trace_draw.to_svg(drawing), encoding="utf-8")
        if not large:
            (out / "trace.png").write_bytes(trace_draw.to_png(drawing))
    return f"{folder}: no trace.png: the diagram is too large for a picture that can be read" if large else ""
