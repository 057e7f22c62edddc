# SPDX-License-Identifier: BSD-3-Clause
"""The bench's arithmetic on a guest and a QEMU of the test's own."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from moscope import cli, jsonio
from moscope.bench import boot as bench_boot
from moscope.guest import kernel, qemu

Script = Generator[str, str, dict[str, Any]]
LOG = ["Linux\n", bench_boot.BEGINS, "\nsums\n", bench_boot.ENDS, "\n", bench_boot.LAST]


def guest() -> Script:
    for piece in LOG:  # noqa: UP028  a list takes nothing that is sent to it
        yield piece
    return {"state": "poweroff"}


@pytest.fixture
def stand_ins(fake: Callable[[Any], list[Any]], image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(guest)
    monkeypatch.setattr(kernel, "find", lambda wanted, say: kernel.from_file(image))
    monkeypatch.setattr(qemu, "ensure", lambda say: None)
    monkeypatch.setattr(qemu, "run", lambda guest, timeout: qemu.Finished("".join(LOG), 2.0, 0, []))


def test_the_bench_compares_both_and_fails_where_a_bar_is_not_met(stand_ins: None, capfd: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["bench", "boot", "--json"])
    document = json.loads(capfd.readouterr().out)
    jsonio.validate(document)
    assert document["qemu_s"] == 2.0 and document["ratio"] == document["moscope_s"] / 2.0 < 1
    # Two steps of a thousand instructions lie between the lines.
    assert document["boot_instructions"] == 2000 and document["instructions"] == 7000
    assert code == (0 if document["compute_mips"] >= 60 else 1) and document["ok"] is (code == 0)


def test_a_guest_that_dies_before_the_work_is_done_gives_no_result(stand_ins: None, fake: Callable[[Any], list[Any]],
                                                                   capfd: pytest.CaptureFixture[str]) -> None:
    def dying() -> Script:
        yield bench_boot.BEGINS
        return {"state": "triple_fault"}

    fake(dying)
    assert cli.main(["bench", "boot", "--json"]) == 4
    out, err = capfd.readouterr()
    assert out == "" and "triple_fault" in err and bench_boot.BEGINS in err


def test_qemus_command_line_has_the_machines_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "program", lambda: "qemu")
    line = qemu.command(qemu.Guest(Path("k"), Path("i"), "a", [6, 2, 0], [[10, 16, 22], [16, 10, 16], [22, 16, 10]], 1 << 29))
    text = " ".join(line)
    assert "-smp 8,sockets=8" in text and "-m 1536M" in text and "thread=single" in text
    assert "node,nodeid=0,memdev=m0,cpus=0-5" in text and "node,nodeid=1,memdev=m1,cpus=6-7" in text
    assert "node,nodeid=2,memdev=m2 " in text + " " and "dist,src=0,dst=2,val=22" in text
