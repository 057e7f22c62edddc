# SPDX-License-Identifier: BSD-3-Clause
"""Each fix of the project's kernel under its stress test. Without the fix, the largest stall is on the line that the
header of the patch names, in a function that it names; with the fix it is not. In the network, whose code exceeds the first
caches, this is the largest stall on lines that cores share. Needs a build in the cache (`moscope kernel build`).

Both kernels are `pk`, one without the fix, so that no other form of 2.6.35 limits the test.
"""

from collections.abc import Callable
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.guest import kernel_build, kernel_patches, kernel_source, packages
from moscope.runs import main, options

# The line and the waiting functions of each fix stand in the header of its patch.
TESTED = {fix.number: fix.stress for fix in kernel_patches.fixes() if fix.stress}
SHARING = ("spin", "true_sharing", "false_sharing", "upgrade", "secondary")
CORES = [4, pytest.param(48, marks=pytest.mark.long)]
Measured = Callable[[str, int, int], dict[str, Any]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A point of a fix's stress test on a kernel, with the names of its lines."""
    chosen = packages.cache() / "chosen" / f"{kernel_source.PACKAGE}.json"
    if not chosen.is_file() or kernel_build.kept(kernel_build.key_of(kernel_source.debian(print))) is None:
        pytest.skip("the project's kernel is not built: `moscope kernel build` does it")

    def run(kernel: str, fix: int, cores: int) -> dict[str, Any]:
        shared = Shared(out=tmp_path_factory.mktemp("fixes") / "run", quiet=True)
        short = TESTED[fix].program == "vfsfix"
        given = options.Options(TESTED[fix].workload, kernel, str(cores), warmup="200us" if short else None,
                                window="300us" if short else None, windows=1)
        outcome = main.run(options.make(shared, given), shared)
        assert outcome.exit_code == 0, outcome.failed
        (point,) = outcome.document["points"]
        return dict(point)

    return run


def on_the_named_line(fix: int, name: dict[str, Any]) -> bool:
    """Whether this line is the one that the fix is about. Fixes that share a line differ in the function that waits."""
    stress = TESTED[fix]
    shared = sum(other.line == stress.line for other in TESTED.values()) > 1
    return name["name"].startswith(stress.line) and (not shared or name["waiters"][0] in stress.waits_in)


def stalls(fix: int, point: dict[str, Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = point["top_lines"]
    return lines if TESTED[fix].program in ("vfsfix", "memfix") else [line for line in lines if line["class"] in SHARING]


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("fix", sorted(TESTED))
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
