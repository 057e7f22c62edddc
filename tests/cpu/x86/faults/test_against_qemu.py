# SPDX-License-Identifier: BSD-3-Clause
"""Page walks, faults and privilege: a flat kernel runs a table of cases (cases.c) on QEMU and on the model, and the lines that
it prints are compared. Skipped where QEMU is not installed.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from moscope.boot import plan
from moscope.config import load_machine
from moscope.guest import qemu

HERE = Path(__file__).parent
FLAGS = ("-m64 -O1 -ffreestanding -fno-pic -mno-red-zone -mgeneral-regs-only -fno-stack-protector -fcf-protection=none -nostdlib -static "
         "-Wall -Wextra -Werror -Wno-main -mcmodel=small -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,max-page-size=4096")

pytestmark = pytest.mark.skipif(shutil.which(qemu.PROGRAM) is None, reason="QEMU is not installed")

# The model's lines that are not QEMU's: by pattern, why the manual (AMD 24593, 24594) is on the model's side.
DIFFERENT = {
    r"l?tr sel=[03] ": "LTR with a null selector is #GP(0)",
    r"(iret )?ss sel=3 cpl=0": "a null selector for SS has to have the level's RPL",
    r"iret ss sel=50 cpl=0": "IRET to a stack segment that is not present is #SS",
    r"(lret|iret cs) sel=a8 cpl=0": "code with both L and D is #GP",
    r"(jump|ret) not canonical": "the branch itself faults, not the fetch after it",
    r"mov cr1 cpl=3": "there is no CR1 at any level: #UD",
    r"rdmsr unknown|lstar not canonical|cr8 ": "#GP; QEMU lets unknown and wrong values pass",
    r"int (21h|beyond the table|absent)": "the error code counts gates, also where one has 16 bytes",
    r"lock mov": "#UD: only read-modify-writes of memory can be locked",
    r"misaligned with AC cpl=3": "#AC, which QEMU lacks",
}


def like_for_like(line: str) -> str:
    """Bits of page faults' error codes that QEMU leaves out: it reads before a locked write, and forgets P beside RSVD."""
    found = re.search(r" v=e e=([0-9a-f]+)", line)
    more = (2 if " modify " in line else 0) | (1 if line.startswith("reserved") else 0)
    if not found or not more:
        return line
    return line[: found.start(1)] + f"{int(found[1], 16) | more:x}" + line[found.end(1) :]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    elf, flat = folder / "cases.elf", folder / "cases.bin"
    subprocess.run(["gcc", *FLAGS.split(), f"-Wl,-T,{HERE / 'link.ld'}", str(HERE / "start.S"), str(HERE / "cases.c"), "-o",
                    str(elf)], check=True)
    subprocess.run(["objcopy", "-O", "binary", str(elf), str(flat)], check=True)
    return flat


def on_qemu(kernel: Path) -> list[str]:
    line = [qemu.program(), "-accel", "tcg", "-cpu", "phenom", "-m", "128M", "-nodefaults", "-display", "none", "-serial", "stdio",
            "-no-reboot", "-kernel", str(kernel)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()


def on_model(kernel: Path, engine: ModuleType) -> list[str]:
    config = {**plan.platform(load_machine("opteron48")), "cores": 1, "kernel": str(kernel), "initrd": "", "append": "", "disk": "",
              "seed": 1}
    system = engine.System(json.dumps(config))
    text, state = "", "running"
    for _ in range(600):
        step = system.step(100)
        text += system.console_output().decode()
        state = step["state"]
        if state != "running":
            break
    assert state == "reset", f"ended by {state}: {step['detail']}\n{text[-500:]}"
    return text.splitlines()


def test_every_case_ends_as_on_qemu(kernel: Path, engine: ModuleType) -> None:
    wanted, got = on_qemu(kernel), on_model(kernel, engine)
    assert wanted[-1] == got[-1] == "end"
    assert len(wanted) == len(got) > 1000
    differences = [f"QEMU:  {w}\nmodel: {g}" for w, g in zip(wanted, got, strict=True)
                   if like_for_like(w) != like_for_like(g) and not any(re.match(pattern, g) for pattern in DIFFERENT)]
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences[:40])
