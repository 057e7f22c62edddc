# SPDX-License-Identifier: BSD-3-Clause
"""The headers of the kernel's patches: what they have to say, and what is derived from them."""

from pathlib import Path

import pytest

from moscope import workloads
from moscope.errors import UserError
from moscope.guest import kernel_names, kernel_patches

HEADER = """\
SPDX-License-Identifier: GPL-2.0
Fix: 12
Title: list of inodes
Applications: memcached, Apache
Stock: one list
  under one lock
PK: no list
Upstream: a list per super block
Differs: nothing

Contention: each socket's inode.
"""
DIFF = """\
---
--- a/fs/inode.c
+++ b/fs/inode.c
@@ -1,1 +1,2 @@
 first
+	if (moscope_stock(12))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_patches, "folder", lambda: tmp_path)
    return tmp_path


def test_a_patch_in_the_folder_is_a_fix_that_kernel_names_accept(folder: Path) -> None:
    (folder / "12-inode-list.patch").write_text(HEADER + DIFF)
    (fix,) = kernel_patches.fixes()
    assert (fix.number, fix.title, fix.applications) == (12, "list of inodes", ("memcached", "Apache"))
    assert fix.stock == "one list under one lock" and fix.files == ("fs/inode.c",) and fix.stress is None
    assert kernel_names.setting("pk-12") == "pk-12"
    with pytest.raises(UserError, match="fix 7 cannot be switched in this kernel: expected some of 12"):
        kernel_names.setting("pk-7")


def test_a_fix_of_a_variant_is_in_that_build_alone_and_cannot_be_switched(folder: Path) -> None:
    (folder / "12-inode-list.patch").write_text(HEADER + DIFF)
    always = HEADER.replace("Fix: 12", "Fix: 11\nVariant: split") + DIFF.replace("moscope_stock(12)", "first")
    (folder / "11-page.patch").write_text(always)
    split, switched = kernel_patches.fixes()
    assert split.kernels == ("pk", "pk@split") and switched.kernels == ("pk-12", "pk")
    assert kernel_names.numbers() == [12]
    names = {variant: [path.name for path in kernel_patches.series_of(variant)] for variant in ("", "split", "queued")}
    assert names == {"": ["12-inode-list.patch"], "queued": ["12-inode-list.patch"],
                     "split": ["11-page.patch", "12-inode-list.patch"]}
    (folder / "11-page.patch").rename(folder / "11-other.patch").write_text(always + "+ moscope_pk(11)\n")
    with pytest.raises(UserError, match=r"the diff asks for moscope_stock\(11\): expected none, as the variant has the fix"):
        kernel_patches.fixes()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("SPDX", "spdx", r"no header: expected the line `SPDX-License-Identifier: GPL-2.0`"),
    ("Fix: 12", "Fix: 32", "Fix: 32: expected a number from 1 to 31"),
    ("Fix: 12", "Fix: 11", r"the diff asks for moscope_stock\(12\): expected moscope_stock\(11\) or moscope_pk\(11\)"),
    ("PK: no list\n", "", "header: no field PK: expected "),
    ("PK:", "Pk:", "header: unknown field Pk: expected one of "),
    ("Differs: nothing", "Differs: nothing\nStress-test: x", "header: no field Line: expected "),
    ("Title: list", "Title list", "header: .Title list of inodes.: expected `Name: value`"),
], ids=["licence", "number", "form", "missing", "unknown", "half a stress test", "no field"])
def test_a_wrong_header_is_an_error(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "12-inode-list.patch").write_text((HEADER + DIFF).replace(old, new, 1))
    with pytest.raises(UserError, match=f"12-inode-list.patch: .*{message}"):
        kernel_patches.fixes()


def test_two_patches_with_one_number_are_an_error(folder: Path) -> None:
    for name in ("12-a.patch", "12-b.patch"):
        (folder / name).write_text(HEADER + DIFF)
    with pytest.raises(UserError, match="12-b.patch: Fix: 12: 12-a.patch has this number: expected another"):
        kernel_patches.fixes()


def test_every_patch_of_the_kernel_has_a_valid_header_and_says_how_it_differs_from_2_6_35() -> None:
    for path in kernel_patches.series():
        patch = kernel_patches.read(path)
        assert "2.6.35" in patch.prose and "Different" in patch.prose, path
        assert not path.name[0:2].isdigit() or "Fix" not in patch.fields or path.name.startswith(f"{int(patch.fields['Fix']):02}-")
    assert {*range(1, 11), 12, 13, 14} <= set(kernel_names.numbers())


def test_every_stress_test_is_a_workload() -> None:
    tested = [fix for fix in kernel_patches.fixes() if fix.stress]
    assert tested
    for fix in tested:
        assert fix.stress
        work = workloads.find(fix.stress.workload)
        assert work.kernels == ",".join(fix.kernels)
        # All fields of a line are of one object.
        assert len({field.partition(".")[0] for field in fix.stress.line}) == 1
        assert work.launcher or work.arguments(4) == f"{fix.stress.variant} --cores 4"
