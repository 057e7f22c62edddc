# SPDX-License-Identifier: BSD-3-Clause
"""Kernels to boot, by name or file: the image, its digest, its release and where its modules lie."""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from moscope import readable
from moscope.errors import UserError, unknown_name
from moscope.guest import kernel_build, kernel_config, kernel_names, packages
from moscope.guest.modules import Modules
from moscope.guest.packages import Say

# Debian's kernel for virtual machines: a package that only depends on the package of the current version.
CLOUD_KERNEL = "linux-image-cloud-amd64"
CLOUD_IMAGE = "linux-image-"
NAMES = ("distro",)


@dataclass(frozen=True)
class Kernel:
    """`release` is what `uname -r` prints, empty if unknown; `origin` is a package or a file."""

    name: str
    image: Path
    sha256: str
    release: str
    modules: Modules | None
    origin: str
    is_linux: bool = True
    append: str = ""  # what the name adds to the command line

    def document(self) -> dict[str, str]:
        """The description of the kernel in results."""
        return {"name": self.name, "release": self.release, "sha256": self.sha256, "origin": self.origin}


def find(wanted: str, say: Say) -> Kernel:
    """A kernel by name (`distro`, `stock`, `pk-7`, `pk@split`, ...) or by file: whatever has a slash in it or exists is a file."""
    wanted = check_name(wanted)
    if wanted in NAMES:
        return _distro(say)
    return _ours(wanted, say) if kernel_names.is_ours(wanted) else from_file(Path(wanted))


def is_kept(wanted: str) -> bool:
    """Whether `find` neither builds nor fetches anything."""
    if wanted in NAMES:
        return packages.is_kept(CLOUD_KERNEL)
    return not kernel_names.is_ours(wanted) or kernel_build.is_kept(wanted.partition("@")[2])


def in_words(wanted: str) -> str:
    variant = wanted.partition("@")[2]
    return f"the variant {variant} of the kernel" if variant else "the kernel"


def check_name(wanted: str) -> str:
    """The canonical spelling of a kernel's name; a file stays as it is. UserError if `wanted` is neither."""
    if kernel_names.is_ours(wanted):
        setting, at, variant = wanted.partition("@")
        if at and variant not in kernel_config.variants():
            raise unknown_name("--kernel", "variant of the kernel", variant, kernel_config.variants())
        return kernel_names.setting(setting) + at + variant
    if not wanted or (wanted not in NAMES and "/" not in wanted and not Path(wanted).exists()):
        raise kernel_names.unknown(wanted, NAMES)
    return wanted


def from_file(path: Path) -> Kernel:
    if why := readable.fault(path):
        raise UserError(f"--kernel: {path}: {why}: expected a kernel (bzImage, ELF vmlinux or multiboot ELF)")
    digest, release = packages.digest_of(path), release_of(path)
    return Kernel(path.name, path, digest, release, _modules_beside(path, release), str(path), not _is_multiboot(path))


def _distro(say: Say) -> Kernel:
    package = packages.fetch(CLOUD_KERNEL, say, "--kernel FILE names a kernel of your own", CLOUD_IMAGE)
    images = sorted((package.tree / "boot").glob("vmlinuz-*"))
    if len(images) != 1:
        raise UserError(f"{package.tree}: holds {len(images)} kernels: expected one; remove the folder to fetch it again")
    release = release_of(images[0])
    return Kernel("distro", images[0], packages.digest_of(images[0]), release,
                  _modules_beside(images[0], release), f"{package.name} {package.version}")


def _ours(name: str, say: Say) -> Kernel:
    setting, _, variant = name.partition("@")
    built = kernel_build.build(say, variant=variant)
    return Kernel(name, built.image, built.document["sha256"], release_of(built.image), None,
                  f"built from {built.document['source']}", append=f"{kernel_names.PARAMETER}={setting}")


def release_of(image: Path) -> str:
    """The release that a bzImage's set-up header points to (Linux x86 boot protocol, `kernel_version`), or that an ELF
    kernel's banner names."""
    with image.open("rb") as handle:
        head = handle.read(0x10000)
        if head[:4] == b"\x7fELF":
            banner = re.search(rb"Linux version ([0-9][0-9A-Za-z._+~-]{1,63}) ", head + handle.read())
            return banner.group(1).decode() if banner else ""
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        return ""
    offset = struct.unpack_from("<H", head, 0x20E)[0] + 0x200
    match = re.match(rb"[0-9A-Za-z._+~-]{1,64}", head[offset : offset + 64])
    return match.group().decode() if match else ""


def _is_multiboot(image: Path) -> bool:
    """Whether the Multiboot header's magic number is where that specification wants it."""
    with image.open("rb") as handle:
        head = handle.read(8192)
    return any(head[i : i + 4] == b"\x02\xb0\xad\x1b" for i in range(0, len(head), 4))


def _modules_beside(image: Path, release: str) -> Modules | None:
    """lib/modules/RELEASE beside the image's boot folder, or of this system."""
    for root in (image.absolute().parent.parent, image.absolute().parent, Path("/")):
        folder = root / "lib" / "modules" / release
        if release and (folder / "kernel").is_dir():
            return Modules(folder)
    return None
