# SPDX-License-Identifier: BSD-3-Clause
"""Call chains of waiting cores, from the samples of a point (stacks.parquet, docs/run-directory.md)."""

from analysis.chains.table import Chain, by_functions, called_at, chains, sampled, stores_note

__all__ = ["Chain", "by_functions", "called_at", "chains", "sampled", "stores_note"]
