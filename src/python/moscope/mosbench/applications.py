# SPDX-License-Identifier: BSD-3-Clause
"""The applications of the MOSBENCH paper, each with the curves of its figure and the limit that the paper gives for it (figure
12).

An application consists of workloads (docs/workloads.md). The paper measured each application twice: unmodified on Linux 2.6.35,
and modified on PK. These are the first and the last curve.
"""

from collections.abc import Container
from dataclasses import dataclass

from moscope.errors import UserError, unknown_name


@dataclass(frozen=True)
class Curve:
    """`label`: as in the paper's figure. `workload` and `kernel`: as for `moscope run`."""

    label: str
    workload: str
    kernel: str


@dataclass(frozen=True)
class Application:
    """`figure`: the number of its figure in the paper. `curves`: the first and the last are the bars of figure 3. `limit`: the paper's
    figure 12."""

    name: str
    title: str
    figure: int
    curves: tuple[Curve, ...]
    limit: str


APPLICATIONS = (
    Application("exim", "Exim", 4, (Curve("Stock", "exim", "stock"), Curve("PK", "exim", "pk")),
                "App: contention on spool directories"),
    Application("memcached", "memcached", 5, (Curve("Stock", "memcached", "stock"), Curve("PK", "memcached", "pk")),
                "HW: transmit queues on NIC"),
    Application("apache", "Apache", 6, (Curve("Stock", "apache", "stock"), Curve("PK", "apache-one", "pk")),
                "HW: receive queues on NIC"),
    Application("postgresql", "PostgreSQL", 7, (Curve("Stock", "postgresql-seeks", "stock"), Curve("PK", "postgresql-seeks", "pk")),
                "App: application-level spin lock"),
    Application("gmake", "gmake", 9, (Curve("Stock", "gmake", "stock"), Curve("PK", "gmake", "pk")),
                "App: serial stages and stragglers"),
    Application("pedsort", "pedsort", 10,
                (Curve("Stock + threads", "pedsort", "stock"), Curve("Stock + processes", "pedsort-processes", "stock"),
                 Curve("Stock + processes RR", "pedsort-spread", "stock"), Curve("PK + processes RR", "pedsort-spread", "pk")),
                "HW: cache capacity"),
    Application("metis", "Metis", 11, (Curve("Stock + 4 KB pages", "metis", "stock"), Curve("PK + 2 MB pages", "metis-2m", "pk")),
                "HW: DRAM throughput"),
)


def missing(one: Application, workloads: Container[str]) -> list[str]:
    """The workloads of the bars of figure 3 that moscope does not have."""
    return sorted({c.workload for c in (one.curves[0], one.curves[-1]) if c.workload not in workloads})


def curves(one: Application, workloads: Container[str]) -> list[Curve]:
    """The curves whose workloads exist."""
    return [c for c in one.curves if c.workload in workloads]


def chosen(names: str | None, workloads: Container[str]) -> list[Application]:
    """The applications of a list such as `exim,gmake`, in the paper's order; by default all whose workloads exist."""
    by_name = {a.name: a for a in APPLICATIONS}
    if names is None:
        return [a for a in APPLICATIONS if not missing(a, workloads)]
    wanted = [part.strip() for part in names.split(",")]
    for name in wanted:
        if name not in by_name:
            raise unknown_name("--workload", "application", name, by_name, ", ".join(by_name))
        if lacking := missing(by_name[name], workloads):
            available = ", ".join(a.name for a in APPLICATIONS if not missing(a, workloads))
            raise UserError(f"--workload: {name}: moscope has no workload {' or '.join(lacking)} yet: expected some of {available}")
    return [a for a in APPLICATIONS if a.name in wanted]
