# SPDX-License-Identifier: BSD-3-Clause
"""Records that the engine writes as they lie in memory, and whose columns Python reads: transactions, and the rows in
which attribution adds them up. Times are femtoseconds."""

from moscope.schema.describe import Column, Field, Record, Table
from moscope.schema.enumerations import ACCESS_KIND, DEVICE, MISS_CLASS, SEGMENT

SPACE = "CR3 of the address space; 0: the kernel's code, which is the same in all"
USE = "number of the use of the line's page, among all lines' uses"
DEVICE_PC = 1  # AttributionPart::kDevicePc
NO_OTHER = "0: the last writer is the waiting core itself or a device, or no core has written the line"

TRANSACTION = Record("TransactionRecord", "One transaction of a core in detailed mode.", (
    Field("issued", "i64", "when the core issued it", "fs"),
    Field("done", "i64", "when the core had its answer", "fs"),
    Field("exposed", "i64", "stall of the core that was charged to it", "fs"),
    Field("line", "u64", "DRAM address of the line", "byte address"),
    Field("va", "u64", "virtual address of the access", "byte address"),
    Field("pc", "u64", "virtual address of the instruction", "byte address"),
    Field("address_space", "u64", "CR3 of the core", "byte address"),
    Field("writer_pc", "u64", f"the instruction that wrote the line last; {NO_OTHER}", "byte address"),
    Field("segments", "i64", "part of the latency", "fs", each=SEGMENT, bare=True),
    Field("hops", "u16", "links that the messages on its critical path crossed"),
    Field("core", "u8", "the core that waited"),
    Field("writer", "u8", f"the core that wrote the line last; {DEVICE}: a device; null for waits for the store buffer",
          default=0xFF, none=0xFF),
    Field("kind", "u8", "what the access did", values=ACCESS_KIND),
    Field("miss", "u8", "why the line was not there", values=MISS_CLASS, none=len(MISS_CLASS)),
    Field("supplier", "u8", "the type of controller that sent the line, a machine of the protocol"),
    Field("flags", "u8", "what else it was", flags={
        "walk": "an access of the page walker",
        "user": "the core was in user mode",
        "buffer_wait": "a wait for the store buffer or the write-combining buffers; the store's transaction has a record of its own",
        "prefetched": "the core's prefetcher has brought the line since the core's last transaction on it",
    }),
    Field("supplier_number", "u16", "the number of the controller among those of its type", default=0xFFFF, none=0xFFFF),
    Field("supplier_chip", "u16", "the chip of the controller", default=0xFFFF, none=0xFFFF),
    Field("probes", "u16", "probes that the home sent for it"),
    Field("supplier_state", "u8", "the state in which the controller had the line, a state of its machine", default=0xFF),
    Field("use", "u32", USE),
))

TRANSACTIONS = Table("Transactions", "The columns of transactions.parquet.", TRANSACTION, (
    Column("latency", "done", "from issued to the answer; null for a `buffer_wait`", "fs", type="i64", replaces=True),
    Column("name", "line", "name of the line, as in lines.parquet; lines of two kinds of memory may have the same name"),
    Column("name_kind", "line", "its kind of memory, as in lines.parquet"),
    Column("function", "pc", "function of the instruction, as in pairs.parquet"),
    Column("source", "pc", "file and line of the instruction, as in pairs.parquet"),
    Column("inlined", "pc", "the functions that were inlined there, as in pairs.parquet"),
    Column("process", "address_space", "name of the last process that had these page tables; `kernel`: they are the kernel's own"),
    Column("writer_function", "writer_pc",
           "function of `writer_pc`; for user code, looked up in the waiter's address space; null if `writer_pc` is 0"),
    Column("writer_source", "writer_pc", "file and line of the writer, likewise"),
    Column("writer_inlined", "writer_pc", "the functions that were inlined there, likewise"),
    Column("class", "miss", "miss class; `none` for a `buffer_wait`", replaces=True),
    Column("supplier", "supplier", "the type of controller from which the line came, as the protocol reports it; `own`: it reports none",
           replaces=True),
    Column("secondary_miss", "supplier_number",
           "an older access or a prefetch of its core to the line served it too; its class is `secondary`", type="bool"),
    Column("probes", "probes", "probe and invalidation messages, one for each receiver; null for a `buffer_wait`",
           type="u16", replaces=True),
    Column("supplier_state", "supplier_state", "the supplier's state of the line when it sent the line", replaces=True),
), internal=("use",))

