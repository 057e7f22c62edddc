# SPDX-License-Identifier: BSD-3-Clause
"""A dynamic, position-independent C++ program, unchanged: its heap is named by allocation, its calls are counted and begin detailed
time. One boot serves both."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import jsonio
from moscope.guest import initramfs, kernel, packages

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.skipif(not all(
    (packages.cache() / "chosen" / f"{name}.json").is_file() for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)),
    reason="the distribution's kernel is not in the cache: `moscope boot` fetches it")
SOURCE = """
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
namespace app { struct Pool { long head, tail, work[6]; }; }
struct stats { long packets, bytes; };
static std::vector<app::Pool> pools;
static struct stats *all, *mapped;
static bool asks;
enum { POOLS = 4096, STATS = 64, MAPPED = 1 << 16, HOW = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE };
extern "C" __attribute__((noinline)) void sweep(unsigned long n) {
    pools[n * 7 % POOLS].tail += n;
    all[n % STATS].bytes += n;
    mapped[n * 7 % MAPPED].packets += n;
    if (asks && n % 16 == 0) getppid();
}
extern "C" __attribute__((noinline)) int once(int n) { return n + 2; }
int main(int n, char **) {
    if (n == 2) return once(n);
    asks = n > 2;
    pools.resize(POOLS);
    all = (struct stats *)calloc(STATS, sizeof(struct stats));
    mapped = (struct stats *)mmap(nullptr, MAPPED * sizeof(struct stats), PROT_READ | PROT_WRITE, HOW, -1, 0);
    for (unsigned long n = 0;; ++n) sweep(n);
}
"""
POOLS, CALLOC, MMAP = (next(n for n, text in enumerate(SOURCE.strip().splitlines(), 1) if part in text)
                       for part in ("pools.resize", "calloc(", "mmap(nullptr"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heap")
    (folder / "pools.cc").write_text(SOURCE.lstrip())
    subprocess.run(["g++", "-g", "-O2", "-pie", "-fPIE", "-o", folder / "pools", "pools.cc"], cwd=folder, check=True)
    return folder / "pools"


def test_heap_is_named_by_its_allocations_and_calls_are_counted(program: Path, moscope: Moscope) -> None:
    got = moscope("run", "--program", str(program), "--cores", "1", "--begin", "call:sweep", "--count", "sweep", "--warmup", "1us",
                  "--window", "50us", "--windows", "1", "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    (point,) = document["points"]
    assert point["begin"] == "call:sweep" and point["operation"] == "calls of sweep"
    assert point["ops"] == point["calls"]["sweep"] > 100
    names = [one["name"] for one in point["top_names"]]
    assert {f"pools:new at pools.cc:{POOLS} (Pool).tail", f"pools:mmap at pools.cc:{MMAP} (stats).packets"} == set(names[:2]), names
    assert any(name.startswith(f"pools:calloc at pools.cc:{CALLOC} (stats)[") for name in names), names


def test_system_calls_are_counted_and_a_counted_function_without_a_call_is_noted(program: Path, moscope: Moscope) -> None:
    counted = [word for name in ("once", "sweep", "syscall:getppid", "syscall:any") for word in ("--count", name)]
    got = moscope("run", "--program", f"{program} ask often", "--cores", "1", "--begin", "call:sweep", *counted, "--warmup", "1us",
                  "--window", "100us", "--windows", "1", "--out", "noted", "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    (point,) = json.loads(got.stdout)["points"]
    once, sweeps, parents, system_calls = point["calls"].values()
    assert point["ops"] == sweeps + parents + system_calls and not once and sweeps > 100
    assert abs(parents - sweeps / 16) <= 1 and parents <= system_calls <= parents + 5
    noted = next(line for line in got.stderr.splitlines() if "once was not called in the windows" in line)
    assert "pools:sweep" in noted


def test_a_function_that_is_never_called_is_reported_with_those_that_ran(program: Path, moscope: Moscope) -> None:
    got = moscope("run", "--program", f"{program} quit", "--cores", "1", "--begin", "call:sweep", "--out", "never", timeout=600)
    assert got.returncode == 1, got.stderr
    assert "pools (until sweep is called): was never called; functions of the program that ran: " in got.stderr
    ran = next(line for line in got.stderr.splitlines() if "that ran: " in line).partition("that ran: ")[2].split(", ")
    assert {"main", "once"} <= set(ran) and "sweep" not in ran
    assert "program ended with status 4" in got.stderr and "Traceback" not in got.stderr
