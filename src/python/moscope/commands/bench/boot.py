# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench boot`: a boot and a fixed amount of work, on the model and on QEMU."""

from typing import Annotated

import typer

from moscope.cli import Shared, command
from moscope.wording import number


@command
def boot(shared: Shared,
         cores: Annotated[int | None, typer.Option(metavar="N", help="Number of cores in use. Default: all cores of the machine.")] = None,
         memory_per_node: Annotated[str, typer.Option(metavar="SIZE", help="Memory per node.")] = "512MiB") -> int:
    """Compare the time to boot Linux and run a fixed script on the model and on QEMU.

    The targets are at most 5 times QEMU's time, and at least 60 million
    instructions per second. The exit code is 1 if moscope misses one.
    """
    from moscope import errors
    from moscope.bench import boot as bench_boot

    document = bench_boot.run(shared, cores, memory_per_node, shared.say)
    shared.result(document)
    if not shared.json:
        bars = document["bars"]
        print(f"{number(document['cores'], 'core')}, Linux {document['kernel']['release']}")
        print(f"  moscope             {document['moscope_s']:>8.1f} s   ({document['boot_s']:.1f} s of it before the script)")
        print(f"  QEMU                {document['qemu_s']:>8.1f} s")
        print(f"  processor time      {document['moscope_cpu_s']:>8.1f} s   (QEMU: {document['qemu_cpu_s']:.1f} s)")
        print(f"  ratio               {document['ratio']:>8.2f}     (expected at most {bars['ratio']:g})")
        print(f"  computing           {document['compute_mips']:>8.1f} million instructions per second (at least "
              f"{bars['compute_mips']:g})")
    return errors.OK if document["ok"] else errors.FOUND
