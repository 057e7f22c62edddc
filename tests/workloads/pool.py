#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes that take small pieces of work from a queue."""
import sys
from multiprocessing import Pool


def work(n: int) -> int:
    return sum(i * i for i in range(n % 100))


if __name__ == "__main__":
    with Pool(int(sys.argv[1])) as pool:
        while True:
            pool.map(work, range(2000), chunksize=10)
