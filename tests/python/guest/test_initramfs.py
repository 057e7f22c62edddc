# SPDX-License-Identifier: BSD-3-Clause
"""The initial file system, built from what is in the cache already; the boot tests fetch it."""

import json
import os
import time
from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest import initramfs, kernel, packages


@pytest.fixture
def distro() -> kernel.Kernel:
    for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE):
        chosen = packages.cache() / "chosen" / f"{name}.json"
        if not chosen.exists() or not (packages.cache() / "packages" / json.loads(chosen.read_text())["sha256"]).is_dir():
            pytest.skip(f"{name} is not in the cache")
    return kernel.find("distro", print)


def test_equal_inputs_give_equal_bytes_and_a_script_changes_them(distro: kernel.Kernel, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("nproc\n")
    plain = initramfs.build(distro, print)
    assert initramfs.build(distro, print) == plain
    assert initramfs.build(distro, print, script).sha256 != plain.sha256


def test_it_holds_the_modules_in_the_order_to_load_them(distro: kernel.Kernel) -> None:
    data = initramfs.build(distro, print).path.read_bytes()
    assert b"virtio_ring\nvirtio_pci_legacy_dev\n" in data or b"virtio_ring\nvirtio\n" in data or b"\nvirtio_pci\n" in data
    assert b"lib/modules/virtio_blk.ko\0" in data and b"init\0" in data


def test_the_cloud_kernel_is_a_bzimage_with_its_release(distro: kernel.Kernel) -> None:
    assert distro.release.endswith("-cloud-amd64") and distro.release in distro.image.name
    assert len(distro.sha256) == 64 and distro.origin.startswith("linux-image-")


def test_a_script_that_is_not_there_is_a_user_error(distro: kernel.Kernel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        initramfs.build(distro, print, tmp_path / "none")


def test_a_package_with_a_busybox_of_its_own_leaves_that_of_init_in_its_place(distro: kernel.Kernel, tmp_path: Path) -> None:
    (tmp_path / "busybox").write_text("another")
    assert initramfs.build(distro, print, extra={"/bin/busybox": tmp_path / "busybox"}) == initramfs.build(distro, print)


def test_initial_file_systems_unused_for_a_week_are_removed_but_for_the_last_ones(tmp_path: Path) -> None:
    day = 24 * 3600
    for n in range(initramfs.KEPT + 3):
        path = tmp_path / f"{n}.cpio"
        path.touch()
        os.utime(path, (time.time() - (n + 1) * day / 2,) * 2)
    initramfs._forget_the_oldest(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {str(n) for n in range(initramfs.KEPT)}
    for path in tmp_path.iterdir():
        os.utime(path)
    for name, age in ((".a.cpio.0.host.1.1", 8 * day), (".b.cpio.0.host.1.1", day)):  # what killed processes were writing
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    initramfs._forget_the_oldest(tmp_path)
    assert [path.name for path in tmp_path.glob(".*")] == [".b.cpio.0.host.1.1"]
    (tmp_path / "old.cpio").touch()
    os.utime(tmp_path / "old.cpio", (time.time() - 6 * day,) * 2)
    initramfs._forget_the_oldest(tmp_path)
    assert (tmp_path / "old.cpio").exists(), "a sweep that is under way may need it"
