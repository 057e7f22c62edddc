# SPDX-License-Identifier: BSD-3-Clause
"""Kernel objects that have neither a symbol nor a slab cache, found from objects that have names: the large hash tables,
the nodes' data, super blocks and their objects, the scheduler's domains, the root memory group.
"""

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from moscope.naming.btf import Unreadable
from moscope.naming.files import Files
from moscope.naming.guest import Guest

MOST_NODES = 64
MOST_DOMAINS = 16
# The types of a file system's own data, to which s_fs_info of its super block points.
PRIVATE = {"tmpfs": "shmem_sb_info", "shm": "shmem_sb_info", "devtmpfs": "shmem_sb_info", "ext4": "ext4_sb_info",
           "proc": "proc_fs_info", "sysfs": "kernfs_super_info", "cgroup2": "kernfs_super_info", "overlay": "ovl_fs",
           "squashfs": "squashfs_sb_info"}
# Types of variables. They are listed here because the image's BTF has only those of per-CPU variables.
VARIABLES = {
    "init_task": "task_struct", "init_mm": "mm_struct", "init_net": "net", "init_files": "files_struct", "init_fs": "fs_struct",
    "init_signals": "signal_struct", "init_sighand": "sighand_struct", "init_pid_ns": "pid_namespace",
    "init_user_ns": "user_namespace", "init_cred": "cred", "init_nsproxy": "nsproxy", "init_struct_pid": "pid",
    "init_css_set": "css_set", "root_user": "user_struct", "root_task_group": "task_group", "def_root_domain": "root_domain",
    "rcu_state": "rcu_state", "tcp_hashinfo": "inet_hashinfo", "vm_committed_as": "percpu_counter",
    "cgroup_threadgroup_rwsem": "percpu_rw_semaphore", "contig_page_data": "pglist_data", "cgrp_dfl_root": "cgroup_root",
    "udp_table": "udp_table", "nf_conntrack_locks": "spinlock_t", "tcp_prot": "proto", "udp_prot": "proto", "unix_stream_proto": "proto",
}


@dataclass(frozen=True)
class Thing:
    """A kernel object. `entry` is the size of a table's entries, 0 if it is no table; `type` is the number of its type (for a
    table, of an entry)."""

    start: int
    size: int
    name: str
    instance: str
    type: int
    entry: int = 0


