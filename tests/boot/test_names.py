# SPDX-License-Identifier: BSD-3-Clause
"""Lines and code of a booted Linux have the names that the guest itself gives them: /proc/kallsyms, /proc/slabinfo,
and a program's /proc/self/pagemap are the references. The kernel has placed itself at random, as it does by default.
"""

import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from table import GUEST

from moscope.boot import plan
from moscope.cli import Shared
from moscope.guest import kernel
from moscope.naming.columns import OF_WHOLE_PAGES
from moscope.naming.guest import Guest, Memory
from moscope.naming.namer import Namer
from moscope.naming.percpu import PerCpu
from moscope.naming.slab import Pages

BOOT_SECONDS = 200
PAGE, LINE = 4096, 64


@dataclass(frozen=True)
class Booted:
    namer: Namer
    guest: Guest
    console: str

    def task(self, name: str) -> int:
        """The task of a process, by the list of tasks."""
        g = self.guest
        first = g.needed("init_task")
        tasks = g.list(first + g.offset("task_struct", "tasks"), "task_struct", "tasks")
        return next(t for t in tasks if g.get_text(t, "task_struct", "comm") == name)

    def cr3(self, name: str) -> int:
        g = self.guest
        return g.physical(g.get(g.get(self.task(name), "task_struct", "mm"), "mm_struct", "pgd"))

    def pages(self) -> dict[str, tuple[int, int]]:
        """What the program printed: name -> virtual address, physical address."""
        return {n: (int(va, 16), int(pfn, 16) * PAGE + int(va, 16) % PAGE) for n, va, pfn in
                re.findall(r"^page (\S+) ([0-9a-f]+) ([0-9a-f]+)", self.console, re.MULTILINE)}


@pytest.fixture(scope="module")
def booted(distro: kernel.Kernel, programs: dict[str, Path], engine: ModuleType,
           tmp_path_factory: pytest.TempPathFactory) -> Booted:
    options = plan.Options(cores=2, memory_per_node="512MiB", script=GUEST / "names.sh", append="slab_nomerge",
                           programs={"names": programs["names"]})
    planned = plan.make(Shared(out=tmp_path_factory.mktemp("names") / "out", json=True), options)
    system = engine.System(json.dumps({**planned.config, "markers": ["names: look"]}))
    console, end, state = b"", time.monotonic() + BOOT_SECONDS, {"state": "running"}
    while state["state"] == "running" and time.monotonic() < end:
        state = system.step(200)
        console += system.console_output()
    assert state["state"] == "marker", console[-2000:]
    namer = Namer(system, distro.image, {"names": programs["names"]})
    return Booted(namer, Guest(system, namer.kernel), console.decode(errors="replace").replace("\r", ""))


def test_symbols_lie_where_the_guest_says(booted: Booted) -> None:
    reported = re.findall(r"^symbol ([0-9a-f]{16}) (\w) (\S+)(?: \[(\S+)\])?", booted.console, re.MULTILINE)
    assert len(reported) > 280
    image = booted.guest.image
    for text, _, name, module in reported:
        address = int(text, 16)
        if module:
            assert booted.namer.code(address).endswith(f"[{module}]")
        elif address < 1 << 31:
            assert image.per_cpu.at(address).symbol.address == address  # type: ignore[union-attr]
        else:
            place = booted.guest.place(address)
            assert place is not None and place.offset == 0, name
            assert name in image.symbols


def test_slab_caches_have_the_sizes_that_the_guest_tells(booted: Booted) -> None:
    reported = {n: int(size) for n, size in re.findall(r"^slab (\S+) (\d+)", booted.console, re.MULTILINE)}
    g = booted.guest
    read = {g.text(g.get(c, "kmem_cache", "name")): g.get(c, "kmem_cache", "size")
            for c in g.list(g.needed("slab_caches"), "kmem_cache", "list")}
    assert read == reported and read["dentry"] == g.size("dentry")


