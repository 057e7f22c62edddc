# SPDX-License-Identifier: BSD-3-Clause
"""Which source files are code of the program or kernel itself, and which are of compilers, libraries and a kernel's headers."""

import re

FOREIGN = re.compile(r"/usr/|/build/|/rustc/|/opt/|\.\./|\./|\?|.*/\.cargo/registry/")  # as their debug information names them
KERNEL_HEADER = re.compile(r"(arch/\w+/)?include/")


def is_own(place: str, kernel: bool = False) -> bool:
    """Of `FILE:LINE`. In the kernel, all files count but headers, whose functions are inlined everywhere."""
    return not (KERNEL_HEADER if kernel else FOREIGN).match(place)
