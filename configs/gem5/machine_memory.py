# SPDX-License-Identifier: BSD-3-Clause
"""The DRAM of a machine's nodes as gem5's memory controllers; run by gem5.

Channels that work on their own are one channel here, as wide as all of them. gem5 passes a line on when its burst is
over, not when its first words are there; `extra_fs` is what that and its queues add to an idle read."""

from fractions import Fraction

from m5.objects import AddrRange, DRAMInterface, MemCtrl


def fs(value):
    return f"{round(value)}fs"


def burst_fs(dram, line_bytes):
    """The data bus is busy for so long with one line."""
    beats = Fraction(line_bytes, dram["channel_bytes"] * dram["channels"])
    return beats / 2 * dram["tCK_fs"]


def extra_fs(dram, line_bytes, home_period):
    """By how much an idle read takes longer here than in the machine: the burst's rest, where the machine passes the
    first words on, and one cycle of the home in the queue of answers; less the half clock that the machine's
    controller waits on average for its edge."""
    rest = burst_fs(dram, line_bytes) - dram["tCK_fs"] if dram["critical_word_first"] else 0
    return rest + home_period - Fraction(dram["tCK_fs"], 2)


def ranges(description, spread_from_bit=None):
    """What each node has of memory, in the order of the address map: a part of its own, or with `spread_from_bit` what
    an address's bits from there on choose, so that small addresses have all homes too."""
    nodes = description["address_map"]
    bits = len(nodes).bit_length() - 1
    if spread_from_bit is None or len(nodes) == 1 or len(nodes) != 1 << bits:
        return [AddrRange(n["base"], size=n["bytes"]) for n in nodes]
    size = sum(n["bytes"] for n in nodes)
    return [
        AddrRange(0, size=size, intlvHighBit=spread_from_bit + bits - 1, intlvBits=bits, intlvMatch=n)
        for n in range(len(nodes))
    ]


def interface(dram, range_, size, line_bytes):
    t = dram["timing_fs"]
    bits = dram["channel_bytes"] * dram["channels"] * 8
    return DRAMInterface(
        range=range_,
        device_size=f"{size // dram['ranks']}B",
        device_bus_width=bits,
        burst_length=line_bytes * 8 // bits,
        device_rowbuffer_size=f"{dram['row_bytes'] * dram['channels']}B",
        devices_per_rank=1,
        ranks_per_channel=dram["ranks"],
        banks_per_rank=dram["banks"],
        tCK=fs(dram["tCK_fs"]),
        tBURST=fs(burst_fs(dram, line_bytes)),
        tRCD=fs(t["tRCD"]),
        tCL=fs(t["tCL"]),
        tCWL=fs(t["tCWL"]),
        tRP=fs(t["tRP"]),
        tRAS=fs(t["tRAS"]),
        tWR=fs(t["tWR"]),
        tWTR=fs(t["tWTR"]),
        tRTP=fs(t["tRTP"]),
        tRRD=fs(t["tRRD"]),
        tXAW=fs(t["tFAW"]),
        activation_limit=4 if t["tFAW"] else 0,
        tCS=fs(t["tRTRS"]),
        tRTW=fs(t["tRTW"]),
        tREFI=fs(t["tREFI"]),
        tRFC=fs(t["tRFC"]),
        read_buffer_size=dram["read_entries"],
        write_buffer_size=dram["write_entries"],
        page_policy="close" if dram["page_policy"] in ("closed", "forced") else "open",
        # Lines side by side go round the banks first where rows are closed, else they stay in their row.
        addr_mapping="RoCoRaBaCh" if dram["page_policy"] in ("closed", "forced") else "RoRaBaCoCh",
    )


def controllers(description, those):
    """One memory controller per node, in the order of the address map, for the ranges given."""
    dram = description["dram"]
    return [
        MemCtrl(
            dram=interface(dram, range_, node["bytes"], description["line_bytes"]),
            static_frontend_latency=fs(dram["frontend_fs"]),
            static_backend_latency=fs(dram["backend_fs"]),
            write_high_thresh_perc=100 * dram["write_high"] // dram["write_entries"],
            write_low_thresh_perc=0,  # gem5 keeps so many writes back when idle, and answers reads from them
        )
        for node, range_ in zip(description["address_map"], those, strict=True)
    ]
