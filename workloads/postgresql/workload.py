# SPDX-License-Identifier: BSD-3-Clause
"""PostgreSQL of the distribution, as the MOSBENCH paper runs it (section 5.5): a table of keys and values on tmpfs with its index, in
shared buffers that hold both; a connection for each core, which sends batches of 256 statements; a card that learns the queue of a
connection from each twentieth packet sent. `postgresql` reads; of the statements of `postgresql-write`, 5 % update. The server of
`postgresql-seeks` asks for the sizes of the two files twice as often (seeks.c): in the paper, a query seeks "many times".

The paper's table has 10 million rows, this one has a million. The database is made with the root image (image.sh).
"""

from moscope.workloads import Workload, register, service

ROWS, BATCH, UPDATES = 1_000_000, 256, 5
PROGRAM, FILES, DATA = "/usr/lib/postgresql/15/bin/postgres", "/run/moscope/workloads/postgresql", "/run/postgresql/data"


def window(cores: int) -> str:
    """A client receives the rows of 16 statements at once: windows are long enough for some hundred messages."""
    return "50ms" if cores < 4 else "12ms" if cores < 24 else "4ms"


def short_window(cores: int) -> str:
    """Some 40 messages."""
    return "12ms" if cores < 4 else "3ms" if cores < 24 else "1ms"


def warmup(cores: int) -> str:
    """Many cores read the server's code from one node's memory first: after 300 us, most waiting of 48 cores is still for cold lines."""
    return "1ms" if cores < 24 else "3ms"


def postgresql(name: str, summary: str, updates: int = 0, preload: str = "") -> Workload:
    return service(
        name, summary, "queries", packages=("postgresql-15",), image="image.sh", port=5432, steering="pin-every-20", one_process=True,
        prepare=f"mkdir -p /run/postgresql && cp -a /var/lib/moscope/postgresql {DATA}",
        each="exec setpriv --reuid=postgres --regid=postgres --clear-groups "
        f"{f'env LD_PRELOAD={FILES}/{preload} ' if preload else ''}{PROGRAM} -D {DATA} -c config_file={FILES}/postgresql.conf",
        load=lambda cores: f"postgresql connections={cores} rows={ROWS} batch={BATCH} updates={updates}",
        warmup=warmup, window=window, short_window=short_window, kernels="stock,pk")


register(__file__,
         postgresql("postgresql", "a database, asked over the network card for rows by key"),
         postgresql("postgresql-seeks", "the same with four seeks for a query, two in each of the two files", preload="seeks.so"),
         postgresql("postgresql-write", "the same, where 5 % of the statements update a row", UPDATES))
