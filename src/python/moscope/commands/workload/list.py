# SPDX-License-Identifier: BSD-3-Clause
"""`moscope workload list`: the workloads that `run --workload` accepts."""

from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def list_(shared: Shared) -> None:
    """List the workloads, with the operation and the default kernels of each."""
    from moscope import workloads

    every = workloads.every()
    shared.result({"schema": "moscope.workloads/1", "workloads": [
        {"name": w.name, "family": w.family, "summary": w.summary, "operation": w.operation, "kernels": w.kernels.split(","),
         "processes": w.processes, "most_cores": w.most_cores} for w in every]})
    if not shared.json:
        for w in every:
            print(f"{w.name:<18} {w.summary} ({w.operation}); kernel {w.kernels}")
