# SPDX-License-Identifier: BSD-3-Clause
"""The inputs of a point apart from its options: machine, protocol, kernel, the guest's programs. They can change while the
command line stays the same (a machine file is edited, a kernel is rebuilt). A finished point therefore records their digests,
and a point with other digests is measured again.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.boot import plan
from moscope.config import Machine
from moscope.errors import UserError
from moscope.guest import initramfs, kernel, packages, rootimage
from moscope.guest.packages import Say
from moscope.runs import engine
from moscope.runs.options import Point, sized
from moscope.schema.parameters import engine_json, is_given

DIGITS = 16
KERNEL_MINUTES = 7  # docs/kernels.md
# The words for each digest in messages to people.
WORDS = {"engine": "another build of the engine", "kernel": "another kernel image", "programs": "another set of programs in the guest",
         "protocol": "another protocol", "machine": "another description of the machine"}


@dataclass(frozen=True)
class Inputs:
    """`detailed` is the engine's configuration of detailed mode (`engine.detailed`)."""

    machine: Machine
    kernel: kernel.Kernel
    image: initramfs.Initramfs
    detailed: dict[str, Any]
    disk: rootimage.RootImage | None = None
    nic: dict[str, Any] | None = None  # the network card; None: there is none

    def digests(self) -> dict[str, str]:
        """The digests by the names in WORDS; that of the engine is `directory.engine_digest`."""
        described = json.dumps([plan.platform(self.machine), self.detailed["machine"]], sort_keys=True)
        if self.nic:
            described += json.dumps(self.nic, sort_keys=True)
        programs = hashlib.sha256((self.image.sha256 + self.disk.sha256).encode()).hexdigest() if self.disk else self.image.sha256
        return {"kernel": self.kernel.sha256[:DIGITS], "programs": programs[:DIGITS],
                "protocol": packages.digest_of(Path(self.detailed["library"]))[:DIGITS],
                "machine": hashlib.sha256(described.encode()).hexdigest()[:DIGITS]}


class Gatherer:
    """The inputs of several points of one machine. Shared inputs are looked up, and built if necessary, once."""

    def __init__(self, machine: Machine, programs: dict[str, Path], say: Say) -> None:
        self.machine, self.programs, self.say = machine, programs, say
        self._disks: dict[tuple[str, str], rootimage.RootImage] = {}
        self._kernels: dict[str, kernel.Kernel] = {}
        self._images: dict[Any, initramfs.Initramfs] = {}
        self._detailed: dict[str, tuple[Machine, dict[str, Any]]] = {}

    def of(self, point: Point) -> Inputs:
        if point.kernel not in self._kernels:
            self._kernels[point.kernel] = found = kernel.find(point.kernel, self.say)
            if not found.release:
                raise UserError(f"--kernel: {found.image}: is not a Linux kernel: expected a bzImage or an ELF vmlinux")
        chosen = self._kernels[point.kernel]
        modules = chosen.modules and chosen.modules.folder  # the only part of a kernel on which its initial file system depends
        if modules not in self._images:
            self._images[modules] = initramfs.build(chosen, self.say, extra=self.programs)
        if point.memory_per_node not in self._detailed:
            machine = sized(self.machine, point.memory_per_node)
            self._detailed[point.memory_per_node] = machine, engine.detailed(machine, self.say)
        disk = (point.packages or "", point.image or "")
        if point.packages and disk not in self._disks:
            self._disks[disk] = rootimage.find(self.say, tuple(point.packages.split(",")), disk[1])
        machine, detailed = self._detailed[point.memory_per_node]
        return Inputs(machine, chosen, self._images[modules], detailed, self._disks.get(disk), self._nic(machine, point))

    def _nic(self, machine: Machine, point: Point) -> dict[str, Any] | None:
        if point.steering is None:
            return None
        nic = engine_json(machine.nic)
        if not is_given(machine.nic, "steering"):
            nic["steering"] = point.steering
        if nic["steering"] == "fixed-port" and point.first_port and not is_given(machine.nic, "first_port"):
            nic["first_port"] = point.first_port
        return nic


def lacking(point: Point) -> list[str]:
    """What a Gatherer would build for a point, in words. This function builds nothing."""
    from moscope import workloads

    found = [] if kernel.is_kept(point.kernel) else [f"{kernel.in_words(point.kernel)} ({KERNEL_MINUTES} minutes)"]
    if point.packages and not rootimage.kept(tuple(point.packages.split(",")), point.image or ""):
        found.append(f"a root image with {point.packages} (some minutes)")
    if not workloads.are_built(point.family):
        found.append("the workloads' programs (seconds)")
    return found


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """The inputs that differ, in the words of WORDS."""
    return [word for what, word in WORDS.items() if before.get(what) != now.get(what)]
