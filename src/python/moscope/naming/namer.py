# SPDX-License-Identifier: BSD-3-Clause
"""Names a line of memory and the function of an instruction, by asking all sources of names in order.

A name is the same for all objects of a kind (`dentry.d_lockref.lock`), so that lines can be added up by name;
`object` identifies the single object. The byte with the longest waiting gives the field; `fields` lists all that the
line holds.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moscope.guest.addresses import KERNEL_HALF, USER_TOP
from moscope.naming import demangle, image, page_struct
from moscope.naming.btf import Unreadable
from moscope.naming.demangle import CLONE
from moscope.naming.dwarf.sources import Source
from moscope.naming.files import Files
from moscope.naming.frames import Frames
from moscope.naming.guest import PAGE, Guest, Memory
from moscope.naming.heap import Code, Heap
from moscope.naming.kernel_lines import KernelLines
from moscope.naming.known import Known
from moscope.naming.percpu import PerCpu
from moscope.naming.rings import Rings
from moscope.naming.slab import ALLOCATOR, Description, Pages
from moscope.naming.symbols import Place
from moscope.naming.tasks import TABLE_MASK, Tasks
from moscope.naming.threads import parked
from moscope.naming.unwind import orc
from moscope.naming.unwind.chains import Unwinder
from moscope.naming.user import Program, Users
from moscope.naming.vmalloc import Mapped
from moscope.schema.constants import LINE

T = TypeVar("T")
ANON, MAPPING_FLAGS = 1, 3  # the low bits of page->mapping
UNMARKED = ("boot memory", "kernel page", "unknown")  # kinds as which the kernel's own page tables appear
FILE_SYSTEM = re.compile(r"[a-z][a-z0-9_.-]*")
SHARED_MEMORY = re.compile(r"tmpfs:(dev/zero|SYSV|memfd:)")  # shared memory from mmap without a file, shmget, memfd_create


@dataclass
class Named:
    """`kind` is one of: kernel symbol, kernel code, per-CPU variable, slab, boot memory, struct page, kernel stack, module,
    vmalloc, page table, page cache, anonymous memory, user symbol, heap, stack, free memory, device ring, kernel page, unknown. The
    object is found on request, because paths take many reads."""

    name: str
    kind: str
    which: str | Callable[[], str] = ""
    field: str = ""
    fields: list[str] = dataclasses.field(default_factory=list)
    typed: str | Callable[[], str] = ""
    free_pointer: bool = False  # the byte is where the allocator keeps a free object's pointer to the next one

    @property
    def object(self) -> str:
        if not isinstance(self.which, str):
            self.which = self.which()
        return self.which

    @property
    def type(self) -> str:
        """The type of the field, if known: `spinlock_t`, `long`."""
        if not isinstance(self.typed, str):
            self.typed = self.typed()
        return self.typed


class Namer:
    """Names for one booted system. `user_binaries`: from paths in the guest (or the last parts of them) to files on the host.
    `other_binary` finds the host's copies of other files."""

    def __init__(self, system: Memory, kernel_image: Path | str, user_binaries: Mapping[str, Path | str] | None = None,
                 other_binary: Callable[[str], Path | None] | None = None) -> None:
        self._memory = system
        self.kernel = image.load(Path(kernel_image))
        self._kernel_lines = KernelLines(Path(kernel_image), self.kernel.build_id)
        self._guest = Guest(system, self.kernel)
        self._files = Files(self._guest)
        self._tasks = Tasks(self._guest, self._files)
        self._users = Users(self._tasks, user_binaries or {}, other_binary)
        self._code: dict[tuple[int, int], str] = {}
        self._types: dict[tuple[int, int], tuple[str, list[str], str]] = {}  # (type, offset): field, fields of the line, type
        self._whole: dict[tuple[int, Description], Named | None] = {}  # pages with one name as a whole, by address
        self._mapped = Mapped(self._guest)
        self._per_cpu: PerCpu | None = None
        self._pages: Pages | None = None
        self._known: Known | None = None
        self._heap: Heap | None = None
        self.rings = Rings()  # of devices
        self._frames = Frames(self._linked)
        self.refresh()

    def refresh(self) -> None:
        """Forgets what may have changed while the machine ran. Call it when a window has ended, before its lines are named."""
        self._code.clear()
        self._whole.clear()
        self._files.refresh()
        if not self._guest.locate():
            return
        self._mapped = Mapped(self._guest)
        self._per_cpu = self._made(PerCpu, self._guest)
        self._pages = self._made(Pages, self._guest)
        self._known = self._made(Known, self._guest, self._files)
        self._tasks.refresh()
        self._users.refresh()
        self._frames.parked(parked(self._guest, self._tasks.threads))

    def observe(self) -> None:
        """Records the current processes and their areas of memory, so that their lines have names after the processes have ended. It
        takes four milliseconds of host time for a hundred processes, and one for each new or changed address space. Call it
        periodically while processes start and end."""
        if self._guest.locate():
            try:
                self._tasks.observe()
            except Unreadable:
                return

    @staticmethod
    def _made(kind: Callable[..., T], *what: object) -> T | None:
        try:
            return kind(*what)
        except Unreadable:
            return None

    # --- code -------------------------------------------------------------------------------------------------------

    def code(self, pc: int, cr3: int = 0) -> str:
        """The function that an instruction belongs to: `schedule`, `virtqueue_add [virtio_ring]`, `exim:deliver`."""
        key = (pc, 0 if pc >= KERNEL_HALF else cr3)
        if key not in self._code:
            try:
                self._code[key] = self._function(pc, cr3)
            except Unreadable:
                self._code[key] = f"{pc:#x}"
        return self._code[key]

    def _function(self, pc: int, cr3: int) -> str:
        if pc < USER_TOP:
            found = self._users.place(pc, cr3)
            if found:
                return f"{found[0].name}:{demangle.function(found[1].symbol.name)}"
            return self._users.owner(pc, cr3)
        place = self._guest.place(pc)
        if place:
            return CLONE.sub("", place.symbol.name)
        module = self._mapped.module(pc)
        if module:
            return f"{CLONE.sub('', module[1].split('+')[0]) or module[1]} [{module[0]}]"
        area_ = self._mapped.area(pc)
        return f"{area_[0]}+{area_[1]:#x}" if area_ else f"{pc:#x}"

    def source(self, pc: int, cr3: int = 0) -> Source | None:
        """File and line of an instruction of the kernel or of a user's program, with debug information."""
        try:
            if pc >= KERNEL_HALF:
                return self._kernel_lines.at(pc - self._guest.slide) if self._guest.place(pc) else None
            return self._users.source(pc, cr3) if 0 < pc < USER_TOP else None
        except Unreadable:
            return None

    def own_source(self, pc: int, cr3: int) -> Source | None:
        """The same for a user's program; None in system libraries, even if their debug information is installed."""
        return None if self._tried(self._users.of_system, pc, cr3) else self.source(pc, cr3)

    def extent(self, va: int, cr3: int) -> tuple[int, int] | None:
        """[first, end) of the allocation, variable, heap, stack or anonymous area of a program that contains an address; None if
        none is known."""
        try:
            local = self._frames.at(va, cr3)
            if local and local.end:
                return local.first, local.end
            piece = self._heap.at(va, cr3) if self._heap else None
            if piece:
                return piece.start, piece.start + piece.size
            return self._users.extent(va, cr3) if 0 < va < USER_TOP else None
        except Unreadable:
            return None

    def unwinder(self) -> Unwinder:
        """An unwinder for stack samples of this system."""
        return Unwinder(orc.of(self.kernel.orc, self.kernel.banner), self._guest.slide, lambda *of: self._tried(self._users.unwinding, *of))

    def allocated(self, packed: tuple[bytes, bytes], functions: Sequence[str]) -> None:
        """Takes the engine's record of allocations, and the names of the allocators by number. From now on, heap memory is named
        after its allocation."""
        code = Code(self.own_source, self.code, self._program, lambda sample: self.unwinder().chain(sample),
                    lambda *of: self._tried(self._users.result, *of), lambda *of: self._tried(self._users.made, *of))
        self._heap = Heap(packed, functions, code) if packed[0] else None

    def sampled(self, packed: bytes) -> None:
        """Takes samples of waiting cores, which show which functions used which parts of their stacks."""
        self._frames.sampled(packed)

    def _linked(self, address: int, cr3: int) -> tuple[Program, int] | None:
        try:
            program, link = self._users.linked(address, cr3)
        except Unreadable:
            return None
        return (program, link) if program else None

    @staticmethod
    def _tried(find: Callable[..., T | None], *of: int | str) -> T | None:
        try:
            return find(*of)
        except Unreadable:
            return None

    def _program(self, cr3: int) -> str:
        known = self._tasks.process(cr3)
        return known.exe.rsplit("/", 1)[-1] if known else ""

    def keep(self) -> None:
        """Call it when everything is named: stores results that take long to find, for later runs with the same kernel."""
        self._kernel_lines.keep()

    def notes(self) -> list[str]:
        """Problems with the types and the debug information of the kernel and of programs, a sentence for each file."""
        return [*self.kernel.notes, *self._kernel_lines.notes, *self._users.notes()]

    def process(self, cr3: int) -> str:
        """The name of the process with these page tables, such as `exim`; of several, the last one seen. `kernel` for the
        kernel's own tables, before there are processes; empty if no process was seen."""
        if self._guest.found and cr3 & TABLE_MASK == self._guest.page_table:
            return "kernel"
        known = self._tasks.process(cr3)
        return known.name if known else ""

    def running(self, name: str) -> bool:
        """Whether a process that has had this name ran when the guest's memory was last read; also true if none has had it, or if the
        kernel was not found."""
        return not self._guest.found or self._tasks.running(name)

    # --- lines ------------------------------------------------------------------------------------------------------

    def allocates(self, pc: int) -> bool:
        """Whether an instruction belongs to the slab allocator, which accesses free objects."""
        return pc >= KERNEL_HALF and self.code(pc) in ALLOCATOR

    def page_format(self) -> dict[str, int | list[int]] | None:
        """The format of page descriptions, which the engine reads at misses; None while it is not known."""
        return self._pages.format() if self._pages else None

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: Mapping[str, int] | None = None,
             free: bool = False) -> Named:
        """The name of the byte at `offset` of a line, last accessed at `va` (0: not known) in the address space of `cr3`, or by
        page walks; a physical address where nothing is known. `page`: what the kernel's description of its page said at the miss;
        `free`: most of the waiting was the slab allocator's."""
        physical = self._memory.physical_of(line) & -LINE
        then = Description(page["flags"], page["type"], page["part_of"], page["index"], physical // PAGE - page["before"]) if page else None
        # A page table is recognised by its page, even if other accesses than page walks reached it.
        if va and not walk and va % PAGE // LINE == physical % PAGE // LINE:
            va = va & -LINE | offset
        else:
            va = 0
        named = self.at(physical | offset, va, cr3, then)
        if walk and named.kind in UNMARKED:
            named = Named("page table", "page table", "of the kernel")
        if free and named.free_pointer:
            whole = re.split(r"[.+]", named.name)[0]
            named = Named(f"{whole}.free pointer", named.kind, named.which, "free pointer", named.fields)
        return named

    def whole_page(self, va: int, cr3: int) -> bool:
        """Whether no part of a program's page has its own name, as variables, calls and allocations have. If the page is
        anonymous memory, heap or stack, all of its lines then have the same name."""
        page = va & -PAGE
        try:
            return (self._users.none_in_page(page, cr3) and self._frames.none_in_page(page, cr3)
                    and (self._heap is None or self._heap.none_in(page, page + PAGE, cr3)))
        except Unreadable:
            return False

    def at(self, physical: int, va: int = 0, cr3: int = 0, then: Description | None = None) -> Named:
        """The name of a physical byte, last accessed through `va` (0: not known) in the address space of `cr3`. `then`: the
        kernel's description of its page at that time."""
        if self._guest.found:
            for way in (self._by_user_address if 0 < va < USER_TOP else None, self._by_image, self._by_kernel_address,
                        self._by_direct_map, self._by_page):
                try:
                    named = way(physical, va, cr3, then) if way else None
                except Unreadable:
                    continue
                if named:
                    return named
        return Named(f"physical {physical:#x}", "unknown")

    def _typed(self, name: str, kind: str, instance: str | Callable[[], str], number: int, offset: int) -> Named:
        """An object of known type, or (number 0) of unknown type, for which only the byte's offset is known."""
        path, fields, title = self._field(number, offset) if number else ("", [], "")
        rest = f"+{offset:#x}" if offset else ""
        return Named(f"{name}.{path}" if path else name + rest, kind, instance, path or rest, fields, title)

    def _field(self, number: int, offset: int) -> tuple[str, list[str], str]:
        known = self._types.get((number, offset))
        if known is None:
            types, first = self._guest.types, offset // LINE * LINE
            at = types.field_at(number, offset)
            known = at.path, types.fields_in(number, first, first + LINE), types.title(at.type)
            self._types[number, offset] = known
        return known

    def _symbol(self, place: Place, kind: str, instance: str = "", number: int = 0) -> Named:
        """A variable, with its field if its type is known."""
        symbol, offset = place.symbol, place.offset
        if number:
            return self._typed(symbol.name, kind, instance, number, offset)
        return Named(str(place), kind, instance, f"+{offset:#x}" if offset else "")

    def _by_image(self, physical: int, va: int, cr3: int, then: Description | None) -> Named | None:
        guest = self._guest
        address = guest.image_address(physical)
        if address is None:
            return None
        if self._pages and not self._pages.is_reserved(self._pages.now(physical)):
            return None  # freed after the start-up: initial code and data, gaps between sections, unused brk
        if address >= (guest.symbol("__brk_base") or address + 1):
            return Named("memory reserved at boot", "boot memory", "brk of the kernel")  # mostly early page tables
        place = guest.place(address)
        if place is None:
            return None
        if place.symbol.is_code:
            return Named(CLONE.sub("", place.symbol.name), "kernel code", "", f"+{place.offset:#x}")
        named = self._symbol(place, "kernel symbol", "", self._known.variable(place.symbol.name) if self._known else 0)
        if not named.fields:
            line = (address & -LINE) - guest.slide
            within = [s.name for s in guest.image.symbols.starting_in(line, line + LINE)]
            named.fields = within if place.symbol.name in within else [place.symbol.name, *within]
        return named

    def _by_direct_map(self, physical: int, va: int, cr3: int, then: Description | None) -> Named | None:
        return self._at_kernel_address(self._guest.direct(physical))

    def _by_kernel_address(self, physical: int, va: int, cr3: int, then: Description | None) -> Named | None:
        return self._at_kernel_address(va) if va >= KERNEL_HALF else None

    def _at_kernel_address(self, address: int) -> Named | None:
        guest, pages = self._guest, self._pages
        described = pages.described(address) if pages else None
        if pages and described is not None:
            offset = (address - pages.base) % pages.size
            found = page_struct.member(guest.types, pages, described, offset)
            named = self._typed(f"struct {found.structure}", "struct page", lambda: self._page_user(described),
                                guest.types.named(found.structure), offset)
            if found.path:
                named.field, named.name = found.path, f"struct {found.structure}.{found.path}"
            return named
        if self._per_cpu:
            at = self._per_cpu.at(address)
            if at:
                return self._per_cpu_variable(at.cpu, at.pointer)
        thing = self._known.at(address) if self._known else None
        if thing:
            index, offset = divmod(address - thing.start, thing.entry) if thing.entry else (0, address - thing.start)
            instance = f"{thing.instance} [{index}]".strip() if thing.entry else thing.instance
            return self._typed(thing.name, "boot memory" if thing.entry else "kernel object", instance, thing.type, offset)
        owner = self._tasks.stack_of(address)  # without CONFIG_VMAP_STACK, stacks are in the direct map, as in the project's kernels
        if owner:
            return Named("kernel stack", "kernel stack", owner)
        if not guest.in_vmalloc(address):
            return None
        module = self._mapped.module(address)
        if module:
            return Named(f"{module[1]} [{module[0]}]", "module")
        area = self._mapped.area(address)
        if area is None:
            # Mostly stacks of processes that have ended.
            return Named("vmalloc memory that was freed since", "vmalloc") if self._mapped.areas() else None
        if area[0].endswith("stack"):
            return Named(area[0], "kernel stack", "of a process that has ended")
        return Named(area[0], "vmalloc", f"+{area[1]:#x}")

    def _page_user(self, physical: int) -> str:
        """What the page contains that a page description belongs to."""
        try:
            about = self._by_page(physical)
        except Unreadable:
            about = None
        return f"of {about.object or about.name}" if about else f"of physical {physical:#x}"

    def _per_cpu_variable(self, cpu: int, pointer: int) -> Named:
        assert self._per_cpu is not None
        guest, instance = self._guest, f"CPU {cpu}"
        if pointer < self._per_cpu.static:
            place = guest.image.per_cpu.at(pointer)
            if place is None:
                return Named(f"per-CPU {pointer:#x}", "per-CPU variable", instance)
            number = guest.types.variables.get(place.symbol.name, 0)
            named = self._symbol(place, "per-CPU variable", instance, number)
            if len(named.fields) < 2:
                line = pointer & -LINE
                within = [s.name for s in guest.image.per_cpu.starting_in(line, line + LINE)]
                named.fields = within if place.symbol.name in within else [place.symbol.name, *within]
            return named
        owned = self._per_cpu.owner(pointer)
        if owned is None:
            return Named("per-CPU allocation", "per-CPU variable", instance, f"+{pointer:#x}")
        return self._typed(owned[0].name, "per-CPU variable", instance, owned[0].type, owned[1])

    def _by_page(self, physical: int, va: int = 0, cr3: int = 0, then: Description | None = None) -> Named | None:
        guest, pages = self._guest, self._pages
        if pages is None:
            return None
        page = then or pages.now(physical)
        found = pages.slab_object(physical, page)
        if found:
            thing = self._known.at(guest.direct(physical)) if self._known else None
            if thing and not found.type:
                return self._at_kernel_address(guest.direct(physical))
            title = guest.types.type(found.type).name if found.type else found.cache
            if not 0 <= found.offset < found.size:
                return Named(f"slab {found.cache}", "slab", "between objects")
            address = found.address
            named = self._typed(title, "slab", lambda: self._files.describe(title, address), found.type, found.offset)
            named.free_pointer = found.at_free_pointer
            return named
        if ring := self.rings.at(physical):
            return Named(*ring)
        whole = physical & -PAGE, page
        if whole not in self._whole:
            self._whole[whole] = self._by_whole_page(physical, page)
        return self._whole[whole] or self._page_cache(page, physical)

    def _by_whole_page(self, physical: int, page: Description) -> Named | None:
        """A page in which every byte has the same name; None for a page of a file."""
        pages = self._pages
        assert pages is not None
        if pages.is_table(page):
            return Named("page table", "page table")
        if physical & -PAGE in self._tasks.processes:
            process = self._tasks.processes[physical & -PAGE]
            return Named("page table", "page table", f"top level of {process.name} {process.pid}")
        if pages.is_free(page):
            return Named("free memory", "free memory")
        if pages.is_reserved(page):
            return Named("memory reserved at boot", "boot memory", f"physical {physical & -PAGE:#x}")
        if page.part_of & MAPPING_FLAGS & ANON:
            return Named("anonymous memory", "anonymous memory")
        if page.part_of and not page.part_of & MAPPING_FLAGS and page.first == physical // PAGE:
            return None
        return Named("kernel page", "kernel page", f"physical {physical & -PAGE:#x}")

    def _page_cache(self, page: Description, physical: int) -> Named:
        file = self._files.describe("address_space", page.part_of)
        offset = page.index * PAGE + physical % PAGE
        found = self._users.place_in_file(file, offset)
        if found:
            return self._user_symbol(found, file)
        if SHARED_MEMORY.match(file):
            return Named("shared memory", "anonymous memory", file, f"+{offset:#x}")
        kind = file.split(":")[0]
        if not FILE_SYSTEM.fullmatch(kind):
            file = kind = ""  # the file is gone, and its memory now holds something else
        return Named(f"page cache {kind}".strip(), "page cache", file, f"+{offset:#x}")

    @staticmethod
    def _user_symbol(found: tuple[Program, Place], instance: str) -> Named:
        program, place = found
        name, field = program.name_of(place)
        return Named(f"{program.name}:{name}", "user symbol", instance, field, typed=lambda: program.type_of(place))

    def _by_user_address(self, physical: int, va: int, cr3: int, then: Description | None) -> Named | None:
        process = self._tasks.process(cr3)
        found = self._users.place(va, cr3)
        instance = f"{process.name} {process.pid}" if process else ""
        if found:
            return self._user_symbol(found, instance)
        local = self._frames.at(va, cr3)
        if local:
            return Named(f"{local.program}:{local.name}", "stack", instance, local.field, typed=local.type)
        piece = self._heap.at(va, cr3) if self._heap else None
        area = self._tasks.area(process, va) if process and (not piece or self._heap and self._heap.mapping(piece)) else None
        if self._heap and piece and not (area and area.what == "file"):
            program = process.exe.rsplit("/", 1)[-1] if process else "unknown"
            title, field, typed = self._heap.name(piece, va)
            return Named(f"{program}:{title}", "heap", instance, field, typed=typed)
        if process is None or area is None:
            page = self._by_page(physical, then=then)
            return page if page and page.kind in ("page cache", "user symbol") else Named(
                "anonymous memory", "anonymous memory", f"{instance} {va:#x}".strip())
        if area.what == "file" and SHARED_MEMORY.match(area.file):
            return Named(f"shared memory of {process.name}", "anonymous memory", instance, f"+{va - area.start + area.offset:#x}")
        if area.what == "file":
            page = self._by_page(physical, then=then)
            if page and page.kind in ("page cache", "user symbol"):
                return page
            return Named(f"data of {area.file.rsplit('/', 1)[-1]}", "anonymous memory", instance,
                         f"+{va - area.start + area.offset:#x}")
        if area.what in ("heap", "stack"):
            return Named(f"{area.what} of {process.name}", area.what, instance, f"+{va - area.start:#x}")
        return Named(f"{area.what if area.what != 'anonymous' else 'anonymous memory'} of {process.name}", "anonymous memory",
                     instance, f"+{va - area.start:#x}")
