# SPDX-License-Identifier: BSD-3-Clause
"""Names in a program that the loader has moved: its segments lie as Linux and the dynamic loader put them."""

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from moscope.naming import elf
from moscope.naming.tasks import Area, Process, Tasks
from moscope.naming.user import Program, Users

PAGE, BASE, CR3 = 4096, 0x555555554000, 0x1000
SOURCE = """
long set = 5;
long counters[8];
long large[1 << 16];
int main(void) { return (int)(set + counters[1] + large[0]); }
"""


class Loaded:
    """What is asked of Tasks, of one process."""

    pointers: tuple[int, ...] = ()

    def __init__(self, areas: list[Area]) -> None:
        self._areas = areas
        fields: dict[str, Any] = dict.fromkeys(Process.__dataclass_fields__, 0)
        self._process = Process(**{**fields, "name": "moved", "exe": "/moved"})

    def process(self, cr3: int) -> Process | None:
        return self._process if cr3 == CR3 else None

    def areas(self, process: Process) -> list[Area]:
        return self._areas

    def thread_pointer(self, process: Process, address: int) -> int:
        return next((pointer for pointer in self.pointers if pointer > address), 0)

    def area(self, process: Process, address: int) -> Area | None:
        return next((a for a in self._areas if a.start <= address < a.end), None)


