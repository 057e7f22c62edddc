# SPDX-License-Identifier: BSD-3-Clause
"""memcached of the distribution, as the MOSBENCH paper runs it: a process and a UDP port for each core, one thread each,
clients that ask for a key that is not there, and a card that gives each port to the queue of its core.

The paper has 792 client threads with 20 requests each at any number of cores. Here each core has eight, which keep it busy
and do not overrun its receive queue.
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register, service

CLIENTS_PER_CORE = 8


def memcached(name: str, summary: str, operation: str, kernels: str) -> Workload:
    return service(
        name, summary, operation, packages=("memcached",), port=11211, steering="fixed-port",
        each="exec memcached -u nobody -m 64 -t 1 -p %p -U %p",
        load=lambda cores: f"memcached servers={cores} clients={CLIENTS_PER_CORE * cores} port=11211",
        warmup="3ms", window="1ms", kernels=kernels)


register(__file__, memcached("memcached", "a cache with a UDP port for each core, asked over the network card", "requests", "stock,pk"))
# The stress tests of fixes in the driver of the card.
for fix, stress in kernel_patches.stressed_by("memcached"):
    register(__file__, memcached(stress.workload, f"fix {fix.number}: {stress.load}", stress.operation, f"pk-{fix.number},pk"))