def at(booted: Booted, address: int) -> tuple[str, str, str]:
    """(name, kind, object) by physical address, as a line of attribution has it."""
    named = booted.namer.at(booted.guest.physical(address))
    return named.name, named.kind, named.object


def test_pages_that_the_kernel_image_freed_are_named_by_their_present_use(booted: Booted) -> None:
    g = booted.guest
    first, end = g.needed("_text"), g.needed("_end")
    pages = Pages(g)
    back = [a for a in range(first, end, PAGE) if not pages.is_reserved(pages.now(g.physical(a)))]
    assert any(g.needed("__init_begin") <= a < g.needed("__init_end") for a in back)
    assert any(a >= g.needed("__brk_base") for a in back) and not any(a < g.needed("_etext") for a in back)
    reported = {at(booted, a)[:2] for a in back}
    assert not {kind for _, kind in reported} & {"kernel symbol", "kernel code"}
    assert not {name.split("+")[0] for name, _ in reported} & {"__brk_base", "_etext", "__init_begin"}
    assert at(booted, first + PAGE)[1] == "kernel code"
    kept = [a for a in range(g.needed("__brk_base"), end, PAGE) if pages.is_reserved(pages.now(g.physical(a)))]
    assert kept and {at(booted, a)[:2] for a in kept} == {("memory reserved at boot", "boot memory")}


def test_variables_are_named(booted: Booted) -> None:
    g = booted.guest
    assert at(booted, g.needed("jiffies")) == ("jiffies", "kernel symbol", "")
    assert at(booted, g.needed("tasklist_lock")) == ("tasklist_lock", "kernel symbol", "")
    state = g.needed("init_task") + g.offset("task_struct", "se.vruntime")
    assert at(booted, state) == ("init_task.se.vruntime", "kernel symbol", "")
    assert at(booted, g.needed("schedule") + 5)[:2] == ("schedule", "kernel code")


def test_per_cpu_variables_are_named_with_their_core(booted: Booted) -> None:
    g, per_cpu = booted.guest, PerCpu(booted.guest)
    queue = g.image.per_cpu.address("runqueues") + per_cpu.offsets[1]  # type: ignore[operator]
    running = (queue + g.offset("rq", "cfs.nr_running")) % (1 << 64)
    assert at(booted, running) == ("runqueues.cfs.nr_running", "per-CPU variable", "CPU 1")


def test_an_open_files_dentry_inode_and_task_are_named(booted: Booted) -> None:
    g, task = booted.guest, booted.task("names")
    table = g.get(g.get(task, "task_struct", "files"), "files_struct", "fdt")
    file = g.number(g.get(table, "fdtable", "fd") + 8 * 4)  # after 0 to 2 and the page map
    dentry = g.get(file, "file", "f_path.dentry")
    path = "tmpfs:/spool/deep/mail"
    assert at(booted, file + g.offset("file", "f_count")) == ("file.f_count", "slab", path)
    assert at(booted, dentry + g.offset("dentry", "d_lockref.count")) == ("dentry.d_lockref.count", "slab", path)
    inode = g.get(dentry, "dentry", "d_inode")
    name, kind, of = at(booted, inode + g.offset("inode", "i_lock"))
    assert (name, kind, of) == ("shmem_inode_info.vfs_inode.i_lock", "slab", path)
    pid = re.search(r"^pid (\d+)", booted.console, re.MULTILINE)
    assert pid and at(booted, task + g.offset("task_struct", "pid"))[2] == f"names {pid.group(1)}"
    block = g.get(dentry, "dentry", "d_sb")
    assert at(booted, block + g.offset("super_block", "s_umount.count"))[0] == "super_block.s_umount.count"


