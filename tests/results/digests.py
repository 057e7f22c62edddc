# SPDX-License-Identifier: BSD-3-Clause
"""Digests of what the simulator computes, so that a change that must not alter results can be held against the tree before it.

`python tests/results/digests.py --runs --out FILE` writes them; `test_digests.py` compares the short ones with
`digests.json`. A digest covers simulated values only: host times and file names are left out. `run` depends on the
distribution's kernel, so its digests are not recorded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
HOST_KEYS = {"seconds", "host_s", "host_cpu_s", "host_s_per_ms", "trace", "report", "made_from", "versions", "console", "begin"}
SAID_OF_ACCESSES = {"size", "value_of", "remarks"}  # follows from the script and the rest of the trace
TRACES = ("c0 ld A@n7; c13 st A@n7", "c0 st A@n1 | c6 st A@n1 | c12 rmw A@n1; c3 ld A@n1",
          "c0 ld A@n0; c1 ld A@n0; c6 if A@n0; c7 flush A@n0",
          "c0 nt A@n2; c5 ld A@n2; c40 st A@n2 | c41 st A@n2")
MACHINES = ("opteron48", "opteron48_broadcast", "magnycours_4p")
WORKLOADS = ("counter", "falseshare", "exim")
CORES = (1, 12)


def digest(value: Any) -> str:
    text = json.dumps(_simulated(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _simulated(value: Any) -> Any:
    """The value without what belongs to the host."""
    if isinstance(value, dict):
        return {key: _simulated(v) for key, v in value.items() if key not in HOST_KEYS}
    if isinstance(value, list):
        return [_simulated(v) for v in value]
    return value


def command(*words: str, checkout: Path = CHECKOUT) -> dict[str, Any]:
    """The JSON object that a command prints."""
    with tempfile.TemporaryDirectory() as folder:
        out = [] if words[0] == "run" else ["--out", f"{folder}/out"]
        got = subprocess.run([str(checkout / "moscope"), *words, *out, "--json", "--quiet"], cwd=folder, capture_output=True, text=True,
                             check=False)
    if got.returncode != 0:
        raise RuntimeError(f"moscope {' '.join(words)}: exit code {got.returncode}: {got.stderr[-2000:]}")
    document: dict[str, Any] = json.loads(got.stdout)
    return document


def short_names() -> list[str]:
    """Latencies, traces and random tests: seconds each."""
    return [*(f"latency {machine}" for machine in MACHINES), *(f"trace {script}" for script in TRACES),
            *(f"check {protocol} seed {seed}" for protocol in ("MOESI_HTAssist", "MSI") for seed in (1, 2, 3))]


def short_digest(name: str, checkout: Path = CHECKOUT) -> str:
    kind, subject = name.split(" ", 1)
    if kind == "latency":
        return digest(command("latency", "--machine", subject, checkout=checkout)["rows"])
    if kind == "trace":
        document = command("trace", subject, checkout=checkout)
        accesses = [{key: v for key, v in a.items() if key not in SAID_OF_ACCESSES} for a in document["accesses"]]
        return digest([accesses, document["messages"], document["transitions"]])
    protocol, _, seed = subject.split(" ")
    document = command("protocol", "check", protocol, "--ops", "20000", "--seed", seed, checkout=checkout)
    return digest([document[key] for key in ("ok", "ops", "reached", "unreached", "checked_loads", "accesses")])


def run_digests(folder: Path, checkout: Path = CHECKOUT) -> Iterator[tuple[str, str]]:
    """Points of `run` with Debian's kernel, with every line's stall: minutes."""
    for workload in WORKLOADS:
        out = folder / workload
        points = command("run", "--workload", workload, "--kernel", "distro", "--cores", ",".join(map(str, CORES)), "--out", str(out),
                         checkout=checkout)["points"]
        for point in points:
            name = f"{workload}-distro-{point['cores']}"
            kept = [point[key] for key in ("throughput_per_s", "stderr_per_s", "ops", "cycles", "spin_cycles", "kernel_share",
                                           "instructions", "spin_instructions", "bottleneck", "top_lines")]
            yield f"run {name}", digest(kept)
            yield from _attribution(name, out / "points" / name)


# The columns of each digest, and which rows it covers.
TABLES = {
    "lines": (("line", "name", "transfers", "stall", "spin"), "SELECT * FROM lines ORDER BY waiting DESC, line, use LIMIT 500"),
    "names": (("name", "kind", "lines", "stall", "spin"), "SELECT * FROM names"),
    "functions": (("function", "stall", "spin"), """SELECT waiter_function AS function,
        sum(stall)::BIGINT AS stall, sum(spin)::BIGINT AS spin
                                                    FROM pairs GROUP BY waiter_function, kernel""")}


def _attribution(name: str, point: Path) -> Iterator[tuple[str, str]]:
    """Every line, name and function with what was waited for it."""
    from analysis.database import Database

    database = Database({name: point})
    for table, (keys, query) in TABLES.items():
        rows = sorted(json.dumps([row[key] for key in keys]) for row in database.rows(query))
        yield f"run {name} {table}", digest(rows)


def _in_own_environment() -> None:
    """Goes on in the Python environment of moscope, which has DuckDB."""
    sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "src/python")]
    from moscope import bootstrap

    python = bootstrap.venv_dir() / "bin/python"
    if sys.prefix != str(bootstrap.venv_dir()) and python.is_file():
        os.execv(python, [str(python), *sys.argv])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=CHECKOUT)
    parser.add_argument("--runs", type=Path, help="folder for run directories; with it, digests of runs too")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.runs:
        _in_own_environment()
    found = {name: short_digest(name, options.checkout) for name in short_names()}
    if options.runs:
        found |= run_digests(options.runs, options.checkout)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
