# SPDX-License-Identifier: BSD-3-Clause
"""Run directories made up after docs/run-directory.md, of the shape that a run of `exim` has. The values follow simple
formulas of the core count; all sums that the engine checks (a core's window, the stall of the lines) hold here too.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from analysis.described import MISS_CLASS, SEGMENT

MS = 10**12
US = 10**9
LADDER = ((0, 1), (0, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 6), (5, 7), (6, 7))
CLASSES = MISS_CLASS.names
# name, object, field, class, weight at 48 cores, [(writer, waiter, weight)]
LINES: tuple[tuple[str, str, str, str, float, tuple[tuple[str, str, float], ...]], ...] = (
    ("mount_lock", "seqlock_t", "seqcount.sequence", "true_sharing", 0.31,
     (("lock_mount_hash", "lookup_mnt", 5), ("unlock_mount_hash", "lookup_mnt", 3), ("lock_mount_hash", "mntput_no_expire", 1))),
    ("dentry.d_lockref of /dev/shm/spool", "dentry", "d_lockref", "true_sharing", 0.17,
     (("lockref_get_not_dead", "dput", 4), ("dput", "lockref_get_not_dead", 4), ("lockref_put_return", "dput", 2))),
    ("page._refcount of libc.so.6", "page", "_refcount", "false_sharing", 0.09,
     (("filemap_map_pages", "page_add_file_rmap", 3), ("page_remove_rmap", "filemap_map_pages", 3), ("unknown", "zap_pte_range", 1))),
    ("inode.i_rwsem of /dev/shm/mainlog", "inode", "i_rwsem", "upgrade", 0.07,
     (("down_write", "down_write", 6), ("up_write", "down_write", 3))),
    ("super_block.s_inode_list_lock of tmpfs", "super_block", "s_inode_list_lock", "true_sharing", 0.05,
     (("inode_sb_list_add", "inode_sb_list_add", 3), ("evict", "inode_sb_list_add", 2))),
    ("anon_vma.rwsem", "anon_vma", "rwsem", "true_sharing", 0.04, (("unlink_anon_vmas", "anon_vma_clone", 3),)),
    ("runqueues[17].__lock", "rq", "__lock", "true_sharing", 0.03, (("raw_spin_rq_lock_nested", "try_to_wake_up", 3),)),
    ("files_struct.count", "files_struct", "count", "false_sharing", 0.02, (("dup_fd", "put_files_struct", 1),)),
    ("tcp_hashinfo.bhash[25].lock", "inet_bind_hashbucket", "lock", "upgrade", 0.02, (("inet_csk_get_port", "inet_put_port", 1),)),
    ("page table of exim (4a1c2000)", "", "", "cold", 0.015, (("unknown", "copy_page_range", 1),)),
    ("user data of exim: queue_index+0x18", "", "", "capacity", 0.01, (("unknown", "deliver_message", 1),)),
    ("kmalloc-192 object +0x40", "", "", "cold", 0.008, (("unknown", "__alloc_skb", 1),)),
)


SPUN_ON = "super_block.s_inode_list_lock of tmpfs"


LINE_BYTES, STRIDE, FIRST = 64, 0x9240, 0x20045500
Tables = dict[str, list[dict[str, Any]]]


def transfers(cores: int, n: int) -> list[dict[str, Any]]:
    """Between all chips in use, and from the memory of one node."""
    chips = range((cores + 5) // 6)
    return [{"supplier": "L1Cache", "from_chip": a, "to_chip": b, "count": 100 * (a + 1) + 10 * b + n, "stall": US} for a in chips
            for b in chips if cores > 1] + [
        {"supplier": "Directory", "from_chip": n % 8, "to_chip": b, "count": 7, "stall": US} for b in chips]


def card(cores: int) -> list[dict[str, Any]]:
    """A queue pair for each core, over ten intervals; in the last one, the card drops frames."""
    return [{"begin": 7 * MS + n * US, "length": US, "queue": queue, "in_packets": 3 + queue % 2, "out_packets": 2,
             "dropped": (n == 9) * queue, "in_waiting": (n + queue) % 4, "in_buffers": 200 - n, "out_waiting": n * (queue % 3),
             "fifo_frames": 2 * cores, "fifo_bytes": 900, "out_fifo_frames": 8, "dropped_fifo_full": 5 * (n == 9), "dropped_not_ready": 0,
             "dropped_bad_request": 0} for n in range(10) for queue in range(cores)]


def tables(cores: int, exposed: int, spin: int) -> Tables:
    """Rows of lines, pairs and transfers; all spinning is on one line. All names but the first have three more lines, without waiting."""
    contended = min(1.0, cores / 48) ** 1.2 if cores > 1 else 0.0
    found: Tables = {"lines": [], "pairs": [], "transfers": [], "card": card(cores)}
    for n, (name, what, field, kind, weight, pairs) in enumerate(LINES):
        own = int(exposed * weight * (contended if kind not in ("cold", "capacity") else 1.0))
        by = {f"{k}_{part}": 0 for k in CLASSES for part in ("stall", "count")}
        by |= {f"{kind}_stall": own * 8 // 10, f"{kind}_count": own // (200 * 10**6)}
        second = "upgrade" if kind != "upgrade" else "true_sharing"
        by |= {f"{second}_stall": own // 10, f"{second}_count": own // (900 * 10**6)}
        spinning = spin if name == SPUN_ON else 0
        for more in range(4 if n else 1):
            found["lines"].append({
                "line": FIRST + n * STRIDE + more * LINE_BYTES, "use": 4 * n + more + 1, "name": name, "kind": "slab", "object": what,
                "field": field,
                "class": kind, "stall": 0 if more else own, "spin": 0 if more else spinning,
                "transfers": 0 if more else own // (180 * 10**6),
                "cores": 0 if more else max(1, cores - n), "waiters": 0 if more else (1 << max(1, cores - n)) - 1,
                **(dict.fromkeys(by, 0) if more else by)})
        key = {"line": FIRST + n * STRIDE, "use": 4 * n + 1}
        whole = sum(w for *_, w in pairs)
        found["pairs"] += [{**key, "writer": None if writer == "unknown" else 0xffffffffb4900000 + 16 * i,
                            "writer_function": None if writer == "unknown" else writer, "waiter": 0xffffffffb4a00000 + 16 * i,
                            "waiter_function": waiter,
                            "kernel": waiter != "deliver_message", "stall": int(own * w / whole), "spin": spinning * (i == 0),
                            "count": 10 * int(w)}
                           for i, (writer, waiter, w) in enumerate(pairs)]
        found["transfers"] += [{**key, **one} for one in transfers(cores, n)]
    return found


def arrow(found: Tables) -> dict[str, pa.Table]:
    """The rows as the files have them."""
    types = {"line": pa.uint64(), "use": pa.uint32(), "waiters": pa.uint64(), "writer": pa.uint64(), "waiter": pa.uint64(),
             "kernel": pa.bool_(),
             **{column: pa.string() for column in ("name", "kind", "object", "field", "class", "writer_function", "waiter_function",
                                                   "supplier")}}
    empty = tables(1, 0, 0)
    return {name: pa.table({column: pa.array([row[column] for row in rows], types.get(column, pa.int64())) for column in empty[name][0]})
            for name, rows in found.items()}


def attribution(found: Tables, cores: int, exposed: int, spin: int) -> dict[str, Any]:
    """`moscope.attribution/1`; what the lines do not take is cold, capacity and without a class."""
    classes = {k: {"count": sum(line[f"{k}_count"] for line in found["lines"]),
                   "stall": sum(line[f"{k}_stall"] for line in found["lines"])} for k in CLASSES}
    rest = exposed - sum(int(line["stall"]) for line in found["lines"])
    for k, part in (("capacity", 0.35), ("cold", 0.5)):
        classes[k]["stall"] += int(rest * part)
        classes[k]["count"] += int(rest * part) // (60 * 10**6)
    histogram = [0] * 64
    for bucket, n in enumerate((40, 300, 20, 7600, 900, 1200, 5200, 3100 + 40 * cores, 1500 + 90 * cores, 60 * cores, 12 * cores, cores)):
        histogram[bucket] = n * cores
    transactions = sum(histogram)
    parts = {"queue": 4, "cache": 6, "crossbar": 5, "link": 40 if cores > 6 else 0, "home_queue": cores, "probe_filter": 5, "dram": 22,
             "responder": 2}
    return {"schema": "moscope.attribution/1", "exposed": exposed, "spin": spin, "transactions": transactions,
            "segments": {k: parts.get(k, 0) * transactions * 10**6 for k in SEGMENT.names}, "classes": classes,
            "latency_log2_ns": histogram}


def summary(found: Tables, exposed: int, spin: int) -> list[dict[str, Any]]:
    """Names as point.json lists them."""
    names = []
    for line in found["lines"]:
        if not line["stall"] + line["spin"]:
            continue
        pairs = sorted((pair for pair in found["pairs"] if pair["line"] == line["line"]), key=lambda pair: -pair["stall"] - pair["spin"])
        names.append({"name": line["name"], "lines": 1 if line["use"] == 1 else 4, "stall_share": line["stall"] / (exposed or 1),
                      "wait_share": (line["stall"] + line["spin"]) / (exposed + spin or 1),
                      "spin_share": line["spin"] / (exposed + spin or 1),
                      "transfers": line["transfers"], "class": line["class"],
                      "writers": [p["writer_function"] for p in pairs if p["writer_function"]],
                      "waiters": [p["waiter_function"] for p in pairs]})
    return sorted(names, key=lambda one: -one["wait_share"])


def machine(cores: int, window: int) -> dict[str, Any]:
    """The parts of `moscope.stats/1` that reports read."""
    links = []
    for a, b in (*LADDER, *((y, x) for x, y in LADDER)):
        use = min(0.85, (0.002 + 0.03 * ((3 * a + 5 * b) % 7) / 7 + 0.04 * (a in (2, 3, 4, 5))) * cores / 8)
        busy = int(use * window)
        links.append({"name": f"{a}->{b}", "from": a, "to": b, "channels": {
            "request": {"packets": 9, "data_packets": 0, "bytes": busy // 2_500_000, "busy_fs": busy // 10, "wait_fs": 0,
                        "credit_stall_fs": 0},
            "response": {"packets": 9, "data_packets": 9, "bytes": busy * 9 // 2_500_000, "busy_fs": busy * 9 // 10, "wait_fs": 0,
                         "credit_stall_fs": 0}}})
    clocks = window // 3_000_000
    dram = [{"name": f"dram-{n}", "channels": [{"reads": int(clocks * 0.002 * cores / (1 + n / 3)), "writes": int(clocks * 0.0006 * cores),
                                                "busy": int(clocks * 0.0052 * cores / (1 + n / 4)), "clocks": clocks}] * 2}
            for n in range(8)]
    directories = [{"name": f"Directory-{n}", "transitions": {
        "NP.Load": 900 * cores, "NP.Fetch": 120 * cores, "S.Load": 260 * cores, "EM.Load": 90 * cores * cores // (1 + n),
        "O.Load": 60 * cores,
        "S.Upgrade": 30 * cores, "O.Upgrade": 12 * cores, "EM.Replace_Load": 4 * cores, "BM.Mem_Data": 1200 * cores}} for n in range(8)]
    return {"schema": "moscope.stats/1", "machine": "opteron48", "protocol": "MOESI_HTAssist", "tick": 9 * 10**14, "cores": [],
            "controllers": directories, "network": {"kind": "hypertransport", "channels": {}, "links": links, "ports": []}, "dram": dram}


def point(workload: str, kernel: str, cores: int, gain: float = 1.0) -> tuple[dict[str, Any], dict[str, Any], Tables]:
    """(point.json, stats.json, the rows of the tables). `gain` below one leaves more to contention."""
    window = 3 * MS
    memory = 0.22 + 0.5 * (cores / 48) ** 1.5 / gain * (cores > 1)
    idle, core = 0.01 * (cores > 6), 0.06
    busy = 1 - memory - idle - core
    parts = {"busy": (0.72, busy), "core": (0.7, core), "memory": (0.86, memory), "idle": (1.0, idle)}
    spent = {k: {"kernel": int(window * share * kernel_part)} for k, (kernel_part, share) in parts.items()}
    for k, (_, share) in parts.items():
        spent[k]["user"] = int(window * share) - spent[k]["kernel"]
    spent["idle"]["kernel"] += window - sum(sum(v.values()) for v in spent.values())
    exposed = cores * sum(spent["memory"].values())
    # Of what the kernel does on several cores, a quarter is turns of spin loops.
    spin = {k: {"kernel": spent[k]["kernel"] // 4 * (cores > 1), "user": 0} for k in ("busy", "core")}
    spinning = cores * sum(spin[k]["kernel"] for k in spin)
    found = tables(cores, exposed, spinning)
    names = summary(found, exposed, spinning)
    stats = {"cores": [{"window": window, **spent, "spin": spin}] * cores, "attribution": attribution(found, cores, exposed, spinning),
             "machine": machine(cores, window)}
    each = 620 * busy / 0.7
    rates = [cores * each * f for f in (0.97, 1.0, 1.04)]
    mean = sum(rates) / 3
    error = (sum((r - mean) ** 2 for r in rates) / 2 / 3) ** 0.5
    active = window * cores * (1 - idle)
    ops = max(1, round(mean * 0.003))
    spin_cycles = spinning / cores / window
    record = {
        "workload": workload, "operation": "messages", "kernel": kernel, "cores": cores, "window_ms": 1.0, "ops": ops,
        "throughput_per_s": mean, "stderr_per_s": error, "kernel_share": 0.76, "user_us_per_op": active * 0.24 / US / ops,
        "system_us_per_op": active * 0.76 / US / ops, "cycles": {"busy": busy, "idle": idle, "core": core, "memory": memory},
        "spin_cycles": spin_cycles, "ticks": window, "spin_instructions": 0,
        "bottleneck": f"waiting for memory takes {100 * memory:.0f} % of the cores' time, most of it for "
                      f"{names[0]['name'] if names else 'no line'}",
        "top_names": names, "top_lines": [{**{k: v for k, v in one.items() if k != "lines"}, "address": hex(FIRST)} for one in names],
        "instructions": 9_000_000 * cores, "host_s": 20.0 + 3 * cores, "host_s_per_ms": 1.5 + cores / 3,
        "windows": [{"ops": ops // 3, "ticks": MS, "throughput_per_s": r, "kernel_share": 0.76 + 0.01 * (n - 1), "user_us_per_op": 400.0,
                     "system_us_per_op": 1200.0, "cycles": {"busy": busy, "idle": idle, "core": core, "memory": memory},
                     "spin_cycles": spin_cycles, "instructions": 3_000_000 * cores, "spin_instructions": 0, "host_s": 2.0} for n,
                    r in enumerate(rates)]}
    return record, stats, found


def made(record: dict[str, Any], stats: dict[str, Any], found: Tables | None = None) -> Any:
    """A point as `analysis.load` makes it."""
    from analysis import Point
    from analysis.database import Database

    return Point("p", record, stats, Database({"p": arrow(found)} if found else {}), of_paper=True)


def write_point(folder: Path, documents: tuple[dict[str, Any], dict[str, Any], Tables]) -> Path:
    record, stats, found = documents
    target = folder / "points" / f"{record['workload']}-{record['kernel']}-{record['cores']}"
    target.mkdir(parents=True)
    write_files(target, record, stats, found)
    return target


def write_files(target: Path, record: dict[str, Any], stats: dict[str, Any], found: Tables) -> None:
    for name, document in (("point", record), ("stats", stats)):
        (target / f"{name}.json").write_text(json.dumps(document))
    for name, table in arrow(found).items():
        parquet.write_table(table, target / f"{name}.parquet")
    (target / "console.txt").write_text("moscope: ready\n")


def write_run(folder: Path, cores: tuple[int, ...] = (1, 12, 24, 48), kernels: tuple[str, ...] = ("distro",),
              workload: str = "exim") -> Path:
    """A whole run in `folder`."""
    records = []
    for n, kernel in enumerate(kernels):
        for c in cores:
            documents = point(workload, kernel, c, 1.0 + 0.8 * n)
            write_point(folder, documents)
            records.append(documents[0])
    run = {"schema": "moscope.run/1", "ok": True, "machine": "opteron48", "points": records, "report": str(folder / "report.html"),
           "config": {"machine": "opteron48", "set": [], "seed": 1, "points": [], "versions": {}, "description": {"chips": "8"},
                      "kernels": {}, "chips": 8, "cores_per_chip": 6, "core_hz": 2_400_000_000, "edges": LADDER}}
    (folder / "run.json").write_text(json.dumps(run))
    return folder