def test_a_line_with_a_free_pointer_is_named_by_the_functions_that_wait_for_it(booted: Booted) -> None:
    g = booted.guest
    file = g.number(g.get(g.get(g.get(booted.task("names"), "task_struct", "files"), "files_struct", "fdt"), "fdtable", "fd") + 8 * 4)
    (cache,) = [c for c in g.list(g.needed("slab_caches"), "kmem_cache", "list") if g.text(g.get(c, "kmem_cache", "name"), 32) == "filp"]
    pointer = g.get(cache, "kmem_cache", "offset")
    there = g.physical(file + pointer)

    def named(offset: int, *waited: tuple[str, int]) -> str:
        allocator, whole = (sum(stall for function, stall in waited if keep(function)) for keep in
                            (lambda function: booted.namer.allocates(g.needed(function) + 8), lambda function: True))
        return booted.namer.line(there & -LINE, 0, offset, 0, False, free=2 * allocator > whole).name

    at_pointer = there % LINE
    field = at(booted, file + pointer)[0]
    assert field.startswith("file.f_") and 0 < pointer < g.size("file"), "the kernel puts it into the middle of the object"
    assert named(at_pointer, ("kmem_cache_free", 10), ("fput", 9)) == "file.free pointer"
    assert named(at_pointer, ("kmem_cache_free", 9), ("fput", 10)) == field
    assert "free pointer" not in named((at_pointer + 8) % LINE, ("kmem_cache_free", 10))


EXPECTED: dict[str, Callable[[str, str, str], bool]] = {
    "shared_counter": lambda name, kind, of: name == "names:shared_counter" and kind == "user symbol" and of.startswith("names "),
    "table_of_zeros": lambda name, kind, of: name == "names:table_of_zeros+0x3e80",
    "heap": lambda name, kind, of: (name, kind) == ("heap of names", "heap"),
    "stack": lambda name, kind, of: (name, kind) == ("names:frame of main()", "stack") and of.startswith("names "),
    "file": lambda name, kind, of: (name, kind, of) == ("page cache tmpfs", "page cache", "tmpfs:/spool/deep/mail"),
    "anonymous": lambda name, kind, of: (name, kind) == ("anonymous memory of names", "anonymous memory"),
    "shared": lambda name, kind, of: (name, kind) == ("shared memory of names", "anonymous memory"),
    "main": lambda name, kind, of: name == "names:main",
}


@pytest.mark.parametrize("what", EXPECTED)
def test_a_programs_memory_is_named(booted: Booted, what: str) -> None:
    va, physical = booted.pages()[what]
    named = booted.namer.at(physical, va, booted.cr3("names"))
    assert EXPECTED[what](named.name, named.kind, named.object), named


@pytest.mark.parametrize("known", [True, False], ids=["a process", "an unknown address space"])
def test_lines_of_a_page_without_parts_that_have_names_have_one_name(booted: Booted, known: bool) -> None:
    namer, cr3 = booted.namer, booted.cr3("names") if known else 0x7000
    whole = set()
    for what, (va, physical) in booted.pages().items():
        named = [namer.at(physical & -PAGE | at, va & -PAGE | at, cr3) for at in range(0, PAGE, LINE)]
        if namer.whole_page(va, cr3):
            whole.add(what)
            assert len({(one.name, one.kind) for one in named}) == 1 or named[0].kind not in OF_WHOLE_PAGES, what
    assert whole >= {"heap", "anonymous", "shared"} and not whole & {"shared_counter", "table_of_zeros", "main"}
    assert ("stack" in whole) is not known  # its frames have names


def test_without_an_address_space_memory_is_named_by_its_page(booted: Booted) -> None:
    pages = booted.pages()
    kinds = {what: booted.namer.at(physical).kind for what, (_, physical) in pages.items()}
    assert kinds == {**dict.fromkeys(pages, "anonymous memory"), "file": "page cache", "main": "user symbol"}
    assert booted.namer.at(pages["shared"][1]).name == "shared memory"
    va, physical = pages["shared_counter"]
    assert booted.namer.at(physical, va, 0x7000).name == "names:shared_counter"  # linked to fixed addresses