class Known:
    def __init__(self, guest: Guest, files: Files) -> None:
        self._guest, self._files = guest, files
        self._things: list[Thing] = []
        for find in (self._tables, self._nodes, self._super_blocks, self._domains, self._memory_group, self._network):
            self._try(find)
        self._things.sort(key=lambda t: t.start)
        self._starts = [t.start for t in self._things]

    def _try(self, find: Callable[[], None]) -> None:
        """Calls `find`. Structures that this kernel lacks do not prevent the others from being found."""
        with suppress(Unreadable):
            find()

    def at(self, address: int) -> Thing | None:
        i = bisect_right(self._starts, address) - 1
        return self._things[i] if i >= 0 and address - self._starts[i] < self._things[i].size else None

    def variable(self, symbol: str) -> int:
        """The number of a variable's type; 0 where it is not known."""
        name = VARIABLES.get(symbol)
        return self._guest.types.named(name) if name and name in self._guest.types else 0

    def _add(self, start: int, structure: str, instance: str, count: int = 0, name: str = "") -> None:
        types = self._guest.types
        if start and structure in types:
            number = types.named(structure)
            size = types.size(number)
            self._things.append(Thing(start, size * max(count, 1), name or structure, instance, number, size if count else 0))

    def _tables(self) -> None:
        """Tables of alloc_large_system_hash and similar functions: a pointer variable, and the number of entries."""
        guest = self._guest

        def shifted(name: str) -> int:
            return 1 << (-guest.number(guest.needed(name), 4) & 31)

        def masked(name: str) -> int:
            return guest.number(guest.needed(name), 4) + 1

        for name, entries, structure in (
                ("dentry_hashtable", lambda: shifted("d_hash_shift"), "hlist_bl_head"),
                ("inode_hashtable", lambda: masked("i_hash_mask"), "hlist_head"),
                ("mount_hashtable", lambda: masked("m_hash_mask"), "hlist_head"),
                ("mountpoint_hashtable", lambda: masked("mp_hash_mask"), "hlist_head")):
            self._try(lambda n=name, e=entries, s=structure:  # type: ignore[misc]
                      self._add(guest.number(guest.needed(n)), s, "", e(), n))

        def futexes() -> None:
            queues, count = guest.numbers(guest.needed("__futex_data"), 2)
            self._add(queues, "futex_hash_bucket", "", count, "futex_queues")

        def sockets() -> None:
            at = guest.needed("tcp_hashinfo")
            self._add(guest.get(at, "inet_hashinfo", "ehash"), "inet_ehash_bucket", "",
                      guest.get(at, "inet_hashinfo", "ehash_mask") + 1, "tcp_hashinfo.ehash")
            self._add(guest.get(at, "inet_hashinfo", "ehash_locks"), "spinlock_t", "",
                      guest.get(at, "inet_hashinfo", "ehash_locks_mask") + 1, "tcp_hashinfo.ehash_locks")
            for name in ("bhash", "bhash2"):
                self._add(guest.get(at, "inet_hashinfo", name), "inet_bind_hashbucket", "",
                          guest.get(at, "inet_hashinfo", "bhash_size"), f"tcp_hashinfo.{name}")

        self._try(futexes)
        self._try(sockets)

    def _nodes(self) -> None:
        guest = self._guest
        table = guest.needed("node_data")
        for node in range(MOST_NODES):
            data = guest.number(table + 8 * node)
            if not data:
                return
            self._add(data, "pglist_data", f"node {node}")

    def _super_blocks(self) -> None:
        guest = self._guest
        for block in guest.list(guest.needed("super_blocks"), "super_block", "s_list"):
            kind = self._files.super_block(block)
            self._add(block, "super_block", kind)
            if kind in PRIVATE:
                self._add(guest.get(block, "super_block", "s_fs_info"), PRIVATE[kind], kind)
            nodes = guest.number(guest.needed("nr_node_ids"), 4)
            for lru in ("s_dentry_lru", "s_inode_lru"):
                self._add(guest.get(block, "super_block", f"{lru}.node"), "list_lru_node", kind, nodes, lru)

    def _domains(self) -> None:
        guest = self._guest
        queues = guest.image.per_cpu.address("runqueues")
        if queues is None:
            return
        seen: set[int] = set()

        def once(at: int, structure: str, instance: str) -> None:
            if at and at not in seen:
                seen.add(at)
                self._add(at, structure, instance)

        cores = guest.number(guest.needed("nr_cpu_ids"), 4)
        for cpu, offset in enumerate(guest.numbers(guest.needed("__per_cpu_offset"), cores)):
            queue = (queues + offset) % (1 << 64)
            once(guest.get(queue, "rq", "rd"), "root_domain", "")
            domain = guest.get(queue, "rq", "sd")
            for _ in range(MOST_DOMAINS):
                if not domain:
                    break
                level = guest.text(guest.get(domain, "sched_domain", "name"), 16)
                once(domain, "sched_domain", f"{level} CPU {cpu}")
                once(guest.get(domain, "sched_domain", "shared"), "sched_domain_shared", level)
                group = guest.get(domain, "sched_domain", "groups")
                once(group, "sched_group", level)
                once(guest.get(group, "sched_group", "sgc"), "sched_group_capacity", level)
                domain = guest.get(domain, "sched_domain", "parent")

    def _network(self) -> None:
        """The devices of the first name space, each followed by its driver's private data."""
        guest = self._guest
        for device in guest.list(guest.needed("init_net") + guest.offset("net", "dev_base_head"), "net_device", "dev_list"):
            self._add(device, "net_device", guest.get_text(device, "net_device", "name"))

    def _memory_group(self) -> None:
        guest = self._guest
        group = guest.number(guest.needed("root_mem_cgroup"))
        self._add(group, "mem_cgroup", "root")
        nodes = guest.number(guest.needed("nr_node_ids"), 4)
        first = group + guest.offset("mem_cgroup", "nodeinfo")
        for node in range(min(nodes, MOST_NODES)):
            self._add(guest.number(first + 8 * node), "mem_cgroup_per_node", f"root, node {node}")
