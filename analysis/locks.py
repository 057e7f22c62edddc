# SPDX-License-Identifier: BSD-3-Clause
"""Locks among the names of lines (docs/naming.md), by the name alone: Linux calls its locks `..._lock`, `..._sem`, `..._mutex`, with
few exceptions. A lock's own fields (`rwsem.owner`, `d_lockref.count`, `tasklist_lock+0x4`) count as the lock.
"""

import re

# Ends of a field's or a variable's name, and the form of such a lock; the first that fits counts.
FORMS = (
    (re.compile(r"lockref$"), "lock and count"),
    (re.compile(r"mutex$"), "mutex"),
    (re.compile(r"(rw|_|^)sem$|^s_umount$"), "semaphore"),
    (re.compile(r"(?<![bc])lock(\.rlock)?$"), "lock"),
)
# Nodes of the waiters of queued locks, one per core or thread. A node does not identify its lock.
QUEUE = re.compile(r"^(osq_node|qnodes|mcs_nodes?|thread_nodes?)$")
QUEUED = "queue of waiters"
# Names of these kinds begin with the type of the object, names of others with a variable.
OF_TYPES = ("slab", "kernel object")
CODE = ("kernel code", "module")
OF_PROGRAMS = ("user symbol", "stack")  # whose names may have spaces, within the arguments of a template
# Functions of the kernel, of libraries and of programs that take or release a lock.
CODE_OF_LOCKS = re.compile(r"(?<![bc])lock|mutex|sem_(wait|post|trywait)|critical_(start|end)", re.IGNORECASE)
# Variables of moscope's kernel patches: one line each, which begins with a lock. The image has no types of them.
OF_PATCHES = ("all_open_files", "node0_receive_buffers", "pseudo_dentries", "pseudo_inodes")
INNER = r"\((?:[^()]|\([^()]*\))*\)"  # parentheses in the arguments of a template: of a function's type, a namespace without a name
# Of an allocation: `calloc at stats.c:51 (worker_stats)`.
SITE = re.compile(rf".*? at \S+:\d+( \((?:[^()]|{INNER})*\))?")


def lock_of(name: str, kind: str = "") -> tuple[str, str] | None:
    """(lock, its form) of a line's name and kind; None for other lines."""
    if kind in CODE:
        return None
    site = SITE.match(name) if kind == "heap" else None
    if site:
        before, rest = site[0], name[site.end():]
    else:
        before, mark, rest = (name if kind in OF_PROGRAMS else name.split(" ")[0]).rpartition(":")
        before += mark
    if rest in OF_PATCHES:
        return rest, "lock"
    parts = re.sub(r"\+0x[0-9a-f]+$", "", rest).split(".")
    plain = [re.sub(r"\[[^]]*\]", "", part) for part in parts]
    for n, part in enumerate(plain):
        if n == 0 and kind in OF_TYPES and len(plain) > 1:
            continue
        form = QUEUED if QUEUE.match(part) else next((f for pattern, f in FORMS if pattern.search(part)), None)
        if form:
            return before + ".".join(parts[:n + 1]), form
    return None
