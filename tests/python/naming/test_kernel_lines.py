# SPDX-License-Identifier: BSD-3-Clause
"""Source lines of kernel code, of a small program that is linked where a kernel is and split as the kernel's build does it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from moscope.naming import debug_file, elf
from moscope.naming.image import load
from moscope.naming.kernel_lines import KernelLines

SOURCE = """
static inline __attribute__((always_inline)) void put(long *count)
{
    __atomic_fetch_sub(count, 1, __ATOMIC_SEQ_CST);
}
long references;
__attribute__((noinline)) void dput(void)
{
    put(&references);
}
long __x64_sys_read(void) { return 0; }
long __x64_sys_write(void) { return 1; }
long __x64_sys_ni_syscall(void) { return -38; }
long (*const sys_call_table[])(void) = {__x64_sys_read, __x64_sys_write, __x64_sys_ni_syscall, 0};
const char linux_banner[] = "Linux version 6.1.0 (a test)";
void _start(void) { dput(); }
"""
FLAGS = ("-g", "-O1", "-nostdlib", "-static", "-mcmodel=kernel", "-fno-pic", "-no-pie", "-fno-stack-protector",
         "-Wl,-Ttext=0xffffffff81000000", "-Wl,--build-id=sha1")


def built(folder: Path, source: str = SOURCE) -> tuple[Path, Path]:
    """The kernel without debug information, whose build ID is in .notes, and the file that was split off."""
    folder.mkdir(exist_ok=True)
    (folder / "kernel.c").write_text(source, encoding="utf-8")
    run = [("gcc", *FLAGS, "kernel.c", "-o", "whole"), ("objcopy", "--rename-section=.note.gnu.build-id=.notes", "whole"),
           ("objcopy", "--strip-debug", "whole", "vmlinuz"),
           ("objcopy", "--only-keep-debug", "--compress-debug-sections", "whole", "vmlinuz.debug")]
    for command in run:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "vmlinuz", folder / "vmlinuz.debug"


def atomic(image: Path) -> int:
    """The address of the locked instruction in dput."""
    file = elf.from_file(image)
    start = next(row[0] for row in file.symbols() if row[3] == "dput")
    return start + file.read(start, 32).index(b"\xf0")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_instruction_of_the_kernel_has_its_line_and_inlined_functions_from_the_file_beside_the_image(tmp_path: Path) -> None:
    image, _ = built(tmp_path)
    found = KernelLines(image, load(image).build_id).at(atomic(image))
    assert found is not None and found.at == "kernel.c:4" and found.inlined == ("put called at kernel.c:9",)


def test_lines_found_once_are_known_without_the_debug_information(tmp_path: Path) -> None:
    image, debug = built(tmp_path)
    lines = KernelLines(image, load(image).build_id)
    first = lines.at(atomic(image))
    assert lines.at(atomic(image) - 0x100000) is None
    lines.keep()
    debug.unlink()
    later = KernelLines(image, load(image).build_id)
    assert later.at(atomic(image)) == first is not None
    assert later.at(atomic(image) + 1) is None and not later.notes


def test_a_damaged_cache_is_not_used(tmp_path: Path) -> None:
    image, _ = built(tmp_path)
    lines = KernelLines(image, load(image).build_id)
    lines.at(atomic(image))
    lines.keep()
    for kept in (tmp_path / "cache").rglob("lines-*.sqlite"):
        kept.write_bytes(b"no database" * 99)
        again = KernelLines(image, load(image).build_id)
        assert again.at(atomic(image)) is not None
        again.keep()
        break
    else:
        pytest.fail("nothing was kept")


def test_debug_information_of_another_build_is_not_taken(tmp_path: Path) -> None:
    image, debug = built(tmp_path / "one")
    shutil.copy(built(tmp_path / "other", SOURCE.replace("references", "users"))[1], debug)
    assert KernelLines(image, load(image).build_id).at(atomic(image)) is None


def test_a_kernel_that_is_a_whole_elf_file_needs_no_second_one(tmp_path: Path) -> None:
    image, debug = built(tmp_path)
    debug.unlink()
    found = KernelLines(tmp_path / "whole", load(image).build_id).at(atomic(image))
    assert found is not None and found.at == "kernel.c:4"


def test_the_distributions_file_is_found_in_the_systems_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, debug = built(tmp_path)
    monkeypatch.setattr(debug_file, "SYSTEM", tmp_path / "system")
    (tmp_path / "system" / "boot").mkdir(parents=True)
    debug.rename(tmp_path / "system" / "boot" / "vmlinux-6.1.0")
    image = image.rename(tmp_path / "vmlinuz-6.1.0")
    found = KernelLines(image, load(image).build_id).at(atomic(image))
    assert found is not None and found.at == "kernel.c:4"


def test_system_calls_have_the_numbers_of_their_table(tmp_path: Path) -> None:
    assert load(built(tmp_path)[0]).system_calls == {"read": 0, "write": 1}
