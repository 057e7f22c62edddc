# SPDX-License-Identifier: BSD-3-Clause
"""The process that `bench instructions` counts: it runs each load twice, short and long, with one engine call each.

`python -m moscope.bench.counted REQUEST` with a JSON object: `machine`, `sets`, `seed`, `loads` (names of LOADS) and
`scale`. These engine calls are the only ones of the process, so the n-th part of the profile belongs to the n-th line
of standard output: one JSON object with the load and its units, the number of accesses or checked loads.
"""

import importlib
import json
import sys
from dataclasses import dataclass

from moscope.bench.memory import Bench
from moscope.cli import Shared
from moscope.experiment import prepare


@dataclass(frozen=True)
class Load:
    """A load of `bench memory`; `short` and `long` are portions of its usual length."""

    title: str
    unit: str
    method: str
    short: float
    long: float


LOADS = {
    "l1_hit": Load("L1 hit", "load", "l1_hits", 0.002, 0.012),
    "l2_hit": Load("hit in the next cache", "load", "l2_hits", 0.01, 0.16),
    "l3_hit": Load("L3 hit", "load", "l3_misses", 0.04, 0.16),
    "dram_far": Load("DRAM, greatest distance", "load", "dram_far", 0.02, 0.08),
    "tester": Load("random tester", "checked load", "tester", 0.002, 0.01),
}


def main(text: str) -> None:
    importlib.import_module("moscope.protocol.check")  # imported now, so that no part of the profile counts the import
    request = json.loads(text)
    subject = prepare(Shared(machine=request["machine"], sets=request["sets"], seed=request["seed"], quiet=True))
    for name in request["loads"]:
        load = LOADS[name]
        for scale in (load.short, load.long):
            # Two passes warm the caches as well as three do. After one pass, MOESI_hammer still fetches lines from memory.
            # More passes only add host instructions to the warm-up, which vary a little between processes.
            bench = Bench(subject, scale * request["scale"], 1, lambda text: None, sets=request["sets"], warm_passes=2)
            getattr(bench, load.method)()
            print(json.dumps({"load": name, "units": bench.units}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
