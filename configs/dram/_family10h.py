# SPDX-License-Identifier: BSD-3-Clause
"""Geometry and controller settings of family 10h nodes; the parts' timings are in the table of each standard.

Sources: B is AMD 31116 (BIOS and kernel developer's guide, family 10h) by way of open firmware and Linux drivers that
program its registers, J the JEDEC standards, M a memory vendor's list for the M4985 board (four registered DDR2-667
DIMMs per processor), P the MOSBENCH paper (8 GB per chip, 51.5 GB/s on the whole machine), d derived. What is not
known is said to be assumed, what was fitted to be fitted.
"""

# Istanbul with DDR2: 8 GB (P) in four DIMMs (M), so two of 2 GB per channel: one rank of 16 (+2) x4 parts of 1 Gb.
DDR2_NODE = {
    "channels": 2,  # B
    "channel_bytes": 8,  # B, J
    "ganged": True,  # B: one 128-bit channel is a setting (x4 Chipkill wants it, x); fitted to the 51.5 GB/s of P
    "ranks": 2,  # M, d
    "banks": 8,  # J: 1 Gb
    "row_bytes": 16384,  # J: 1 Gb x4 has rows of 1 KB, 16 parts
    "rows": 16384,  # J: 1 Gb x4
    "burst_lengths": [4, 8],  # J
    # Lines go round the banks of one rank; ranks are not interleaved. Assumed, and fitted to the 51.5 GB/s of P.
    "mapping": "rank row column bank channel",
    "bank_swizzle": False,  # B: off after reset
    "channel_hash": False,  # needs two channels
    # B: auto-precharge is a setting. Fitted, with the mapping, to the 51.5 GB/s of P; with rows left open an idle load would
    # find the wrong one.
    "page_policy": "closed",
    "read_entries": 64,  # assumed: does not limit, a node's six cores have 48 lines in flight
    "write_entries": 64,  # assumed
    "scheduler_depth": 16,  # assumed: entries among which the scheduler chooses; 8 to 48 make no difference to P's load
    "write_high": 16,  # B: MctWrLimit, firmware's value for ganged channels
    "write_low": 8,  # assumed
    "bypass_max": 4,  # B: DcqBypassMax, older firmware's value for machines without shared graphics memory
    "frontend_fs": 0,  # the machine's own latencies cover the way to and from the DRAM controller
    "backend_fs": 0,
    "critical_word_first": True,  # assumed: the wanted words lead the burst and are passed on at once
}

# A Magny-Cours die with DDR3: two channels, one registered DIMM of two ranks of 2 Gb x4 parts each.
DDR3_NODE = {
    "channels": 2,  # B
    "channel_bytes": 8,  # B, J
    "ganged": False,  # B: two independent channels; a line is one burst of eight
    "ranks": 2,  # assumed
    "banks": 8,  # J
    "row_bytes": 16384,  # J: x4 parts have rows of 1 KB, 16 parts
    "rows": 32768,  # J: 2 Gb x4
    "burst_lengths": [8],  # J: shorter ones chop, and save nothing
    # Assumed: ranks and banks change every 4 KB, so that neither pages nor buffers at powers of two meet in a bank.
    "mapping": "row column:3 rank bank column channel",
    "bank_swizzle": True,  # B
    "channel_hash": True,  # B: address bit 6 with the parity of bits 16-20
    "page_policy": "open",  # B
    "read_entries": 96,  # assumed: does not limit, six cores have 60 lines in flight
    "write_entries": 64,  # assumed
    "scheduler_depth": 24,  # assumed
    "write_high": 24,  # assumed: of two versions of firmware for unganged channels, one sets 8, one a value that means 8 or 24
    "write_low": 8,  # assumed
    "bypass_max": 15,  # B: DcqBypassMax, later firmware's value
    "frontend_fs": 0,
    "backend_fs": 0,
    "critical_word_first": True,  # as above
}
