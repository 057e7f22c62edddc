# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: many points along axes, run by Snakemake on this machine or a cluster (docs/sweeps.md).

    spec.py      the sweep file, or options, as data          points.py     points, their digests, and what a kind of job plans
    axes.py      products, zips, exclusions                   jobs/         a file for each kind of job
    main.py      `run(spec, out, ...)`: the entry for Python  workflow.py   the Snakefile and its configuration
    store.py     the folder of results                        snakemake.py  Snakemake in an environment of its own
    worker.py    what Snakemake starts for points and boots   speeds.py     seconds per kind of point, for estimates
    results.py   one Parquet table of all points, one of lines
    figures.py   which figures are plotted and printed
"""
