# SPDX-License-Identifier: BSD-3-Clause
"""The programs with a planted defect: how each is built and run, what a report must say first, and the experiment that shows the gain."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
MARK = "// defect"


@dataclass(frozen=True)
class Planted:
    """`name`: what the hottest name begins with; `misses`: the classes of waiting that are right; `how`: of what-if, with the lines of
    `line`."""

    file: str
    name: str
    misses: tuple[str, ...]
    how: str
    line: str
    cores: int = 4
    begin: str = "20ms"  # the kernel's work after its start is over
    set_up: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        return "go" if self.file.endswith(".go") else Path(self.file).stem

    @property
    def source(self) -> Path:
        return FOLDER / self.file

    @property
    def place(self) -> str:
        """`file.c:LINE` of the defect."""
        lines = self.source.read_text(encoding="utf-8").splitlines()
        return f"{self.source.name}:{next(n for n, text in enumerate(lines, 1) if text.endswith(MARK))}"

    def compiler(self) -> str:
        return {".c": "gcc", ".cc": "g++", ".go": "go", ".rs": "rustc"}[self.source.suffix]

    def missing(self) -> str:
        """Empty, or the compiler that is not here."""
        return "" if shutil.which(self.compiler()) else self.compiler()

    def build(self, folder: Path, mended: bool) -> Path:
        """The program, in a folder; `mended`: without the defect."""
        to = folder / (f"{self.stem}_mended" if mended else self.stem)
        command: list[str | Path] = [self.compiler()]
        environment, where = dict(os.environ), FOLDER
        if self.compiler() in ("gcc", "g++"):
            command += ["-g", "-O2", "-static", "-pthread", *(["-DMENDED"] if mended else []), self.source, "-o", to]
        elif self.compiler() == "rustc":
            command += ["-g", "-O", "-C", "target-feature=+crt-static", *(["--cfg", "mended"] if mended else []), self.source, "-o", to]
        else:
            command += ["build", *(["-tags", "mended"] if mended else []), "-o", to, "."]
            where = folder / "sources"
            where.mkdir(exist_ok=True)
            for file in (*FOLDER.glob("*.go"), FOLDER / "marks_amd64.s", FOLDER / "go.mod"):
                shutil.copy(file, where)
            environment |= {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
        subprocess.run(command, cwd=where, env=environment, check=True, capture_output=True)
        return to


PLANTED = (
    Planted("array_of_structs.c", "array_of_structs:stats[", ("false_sharing",), "padded", "stats"),
    Planted("heap.c", "heap:aligned_alloc at heap.c:29 (session)[", ("false_sharing",), "padded",
            "aligned_alloc at heap.c:29 (session)", begin="22ms"),  # at 20 ms the kernel's tick falls into one of the two runs only
    Planted("cxx_class.cc", "cxx_class:server::workers[", ("false_sharing",), "padded", "server::workers"),
    # Go's runtime preempts each goroutine 10 ms after it began; at 20 ms one core may be idle for that.
    Planted("main.go", "go:main.counters[", ("false_sharing",), "padded", "main.counters", begin="25ms"),
    Planted("rust.rs", "rust:rust::COUNTERS", ("false_sharing",), "padded", "rust::COUNTERS"),
    Planted("refcount.c", "refcount:shared.references", ("true_sharing",), "free", "shared"),
    Planted("mutex.c", "mutex:bank.", ("true_sharing",), "free", "bank"),
    Planted("readers.c", "readers:table_lock", ("true_sharing",), "free", "table_lock"),
    Planted("first_touch.c", "first_touch:mmap at first_touch.c:31 (long int)", ("cold", "capacity"), "local", "", cores=12),
    # Reads of the mask beside it, which is as hot and never written, wait for half of the stall, so either may be the first name.
    Planted("hash_size.c", "hash_size:table.", ("true_sharing", "false_sharing"), "free", "table"),
    Planted("queue.c", "queue:queue.", ("false_sharing",), "padded", "queue"),
)
