# SPDX-License-Identifier: BSD-3-Clause
"""The main job: measures a workload in detailed mode at several core counts and writes a run directory
(docs/run-directory.md).

`options` checks the request, `checkpoints` boots once per kernel and core count, `point` measures one point in its own
process (`worker`), `pool` runs points in parallel, and `directory` keeps finished points.
"""
