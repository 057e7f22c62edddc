# SPDX-License-Identifier: BSD-3-Clause
"""The names of a guest's files (paths of dentries and inodes), and short descriptions of kernel objects."""

from collections.abc import Callable

from moscope.naming.btf import Unreadable
from moscope.naming.guest import Guest

DEEPEST = 40


class Files:
    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._known: dict[tuple[str, int], str] = {}
        self._describe: dict[str, Callable[[int], str]] = {
            "dentry": self.path, "inode": self.inode, "file": self.file, "task_struct": self._task, "mount": self._mount,
            "vm_area_struct": self._area, "mm_struct": self._mm, "super_block": self.super_block,
            "kmem_cache": lambda a: guest.text(guest.get(a, "kmem_cache", "name")),
            "fs_struct": lambda a: "in " + self.path(guest.get(a, "fs_struct", "pwd.dentry")),
            "kernfs_node": lambda a: guest.text(guest.get(a, "kernfs_node", "name")),
            "address_space": lambda a: self.inode(guest.get(a, "address_space", "host")),
        }

    def refresh(self) -> None:
        """Forgets what may have changed while the machine ran."""
        self._known.clear()

    def describe(self, structure: str, address: int) -> str:
        """What distinguishes an object from others of its type: a path, a process; empty if unknown."""
        key = structure, address
        if key not in self._known:
            self._known[key] = self._read(structure, address)
        return self._known[key]

    def _read(self, structure: str, address: int) -> str:
        guest = self._guest
        try:
            if structure in self._describe:
                return self._describe[structure](address)
            if structure.endswith(("_inode", "_inode_info", "socket_alloc")):
                return self.inode(address + guest.offset(structure, "vfs_inode"))
        except Unreadable:
            pass
        return ""

    def path(self, dentry: int) -> str:
        """A dentry's path within its file system; a path from a root begins with the file system's type. A file that is in no
        directory, such as memory that processes share without a file, has only its name: `tmpfs:dev/zero`."""
        guest = self._guest
        parts: list[str] = []
        for _ in range(DEEPEST):
            name = guest.text(guest.get(dentry, "dentry", "d_name.name"))
            parent = guest.get(dentry, "dentry", "d_parent")
            if parent == dentry or not parent:
                text = "/" + "/".join(reversed(parts)) if name == "/" else "/".join(reversed(parts)) or name
                return f"{self.super_block(guest.get(dentry, 'dentry', 'd_sb'))}:{text}"
            parts.append(name)
            dentry = parent
        raise Unreadable("a dentry's parents do not end")

    def super_block(self, block: int) -> str:
        """A mounted file system by its type."""
        guest = self._guest
        return guest.text(guest.get(guest.get(block, "super_block", "s_type"), "file_system_type", "name"), 32)

    def inode(self, inode: int) -> str:
        """An inode by its first name, else by its number."""
        guest = self._guest
        alias = guest.get(inode, "inode", "i_dentry.first")
        if alias:
            return self.path(alias - guest.offset("dentry", "d_u.d_alias"))
        return f"{self.super_block(guest.get(inode, 'inode', 'i_sb'))}:inode {guest.get(inode, 'inode', 'i_ino')}"

    def file(self, file: int) -> str:
        return self.path(self._guest.get(file, "file", "f_path.dentry"))

    def _task(self, task: int) -> str:
        guest = self._guest
        return f"{guest.get_text(task, 'task_struct', 'comm')} {guest.get(task, 'task_struct', 'pid')}"

    def _mount(self, mount: int) -> str:
        guest = self._guest
        block = self.super_block(guest.get(mount, "mount", "mnt.mnt_sb"))
        return f"{block} on {self.path(guest.get(mount, 'mount', 'mnt_mountpoint'))}"

    def _area(self, area: int) -> str:
        file = self._guest.get(area, "vm_area_struct", "vm_file")
        return "of " + self.file(file) if file else "anonymous"

    def _mm(self, mm: int) -> str:
        owner = self._guest.get(mm, "mm_struct", "owner")
        return self._task(owner) if owner else ""
