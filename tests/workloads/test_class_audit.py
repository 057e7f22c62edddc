# SPDX-License-Identifier: BSD-3-Clause
"""No transaction of exim, of five parallel programs of Debian and of one that streams contradicts its miss class, as `moscope report
--audit` checks it."""

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from moscope import jsonio
from moscope.guest import initramfs, kernel, packages

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
HERE = Path(__file__).parent
DETAILED = ("--cores", "4", "--warmup", "200us", "--window", "500us", "--detail", "full", "--out", "run")

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("gcc") is None or not all(
    (packages.cache() / "chosen" / f"{name}.json").is_file() for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)),
    reason="without gcc, or the distribution's kernel is not in the cache: `moscope boot` fetches it")]


@dataclass(frozen=True)
class Program:
    name: str
    options: tuple[str, ...]


PROGRAMS = (
    Program("exim", ("--workload", "exim")),
    Program("pigz", ("--with", "pigz", "--program", "pigz -k -f -p{cores} data", "--take", "take", "--begin", "threads")),
    Program("xz", ("--with", "xz-utils", "--program", "xz -k -f -T{cores} --block-size=256KiB data", "--take", "take",
                   "--begin", "threads")),
    Program("python", ("--program", "pool.py {cores}", "--begin", "threads")),
    Program("sqlite", ("--program", "queries.py {cores}", "--begin", "threads")),
    Program("openmp", ("--program", "sums {cores}", "--begin", "100ms")),
    Program("streams", ("--program", "streams {cores}", "--begin", "100ms")),
)


def prepare(folder: Path) -> None:
    """The programs, and something to compress."""
    for script in ("pool.py", "queries.py"):
        shutil.copy(HERE / script, folder)
    for name in ("sums", "streams"):
        subprocess.run(["gcc", "-g", "-O2", "-fopenmp", str(HERE / f"{name}.c"), "-o", name], cwd=folder, check=True)
    (folder / "take").mkdir()
    words = [f"word{n}" for n in range(5000)]
    (folder / "take" / "data").write_text(" ".join(random.Random(1).choices(words, k=800_000)), encoding="utf-8")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_no_transaction_contradicts_its_class(program: Program, tmp_path: Path, moscope_in: Callable[[Path], Moscope]) -> None:
    prepare(tmp_path)
    moscope = moscope_in(tmp_path)
    run = moscope("run", *program.options, *DETAILED, "--quiet", timeout=1200)
    assert run.returncode == 0, run.stderr
    got = moscope("report", "run", "--audit", "--json", timeout=300)
    assert got.returncode == 0, got.stdout
    document = json.loads(got.stdout)
    jsonio.validate(document)
    for point in document["points"]:
        assert point["contradictions"] == [] and point["transactions"] > 1000
        assert sum(point["classes"].values()) == point["transactions"]
        if program.name == "streams":  # its writes find the lines that the prefetcher brings, or wait for them
            assert point["classes"].get("upgrade", 0) < 0.02 * point["classes"]["secondary"]
