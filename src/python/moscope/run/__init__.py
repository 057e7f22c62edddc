# SPDX-License-Identifier: BSD-3-Clause
"""The main job: a workload on a guest in detailed mode, at several core counts, into a run directory (docs/run-directory.md).

`options` checks what was asked for, `checkpoints` boots (once per kernel and core count), `point` measures one point in
a process of its own (`worker`), `pool` runs these side by side, `directory` keeps what is finished.
"""
