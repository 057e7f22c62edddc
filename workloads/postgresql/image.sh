#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the database, in the tree of the root image while the image is made: a table of a million rows, whose value follows
# from its key as the clients expect (src/net/postgresql/session.hh), and its index. The table is made in the
# transaction that fills it, so that no log of its rows is left.
set -e
bin=/usr/lib/postgresql/15/bin
data=/var/lib/moscope/postgresql
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }

# The cluster that the package has made.
rm -rf /var/lib/postgresql/15 /etc/postgresql/15
mkdir -p $data
chown postgres:postgres $data
chmod 700 $data
as $bin/initdb --pgdata=$data --auth=trust --username=postgres --no-locale --encoding=SQL_ASCII --no-sync
as $bin/postgres --single -D $data -c fsync=off -c autovacuum=off -c wal_level=minimal -c max_wal_senders=0 -c min_wal_size=32MB \
    -c max_wal_size=32MB -c jit=off postgres <<'SQL'
CREATE EXTENSION pg_prewarm
BEGIN
CREATE TABLE kv (k int NOT NULL, v int)
INSERT INTO kv SELECT k, (k::bigint * 2654435761 % 2147483648)::int FROM generate_series(0, 999999) AS k
ALTER TABLE kv ADD PRIMARY KEY (k)
COMMIT
VACUUM (FREEZE, ANALYZE)
CHECKPOINT
SQL
