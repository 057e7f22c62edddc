# SPDX-License-Identifier: BSD-3-Clause
"""Fetching packages: what is remembered, and what the user reads where it cannot work. A program of the test's own
stands in for apt; the real one is asked in the boot tests."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest import kernel, packages

APT_CACHE = """#!/bin/sh
for last; do :; done
case $last in
meta) printf 'Package: meta\\nDepends: image-7 (= 1.2)\\n' ;;
image-7) printf 'Package: image-7\\n' ;;
*) exit 100 ;;
esac
"""
APT_GET = """#!/bin/sh
for last; do :; done
echo "$@" >>"$CALLS"
[ -z "$OFFLINE" ] || { echo "E: Could not resolve the archive" >&2; exit 100; }
[ $last = update ] || cp "$DEB" .
[ $last != update ] || { mkdir "$CALLS.now" || echo overlap >>"$CALLS"; sleep 0.3; rmdir "$CALLS.now"; }
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Callable[[dict[str, str]], None]) -> Path:
    """A package and an apt that knows it; returns the file that lists the calls."""
    tree = tmp_path / "deb"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text("Package: image-7\nVersion: 1.2\nArchitecture: all\nMaintainer: x <x@x>\n"
                                         "Description: x\n")
    (tree / "boot").mkdir()
    (tree / "boot/vmlinuz-7").write_text("kernel")
    subprocess.run(["dpkg-deb", "-b", str(tree), str(tmp_path / "image.deb")], check=True, capture_output=True)
    stand_ins({"apt-get": APT_GET, "apt-cache": APT_CACHE})
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("DEB", str(tmp_path / "image.deb"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "calls"


def fetch() -> packages.Package:
    return packages.fetch("meta", lambda text: None, "--kernel FILE names one", "image-")


def test_a_package_is_fetched_once_and_kept_under_its_digest(apt: Path) -> None:
    package = fetch()
    assert (package.name, package.version) == ("image-7", "1.2")
    assert (package.tree / "boot/vmlinuz-7").read_text() == "kernel"
    assert package.tree.name == package.sha256 == packages.digest_of(Path(os.environ["DEB"]))
    assert fetch() == package and len(apt.read_text().splitlines()) == 1


def test_a_removed_folder_is_fetched_again(apt: Path) -> None:
    package = fetch()
    package.tree.rename(package.tree.with_name("away"))
    assert fetch() == package and len(apt.read_text().splitlines()) == 2


def test_what_a_killed_download_left_is_removed_when_the_package_is_fetched_again(apt: Path) -> None:
    place = packages.cache() / "packages"
    for name in (".package-meta_abcdefgh", ".package-meta-data_abcdefgh"):  # the second: of another package, perhaps under way
        (place / name / "tree").mkdir(parents=True)
    package = fetch()
    assert {path.name for path in place.iterdir()} == {".package-meta-data_abcdefgh", package.sha256}


def test_without_a_network_the_error_names_the_alternative(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLINE", "1")
    with pytest.raises(UserError, match=r"^meta: the package cannot be fetched \(Could not resolve.*--kernel FILE names one$"):
        fetch()
    assert any(line.endswith("update") for line in apt.read_text().splitlines())
    assert not list((packages.cache() / "packages").iterdir())


def test_an_unknown_package_is_named(apt: Path) -> None:
    with pytest.raises(UserError, match="other: the package cannot be fetched"):
        packages.fetch("other", lambda text: None, "nothing")


def test_package_lists_are_not_fetched_by_two_at_the_same_time(apt: Path) -> None:
    def unknown(name: str) -> None:
        with pytest.raises(UserError):
            packages.fetch(name, lambda text: None, "nothing")

    both = [threading.Thread(target=unknown, args=(name,)) for name in ("one", "other")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    calls = apt.read_text().splitlines()
    assert len([line for line in calls if line.endswith("update")]) == 2 and "overlap" not in calls


def test_without_apt_no_dependencies_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="^pigz: this system has no apt-cache"):
        packages.depends(["pigz"], lambda text: None)


def test_without_apt_a_file_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UserError, match=r"no apt-get.*: expected --kernel FILE names one"):
        fetch()


def test_an_unknown_kernel_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match='no kernel called "distor": expected a known name, such as distro'):
        kernel.find("distor", print)
    with pytest.raises(UserError, match=r"^--kernel: no/vmlinuz: No such file"):
        kernel.find("no/vmlinuz", print)


def test_the_release_is_read_from_either_kind_of_file(tmp_path: Path) -> None:
    image = bytearray(0x400)
    image[0x202:0x206] = b"HdrS"
    image[0x20E:0x210] = (0x100).to_bytes(2, "little")
    image[0x300:0x320] = b"6.1.0-9-test (someone) #1 SMP\0\0\0"
    for content, release in ((bytes(image), "6.1.0-9-test"), (b"\x7fELF" + bytes(70000) + b"Linux version 2.6.35-rc5 (a@b)\n",
                                                             "2.6.35-rc5"), (b"something", "")):
        (tmp_path / "kernel").write_bytes(content)
        assert kernel.release_of(tmp_path / "kernel") == release


def test_modules_are_found_beside_a_boot_folder(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "lib/modules/9.9.9-test/kernel").mkdir(parents=True)
    image = tmp_path / "boot/vmlinux"
    image.write_bytes(b"\x7fELF Linux version 9.9.9-test (x)\n")
    found = kernel.from_file(image)
    assert found.modules is not None and found.modules.folder == tmp_path / "lib/modules/9.9.9-test" and found.is_linux
    image.write_bytes(b"\x7fELF\x02\x01\x01\0\x02\xb0\xad\x1b")
    assert not kernel.from_file(image).is_linux
