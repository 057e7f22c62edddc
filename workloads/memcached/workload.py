# SPDX-License-Identifier: BSD-3-Clause
"""memcached of the distribution, as the MOSBENCH paper runs it: a process and a UDP port for each core, one thread each,
clients that ask for a key that is not there, and a card that gives each port to the queue of its core.

The paper has 792 client threads with 20 requests each at any number of cores. Here each core has eight, which keep it busy
and do not overrun its receive queue.
"""

from moscope.workloads import register, service

CLIENTS_PER_CORE = 8


def warmup(cores: int) -> str:
    """All receive queues are first refilled at the same time. The warm-up lasts until their refills are spread over time."""
    return "3ms" if cores <= 24 else "12ms"


register(__file__, service(
    "memcached", "a cache with a UDP port for each core, asked over the network card", "requests", packages=("memcached",), port=11211,
    steering="fixed-port", each="exec memcached -u nobody -m 64 -t 1 -p %p -U %p",
    load=lambda cores: f"memcached servers={cores} clients={CLIENTS_PER_CORE * cores} port=11211",
    warmup=warmup, window="1ms", kernels="stock,pk"))
