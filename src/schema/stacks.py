# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the stacks of waiting cores (src/attribution/stack_samples.hh)."""

from moscope.schema.describe import Enumeration, Field, Record

GENERAL_REGISTER = Enumeration("GeneralRegister", "GeneralRegisters", "General registers, by their number in instructions.", {
    f"register_{n}": f"the general register with the number {n}" for n in range(16)
}, counted=False)

STACK_SAMPLE = Record("StackSample", "State of a core that has waited, followed by bytes of its stacks.", (
    Field("line", "u64", "DRAM address of the line that it waited for last", "byte address"),
    Field("pc", "u64", "virtual address of the instruction that the core executes", "byte address"),
    Field("address_space", "u64", "CR3 of the core", "byte address"),
    Field("waiting", "i64", "stall and spin that the sample stands for", "fs"),
    Field("registers", "u64", "general registers", each=GENERAL_REGISTER, bare=True),
    Field("kernel_bytes", "u32", "bytes of the kernel's stack that follow, from rsp on", "bytes"),
    Field("user_bytes", "u32", "bytes of the user's stack that follow them, from its rsp on", "bytes"),
    Field("core", "u8", "the core"),
    Field("flags", "u8", "what else it was", flags={"user": "the core was in user mode"}),
))

DESCRIPTIONS = (GENERAL_REGISTER, STACK_SAMPLE)
