# SPDX-License-Identifier: BSD-3-Clause
"""PostgreSQL's kernel side for fix 14: queries that repeatedly ask for the length of two files."""

from moscope.workloads import Workload, register

register(__file__, Workload("pglseek", "a database's lseeks and reads on two files, with its computing between", "queries",
                            lambda cores: f"--cores {cores}", warmup="500us", window="1ms", kernels="stock,pk", processes=True))
