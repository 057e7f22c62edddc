# SPDX-License-Identifier: BSD-3-Clause
"""Source, configuration and cache of the project's kernel, on trees of a few lines."""

import subprocess
from pathlib import Path

import pytest

from moscope.errors import UserError
from moscope.guest import kernel_build, kernel_config, kernel_names, kernel_patches, kernel_source

PATCH = """\
--- a/fs/one.c
+++ b/fs/one.c
@@ -1,3 +1,3 @@
 first
-second
+changed
 third
@@ -11,3 +11,3 @@
 eleven
-twelve
+changed too
 thirteen
"""


def tree(folder: Path, version: str = "6.1.99", text: str | None = None) -> Path:
    numbers = version.split(".")
    (folder / "fs").mkdir(parents=True)
    (folder / "Makefile").write_text(f"VERSION = {numbers[0]}\nPATCHLEVEL = {numbers[1]}\nSUBLEVEL = {numbers[2]}\n")
    lines = ["first", "second", "third", *map(str, range(4, 11)), "eleven", "twelve", "thirteen"]
    (folder / "fs/one.c").write_text(text or "\n".join(lines) + "\n")
    return folder


def quiet(text: str) -> None:
    pass


def test_a_process_left_by_an_interrupted_build_does_not_disturb_the_next_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel_build, "_kernels", lambda: tmp_path)
    old = kernel_build._fresh()
    forever = "n=0; while :; do n=$((n+1)); mkdir -p d$((n%50)); : >d$((n%50))/f$n; done 2>/dev/null"
    writer = subprocess.Popen(["sh", "-c", forever], cwd=old)
    try:
        for _ in range(20):
            assert list(kernel_build._fresh().iterdir()) == []
    finally:
        writer.kill()
        writer.wait()


def test_a_patch_that_fits_is_applied(tmp_path: Path) -> None:
    (tmp_path / "01-x.patch").write_text(PATCH)
    kernel_source.apply(tmp_path / "01-x.patch", tree(tmp_path / "linux"))
    assert "changed too" in (tmp_path / "linux/fs/one.c").read_text()


def test_a_patch_that_does_not_fit_names_file_and_hunk(tmp_path: Path) -> None:
    (tmp_path / "01-x.patch").write_text(PATCH)
    source = tree(tmp_path / "linux")
    (source / "fs/one.c").write_text((source / "fs/one.c").read_text().replace("twelve", "another"))
    with pytest.raises(UserError, match=r"01-x.patch: hunk 2 of fs/one.c .*does not apply: expected .*"):
        kernel_source.apply(tmp_path / "01-x.patch", source)


def test_a_patch_whose_file_is_gone_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "01-x.patch").write_text(PATCH)
    source = tree(tmp_path / "linux")
    (source / "fs/one.c").unlink()
    with pytest.raises(UserError, match=r"01-x.patch: .*fs/one.c.*does not apply"):
        kernel_source.apply(tmp_path / "01-x.patch", source)


def test_only_linux_6_1_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is Linux 6.6.3: expected 6.1.y"):
        kernel_source.own(tree(tmp_path / "new", "6.6.3"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="is not a Linux source tree"):
        kernel_source.own(tmp_path / "empty")
    (tmp_path / "file").touch()
    for name, why in (("file", "is not a folder"), ("nothing", "does not exist")):
        with pytest.raises(UserError, match=f"^--source: {tmp_path / name}: {why}: expected the folder of a Linux source tree"):
            kernel_source.own(tmp_path / name)


def test_a_tree_of_ones_own_is_copied_and_its_identity_follows_its_files(tmp_path: Path) -> None:
    source = kernel_source.own(tree(tmp_path / "linux"))
    assert source.identity == kernel_source.own(tmp_path / "linux").identity
    (tmp_path / "copy").mkdir()
    source.unpack(tmp_path / "copy", quiet)
    assert (tmp_path / "copy/fs/one.c").read_text() == (tmp_path / "linux/fs/one.c").read_text()
    (tmp_path / "linux/fs/one.c").write_text("other\n")
    assert source.identity != kernel_source.own(tmp_path / "linux").identity


def test_the_key_follows_source_configuration_and_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kernel_source.own(tree(tmp_path / "linux"))
    keys = {kernel_build.key_of(source)}
    assert kernel_build.key_of(source) in keys
    other = tmp_path / "fragment"
    other.write_text("CONFIG_SMP=y\n")
    (tmp_path / "01-x.patch").write_text(f"{kernel_patches.SPDX}\nTitle: x\n\nProse.\n---\n{PATCH}")
    monkeypatch.setattr(kernel_config, "common", lambda: other)
    keys.add(kernel_build.key_of(source))
    monkeypatch.setattr("moscope.guest.kernel_patches.series", lambda: [tmp_path / "01-x.patch"])
    keys.add(kernel_build.key_of(source))
    (tmp_path / "linux/fs/one.c").write_text("other\n")
    keys.add(kernel_build.key_of(kernel_source.own(tmp_path / "linux")))
    assert len(keys) == 4


def test_the_header_of_a_patch_does_not_change_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kernel_source.own(tree(tmp_path / "linux"))
    monkeypatch.setattr(kernel_patches, "series", lambda: [tmp_path / "01-x.patch"])
    keys = set()
    for title in ("one", "another"):
        (tmp_path / "01-x.patch").write_text(f"{kernel_patches.SPDX}\nTitle: {title}\n---\n{PATCH}")
        keys.add(kernel_build.key_of(source))
    assert len(keys) == 1


def test_a_variant_has_a_key_of_its_own_and_leaves_the_ordinary_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kernel_source.own(tree(tmp_path / "linux"))
    ordinary = kernel_build.key_of(source)
    monkeypatch.setattr(kernel_config, "folder", lambda: tmp_path)
    (tmp_path / "moscope.config").write_bytes((kernel_names.folder() / "config/moscope.config").read_bytes())
    (tmp_path / "other.config").write_text("CONFIG_SMP=n\n")
    assert kernel_build.key_of(source) == ordinary
    keys = {ordinary, kernel_build.key_of(source, "other")}
    (tmp_path / "other.config").write_text("CONFIG_SMP=y\n")
    keys.add(kernel_build.key_of(source, "other"))
    assert len(keys) == 3


def test_an_unknown_variant_is_answered_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for work in (kernel_build.build, kernel_build.configured):
        with pytest.raises(UserError, match='--variant: no variant of the kernel called "cheked": expected a known name, such as checked'):
            work(quiet, variant="cheked")
    assert not (tmp_path / "cache").exists()


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_build, "lacking", lambda: [])
    monkeypatch.setattr("moscope.guest.kernel_patches.series", lambda: [])

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_build, "_make", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel_build.build(quiet, tree(tmp_path / "linux"))
    assert not list((tmp_path / "cache/moscope/guest/kernels").glob("*"))
    assert kernel_build.all_kept() == []


def test_the_log_of_a_build_under_way_is_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_build, "_kernels", lambda: tmp_path)
    (tmp_path / "build.log").write_text("  CC      init/main.o\n")
    for name in ("0" * kernel_build.KEY_DIGITS, "f" * kernel_build.KEY_DIGITS):
        (tmp_path / name).mkdir()
    (tmp_path / ("f" * kernel_build.KEY_DIGITS) / "build.json").write_text("{}")
    assert [built.key for built in kernel_build.all_kept()] == ["f" * kernel_build.KEY_DIGITS]
