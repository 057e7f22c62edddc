# SPDX-License-Identifier: BSD-3-Clause
"""A storm for each fix of the MOSBENCH paper that the project's kernel can switch, on what the fix changes.

Named by the fix. Run on `pk` and on `pk` without the fix (`pk-7`), it tells the two forms of one contention point apart.
"""

from .registry import Workload, register

STORMS = {
    2: ("dentry", "stat calls", "one dentry's reference count: all take and drop the current directory"),
    3: ("mount", "stat calls", "one mount's reference count: all take and drop the current directory"),
    6: ("lookup", "stat calls", "one dentry's lock: all look up the same name"),
    7: ("table", "stat calls", "the mount table: all cross the same mount point"),
    8: ("open", "files opened", "the list of open files: each opens and closes a file of its own"),
    14: ("seek", "seeks", "one inode's mutex: all seek in the same file"),
}

register(*(Workload(f"vfsfix-{fix}", "vfsfix", f"fix {fix}: {summary}", operation, lambda cores, v=variant: f"{v} --cores {cores}",
                    kernels=f"pk-{fix},pk")
           for fix, (variant, operation, summary) in STORMS.items()))
