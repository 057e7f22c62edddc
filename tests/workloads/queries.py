#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Threads that ask one SQLite database."""
import sqlite3
import sys
import threading

PATH = "/tmp/numbers.db"


def work(number: int) -> None:
    own = sqlite3.connect(PATH)
    while True:
        own.execute("select sum(a) from t where b like ?", (f"%{number}%",)).fetchall()


if __name__ == "__main__":
    database = sqlite3.connect(PATH)
    database.execute("create table t (a integer, b text)")
    database.executemany("insert into t values (?, ?)", ((n, str(n)) for n in range(2000)))
    database.commit()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
