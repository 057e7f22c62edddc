# SPDX-License-Identifier: BSD-3-Clause
"""From a physical page to the object that the slab allocator put there (Linux, mm/slub.c): page -> struct page ->
slab -> cache -> object, offset, and by the cache's name the type, so that the offset has a member's name.
"""

from dataclasses import dataclass

from moscope.naming.guest import PAGE, Guest, Unreadable

# Caches whose name is not the type's.
TYPE_OF_CACHE = {
    "filp": "file", "cred_jar": "cred", "names_cache": "filename", "fs_cache": "fs_struct", "files_cache": "files_struct",
    "sighand_cache": "sighand_struct", "signal_cache": "signal_struct", "inode_cache": "inode",
    "shmem_inode_cache": "shmem_inode_info", "proc_inode_cache": "proc_inode", "sock_inode_cache": "socket_alloc",
    "ext4_inode_cache": "ext4_inode_info", "mqueue_inode_cache": "mqueue_inode_info", "bdev_cache": "bdev_inode",
    "hugetlbfs_inode_cache": "hugetlbfs_inode_info", "ovl_inode": "ovl_inode", "mnt_cache": "mount",
    "kernfs_node_cache": "kernfs_node", "skbuff_head_cache": "sk_buff", "skbuff_fclone_cache": "sk_buff_fclones",
    "TCP": "tcp_sock", "TCPv6": "tcp6_sock", "UDP": "udp_sock", "UDPv6": "udp6_sock", "UNIX": "unix_sock",
    "RAW": "raw_sock", "UNIX-STREAM": "unix_sock", "request_sock_TCP": "tcp_request_sock", "tw_sock_TCP": "tcp_timewait_sock",
    "request_sock_TCPv6": "tcp6_request_sock", "tw_sock_TCPv6": "tcp6_timewait_sock",
    "ip_dst_cache": "rtable", "ip6_dst_cache": "rt6_info", "tcp_bind_bucket": "inet_bind_bucket",
    "tcp_bind2_bucket": "inet_bind2_bucket", "radix_tree_node": "xa_node", "file_lock_cache": "file_lock",
    "file_lock_ctx": "file_lock_context", "blkdev_ioc": "io_context", "uid_cache": "user_struct",
    "net_namespace": "net", "posix_timers_cache": "k_itimer", "eventpoll_epi": "epitem", "eventpoll_pwq": "eppoll_entry",
    "page->ptl": "spinlock_t", "proc_dir_entry": "proc_dir_entry", "pid_2": "pid", "seq_file": "seq_file",
    "skbuff_ext_cache": "skb_ext", "fasync_cache": "fasync_struct", "task_delay_info": "task_delay_info",
    "neigh_table": "neighbour", "arp_cache": "neighbour", "ndisc_cache": "neighbour", "ip_fib_alias": "fib_alias",
    "ip_fib_trie": "key_vector", "inet_peer_cache": "inet_peer", "lsm_file_cache": "void", "lsm_inode_cache": "void",
    "anon_vma_name": "anon_vma_name", "squashfs_inode_cache": "squashfs_inode_info", "fsnotify_mark": "fsnotify_mark",
    "jbd2_journal_head": "journal_head", "jbd2_journal_handle": "jbd2_journal_handle", "request_queue": "request_queue",
}
PAGE_TYPE_BASE, PAGE_TYPE_TABLE = 0xF0000000, 0x200  # page-flags.h up to 6.10: a page's type is told by cleared bits


@dataclass(frozen=True)
class SlabObject:
    """`type` is the number of the object's type, 0 where its cache does not tell; `allocated` by the object's own state
    cannot be told. Offsets beyond `size` are the allocator's."""

    cache: str
    address: int
    offset: int
    size: int
    type: int


