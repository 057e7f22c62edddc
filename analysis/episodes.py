# SPDX-License-Identifier: BSD-3-Clause
"""Pages that step through the episodes of a run's hottest names (episodes.parquet), one HTML file each in the folder `episodes`."""

import hashlib

from analysis.run_directory import Point, Run
from moscope.aside import write_whole
from moscope.errors import MoscopeError
from moscope.stepping import episode, page

FOLDER = "episodes"
KEY = "episodes"  # in Point.made: the page of each name and kind, relative to the report


def write(run: Run) -> None:
    """Writes the pages. Without the run's machine or protocol there are none, nor without the engine, which knows both; the page says
    why."""
    for point in run.points:
        point.made[KEY] = {}
    try:
        found = [(point, one) for point in run.points for one in episode.episodes_of(run.path, run.path / "points" / point.name)]
        machine = episode.described(run.path) if found else None
    except (MoscopeError, ImportError) as error:
        run.left_out.append(f"pages that step through the run's episodes, which need its machine and protocol: {error}")
        return
    if machine is None:
        return
    folder = run.path / FOLDER
    folder.mkdir(exist_ok=True)
    for point, one in found:
        file = folder / f"{point.name}-{hashlib.sha256(f'{one.name}|{one.kind}'.encode()).hexdigest()[:8]}.html"
        write_whole(file, page.html(episode.history_of(one, machine)).encode())
        entry = point.database.entries(point.name).get((one.name, one.kind), one.name)
        point.made[KEY].setdefault((entry, one.kind), f"{FOLDER}/{file.name}")  # of several elements, the hottest


def page_of(point: Point, name: str, kind: str) -> str | None:
    found: dict[tuple[str, str], str] = point.made.get(KEY, {})
    return found.get((name, kind))
