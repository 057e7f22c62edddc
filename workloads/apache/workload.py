# SPDX-License-Identifier: BSD-3-Clause
"""Apache of the distribution, as the MOSBENCH paper runs it (section 5.4): a file of 300 bytes, a process with a pool of 24 threads
for each core, logging and keep-alive off, 116 connections for each core (58 clients with two each). With `apache`, each core has an
instance and a port of its own, as on the paper's stock kernel, and the card gives each port to the queue of its core. With
`apache-one`, one instance has a process for each core and one port, as on PK, and the card spreads connections over the queues; the
processes are pinned, and a connection notifies only the process that takes it (one_instance.c).
"""

from moscope.workloads import register, service

PORT, CONNECTIONS_PER_CORE, BYTES = 8000, 116, 300
FOLDER, DOCUMENTS = "/run/apache", "/srv"
# The letters that the client expects. A read of a file on tmpfs locks its page, for which 48 cores queue; on ramfs it does not. Its
# folder is in that of the root, so that a walk to the file crosses one mount, as one to a file of a tmpfs does.
FILE = (f"mkdir -p {FOLDER} && mount -t ramfs ramfs {DOCUMENTS} && awk 'BEGIN {{for (i = 0; i < {BYTES}; ++i) "
        f"""printf("%%c", 97 + i %% 26)}}' >{DOCUMENTS}/file""")

FILES = "/run/moscope/workloads/apache"
COMMAND = f"apache2 -f {FILES}/apache.conf"
# Directives that follow those of the file: threads of all processes together.
POOL = " ".join(f'-c "{name} {value}"' for name, value in (
    ("ServerLimit", "%n"), ("StartServers", "%n"), ("MaxRequestWorkers", "$((24 * %n))"), ("MinSpareThreads", "$((24 * %n))"),
    ("MaxSpareThreads", "$((24 * %n))")))
# All connections may wait for one socket. If its queue is too short for them, the kernel drops requests, which come again 200 ms later
# or more. With fix 1 the limit is that of each core's queue.
QUEUE = 16384
LONG_QUEUES = " && ".join(f"echo {QUEUE} >/proc/sys/net/{name}" for name in ("core/somaxconn", "ipv4/tcp_max_syn_backlog"))


def warmup(cores: int) -> str:
    """Some 20 requests per core, so that few are served with cold caches. The first ones of 48 cores take 1 ms each."""
    return "2ms" if cores < 24 else "6ms"


def warmup_of_one(cores: int) -> str:
    """On more than 36 cores, the card's packet limit may be reached: longer, until the occupancy of its receive FIFO is steady."""
    return warmup(cores) if cores <= 36 else "16ms"


def window(cores: int) -> str:
    """Some 100 requests or more."""
    return "10ms" if cores < 6 else "2ms"


def load(servers: int, cores: int) -> str:
    return f"http servers={servers} connections={CONNECTIONS_PER_CORE * cores} port={PORT} bytes={BYTES}"


register(__file__, service(
    "apache", "a web server for each core, asked over the network card", "requests",
    packages=("apache2",), port=PORT, steering="fixed-port", prepare=FILE,
    each=f'exec {COMMAND} -c "Listen %p" -c "PidFile {FOLDER}/%p.pid" -DFOREGROUND',
    load=lambda cores: load(cores, cores), warmup=warmup, window=window, kernels="stock,pk"), service(
    "apache-one", "one web server with a process for each core, asked over the network card", "requests",
    packages=("apache2",), port=PORT, steering="rss", prepare=f"{LONG_QUEUES} && {FILE}", one_process=True,
    each=f'exec env LD_PRELOAD={FILES}/one_instance.so {COMMAND} -c "Listen %p" -c "PidFile {FOLDER}/%p.pid" {POOL} '
    f'-c "ListenBacklog {QUEUE}" -DFOREGROUND',
    load=lambda cores: load(1, cores), warmup=warmup_of_one, window=window, kernels="pk"))
