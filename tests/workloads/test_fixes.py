# SPDX-License-Identifier: BSD-3-Clause
"""Each fix of the project's kernel by itself, under the storm made for it: without the fix the largest stall is on the line that
the fix names, in the function that waits there; with it, it is not. Needs a build in the cache (`moscope kernel build`).

Both kernels are `pk`, one without the fix, so that nothing else of 2.6.35 stands in the way.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.guest import kernel_build, kernel_names, kernel_source, packages
from moscope.run import main, options

# By fix: how the line is called, and the functions of which one waits longest.
NAMED: dict[int, tuple[str, set[str]]] = {
    2: ("dentry.d_lockref", {"lockref_get", "lockref_put_or_lock", "lockref_put_return", "lockref_get_not_dead"}),
    3: ("mount.mnt_one_count", {"mntget", "mntput_no_expire"}),
    6: ("dentry.d_lockref", {"__d_lookup"}),
    7: ("vfsmount_lock", {"lookup_mnt_locked"}),
    8: ("all_open_files", {"file_list_add", "__fput"}),
    14: ("shmem_inode_info.vfs_inode.i_lseek_mutex", {"moscope_mutex_lock", "moscope_mutex_lock_slow", "moscope_mutex_unlock_slow"}),
}
CORES = [4, pytest.param(48, marks=pytest.mark.long)]
Measured = Callable[[str, int, int], dict[str, Any]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A point of a fix's storm on a kernel, with the names of its lines."""
    chosen = packages.cache() / "chosen" / f"{kernel_source.PACKAGE}.json"
    if not chosen.is_file() or kernel_build.kept(kernel_build.key_of(kernel_source.debian(print))) is None:
        pytest.skip("the project's kernel is not built: `moscope kernel build` does it")

    def run(kernel: str, fix: int, cores: int) -> dict[str, Any]:
        shared = Shared(out=tmp_path_factory.mktemp("fixes") / "run", quiet=True)
        given = options.Options(f"vfsfix-{fix}", kernel, str(cores), warmup="200us", window="300us", windows=1)
        outcome = main.run(options.make(shared, given), shared)
        assert outcome.exit_code == 0, outcome.failed
        (point,) = outcome.document["points"]
        return point | json.loads(Path(f"{shared.out}/points/vfsfix-{fix}-{kernel}-{cores}/lines.json").read_text())

    return run


# These two are about one word, and are told apart by who waits; the others' lines are nobody else's.
BY_FUNCTION = (2, 6)


def on_the_named_line(fix: int, name: dict[str, Any]) -> bool:
    """Whether this line is the one that the fix is about."""
    line, functions = NAMED[fix]
    return name["name"].startswith(line) and (fix not in BY_FUNCTION or name["waiters"][0] in functions)


def test_every_fix_that_can_be_switched_has_its_storm() -> None:
    assert sorted(NAMED) == kernel_names.numbers()


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("fix", sorted(NAMED))
def test_without_the_fix_the_largest_stall_is_on_its_line_and_with_it_elsewhere(measured: Measured, fix: int, cores: int) -> None:
    without, fixed = measured(f"pk-{fix}", fix, cores), measured("pk", fix, cores)
    top = without["top_lines"][0]
    assert on_the_named_line(fix, top) and top["waiters"][0] in NAMED[fix][1], without["top_lines"][:3]
    # With the fix there may be no stall at all.
    assert not any(on_the_named_line(fix, name) for name in fixed["top_lines"][:1]), fixed["top_lines"][:3]
    assert without["verified"] and fixed["verified"]
    # On four cores a contended line may cost no more than the fix does, which is to cost nothing: the bar of "one core".
    least = 1 if cores > 4 else 0.95
    assert fixed["throughput_per_s"] > least * without["throughput_per_s"]
