# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.run`: measures workloads under Linux and returns tables; also opens run directories that already exist."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import jsonio
from moscope.api import html
from moscope.api.folders import Place, folder_for
from moscope.api.machine import AnyMachine, machine_of
from moscope.api.progress import Progress, Watcher, call
from moscope.api.values import place, several, switch, text, whole
from moscope.errors import MoscopeError, UserError, of_failures
from moscope.runs.point_name import point_name
from moscope.schema.enumerations import TIME_KIND

if TYPE_CHECKING:
    import pyarrow

    from moscope.runs.display import Display

Names = str | Iterable[str] | None
POINTS = {"point": "string", "workload": "string", "operation": "string", "kernel": "string", "cores": "int", "window_ms": "float",
          "ops": "int", "throughput_per_s": "float", "stderr_per_s": "float", "kernel_share": "float", "user_us_per_op": "float",
          "system_us_per_op": "float", **dict.fromkeys(TIME_KIND.names, "float"), "spin_cycles": "float", "bottleneck": "string",
          "instructions": "int", "host_s": "float", "host_s_per_ms": "float", "trend_before": "float", "trend_after": "float"}
TOP_LINES = {"point": "string", "rank": "int", "name": "string", "class": "string", "wait_share": "float", "stall_share": "float",
             "spin_share": "float", "transfers": "int", "address": "string", "writers": "strings", "waiters": "strings"}
PARQUET = ("lines", "pairs", "transfers", "transactions")


