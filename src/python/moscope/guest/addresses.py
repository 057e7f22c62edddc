# SPDX-License-Identifier: BSD-3-Clause
"""Limits in the address space of Linux on x86-64, with page tables of four levels: Documentation/arch/x86/x86_64/mm.rst."""

USER_TOP = 1 << 47  # addresses of programs are below
KERNEL_HALF = 1 << 63  # addresses of the kernel are from here on
IMAGE_MAP = 0xFFFFFFFF80000000  # __START_KERNEL_map: those of its image
