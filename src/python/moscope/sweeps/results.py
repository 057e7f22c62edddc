# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a sweep: `table.parquet` has a row for each point (parameters, figures, errors), `lines.parquet` a row for each name of
line of each point.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope.aside import written_aside
from moscope.sweeps import figures as shown
from moscope.sweeps.points import Point
from moscope.sweeps.spec import Spec, Value, text
from moscope.sweeps.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, LINES = "table.parquet", "lines.parquet"
SCHEMA, LINES_SCHEMA = "moscope.sweep.table/1", "moscope.sweep.lines/1"
DONE, FAILED, MISSING = "done", "failed", "missing"
MEASURED = "measured_"


def rows(points: list[Point], store: Store) -> list[dict[str, Value | None]]:
    """Parameters first, then status, figures and the error's text. A figure with the name of a parameter is left out if it equals
    the parameter in all points; otherwise its name is `measured_NAME`. An example is the number of windows that --until-error
    needed of those allowed."""
    results = [store.result(p.digest) for p in points]
    measured = {name for p, r in zip(points, results, strict=True) if r for name, value in r["figures"].items()
                if name in p.params and text(value) != text(p.params[name])}
    return [_row(p, r, store.failure(p.digest), measured) for p, r in zip(points, results, strict=True)]


def _row(point: Point, result: dict[str, Any] | None, failure: dict[str, Any] | None, measured: set[str]) -> dict[str, Value | None]:
    status = DONE if result else FAILED if failure else MISSING
    figures = {f"{MEASURED}{name}" if name in measured and name in point.params else name: value
               for name, value in (result["figures"] if result else {}).items() if name in measured or name not in point.params}
    return {**point.params, "point": point.digest, "status": status, **figures,
            "seconds": result["seconds"] if result else None, "error": failure["error"] if failure and not result else None}


def figures(spec: Spec, points: list[Point], store: Store) -> list[str]:
    """The numeric columns that the finished ones of these points have in the table, without axes."""
    done = rows([p for p in points if store.done(p.digest)], store)
    return list(dict.fromkeys(name for row in done for name, value in row.items()
                              if name not in spec.axes and isinstance(value, int | float) and not isinstance(value, bool)))


def column(values: list[Any]) -> "pa.Array":
    """A column: numbers as integers or floats, and truth values; texts, and values of several kinds, as text."""
    import pyarrow as pa

    kinds = {type(v) for v in values if v is not None}
    if kinds <= {int} or kinds <= {bool} or kinds <= {str}:
        return pa.array(values, {int: pa.int64(), bool: pa.bool_()}.get(next(iter(kinds), str), pa.string()))
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values], pa.string())


def table(spec: Spec, points: list[Point], store: Store) -> "pa.Table":
    import pyarrow as pa

    found = rows(points, store)
    names = list(dict.fromkeys([*spec.names(), *(name for r in found for name in r)]))
    names = [*shown.host_last(name for name in names if name != "error"), "error"]
    made = pa.table({name: column([r.get(name) for r in found]) for name in names})
    return made.replace_schema_metadata({"schema": SCHEMA, "axes": "\n".join(spec.axes), "job": spec.job})


def lines(spec: Spec, points: list[Point], store: Store) -> "pa.Table | None":
    """The names of lines of all finished points, preceded by the values of the axes; None if the job has no lines."""
    import pyarrow as pa

    from moscope.sweeps import jobs

    parts = []
    axes = {name: column([p.params[name] for p in points]) for name in spec.axes}  # so that a column has the same type in all parts
    for n, p in enumerate(points):
        found = jobs.find(spec.job).lines(store.point(p.digest)) if store.done(p.digest) else None
        if found is not None:
            parts.append(_placed(found, {name: values[n] for name, values in axes.items()}, p.digest))
    if not parts:
        return None
    return pa.concat_tables(parts, promote_options="permissive").replace_schema_metadata({"schema": LINES_SCHEMA})


def _placed(found: "pa.Table", params: "dict[str, pa.Scalar]", digest: str) -> "pa.Table":
    import pyarrow as pa

    front = {name: pa.repeat(value, found.num_rows) for name, value in params.items()}
    return pa.table({**front, "point": [digest] * found.num_rows, **{n: found[n] for n in found.column_names if n not in front}})


def write(spec: Spec, points: list[Point], store: Store) -> Path:
    """Writes the tables; returns the path of the first."""
    written = _write(table(spec, points, store), store.root / TABLE)
    if (of_lines := lines(spec, points, store)) is not None:
        _write(of_lines, store.root / LINES)
    else:
        (store.root / LINES).unlink(missing_ok=True)  # its points are no longer in the table
    return written


def _write(found: "pa.Table", path: Path) -> Path:
    from pyarrow import parquet

    with written_aside(path) as partial:
        parquet.write_table(found, partial)
    return path