def test_kernel_stacks_page_tables_and_the_page_array_are_named(booted: Booted) -> None:
    g, task = booted.guest, booted.task("names")
    stack = g.get(task, "task_struct", "stack") + 0x3F00
    named = booted.namer.at(0x1000, stack)
    assert (named.name, named.kind) == ("kernel stack", "kernel stack") and named.object.startswith("names ")
    assert booted.namer.at(booted.cr3("names")).name == "page table"
    page = Pages(g).page(booted.pages()["file"][1])
    named = booted.namer.at(0x1000, page + g.offset("page", "_refcount"))
    assert named.name == "struct page._refcount" and "tmpfs:/spool/deep/mail" in named.object


def test_members_of_a_pages_description_are_those_of_its_use(booted: Booted) -> None:
    g, pages, task = booted.guest, Pages(booted.guest), booted.task("names")

    def named(physical: int, structure: str, member: str) -> tuple[str, str]:
        found = booted.namer.at(0x1000, pages.page(physical) + g.offset(structure, member))
        return found.name, found.kind

    table = next(p for p in range(16 << 20, 1 << 30, PAGE) if pages.is_table(pages.now(p)))
    assert named(table, "page", "ptl") == ("struct page.ptl", "struct page")
    slab = pages.now(g.physical(task)).first * PAGE
    assert named(slab, "slab", "freelist") == ("struct slab.freelist", "struct page")
    assert named(slab, "page", "_refcount") == ("struct page._refcount", "struct page")
    assert named(slab + PAGE, "page", "compound_head")[0] == "struct page.lru/compound_head", "its second page has only the link"
    assert named(booted.pages()["file"][1], "page", "private") == ("struct page.private", "struct page")


def test_an_idle_tasks_stack_has_an_owner(booted: Booted) -> None:
    g = booted.guest
    queues = g.image.per_cpu.address("runqueues")
    assert queues is not None
    second = g.numbers(g.needed("__per_cpu_offset"), 2)[1]  # the first core's stack is in the kernel's image
    stack = g.get(g.get((queues + second) % (1 << 64), "rq", "idle"), "task_struct", "stack")
    named = booted.namer.at(0x1000, stack + 0x3F00)
    assert (named.kind, named.object) == ("kernel stack", "swapper/1 0")