LINE = Record("LineRow", "Waiting for one line during one use of its page.", (
    Field("line", "u64", "DRAM address of the line", "byte address"),
    Field("va", "u64", "a virtual address by which the line was reached", "byte address"),
    Field("address_space", "u64", "CR3 for that address", "byte address"),
    Field("stall", "i64", "exposed stall", "fs"),
    Field("spin", "i64", "time in spin loops that read the line", "fs"),
    Field("spin_iterations", "u64", "iterations of spin loops that read the line", "iterations"),
    Field("transfers", "u64", "transactions", "transactions"),
    Field("class_stall", "i64", "exposed stall by class", "fs", each=MISS_CLASS),
    Field("class_count", "u32", "transactions by class", "transactions", each=MISS_CLASS),
    Field("offset", "u8", "the byte that was waited for longest", "bytes"),
    Field("flags", "u8", "how it was reached", flags={
        "walk": "by the page walker",
        "fetch": "by instruction fetches",
        "user": "in user mode",
        "page_known": "the fields of the page are known",
    }),
    Field("page_flags", "u64", "flags of the guest kernel's page description"),
    Field("page_part_of", "u64", "the slab's cache, or the page's mapping", "byte address"),
    Field("page_index", "u64", "index in the mapping", "pages"),
    Field("page_type", "u32", "type word of the guest kernel's page description"),
    Field("page_before", "u32", "pages from the head of its compound page", "pages"),
    Field("use", "u32", USE),
    Field("waiters", "u64", "cores that waited, one bit each"),
))

PAIR = Record("PairRow", "Waiting of one instruction for a byte of a line that another instruction wrote last.", (
    Field("writer", "u64", "the instruction that wrote the line last; 0: the last writer is the waiting core itself, or no core or device "
                           f"has written it; {DEVICE_PC}: a device", "byte address"),
    Field("waiter", "u64", "the instruction that waited", "byte address"),
    Field("address_space", "u64", f"the waiter's: {SPACE}", "byte address"),
    Field("stall", "i64", "exposed stall", "fs"),
    Field("spin", "i64", "time in spin loops", "fs"),
    Field("line", "u32", "index of the line's row"),
    Field("count", "u32", "transactions", "transactions"),
    Field("offset", "u8", "the byte of the line that the waiter accessed", "bytes"),
))

TRANSFER = Record("TransferRow", "Transactions of one line from one chip to another.", (
    Field("stall", "i64", "exposed stall", "fs"),
    Field("count", "u64", "transactions", "transactions"),
    Field("line", "u32", "index of the line's row"),
    Field("supplier", "u8", "the type of controller that sent the line, a machine of the protocol"),
    Field("from", "u8", "chip that sent it"),
    Field("to", "u8", "chip of the core that got it"),
))

LOAD = Record("LoadRow", "Loads of one instruction that missed the first-level cache, of cores that overlap their misses.", (
    Field("pc", "u64", "the instruction", "byte address"),
    Field("address_space", "u64", f"of the core: {SPACE}", "byte address"),
    Field("loads", "u64", "loads that missed", "loads"),
    Field("latency", "i64", "from request to answer, all together", "fs"),
    Field("occupied", "i64", "the part of `latency` in which no load requested earlier was under way on the core", "fs"),
))

DESCRIPTIONS = (TRANSACTION, LINE, PAIR, TRANSFER, LOAD)
TABLES = (TRANSACTIONS,)
