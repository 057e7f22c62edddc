# SPDX-License-Identifier: BSD-3-Clause
"""Names for the lines and the code that a run's attribution gives by address.

One module per source of names: the kernel image (`image`, `kallsyms`, `elf`, `btf`), what lies in the guest's memory
(`guest`, `percpu`, `slab`, `pages`, `tasks`, `vmalloc`), and `namer`, which asks them in order. Memory is read as it
is when a name is asked for; if something cannot be read or is inconsistent, the name is the plain address, never an
error.
"""
