# SPDX-License-Identifier: BSD-3-Clause
"""PostgreSQL's kernel side for fix 14: queries that ask again and again how long two files are."""

from .registry import Workload, register

register(Workload("pglseek", "pglseek", "a database's lseeks and reads on two files, with its computing between", "queries",
                  lambda cores: f"--cores {cores}", warmup="500us", window="1ms", kernels="stock,pk"))