def test_parts_of_per_cpu_units_freed_at_start_up_are_named_by_their_pages(booted: Booted) -> None:
    g = booted.guest
    chunk = g.number(g.needed("pcpu_first_chunk"))
    used = g.get(chunk, "pcpu_chunk", "base_addr") + PAGE * g.get(chunk, "pcpu_chunk", "nr_pages") \
        - g.get(chunk, "pcpu_chunk", "end_offset") - g.number(g.needed("pcpu_base_addr"))
    unit = g.number(g.needed("pcpu_unit_size"), 4)
    assert used < unit
    for offset in g.numbers(g.needed("__per_cpu_offset"), 2):
        assert at(booted, (offset + used - 8) % (1 << 64))[1] == "per-CPU variable"
        kinds = {at(booted, (offset + place) % (1 << 64))[1] for place in range(-(-used // PAGE) * PAGE, unit, PAGE)}
        assert "per-CPU variable" not in kinds and kinds - {"unknown"}, kinds


def test_a_page_freed_after_the_miss_is_named_by_its_use_at_the_miss(booted: Booted) -> None:
    g, pages = booted.guest, Pages(booted.guest)
    free = next(p for p in range(16 << 20, 1 << 30, PAGE) if pages.is_free(pages.now(p)))

    def named(like: int, offset: int = 0) -> tuple[str, str, str]:
        """A line of the free page, of which the engine has kept what is written down of the page of `like` now."""
        then = pages.now(like)
        kept = {"flags": then.flags, "type": then.type, "part_of": then.part_of, "index": then.index, "before": like // PAGE - then.first}
        found = booted.namer.line(free + offset // LINE * LINE, 0, offset % LINE, 0, False, kept)
        return found.name, found.kind, found.object

    assert at(booted, g.direct(free))[:2] == named(free)[:2] == ("free memory", "free memory")
    where = booted.pages()
    assert named(where["file"][1]) == ("page cache tmpfs", "page cache", "tmpfs:/spool/deep/mail")
    assert named(where["anonymous"][1])[1] == "anonymous memory"
    assert named(booted.cr3("names"))[1] in ("page table", "kernel page")
    task = booted.task("names")
    dentry = g.get(g.get(g.get(task, "task_struct", "fs"), "fs_struct", "pwd.dentry"), "dentry", "d_parent")
    count = g.physical(dentry + g.offset("dentry", "d_lockref.count"))
    assert named(count, count % PAGE)[:2] == ("dentry.d_lockref.count", "slab")


def test_memory_and_code_that_cannot_be_identified_are_named_by_their_address(booted: Booted) -> None:
    named = booted.namer.at(0xE0000000)  # the configuration space of PCI
    assert (named.name, named.kind) == ("physical 0xe0000000", "unknown")
    assert booted.namer.code(0xFFFFFFFFFFFFF000).startswith("0xffff")


def test_code_is_named_by_function(booted: Booted) -> None:
    g, va = booted.guest, booted.pages()["main"][0]
    assert booted.namer.code(g.needed("schedule") + 3) == "schedule"
    assert booted.namer.code(va + 1, booted.cr3("names")) == "names:main"
    assert booted.namer.code(va + 1) == "names:main"


def test_address_spaces_have_the_names_of_their_processes(booted: Booted) -> None:
    assert booted.namer.process(booted.cr3("names") | 0x1FF) == "names", "whatever else CR3 says"
    assert booted.namer.process(booted.guest.page_table) == "kernel"
    assert booted.namer.process(0x123000) == ""


class Damaged:
    """The guest's memory, with about one in `every` reads answered wrongly: by zeros, ones, noise, or no bytes."""

    def __init__(self, memory: Memory, seed: int, every: int) -> None:
        self._memory, self._random, self._every = memory, random.Random(seed), every

    def _spoil(self, data: bytes) -> bytes:
        if self._random.randrange(self._every):
            return data
        return self._random.choice((bytes(len(data)), b"\xff" * len(data), self._random.randbytes(len(data)), b""))

    def read_physical(self, address: int, size: int) -> bytes:
        return self._spoil(self._memory.read_physical(address, size))

    def read_virtual(self, cr3: int, address: int, size: int) -> bytes:
        return self._memory.read_virtual(cr3, address, size)

    def physical_of(self, line: int) -> int:
        return self._memory.physical_of(line)


@pytest.mark.parametrize("every", [3, 20, 200])
def test_memory_that_makes_no_sense_is_named_without_an_error(booted: Booted, distro: kernel.Kernel, every: int) -> None:
    g, pages = booted.guest, booted.pages()
    addresses = [g.physical(g.needed(n)) for n in ("jiffies", "init_task", "dentry_hashtable")]
    addresses += [p for _, p in pages.values()] + [booted.cr3("names"), g.physical(booted.task("names"))]
    vas = [0, pages["heap"][0], g.needed("jiffies"), g.get(booted.task("names"), "task_struct", "stack"),
           g.bases["vmemmap_base"] + 0x1008, g.bases["vmalloc_base"] + 0x5000]
    for seed in range(3):
        namer = Namer(Damaged(g.memory, seed, every), distro.image)
        for physical in addresses:
            for va in vas:
                assert namer.line(physical & -64, va, va % 64, booted.cr3("names"), walk=False).name
        assert namer.code(0xFFFFFFFFC0100000) and namer.code(0x401000, 0x123000)
