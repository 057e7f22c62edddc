# SPDX-License-Identifier: BSD-3-Clause
"""One node's DRAM: the timings of the parts (JEDEC JESD79-2 and JESD79-3; tables in configs/dram), the geometry behind the node's
channels, and the memory controller's own choices (family 10h: AMD 31116, DRAM controllers)."""

from __future__ import annotations

from typing import ClassVar

from moscope.schema.describe import Enumeration
from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Flag, Size, Time

LONGEST = "1ms"  # far beyond any DRAM timing, far from overflow


class Timings(Described):
    """Minimum distances between commands, under JEDEC's names."""

    units_in_names: ClassVar[bool] = False  # the key of the whole says it: timing_fs

    tCL: Time = param("read command to first data", most=LONGEST)
    tCWL: Time = param("write command to first data", most=LONGEST)
    tRCD: Time = param("activate to read or write, same bank", most=LONGEST)
    tRP: Time = param("precharge to activate, same bank", most=LONGEST)
    tRAS: Time = param("activate to precharge, same bank", most=LONGEST)
    tRC: Time = param("activate to activate, same bank", most=LONGEST)
    tWR: Time = param("end of write data to precharge, same bank", most=LONGEST)
    tWTR: Time = param("end of write data to read command, same rank", most=LONGEST)
    tRTP: Time = param("read command to precharge command, same bank", most=LONGEST)
    tRRD: Time = param("activate to activate, same rank", most=LONGEST)
    tFAW: Time = param("four-activate limit: four activates of a rank span at least this; 0: no limit (four-bank parts)", most=LONGEST)
    tCCD: Time = param("column command to column command", most=LONGEST)
    tRTRS: Time = param("data bus idle between bursts of different ranks", most=LONGEST)
    tRTW: Time = param("data bus idle between a read burst and a write burst", most=LONGEST)
    tREFI: Time = param("mean interval between refreshes of a rank; 0: no refresh", most=LONGEST)
    tRFC: Time = param("refresh to activate, same rank", most=LONGEST)


class DramSettings(Described):
    """Geometry of a node's DRAM, and the choices of its memory controller."""

    tCK: Time = param("DRAM clock period; two transfers per period", least="100000fs", most=LONGEST)
    channels: Count = param("64-bit channels of the node", Count(2), least=1, most=8)
    channel: Size = param("data width of one channel", Size("8B"), least="1B", most="64B")
    ganged: Flag = param("channels work in lock step as one wide channel", Flag(False))
    ranks: Count = param("ranks of a channel", Count(1), least=1, most=8)
    banks: Count = param("banks of a rank", Count(8), least=1, most=16)
    row: Size = param("one row of one bank across one channel", Size("8KiB"), least="64B", most="1MiB")
    rows: Count = param("rows of a bank", Count(16384), least=2, most=1 << 20)
    bank_swizzle: Flag = param("bank bits are XORed with the low row bits", Flag(False))
    channel_hash: Flag = param("the channel bit is XORed with the parity of address bits 16-20", Flag(False))
    idle_close: Time = param("time without an access after which page policy `idle` closes a row", Time("0fs"), most=LONGEST)
    read_entries: Count = param("reads that a node's controller holds", Count(64), least=1, most=1024)
    write_entries: Count = param("writes that a node's controller holds", Count(64), least=1, most=1024)
    scheduler_depth: Count = param("number of a channel's oldest reads from which the scheduler chooses", Count(16), least=1, most=1024)
    write_high: Count = param("number of queued writes at which a channel begins to write although reads wait; also the most writes that "
                              "these reads then wait for", Count(12), least=1, most=1024)
    write_low: Count = param("number of queued writes at which a channel returns to the waiting reads", Count(4), least=0, most=1023)
    bypass_max: Count = param("times that the oldest request of a channel may be overtaken (family 10h: DcqBypassMax)", Count(15),
                              least=0, most=1 << 20)
    frontend: Time = param("from a request's arrival until the scheduler sees it", Time("0fs"), most=LONGEST)
    backend: Time = param("from the last data on the bus until the request completes", Time("0fs"), most=LONGEST)
    critical_word_first: Flag = param("a read completes with the first clock of its burst", Flag(False))


PAGE_POLICY = Enumeration("PagePolicy", "PagePolicies", "When a row that no request needs is closed.", {
    "open": "when another row of the bank is needed",
    "closed": "with the last access to it that is queued (auto-precharge)",
    "forced": "with every access, whatever is queued (family 10h: ForceAutoPchg)",
    "idle": "when the bank has not been accessed for `idle_close_fs`",
}, counted=False, namespace="moscope::dram")

DESCRIPTIONS = (PAGE_POLICY, Group("TimingParams", Timings, "moscope::dram"), Group("DramSettings", DramSettings, "moscope::dram"))
