# SPDX-License-Identifier: BSD-3-Clause
"""Apache of the distribution, as the MOSBENCH paper runs it: a file of 300 bytes, a process with a pool of 24 threads for each
core, logging and keep-alive off, two connections for each core. With `apache`, each core has an instance and a port of its own, as
on the paper's stock kernel, and the card gives each port to the queue of its core. With `apache-one`, one instance has a process for
each core and one port, as on PK, and the card spreads connections over the queues.

The paper has 58 clients with two connections for each core, 116 for each core in all. Here each core has 16, which keep it busy.
"""

from moscope.workloads import register, service

PORT, CONNECTIONS_PER_CORE, BYTES = 8000, 16, 300
FOLDER = "/run/apache"
CONFIGURATION = "/run/moscope/workloads/apache/apache.conf"
# The letters that the client expects.
FILE = (f"mkdir -p {FOLDER}/files && awk 'BEGIN {{for (i = 0; i < {BYTES}; ++i) "
        f"""printf("%%c", 97 + i %% 26)}}' >{FOLDER}/files/file""")

COMMAND = f"exec apache2 -f {CONFIGURATION}"
# Directives that follow those of the file: threads of all processes together.
POOL = " ".join(f'-c "{name} {value}"' for name, value in (
    ("ServerLimit", "%n"), ("StartServers", "%n"), ("MaxRequestWorkers", "$((24 * %n))"), ("MinSpareThreads", "$((24 * %n))"),
    ("MaxSpareThreads", "$((24 * %n))")))


def load(servers: int, cores: int) -> str:
    return f"http servers={servers} connections={CONNECTIONS_PER_CORE * cores} port={PORT} bytes={BYTES}"


register(__file__, service(
    "apache", "a web server for each core, asked over the network card", "requests",
    packages=("apache2",), port=PORT, steering="fixed-port", prepare=FILE,
    each=f'{COMMAND} -c "Listen %p" -c "PidFile {FOLDER}/%p.pid" -DFOREGROUND',
    load=lambda cores: load(cores, cores), warmup="500us", window="2ms", kernels="stock,pk"), service(
    "apache-one", "one web server with a process for each core, asked over the network card", "requests",
    packages=("apache2",), port=PORT, steering="rss", prepare=FILE, one_process=True,
    each=f'{COMMAND} -c "Listen %p" -c "PidFile {FOLDER}/%p.pid" {POOL} -DFOREGROUND',
    load=lambda cores: load(1, cores), warmup="500us", window="2ms", kernels="pk"))
