# SPDX-License-Identifier: BSD-3-Clause
"""Each fix of the project's kernel under its stress test. Without the fix, the largest stall is on the line that the
header of the patch names, in a function that it names; with the fix it is not. In the network, whose code exceeds the first
caches, this is the largest stall on lines that cores share. Fixes 11 and 16 are about no single line, and have tests of their own. Needs a
build in the cache (`moscope kernel build`), for fix 11 also that of the variant (`--variant split`).

Both kernels are `pk`, one without the fix, so that no other form of 2.6.35 limits the test.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.guest import kernel_build, kernel_patches, kernel_source, packages
from moscope.runs import main, options

# The line and the waiting functions of each fix stand in the header of its patch.
TESTED = {fix.number: fix.stress for fix in kernel_patches.fixes() if fix.stress}
SHARING = ("spin", "true_sharing", "false_sharing", "upgrade", "secondary")
SET_LINES, L3_US = (384 << 10) // 64, 28 / 2400
CORES = [4, pytest.param(48, marks=pytest.mark.long)]
SHORT = (2, 5, 15)  # on four cores: a fix for files, one for the network, one for memory
Measured = Callable[..., dict[str, Any]]
# Cores whose accesses are in program order: each miss has one reason.
IN_ORDER = ("core.model=blocking", "l1d_prefetch.policy=off", "l1i_prefetch.policy=off", "dram_prefetch.policy=off")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """A point of a fix's stress test on a kernel, with the names of its lines and its counts."""
    skip_unless_built("")

    def run(kernel: str, fix: int, cores: int, *sets: str) -> dict[str, Any]:
        out = tmp_path_factory.mktemp("fixes") / "run"
        shared = Shared(out=out, quiet=True, sets=list(sets))
        short = fix in TESTED and TESTED[fix].program == "vfsfix"
        workload = TESTED[fix].workload if fix in TESTED else f"memfix-{fix}"
        # In the first window of clearing huge pages on 48 cores, the cores load for the first time what their caches are to keep.
        given = options.Options(workload=workload, kernel=kernel, cores=str(cores), warmup="200us" if short else None,
                                window="300us" if short else None, windows=3 if fix == 16 and cores > 4 else 1)
        outcome = main.run(options.make(shared, given), shared)
        assert outcome.exit_code == 0, outcome.failed
        (point,) = outcome.document["points"]
        (stats,) = out.glob("points/*/stats.json")
        return {**point, "stats": json.loads(stats.read_text())}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "report", lambda *_: False)  # it takes as long as a short point
        yield run


def skip_unless_built(variant: str) -> None:
    chosen = packages.cache() / "chosen" / f"{kernel_source.PACKAGE}.json"
    if not chosen.is_file() or kernel_build.kept(kernel_build.key_of(kernel_source.debian(print), variant)) is None:
        pytest.skip(f"the kernel is not built: `moscope kernel build{f' --variant {variant}' if variant else ''}` does it")


def on_the_named_line(fix: int, name: dict[str, Any]) -> bool:
    """Whether this line is the one that the fix is about. Fixes that share a line differ in the function that waits."""
    stress = TESTED[fix]
    shared = sum(other.line == stress.line for other in TESTED.values()) > 1
    return name["name"].startswith(stress.line) and (not shared or name["waiters"][0] in stress.waits_in)


def stalls(fix: int, point: dict[str, Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = point["top_lines"]
    return lines if TESTED[fix].program in ("vfsfix", "memfix") else [line for line in lines if line["class"] in SHARING]


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("fix", [pytest.param(fix, marks=() if fix in SHORT else pytest.mark.long) for fix in sorted(TESTED)])
def test_without_the_fix_the_largest_stall_is_on_its_line_and_with_it_elsewhere(measured: Measured, fix: int, cores: int) -> None:
    without, fixed = measured(f"pk-{fix}", fix, cores), measured("pk", fix, cores)
    top = stalls(fix, without)[0]
    assert on_the_named_line(fix, top) and top["waiters"][0] in TESTED[fix].waits_in, without["top_lines"][:3]
    # With the fix there may be no stall at all.
    assert not any(on_the_named_line(fix, name) for name in stalls(fix, fixed)[:1]), fixed["top_lines"][:3]
    assert without["verified"] and fixed["verified"]
    # On four cores a contended line may cost no more than the fix does, which is to cost nothing: the bar of "one core".
    least = 1 if cores > 4 else 0.95
    assert fixed["throughput_per_s"] > least * without["throughput_per_s"]


def test_counts_of_pages_invalidate_what_lies_beside_them_only_without_fix_11(measured: Measured) -> None:
    skip_unless_built("split")
    without, fixed = measured("pk", 11, 4, *IN_ORDER), measured("pk@split", 11, 4, *IN_ORDER)
    top = without["top_names"][0]
    assert top["name"] == "struct page._refcount" and top["stall_share"] > 0.5, top
    # A core reads beside the counts of each of 256 pages before it changes them, to map it and to unmap it. Without the fix, another core's
    # change has taken the line, and the count's change then invalidates the copies that the reads have made.
    needless = [misses(point, "upgrade", "false_sharing") for point in (without, fixed)]
    assert needless[0] > 1000 and needless[1] < needless[0] / 4, needless
    assert fixed["throughput_per_s"] > 1.2 * without["throughput_per_s"] and without["verified"] and fixed["verified"]


def misses(point: dict[str, Any], *classes: str) -> float:
    """Per operation."""
    return float(sum(point["stats"]["attribution"]["classes"][name]["count"] for name in classes) / point["ops"])


@pytest.mark.long
@pytest.mark.parametrize("cores", CORES)
def test_clearing_huge_pages_evicts_what_the_caches_hold_only_without_fix_16(measured: Measured, cores: int) -> None:
    without, fixed = measured("pk-16", 16, cores), measured("pk", 16, cores)
    # A page has 32 768 lines. All of them pass the cores' caches, or none does.
    assert evicted(without) > 30_000 and evicted(fixed) < 1000, (evicted(without), evicted(fixed))
    # A program's own time goes to the loads of a set that fits into its core's caches: without the fix, each of its lines comes at least
    # from the L3.
    times = [point["windows"][-1]["user_us_per_op"] for point in (without, fixed)]
    assert times[0] - times[1] > SET_LINES * L3_US and times[0] > 4 * times[1], times
    assert without["verified"] and fixed["verified"]
    assert fixed["throughput_per_s"] > without["throughput_per_s"]


def evicted(point: dict[str, Any]) -> float:
    """Lines that leave the cores' own caches for want of room, per operation."""
    controllers = point["stats"]["machine"]["controllers"]
    cores = [controller["transitions"] for controller in controllers if controller["name"].startswith("L1Cache")]
    return float(sum(count for core in cores for name, count in core.items() if name.endswith(".L2_Replacement")) / point["ops"])
