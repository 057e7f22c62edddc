# SPDX-License-Identifier: BSD-3-Clause
"""The paper's bars of figure 3 by application and curve."""

from analysis import paper
from analysis.mosbench.data import Application, Results


def is_compared(results: Results) -> bool:
    return results.of_paper and results.most_cores == paper.CORES


def bar(results: Results, one: Application, curve: int) -> paper.Ratio | None:
    """Of a curve by its place. None for one that is neither the first nor the last, for a bar that no text gives, and for results of
    another machine or fewer cores."""
    if not is_compared(results):
        return None
    first, last = paper.RATIO.get(one.name, (None, None))
    return first if curve == 0 else last if curve == len(one.curves) - 1 else None
