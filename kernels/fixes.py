# SPDX-License-Identifier: BSD-3-Clause
"""The fixes of the MOSBENCH paper's figure 1 that the project's kernel can switch, one row each.

`stock`, `pk` and `upstream` say what the kernel does in that setting. A fix that has no row cannot be switched: its
code is 6.1's own in every setting.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    number: int
    name: str
    patch: str
    files: tuple[str, ...]
    stock: str
    pk: str
    upstream: str


FIXES: tuple[Fix, ...] = (
    Fix(2, "reference count of a dentry", "02-dentry-count.patch", ("fs/dcache.c", "include/linux/dcache.h", "lib/lockref.c"),
        stock="one atomic count beside the dentry's lock", pk="sloppy: spare references stay with the core",
        upstream="one count, in one word with the dentry's lock; RCU walk takes references of a path's end only"),
    Fix(3, "reference count of a mount", "03-vfsmount-count.patch", ("fs/namespace.c", "fs/mount.h"),
        stock="one atomic count", pk="per-CPU counts (6.1's)", upstream="per-CPU counts"),
    Fix(6, "lock of a dentry in lookup", "06-dentry-lookup-lock.patch", ("fs/dcache.c",),
        stock="compared under the dentry's lock", pk="compared by generation, then lockref_get_not_dead",
        upstream="the walk by reference, where RCU walk gives up, takes the lock"),
    Fix(7, "lock of the mount table", "07-mount-table.patch", ("fs/namespace.c",),
        stock="one global spin lock", pk="a cache per core, emptied by any change of the table",
        upstream="RCU hash under a sequence count"),
    Fix(8, "list of open files", "08-open-files.patch", ("fs/file_table.c", "fs/open.c", "fs/internal.h", "include/linux/fs.h"),
        stock="one list under one lock", pk="a list and lock per core", upstream="no list"),
    Fix(14, "inode's mutex in lseek", "14-lseek-mutex.patch",
        ("fs/read_write.c", "fs/inode.c", "include/linux/fs.h", "lib/moscope_mutex.c"),
        stock="an unfair adaptive mutex per inode", pk="no mutex", upstream="no mutex"),
)

# Patches that every setting rests on, applied first. `stock` and `pk` walk paths by reference, `upstream` under RCU; `stock` and
# `pk` map a file's pages one by one, `upstream` several at a time;
# `stock` and `pk` keep reverse maps as lists, `upstream` as interval trees.
COMMON = ("00-common.patch", "01-fault-around.patch", "01-reverse-map.patch", "01-walk-by-reference.patch")
