# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.sweep`: many points along axes, as one table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope.api import html
from moscope.api.folders import Place, folder_for
from moscope.api.machine import AnyMachine, Machine, is_topology, machine_of, text_of
from moscope.api.progress import Watcher, call
from moscope.api.values import each, mapping, of_python, switch, text, whole
from moscope.errors import UserError, of_failure

if TYPE_CHECKING:
    import pyarrow

    from moscope.sweeps.spec import Spec

SHOWN = 20  # rows in a notebook


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, in its directory `path` (docs/sweeps.md has the columns of its tables).

    `points`: a row per point, with its parameters, `status`, figures, `seconds` and `error`. `lines`: per point, the lines of
    memory that cost most, for jobs that have them; else no columns. `failed`: for each failed point its `error`, and the
    `command` that repeats it. `document`: the JSON object of `moscope sweep --json`; its `findings` are the points of `protocol
    check` with a violation or a protocol error, which have not failed.
    """

    path: Path
    document: dict[str, Any] = field(repr=False)
    failed: list[dict[str, Any]] = field(default_factory=list)
    _kept: object = field(default=None, repr=False)  # a temporary directory, which ends with its last user

    @property
    def report(self) -> Path:
        """The report, a page to open in a browser."""
        return Path(self.document["report"])

    @cached_property
    def points(self) -> "pyarrow.Table":
        return self._read("table.parquet")

    @cached_property
    def lines(self) -> "pyarrow.Table":
        return self._read("lines.parquet")

    def _read(self, name: str) -> "pyarrow.Table":
        import pyarrow
        from pyarrow import parquet

        file = self.path / name
        return parquet.read_table(file, partitioning=None) if file.is_file() else pyarrow.table({})

    def _repr_html_(self) -> str:
        rows = self.points.slice(0, SHOWN).to_pylist()
        names = [name for name in self.points.column_names if name not in ("point", "seconds")]
        title = f"{self.document['done']} of {self.document['points']} points: {self.path}"
        return html.table(title, names, [[row[name] for name in names] for row in rows])


def sweep(job: Place, axes: Mapping[str, Sequence[Any]] | None = None, *, fixed: Mapping[str, Any] | None = None,
          zips: Sequence[Sequence[str]] = (), exclude: Sequence[Mapping[str, Any]] = (), machine: AnyMachine | None = None,
          seed: int | None = None, out: Place | None = None, executor: str = "local", jobs: int | None = None, plot: str | None = None,
          progress: Watcher = None, check: bool = True) -> Sweep:
    """Runs a job at the points along axes, as the command `sweep` does:
    `sweep("trace", {"links.clock": ["1GHz", "2.4GHz"]}, fixed={"script": "c0 ld A@n7"})`.

    `job` is a sweep file, or the kind of job (latency, run, trace ..) with `axes`, `fixed`, `zips` and `exclude` as the file has
    them. A parameter is an option of the job, `machine`, `seed` or a key of `--set`. `out`: the directory, in which a later call
    computes only what is missing; without `out`, results are in a temporary directory, which is removed with the `Sweep`. `executor`
    is local or slurm, `jobs` the number of points at the same time.

    Raises UserError for any mistake before the first point. If points fail, the others run; then the first error is raised, or
    with `check=False` all are in `Sweep.failed`. An interruption ends all processes; what is finished stays in `out`.
    """
    from moscope.sweeps import main

    described = _described(job, axes, fixed, zips, exclude, machine, seed)
    at_once = None if jobs is None else whole("--jobs", jobs)
    executor, plot = text("--executor", executor) or "", text("--plot", plot)
    shared, raises = call(Machine(), 1, progress), switch("check", check)
    shown = -1

    def show(done: int, points: int, _: list[str]) -> None:
        nonlocal shown
        if done != shown:
            shown = done
            shared.say(f"{done} of {points} points finished", done / points)

    with folder_for(out, "sweep") as folder:
        outcome = main.run(described, folder.path, executor=executor, at_once=at_once, plot=plot, say=shared.say, progress=show)
        if raises and outcome.failed:
            raise of_failure(outcome.failed[0])
        if outcome.wrong:
            raise outcome.wrong
    return Sweep(folder.path, outcome.document, outcome.failed, folder.kept)


def _described(job: Place, axes: Mapping[str, Sequence[Any]] | None, fixed: Mapping[str, Any] | None, zips: Sequence[Sequence[str]],
               exclude: Sequence[Mapping[str, Any]], machine: AnyMachine | None, seed: int | None) -> "Spec":
    from moscope.sweeps import overrides, spec

    axes, fixed = mapping("axes", axes), mapping("fixed", fixed)
    zipped = [names if isinstance(names, str) else each("zips", names, "axes") for names in each("zips", zips, "lists of axes")]
    excluded = [mapping("exclude", entry) for entry in each("exclude", exclude, "mappings from names to values")]
    more: dict[str, Any] = {} if seed is None else {"seed": of_python(seed)}
    if machine is not None:
        chosen = machine_of(machine)
        more |= {"machine": chosen.base, **chosen.changes}
    elif isinstance(described := fixed.get("machine"), Machine):
        if twice := [key for key in described.changes if key in fixed]:
            raise UserError(f"moscope.sweep: fixed: {twice[0]}: is also set by the machine: expected one of the two")
        fixed |= {"machine": described.base, **described.changes}
    if str(job).endswith(".toml"):
        if axes or fixed or zipped or excluded:
            raise UserError(f"moscope.sweep: {job}: is a sweep file: expected no axes, fixed, zips or exclude with it")
        found = spec.read(Path(job))
        overrides.check_zips(found, set(more))
        return replace(found, fixed={**found.fixed, **more}, axes={key: found.axes[key] for key in found.axes if key not in more})
    document = {
        "job": str(job), "fixed": {**{key: _plain(value) for key, value in fixed.items()}, **more},
        "axes": {key: _listed(values) for key, values in axes.items()},
        "zip": zipped,
        "exclude": [{key: _listed(value) for key, value in entry.items()} for entry in excluded],
    }
    return spec.from_document(document, str(job), "moscope.sweep")


def _listed(values: Any) -> Any:
    """Several values as a list, of whatever kind their sequence is; a single one alone."""
    several = isinstance(values, Iterable) and not isinstance(values, str) and not is_topology(values)
    return [_plain(value) for value in values] if several else _plain(values)


def _plain(value: Any) -> str | int | float | bool:
    if isinstance(value, Machine):
        raise UserError(f"moscope.sweep: {value!r:.80}: expected the name or the file of a machine here, and its changed parameters in "
                        "axes or fixed")
    value = of_python(value)
    return value if isinstance(value, str | int | float) else text_of(value)