class Pages:
    """The array of `struct page` (sparse, virtually mapped). What was read of a page stays known: one is made anew where
    the machine has run meanwhile."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.base = guest.bases["vmemmap_base"]
        self.size = guest.size("page")
        self._flags = guest.types.enumeration("pageflags")
        self._kinds = guest.types.enumeration("pagetype")
        self._caches: dict[int, tuple[str, int, int, int, int]] = {}
        self._slabs: dict[int, tuple[int, int] | None] = {}  # by page: where its slab begins, its cache
        self._reserved: dict[int, bool] = {}

    def page(self, physical: int) -> int:
        """The address of the page's description."""
        return self.base + (physical // PAGE) * self.size

    def described(self, address: int) -> int | None:
        """The physical page that an address within the array describes."""
        return (address - self.base) // self.size * PAGE if 0 <= address - self.base < 1 << 42 else None

    def head(self, page: int) -> int:
        """A tail page's head; itself for others."""
        link = self._guest.get(page, "page", "compound_head")
        return link - 1 if link & 1 else page

    def has(self, page: int, flag: str) -> bool:
        bit = self._flags.get(flag)
        return bit is not None and bool(self._guest.get(page, "page", "flags") >> bit & 1)

    def _of_kind(self, page: int, name: str, cleared: int) -> bool:
        kind = self._guest.get(page, "page", "page_type")
        if f"PGTY_{name}" in self._kinds:
            return kind >> 24 == self._kinds[f"PGTY_{name}"]
        return kind & (PAGE_TYPE_BASE | cleared) == PAGE_TYPE_BASE if cleared else False

    def is_table(self, page: int) -> bool:
        """Whether it is a page table of a process (the kernel's own are not marked)."""
        return self._of_kind(page, "table", PAGE_TYPE_TABLE)

    def is_reserved(self, physical: int) -> bool:
        """Whether the page was kept back when the allocators took over: the kernel's image, early allocations."""
        page = physical // PAGE
        if page not in self._reserved:
            self._reserved[page] = self.has(self.page(physical), "PG_reserved")
        return self._reserved[page]

    def is_free(self, page: int) -> bool:
        return self._of_kind(page, "buddy", 0x80)

    def slab_object(self, physical: int) -> SlabObject | None:
        """The slab object that a physical byte lies in; None where the page is no slab's."""
        slab = self._slab(physical)
        if slab is None:
            return None
        first, cache = slab
        name, stride, size, pad, kind = self._cache(cache)
        index, offset = divmod(physical - first, stride)
        return SlabObject(name, self._guest.direct(first + index * stride + pad), offset - pad, size, kind)

    def _slab(self, physical: int) -> tuple[int, int] | None:
        page = physical // PAGE
        if page not in self._slabs:
            head = self.head(self.page(physical))
            is_slab = self.has(head, "PG_slab") or self._of_kind(head, "slab", 0)
            self._slabs[page] = (self.described(head) or 0, self._guest.get(head, "slab", "slab_cache")) if is_slab else None
        return self._slabs[page]

    def _cache(self, cache: int) -> tuple[str, int, int, int, int]:
        """A cache's name, the distance of its objects, their size, what lies before each, and their type."""
        if cache not in self._caches:
            guest = self._guest
            name = guest.text(guest.get(cache, "kmem_cache", "name"), 64)
            stride = guest.get(cache, "kmem_cache", "size")
            if not name or not 0 < stride <= 1 << 24:
                raise Unreadable(f"a slab cache at {cache:#x}")
            try:
                pad = guest.get(cache, "kmem_cache", "red_left_pad")
            except Unreadable:
                pad = 0
            self._caches[cache] = (name, stride, guest.get(cache, "kmem_cache", "object_size"), pad, self._type(name))
        return self._caches[cache]

    def _type(self, cache: str) -> int:
        bare = cache.split("(")[0]  # "dentry(12:session.slice)": a memory group's own
        for name in (TYPE_OF_CACHE.get(bare, bare), bare.removesuffix("_cache")):
            if name in self._guest.types:
                return self._guest.types.named(name)
        return self._guest.types.named("bio") if bare.startswith("bio-") and "bio" in self._guest.types else 0