@dataclass(frozen=True)
class Run:
    """The results of a run, in its directory `path` (docs/run-directory.md has the columns of its tables, and their units).

    `points`: a row per workload, kernel and core count; `busy`, `idle`, `core`, `memory` are fractions of the cores' time.
    `top_lines`: per point, the 20 lines of memory that cost most. `lines`: all lines that cores waited for; `pairs`: the same by writer and
    waiter; `transfers`: the same by chips. In these, times are femtoseconds, and `point` names the row of `points`. `transactions`: with
    `detail="full"`. `errors`: why points are missing. `document`: the JSON object of `moscope run --json`.
    """

    path: Path
    document: dict[str, Any] = field(repr=False)
    errors: list[MoscopeError] = field(default_factory=list)
    _kept: object = field(default=None, repr=False)  # a temporary directory, which ends with its last user

    @property
    def report(self) -> Path:
        """The report, a page to open in a browser."""
        return self.path / "report.html"

    @cached_property
    def points(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(POINTS, [
            {**p, **p["cycles"], **{f"trend_{side}": value for side, value in p.get("trend", {}).items()}, "point": self._name(p)}
            for p in self.document["points"]])

    @cached_property
    def top_lines(self) -> "pyarrow.Table":
        from moscope.api.tables import table

        return table(TOP_LINES, [{**line, "point": self._name(p), "rank": rank} for p in self.document["points"]
                                 for rank, line in enumerate(p["top_lines"], 1)])

    @cached_property
    def lines(self) -> "pyarrow.Table":
        return self._read("lines")

    @cached_property
    def pairs(self) -> "pyarrow.Table":
        return self._read("pairs")

    @cached_property
    def transfers(self) -> "pyarrow.Table":
        return self._read("transfers")

    @cached_property
    def transactions(self) -> "pyarrow.Table":
        return self._read("transactions")

    @property
    def _on_gem5(self) -> bool:
        return "engine" in self.document

    def _name(self, point: dict[str, Any]) -> str:
        return point_name(point["workload"], point["kernel"], point["cores"], self._on_gem5)

    def _read(self, name: str) -> "pyarrow.Table":
        """The tables of this name of all points, concatenated."""
        import pyarrow
        from pyarrow import parquet

        parts = []
        for point in map(self._name, self.document["points"]):
            file = self.path / "points" / point / f"{name}.parquet"
            if not file.is_file():
                why = "a run on moscope's own engine" if self._on_gem5 else 'a run with detail="full"' if name == "transactions" \
                    else "a whole run directory"
                raise UserError(f"{file}: no such file: expected {why}")
            table = parquet.read_table(file, partitioning=None)
            parts.append(table.add_column(0, "point", pyarrow.array([point] * table.num_rows, pyarrow.string())))
        return pyarrow.concat_tables(parts or [pyarrow.table({"point": pyarrow.array([], "string")})], promote_options="permissive")

    def sql(self, query: str) -> "pyarrow.Table":
        """The result of an SQL query over the tables, which are named like the attributes:
        `run.sql("SELECT name, sum(stall) FROM lines GROUP BY name")`. Raises UserError for a query that DuckDB does not accept."""
        import duckdb
        import pyarrow

        query = text("Run.sql", query) or ""
        missing: dict[str, UserError] = {}
        with duckdb.connect() as connection:
            # The tables are found as words of the query: DuckDB names the tables of a query only where it does not need their
            # columns, so not in joins.
            for name in {"points", "top_lines", *PARQUET} & set(re.findall(r"\w+", query.lower())):
                try:
                    connection.register(name, getattr(self, name))
                except UserError as error:  # the word may stand for something else
                    missing[name] = error
            try:
                answer = connection.sql(query)
                return pyarrow.table({}) if answer is None else answer.to_arrow_table()
            except duckdb.CatalogException as error:
                for name, why in missing.items():
                    if f"table with name {name} does not exist" in str(error).lower():
                        raise why from None
                raise UserError(f"Run.sql: {error}") from None
            except duckdb.Error as error:
                raise UserError(f"Run.sql: {error}") from None

    def _repr_html_(self) -> str:
        rows = [[p["workload"], p["kernel"], p["cores"], p["throughput_per_s"], p["stderr_per_s"], 100 * p["memory"], p["bottleneck"]]
                for p in self.points.to_pylist()]
        return html.table(f"{self.document['machine']}: {self.path}", ["workload", "kernel", "cores", "operations per s", "standard error",
                                                                      "memory stall, %", "bottleneck"], rows)


def _other_folder(folder: Path) -> str:
    """What a folder without run.json holds instead, and what is expected; empty if it is no other kind of results."""
    if (folder / "point.json").is_file():
        run = folder.absolute().parent.parent
        return f"holds one point: expected the folder of its run{f', {run}' if (run / 'run.json').is_file() else ''}"
    if (folder / "sweep.json").is_file():
        return "holds a sweep, whose results are in table.parquet and lines.parquet: expected the folder that `moscope run --out` wrote"
    return ""


def open_run(path: Place) -> Run:
    """The results in a run directory, of `moscope run --out` or of `moscope.run(out=...)`. Raises UserError if there is none."""
    folder = Path(place("moscope.open_run", path) or "")
    if path is None:
        raise UserError("moscope.open_run: None: expected a path")
    try:
        document = jsonio.loads((folder / "run.json").read_text(encoding="utf-8"))
        why = "" if isinstance(document, dict) and isinstance(document.get("points"), list) else "is not from a run"
        errors = [] if why else of_failures(document)
    except FileNotFoundError as error:
        if other := _other_folder(folder):
            raise UserError(f"{folder}: {other}") from None
        why = str(error.strerror)
    except (OSError, ValueError) as error:
        why = str(error.strerror) if isinstance(error, OSError) else "is not JSON"
    except (TypeError, KeyError):
        why = "its list of failed points is malformed"
    if why:
        raise UserError(f"{folder / 'run.json'}: {why}: expected the folder that `moscope run --out` wrote")
    return Run(folder, document, errors)


def run(workload: Names = None, *, machine: AnyMachine = "opteron48", kernel: Names = None, cores: int | Iterable[int] | None = None,
        program: str | None = None, begin: str | None = None, warmup: str | None = None, window: str | None = None,
        windows: int | None = None, until_error: str | None = None, memory_per_node: str | None = None, detail: str = "table",
        threads: int | None = None, packages: Iterable[str] = (), variables: Iterable[str] = (), stdin: Place | None = None,
        take: Place | None = None, count: Iterable[str] = (), seed: int = 1, out: Place | None = None, progress: Watcher = None,
        check: bool = True) -> Run:
    """Measures workloads on kernels at core counts, as the command `run` does; omitted arguments have the command's defaults. The first run
    boots Linux, which takes a minute or two; later runs continue from a checkpoint.

    `workload`, `kernel`: a name or several, `cores`: a number or several. Times and sizes are texts with units (`window="5ms"`).
    `until_error="3%"`: windows are measured until the standard error is below 3 % of throughput; `windows` is then the maximum number.
    `packages`: Debian packages for the guest; `variables`: environment of the program, as `NAME=VALUE`; `stdin`: a file;
    `take`: a folder to copy into the guest; `count`: functions of the program whose calls are the operations.
    `out`: the run directory, in which a later call with the same options finds finished points; without `out`, results are in a temporary
    directory, which is removed with the `Run`. Points run in parallel, each in its own process.

    Raises UserError for options that are not accepted, before anything runs. If points fail, the others are measured; then the
    first error is raised, or with `check=False` all are in `Run.errors`. An interruption ends all processes; finished points stay in `out`.
    Without `out`, nothing is kept.
    """
    from moscope.runs import directory, main, options

    chosen, raises = machine_of(machine), switch("check", check)
    given = options.Options(workload=_listed(workload), kernel=_listed(kernel), cores=_listed(cores),
                            warmup=text("--warmup", warmup), window=text("--window", window),
                            windows=None if windows is None else whole("--windows", windows),
                            detail=text("--detail", detail) or "",
                            memory_per_node=text("--memory-per-node", memory_per_node), begin=text("--begin", begin),
                            program=text("--program", program),
                            threads=None if threads is None else whole("--threads", threads),
                            until_error=None if until_error is None else str(until_error), packages=several("--with", packages),
                            variables=several("--env", variables), stdin=place("--stdin", stdin),
                            take=place("--take", take), count=several("--count", count))
    with folder_for(out, "run") as folder:
        shared = call(chosen, seed, progress, folder.path)
        plan = options.make(shared, given)
        with directory.opened(plan) as found:
            outcome = main.measure(plan, shared, found, _display(shared.watcher))
        if raises and outcome.failed:
            raise outcome.failed[0]
    return Run(folder.path, outcome.document, outcome.failed, folder.kept)


def _listed(values: Any) -> str | None:
    """As the options take it: names or numbers with commas between."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(map(str, values)) if isinstance(values, Iterable) else str(values)


def _display(watcher: Callable[[Progress], None] | None) -> "Callable[[bool, int, int], Display]":
    """The display of the points' progress: the command's, or one that passes the progress on to `watcher`."""
    from moscope.runs import display, guest, job

    class Handed(display.Display):
        def __init__(self, watch: Callable[[Progress], None], quiet: bool, points: int, done: int) -> None:
            super().__init__(quiet, points, done)
            self.watch = watch

        def show(self, job: job.Job, progress: guest.Progress | None) -> None:
            if progress:
                self.watch(Progress(job.point.name, progress.phase, progress.part))

        def finished(self, job: job.Job, point: dict[str, Any]) -> None:
            self.watch(Progress(job.point.name, "finished", 1.0))

    return partial(Handed, watcher) if watcher else display.Display