def areas_of(file: elf.Elf) -> list[Area]:
    """The first page of the last segment is read-only after relocation, so it has an area of its own; zeroed data follows."""
    found = []
    for s in file.segments:
        start, end = (BASE + s.address) // PAGE * PAGE, -(-(BASE + s.address + s.file_size) // PAGE) * PAGE
        offset = s.offset // PAGE * PAGE
        if s is file.segments[-1]:
            found.append(Area(start, start + PAGE, offset, "file", "/moved"))
            start, offset = start + PAGE, offset + PAGE
        if start < end:
            found.append(Area(start, end, offset, "file", "/moved"))
    last = file.segments[-1]
    found.append(Area(found[-1].end, -(-(BASE + last.address + last.size) // PAGE) * PAGE, 0, "anonymous", ""))
    return found


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_globals_of_a_moved_program_have_names_beside_and_behind_its_read_only_data(tmp_path: Path) -> None:
    program = tmp_path / "moved"
    (tmp_path / "moved.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-pie", "-fPIE", "-Wl,-z,relro,-z,now", "-o", program, tmp_path / "moved.c"], check=True)
    file = elf.from_file(program)
    addresses = {name: address for address, _, _, name in file.symbols()}
    users = Users(cast(Tasks, Loaded(areas_of(file))), {"/moved": program})
    for name in ("main", "set", "counters", "large"):
        found = users.place(BASE + addresses[name], CR3)
        assert found and found[1].symbol.name == name, name
    found = users.place(BASE + addresses["large"] + 8 * 60_000, CR3)
    assert found and found[0].name_of(found[1])[0] == "large[60000]"


OF_THREADS = """
static __thread long key;
static __thread struct { long hits, misses; char pad[40]; } counts[2] __attribute__((aligned(64)));
int main(void) { return (int)(key++ + counts[1].misses++); }
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_variables_of_each_thread_have_names_and_fields_below_its_thread_pointer(tmp_path: Path) -> None:
    (tmp_path / "moved.c").write_text(OF_THREADS)
    subprocess.run(["gcc", "-g", "-o", tmp_path / "moved", tmp_path / "moved.c"], check=True)
    offsets = {name: address - elf.THREAD_LOCAL for address, _, _, name in elf.from_file(tmp_path / "moved").symbols()}
    loaded = Loaded([])
    loaded.pointers = (0x7F00_0000_1740, 0x7F00_0080_1740)
    users = Users(cast(Tasks, loaded), {"/moved": tmp_path / "moved"})
    size = elf.from_file(tmp_path / "moved").thread_local
    for pointer in loaded.pointers:
        block = pointer - size
        found = users.place(block + offsets["counts"] + 56 + 8, CR3)
        assert found and found[0].name_of(found[1]) == ("counts[1].misses", "[1].misses") and found[0].type_of(found[1]) == "long int"
        assert users.extent(block + offsets["counts"] + 8, CR3) == (block + offsets["counts"], block + offsets["counts"] + 112)
        assert users.place(pointer, CR3) is None and users.place(block - 8, CR3) is None
        inside = [page for page in range(pointer // PAGE * PAGE - PAGE, pointer + 2 * PAGE, PAGE) if not users.none_in_page(page, CR3)]
        assert inside == [pointer // PAGE * PAGE]


@pytest.mark.parametrize(("path", "of_system"), [
    ("/lib/x86_64-linux-gnu/libc.so.6", True), ("/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", True), ("/lib64/ld-linux-x86-64.so.2", True),
    ("/usr/lib/git-core/git", False), ("/srv/me/lib/libpool.so", False), ("/usr/local/lib/libpool.so.1", False)])
def test_system_libraries_are_recognised_by_their_folder(path: str, of_system: bool) -> None:
    assert Program("name", Path(path)).of_system == of_system


def test_a_librarys_folder_is_its_folder_in_the_guest(tmp_path: Path) -> None:
    names = {"/usr/lib/libc.so.6": tmp_path / "tree/libc.so.6", "/run/moscope/programs/counter": Path("/usr/lib/counter.so")}
    users = Users(cast(Tasks, Loaded([])), names, lambda _: tmp_path / "copy")
    found = [users.program(f"overlay:{name}") for name in (*names, "/usr/lib/libz.so.1")]
    assert [one and one.of_system for one in found] == [True, False, True]


def test_of_two_programs_of_one_name_the_one_in_the_same_folder_is_taken(tmp_path: Path) -> None:
    names = {"/run/moscope/counter": "own", "/run/moscope/programs/counter": "users", "libc.so.6": "library"}
    users = Users(cast(Tasks, Loaded([])), {name: tmp_path / file for name, file in names.items()})

    def file(path: str) -> Program | None:
        return users.program(path)

    assert file("tmpfs:/run/moscope/programs/counter") is file("/run/moscope/programs/counter") is file("/programs/counter")
    assert file("rootfs:/run/moscope/counter") is not file("/programs/counter") and file("counter") is not None
    assert file("/usr/lib/libc.so.6") is file("libc.so.6") is not None and file("/run/moscope/other") is None


def test_a_file_that_is_no_program_of_the_run_is_asked_for_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def other(file: str) -> Path | None:
        asked.append(file)
        return tmp_path / "postgres" if file.endswith("/postgres") else None

    users = Users(cast(Tasks, Loaded([])), {"/run/moscope/counter": tmp_path / "counter"}, other)
    found = [users.program(f"overlay:/usr/bin/{name}") for name in ("postgres", "postgres", "perl", "perl")]
    assert found[0] is found[1] and found[0] and found[0].name == "postgres" and found[2:] == [None, None]
    assert users.program("/run/moscope/counter") and asked == ["overlay:/usr/bin/postgres", "overlay:/usr/bin/perl"]


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_stub_that_calls_a_library_is_named_after_the_function(tmp_path: Path) -> None:
    (tmp_path / "calls.c").write_text("#include <stdlib.h>\nint main(int n, char** v) { return atoi(v[n - 1]) + rand(); }\n")
    subprocess.run(["gcc", "-O1", "-fplt", "-o", tmp_path / "calls", tmp_path / "calls.c"], check=True)
    program, file = Program("calls", tmp_path / "calls"), elf.from_file(tmp_path / "calls")
    first, size = cast(tuple[int, int], file.section_range(".plt"))
    assert size == 3 * 16 and program.function(first) == ".plt", "the first one calls the dynamic loader"
    for at in (0, 8):
        assert {program.function(first + 16 * n + at) for n in (1, 2)} >= {"plt of rand"}
    (tmp_path / "cut").write_bytes(file.data.replace(b"rand\0", b"\0\0\0\0\0"))
    assert ".plt" in {Program("cut", tmp_path / "cut").function(first + 16 * n) for n in (1, 2)}, "without a name for the function"


SEGMENTS, SECTIONS = 32, 40  # in the file's header: where the headers of segments and sections are
OFFSET, SIZE, LINK = 24, 32, 40  # in the header of a section


@pytest.mark.parametrize(("of_file", "field", "form", "value"), [
    (False, OFFSET, "<Q", 1 << 40), (False, SIZE, "<Q", 1 << 40), (False, LINK, "<I", 1 << 31), (True, SECTIONS, "<Q", (1 << 64) - 64),
    (True, SEGMENTS, "<Q", (1 << 64) - 64)])
def test_a_program_with_damaged_headers_has_the_names_that_are_left(tmp_path: Path, of_file: bool, field: int, form: str,
                                                                    value: int) -> None:
    (tmp_path / "a.c").write_text("int counter; int main(void) { return counter; }\n")
    file = tmp_path / "a"
    subprocess.run(["gcc", "-o", file, tmp_path / "a.c"], check=True)
    damaged, whole = bytearray(file.read_bytes()), elf.from_file(file)
    (headers,) = struct.unpack_from("<Q", damaged, SECTIONS)
    table = next(n for n, section in enumerate(whole.sections) if section.kind == elf.SHT_SYMTAB)
    struct.pack_into(form, damaged, field if of_file else headers + 64 * table + field, value)
    file.write_bytes(damaged)
    program = Program("a", file)
    counter = next(symbol[0] for symbol in whole.symbols() if symbol[3] == "counter")
    place = program.at(counter)
    assert (place is not None and place.symbol.name == "counter") == (not of_file and field == SIZE)
