# SPDX-License-Identifier: BSD-3-Clause
"""From a physical page to the object that the slab allocator put there (Linux, mm/slub.c): page -> struct page ->
slab -> cache -> object, offset, and by the cache's name the type, so that the offset has a member's name.
"""

from dataclasses import dataclass, replace

from moscope.naming.btf import Unreadable
from moscope.naming.guest import PAGE, Guest

# Caches with another name than the type of their objects.
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
POINTER = 8
# Functions that follow and build lists of free objects (mm/slub.c). Functions that are inlined into these are included.
ALLOCATOR = {"kmem_cache_alloc", "kmem_cache_alloc_lru", "kmem_cache_alloc_node", "kmem_cache_alloc_bulk", "kmem_cache_alloc_trace",
             "kmem_cache_alloc_node_trace", "__kmem_cache_alloc_node", "kmalloc_trace", "__kmalloc", "__kmalloc_node",
             "__kmalloc_track_caller", "__kmalloc_node_track_caller", "kmem_cache_free", "kmem_cache_free_bulk", "__kmem_cache_free",
             "kfree", "___cache_free", "slab_free", "__slab_alloc", "___slab_alloc", "__slab_free", "get_partial_node", "put_cpu_partial",
             "deactivate_slab", "build_detached_freelist"}
PAGE_TYPE_BASE, PAGE_TYPE_TABLE, PAGE_TYPE_FREE = 0xF0000000, 0x200, 0x80  # page-flags.h up to 6.10: cleared bits give the type


@dataclass(frozen=True)
class SlabObject:
    """`type` is the number of the object's type, 0 if its cache does not determine it. The object's own state does not say
    whether it is allocated. Offsets beyond `size` belong to the allocator. So does the word at `free_pointer` while the object is
    free."""

    cache: str
    address: int
    offset: int
    size: int
    type: int
    free_pointer: int

    @property
    def at_free_pointer(self) -> bool:
        return 0 <= self.offset - self.free_pointer < POINTER


@dataclass(frozen=True)
class Description:
    """The kernel's description of a page, in the `struct page` of its head. `part_of` is the slab's cache or the mapping; `first`
    is the number of the first page of the compound page."""

    flags: int
    type: int
    part_of: int
    index: int
    first: int


class Pages:
    """The array of `struct page` (sparse, virtually mapped). Descriptions that were read are kept; create a new
    object after the machine has run. For the state of a page at another time, pass its description of that time."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.base = guest.bases["vmemmap_base"]
        self.size = guest.size("page")
        self._flags = guest.types.enumeration("pageflags")
        self._kinds = guest.types.enumeration("pagetype")
        self._at = {name: guest.offset("page", name) for name in ("flags", "compound_head", "mapping", "index", "page_type")}
        self._at["slab_cache"] = guest.offset("slab", "slab_cache") if "slab" in guest.types else self._at["mapping"]
        self._caches: dict[int, tuple[str, int, int, int, int, int]] = {}
        self._now: dict[int, Description] = {}

    def page(self, physical: int) -> int:
        """The address of the page's description."""
        return self.base + (physical // PAGE) * self.size

    def described(self, address: int) -> int | None:
        """The physical page that an address within the array describes."""
        return (address - self.base) // self.size * PAGE if 0 <= address - self.base < 1 << 42 else None

    def format(self) -> dict[str, int | list[int]]:
        """Where the parts of a description are, for the engine, which reads them at misses (src/attribution/page_watch.hh)."""
        at = self._at
        return {"page_table": self._guest.page_table, "array": self.base, "size": self.size, "flags": at["flags"],
                "link": at["compound_head"], "mapping": at["mapping"], "cache": at["slab_cache"], "index": at["index"],
                "type": at["page_type"], "slab_flag": self._bit("PG_slab"), "kept_flags": self._bit("PG_slab") | self._bit("PG_reserved"),
                "slab": list(self._type_of("slab", 0)), "table": list(self._type_of("table", PAGE_TYPE_TABLE)),
                "direct": self._guest.direct(0)}

    def now(self, physical: int) -> Description:
        """The description of a physical byte's page."""
        number = physical // PAGE
        if number not in self._now:
            raw = self._guest.read(self.page(physical), self.size)
            link, first = self._part(raw, "compound_head"), number
            if link & 1:
                first = (link - 1 - self.base) // self.size
                raw = self._guest.read(link - 1, self.size)
            found = Description(self._part(raw, "flags"), self._part(raw, "page_type", 4), 0, self._part(raw, "index"), first)
            self._now[number] = replace(found, part_of=self._part(raw, "slab_cache" if self.is_slab(found) else "mapping"))
        return self._now[number]

    def _part(self, raw: bytes, name: str, size: int = 8) -> int:
        return int.from_bytes(raw[self._at[name] : self._at[name] + size], "little")

    def _bit(self, flag: str) -> int:
        return 1 << self._flags[flag] if flag in self._flags else 0

    def _flag(self, page: Description, flag: str) -> bool:
        return bool(page.flags & self._bit(flag))

    def _type_of(self, name: str, cleared: int) -> tuple[int, int]:
        """Mask and value of a page's type; the mask is 0 if the kernel has no such type."""
        if f"PGTY_{name}" in self._kinds:
            return 0xFF000000, self._kinds[f"PGTY_{name}"] << 24
        return (PAGE_TYPE_BASE | cleared, PAGE_TYPE_BASE) if cleared else (0, 0)

    def _of_kind(self, page: Description, name: str, cleared: int) -> bool:
        mask, value = self._type_of(name, cleared)
        return bool(mask) and page.type & mask == value

    def is_slab(self, page: Description) -> bool:
        return self._flag(page, "PG_slab") or self._of_kind(page, "slab", 0)

    def is_table(self, page: Description) -> bool:
        """Whether it is a page table of a process (the kernel's own are not marked)."""
        return self._of_kind(page, "table", PAGE_TYPE_TABLE)

    def is_reserved(self, page: Description) -> bool:
        """Whether the page was kept back when the allocators took over: the kernel's image, early allocations."""
        return self._flag(page, "PG_reserved")

    def is_free(self, page: Description) -> bool:
        return self._of_kind(page, "buddy", PAGE_TYPE_FREE)

    def slab_object(self, physical: int, page: Description | None = None) -> SlabObject | None:
        """The slab object that a physical byte lies in; None where the page is no slab's."""
        page = page or self.now(physical)
        if not self.is_slab(page):
            return None
        name, stride, size, pad, kind, free = self._cache(page.part_of)
        first = page.first * PAGE
        index, offset = divmod(physical - first, stride)
        return SlabObject(name, self._guest.direct(first + index * stride + pad), offset - pad, size, kind, free)

    def _cache(self, cache: int) -> tuple[str, int, int, int, int, int]:
        """A cache's name, the distance between its objects, their size, the space before each object, their type, and the offset
        of a free object's pointer to the next one, which is mostly in the middle of the object (mm/slub.c, calculate_sizes)."""
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
            self._caches[cache] = (name, stride, guest.get(cache, "kmem_cache", "object_size"), pad, self._type(name),
                                   guest.get(cache, "kmem_cache", "offset"))
        return self._caches[cache]

    def _type(self, cache: str) -> int:
        bare = cache.split("(")[0]  # "dentry(12:session.slice)" is the cache of a memory group
        for name in (TYPE_OF_CACHE.get(bare, bare), bare.removesuffix("_cache")):
            if name in self._guest.types:
                return self._guest.types.named(name)
        return self._guest.types.named("bio") if bare.startswith("bio-") and "bio" in self._guest.types else 0
